#!/bin/sh
# rondo-info: what it shows is there, what is forced is taken or refused with its reason, exit codes are as promised.
info="$top_builddir/rondo-info"
[ -x "$info" ] || { echo "no $info"; exit 77; }
unset RONDO_ALGO RONDO_PROTO RONDO_DEBUG RONDO_DEBUG_FILE RONDO_TOPO_FILE RONDO_SLOT_BYTES RONDO_SLICE_BYTES \
    RONDO_IFACE RONDO_NET RONDO_PORTS RONDO_UCX_TLS
failures=0

# check CODE PATTERN COMMAND...: its exit code (a pattern of the shell's), and a line of its output
check()
{
    code=$1 pattern=$2
    shift 2
    output=$(timeout 20 "$@" 2>&1)
    got=$?
    case $got in $code) ;; *) false ;; esac
    if [ $? != 0 ] || ! printf '%s\n' "$output" | grep -q -e "$pattern"; then
        echo "failed: $*: exit $got, wanted $code with a line like '$pattern'; it said:"
        printf '%s\n' "$output" | head -20
        failures=$((failures + 1))
    fi
}

check 0 '^NAME' "$info" --help
check 0 '^rondo-info [0-9]*\.[0-9]*\.[0-9]*$' "$info" --version
check 0 '^usable  *[1-9]' "$info"
check 0 '^reductions ' "$info"
check 1 'could not be written' sh -c '"$0" >/dev/full' "$info"
check 1 'could not be written' sh -c '"$0" --env >/dev/full' "$info"
port=$((20000 + $$ % 10000))
# Limits are this machine's, so only what was made wrong here is known to be wrong.
check '[01]' '^[0-9]* checked: ' "$info" doctor
check 1 'WRONG  open files ' sh -c 'ulimit -n 50 && "$0" doctor' "$info"
ranks=$("$info" | sed -n 's/^usable  *\([0-9]*\):.*/\1/p')
[ "$ranks" -gt 1 ] || ranks=2
check 1 'WRONG  open files ' sh -c 'ulimit -n $1 && "$0" doctor' "$info" $((63 + 2 * ranks))
check '[01]' 'ok     open files ' sh -c 'ulimit -n $1 && "$0" doctor' "$info" $((64 + 2 * ranks))
check 1 'WRONG  memory .*ulimit -f' sh -c 'ulimit -f 64 && "$0" doctor' "$info"
check '[01]' 'note   peers. memory .*RONDO_CMA=0' env RONDO_CMA=0 "$info" doctor
check 1 'WRONG  interface .*RONDO_IFACE=nosuch' env RONDO_IFACE=nosuch "$info" doctor
check 1 'WRONG  ports  *1 of [0-9]* ' env RONDO_IFACE=lo RONDO_PORTS=$port-$port "$info" doctor
check '[01]' 'ok     connection .* 127.0.0.1 ' env RONDO_IFACE=lo "$info" doctor
check '[01]' '^ranks meet on ' "$info" net
check 0 '^ranks meet on  lo, 127.0.0.1: RONDO_IFACE' env RONDO_IFACE=lo "$info" net
check 0 '^lo  *up  *127.0.0.1 .* ranks meet$' env RONDO_IFACE=lo "$info" net
check 1 'RONDO_IFACE=nosuch' env RONDO_IFACE=nosuch "$info" net
if "$info" | grep -q 'ucx, between nodes'; then
    check 0 '^rail 0 .*tcp/lo: ranks meet there' env RONDO_IFACE=lo "$info" net
    check 0 '^GPUs .*no device memory$' env RONDO_IFACE=lo RONDO_UCX_TLS=tcp "$info" net
    check 0 '^rail 1 .*tcp/lo: RONDO_NET names it' env RONDO_IFACE=lo RONDO_NET=lo,lo "$info" net
    check 0 '^rail 0 .*tcp/lo: ranks meet there' env RONDO_IFACE=lo UCX_NET_DEVICES=mlx5_0:1 "$info" net
    check 0 '^there are .*tcp/lo' env RONDO_IFACE=lo UCX_NET_DEVICES=mlx5_0:1 "$info" net
    check 1 'WRONG  network library .*RONDO_NET' env RONDO_NET=nosuch "$info" doctor
    check 1 'RONDO_NET' env RONDO_NET=nosuch "$info" net
    check 1 '^rail 0 .*tcp/lo: RONDO_NET names it' env RONDO_IFACE=lo RONDO_NET=lo,nosuch "$info" net
    check 1 '^rail 1 *nosuch: UCX cannot start' env RONDO_IFACE=lo RONDO_NET=lo,nosuch "$info" net
    check 1 '^there are .*tcp/lo' env RONDO_IFACE=lo RONDO_NET=lo,nosuch "$info" net
