#!/bin/sh
# rondo-info doctor --network on three hosts that network namespaces play, with faults of their network: an address that
# one host may not reach, ports that a firewall closes, a host whose card is a hundred times slower, a switch that passes
# shorter packets than the hosts send. The launcher and its MPI go by the other network, which is well.
set -u
build=$(cd "${top_builddir:-.}" && pwd)
play=$build/test/played/play
"$build/rondo-info" 2>/dev/null | grep -q 'ucx' || { echo "rondo is built without UCX"; exit 77; }
command -v mpirun.openmpi >/dev/null || { echo "no Open MPI"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 RONDO_IFACE=eth0
RONDO_PORTS=40000-40999
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM RONDO_IFACE RONDO_PORTS

# The launcher calls it with a host's address, and gives the rest to a shell, as ssh does.
cat >"$dir/agent" <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$((\${1##*.} - 1))
shift
exec "$play" --on \$host sh -c "\$*"
END
# job FAULT...: a command that plants it; where the system refuses, 77
cat >"$dir/job" <<END
#!/bin/sh
sh -c "\$1" || exit 77
exec mpirun.openmpi --mca plm_rsh_agent "$dir/agent" --mca oob_tcp_if_include 10.99.8.0/24 \\
    --mca btl tcp,self --mca btl_tcp_if_include 10.99.8.0/24 --mca pml ob1 --bind-to none --oversubscribe \\
    -x RONDO_IFACE -x RONDO_PORTS -x UCX_LOG_LEVEL=fatal -n 3 -H 10.99.8.1,10.99.8.2,10.99.8.3 \\
    "$build/rondo-info" doctor --network
END
chmod +x "$dir/agent" "$dir/job"
PATH=$PATH:/usr/sbin:/sbin
tried=0

# check STATUS FAULT PATTERN...: the exit status is one of those in the pattern STATUS, and each PATTERN is in a line of
# the output
check() {
    wanted=$1 fault=$2
    shift 2
    timeout 150 "$play" 3 "$dir/job" "$fault" >"$dir/out" 2>&1 </dev/null
    status=$?
    [ $status != 77 ] || { echo "not possible here: $fault"; return; }
    tried=$((tried + 1))
    case $status in
        $wanted) ;;
        *) cat "$dir/out"; echo "status $status with: $fault"; exit 1 ;;
    esac
    for pattern; do
        grep -q -e "$pattern" "$dir/out" || { cat "$dir/out"; echo "no line like '$pattern' with: $fault"; exit 1; }
    done
}

check 0 true '^3 ranks on 3 nodes' 'ok     connections' 'ok     rates'
check 1 "$play --on 2 ip route add prohibit 10.99.7.2/32" \
    'WRONG  firewall  *host2 cannot connect to host1 at 10\.99\.7\.2:[0-9]* (eth0): ' \
    'WRONG  firewall  *host1 cannot connect to host2 at 10\.99\.7\.3:[0-9]* (eth0): nothing answers within 3 s' \
    '^  1 host0  *\.  *[0-9.][0-9.]*  *[0-9.][0-9.]*$' '^  2 host1  *[0-9.][0-9.]*  *\.  *blocked$'
# Where ranks meet is open, and the ports of UCX are not: it waits in its call for two minutes, in a process that is ended.
check 1 "$play --on 1 nft 'add table inet f; add chain inet f i { type filter hook input priority 0; };
    add rule inet f i ip saddr 10.99.7.1 ct state new tcp dport != 40000-40999 drop'" 'ok     connections' \
    'WRONG  transport  *host0 .* and host1 .* cannot make a communicator: .*firewall' \
    '^  1 host0  *\.  *fails  *[0-9.][0-9.]*$' '^  2 host1  *fails  *\.  *[0-9.][0-9.]*$'
# A host that is slow to send; this machine would have to slow the others by as much to hide it.
check 1 "$play --on 1 tc qdisc add dev eth0 root tbf rate 50mbit burst 64kb latency 50ms" \
    'WRONG  slow node  *host1 sends at most 0\.00'
# One that loses a packet in twenty of those that it gets. By which of them are lost a direction is slow as well, or not.
check '[01]' "$play --on 1 nft 'add table inet f; add chain inet f i { type filter hook input priority 0; };
    add rule inet f i iifname eth0 numgen random mod 20 lt 1 drop'" \
    'note   lost packets  *of what host1 gets from every other node up to [0-9.]* % is sent again'
# Packets that the card cuts by itself pass the switch whole, so it may not.
no_cut=
for host in 0 1 2; do
    no_cut="$no_cut $play --on $host ip link set eth0 gso_max_segs 1 && ip link set h$host.0 gso_max_segs 1 &&"
done
check 1 "$no_cut ip link set h2.0 mtu 900" \
    'WRONG  MTU  *host0 .* and host2 .* pass short messages, but long ones stall' \
    'WRONG  MTU  *host1 .* and host2 .* pass short messages, but long ones stall' \
    '^  1 host0  *\.  *[0-9.][0-9.]*  *stalls$'
# A host whose firewall passes nothing from itself to itself: the port is that at which it was tried.
timeout 60 "$play" 2 "$play" --on 1 sh -c '
    nft "add table inet f; add chain inet f o { type filter hook output priority 0; }; add rule inet f o oif lo drop" ||
        exit 77
    "$0" doctor' "$build/rondo-info" >"$dir/out" 2>&1 </dev/null
if [ $? != 77 ]; then
    tried=$((tried + 1))
    grep -q 'WRONG  connection  *this host does not reach itself by 10\.99\.7\.[0-9]*, port [1-9][0-9]*' "$dir/out" ||
        { cat "$dir/out"; echo "a host that does not reach itself"; exit 1; }
fi
[ $tried -gt 0 ] || exit 77