else
    check '[01]' 'built without UCX' "$info" doctor
    check 0 'built without UCX' env RONDO_IFACE=lo "$info" net
fi
plugin=$top_builddir/.libs/libnccl-net-test11.so
if [ -e "$plugin" ]; then
    export RONDO_NET_PLUGIN="$plugin"
    check 1 '^rail 0 *nosuch: RONDO_NET names nosuch' env RONDO_TRANSPORT=plugin RONDO_NET=nosuch "$info" net
    check 1 '^there are *test0 test1$' env RONDO_TRANSPORT=plugin RONDO_NET=nosuch "$info" net
    check 0 '^rail 1 *test0: RONDO_NET names it$' env RONDO_TRANSPORT=plugin RONDO_NET=test1,test0 "$info" net
    unset RONDO_NET_PLUGIN
fi
check 0 'RONDO_SLOT_BYTES .*64K' env RONDO_SLOT_BYTES=64K "$info" --env
check 0 'not allowed' env RONDO_SLOT_BYTES=63 "$info" --env
check 1 'RONDO_SLOT_BYTES=63' env RONDO_SLOT_BYTES=63 "$info"
check 1 'RONDO_SLOT_BYTES=63' env RONDO_DEBUG=none RONDO_SLOT_BYTES=63 "$info"
check 0 'perhaps RONDO_ALGO' env RONDO_ALOG=ring "$info"
for operation in allreduce reduce broadcast allgather reduce_scatter alltoall gather scatter; do
    for size in 0 8 1K 1M 3G; do
        check 0 '^--> ' "$info" plan $operation $size --ranks 5
    done
done
check 0 '^--> ' "$info" plan barrier
check 0 '^--> ring .* simple' env RONDO_ALGO=ring "$info" plan allreduce 1M --ranks 4
check 0 '^--> .* simple' env RONDO_PROTO=simple "$info" plan allreduce 8 --ranks 4
check 0 '^--> tree ' env RONDO_ALGO=ring,broadcast=tree "$info" plan broadcast 1M --ranks 4
check 0 '^--> tree ' env RONDO_ALGO='Ring;Broadcast:Tree' "$info" plan broadcast 1M --ranks 4
check 0 '^--> ring ' env RONDO_ALGO='ring,pat;broadcast:tree' "$info" plan allreduce 64M --ranks 4
check 0 'RONDO_ALGO excludes it' env RONDO_ALGO='broadcast:^tree,ring' "$info" plan broadcast 1M --ranks 4
check 1 'no operation "brodcast" to choose for; there are allreduce, ' env RONDO_ALGO='brodcast:tree' "$info" plan broadcast 1M --ranks 4
check 1 'no algorithm "teer"; there are ' env RONDO_ALGO='ring;broadcast:tree,teer' "$info" plan broadcast 1M --ranks 4
check 1 'only the first list' env RONDO_ALGO='broadcast:tree;ring' "$info" plan broadcast 1M --ranks 4
check 0 'RONDO_ALGO names another' env RONDO_ALGO=ring "$info" plan allreduce 1M --ranks 4
check 0 'longer than' "$info" plan allreduce 1M --ranks 4
check 0 '2 nodes' "$info" plan allreduce 1M --ranks 4 --nodes 2
check 0 '^rank 3: ' "$info" plan allreduce 1M --ranks 4 --steps
check 0 ' <- ' "$info" plan allreduce 1M --ranks 4 --steps --rank 2
check 1 'twoshot does not do this operation' env RONDO_ALGO=twoshot "$info" plan broadcast 1M --ranks 4
check 0 '^--> .* simple' env RONDO_PROTO='ll;AllReduce:Simple' "$info" plan allreduce 8 --ranks 4
check 0 '^--> .* ll' env RONDO_PROTO='simple;allreduce:^simple,cma,board-ll,board' "$info" plan allreduce 8 --ranks 4
check 0 '^--> .* simple' env RONDO_PROTO=ll,simple "$info" plan allreduce 1M --ranks 4
check 0 '^--> ' env RONDO_PROTO=broadcast=ll "$info" plan allreduce 1M --ranks 4
check 1 'RONDO_PROTO=alreduce:ll: there is no operation' env RONDO_PROTO=alreduce:ll "$info" plan allreduce 1M --ranks 4
check 1 'on host memory there are ll, ' env RONDO_PROTO='allreduce:ll128' "$info" plan allreduce 1M --ranks 4
check 1 'RONDO_PROTO=ll' env RONDO_PROTO=ll "$info" plan allreduce 1M --ranks 4
check 1 'no algorithm "rign"' env RONDO_ALGO=rign "$info" plan allreduce 1M --ranks 4
check 0 '^--> .* simple' "$info" plan allreduce 1M --ranks 8 --nodes 2 --played
check 0 'allreduce 64 MB  *hier_' "$info" scale 4x8
check 2 'NODESxRANKS' "$info" scale 4x
check 0 '^1 node of 4  *0  *0  *[1-9][0-9]*  *0$' "$info" memory 1x4
check 0 '^2 nodes of 1  *0  *0  *0  *[1-9][0-9]*$' "$info" memory 1x4 2x1
check 0 '^64 nodes of 8 ' "$info" memory
check 2 'NODESxRANKS' "$info" memory 0x1
check 2 'wanted is host or cuda' "$info" memory --device none
check 2 'wanted is a number of cores' "$info" memory --cores 0
if ! "$info" | grep -q '^CUDA  *built without'; then
    check 0 '^1 node of 8  *[1-9][0-9]*  *64  *[1-9][0-9]*  *0$' "$info" memory --device cuda
else
    check 2 'without CUDA' "$info" memory --device cuda
fi
check 2 'nonsense' "$info" nonsense
check 2 'OPERATION' "$info" plan nonsense 8
check 2 'SIZE' "$info" plan allreduce
check 2 'SIZE' "$info" plan allreduce 8x
check 2 'ranks' "$info" plan allreduce 8 --ranks zero
check 0 '(4294967296G in all)' "$info" plan allgather 1073741824G --ranks 4
check 2 '4 times 4611686018427387904 bytes are more than 2^63' "$info" plan allgather 4294967296G --ranks 4
check 2 '1 times 9223372036854775809 bytes' "$info" plan allreduce 9223372036854775809
check 2 'nodes' "$info" plan allreduce 8 --ranks 2 --nodes 3
check 2 'help' "$info" plan allreduce 8 --frobnicate
if "$info" | grep -q '^topology  *hwloc'; then
    check 0 'packages 2, NUMA nodes 2, cores 16, threads 32' env RONDO_TOPO_FILE="$top_srcdir/test/topo/two-packages.xml" "$info"
else
    check 1 'hwloc' env RONDO_TOPO_FILE="$top_srcdir/test/topo/two-packages.xml" "$info"
fi
# NCCL's XML stands for a machine, and comes out as it went in; what is no machine's is an error.
check 1 'cannot be read as a machine' env RONDO_TOPO_FILE="$top_srcdir/NEWS" "$info" topo
xml=$(mktemp) || exit 1
if RONDO_TOPO_FILE="$top_srcdir/test/topo/h200-8.gpus" "$info" topo --xml "$xml" &&
    ! RONDO_TOPO_FILE="$xml" "$info" topo 2>&1 | grep -q 'without which'; then
    check 0 'closed here: 0 1 2 3 4 5 6 7; 370.8 GB/s' env RONDO_TOPO_FILE="$xml" "$info" topo
    check 0 'GPU7  *NV18 ' env RONDO_TOPO_FILE="$xml" "$info" topo
    RONDO_TOPO_FILE="$xml" "$info" topo --xml "$xml.again" && cmp "$xml" "$xml.again" || failures=$((failures + 1))
else
    check 1 'expat' env RONDO_TOPO_FILE="$xml" "$info" topo
fi
rm -f "$xml" "$xml.again"
[ $failures = 0 ]
