#!/bin/sh
# Measures rondo on the GPUs of this machine beside NCCL in turns, every rank a process with a GPU of its own: from a
# graph and in a stream, NCCL as it is and with symmetric windows; what can go by copy engines also so, from a graph.
#
#   bench/gpu.sh [-n RANKS | -N RANKS+RANKS] [-p RONDO-PERF] [-l LIBNCCL] [-o RESULTS] [-t TURNS]
#                [-b BYTES] [-e BYTES] [OPERATION...]
#
# Sizes go from -b (8) to -e (256M; with blocks for every rank 64M) by fours.
#
# With -N the GPUs play nodes, each with the given number of ranks: both libraries use tcp on the loopback device between
# them. Ranks are not bound to cores there, because a rank and its proxy thread need a core each.
#
# Raw output goes to RESULTS (build/results/DATE-gpu, or -gpu-nodes), a record to RESULTS.jsonl; bench/tables.py makes
# tables of it. NVLink multicast stays off for both. Exit: 0 all results right, 1 not, 2 usage.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/number.sh"
ranks=2
perf=$here/../build/rondo-perf
nccl=libnccl.so.2
results=
turns=5
nodes=
first=8
last=
while getopts n:N:p:l:o:t:b:e: option; do
    case $option in
    n) number -n "$OPTARG" && ranks=$OPTARG ;;
    N) nodes=$OPTARG ;;
    p) perf=$OPTARG ;;
    l) nccl=$OPTARG ;;
    o) results=$OPTARG ;;
    t) number -t "$OPTARG" && turns=$OPTARG ;;
    b) first=$OPTARG ;;
    e) last=$OPTARG ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
: "${results:=$here/../build/results/$(date +%Y-%m-%d)-gpu${nodes:+-nodes}}"
mkdir -p "$results" || exit 1
: "${NCCL_NVLS_ENABLE:=0}"
export NCCL_NVLS_ENABLE
oversubscribe= free=
mpirun --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE' && oversubscribe=--oversubscribe free='--bind-to none'
failed=0
for count in $(echo "$nodes" | tr + ' '); do
    number -N "$count"
done
[ -z "$nodes" ] || ranks=$nodes

# start PROGRAM ARGUMENTS...: by mpirun, each node's ranks with a host id of their own, which both libraries take.
start() {
    # shellcheck disable=SC2086
    if [ -z "$nodes" ]; then
        timeout 300 mpirun $oversubscribe -n "$ranks" "$@"
        return
    fi
    colon= number=0
    command="timeout 300 mpirun $oversubscribe $free"
    for count in $(echo "$nodes" | tr + ' '); do
        number=$((number + 1))
        command="$command $colon -n $count env RONDO_HOSTID=node$number NCCL_HOSTID=node$number RONDO_IFACE=lo"
        command="$command NCCL_SOCKET_IFNAME=lo $*"
        colon=:
    done
    $command
}

# mode peer operation sizes...: one run, appended to the mode's file.
measure() {
    mode=$1
    peer=$2
    op=$3
    shift 3
    file=$results/$op-$mode-$(echo "$peer" | tr : -)-$ranks.txt
    set -- "$op" --device cuda --peer "$peer" --nccl "$nccl" --turns "$turns" "$@"
    [ "$mode" = stream ] || set -- "$@" --graph
    [ "$mode" != copy ] || set -- "$@" --register --algo copy
    echo "\$ mpirun -n $ranks rondo-perf $*" >"$file"
    start "$perf" "$@" >>"$file" 2>&1 || { echo "failed: $file" >&2; failed=1; }
    grep -v '^[#$]' "$file"
}

for op in ${*:-allreduce allgather reduce_scatter broadcast reduce alltoall sendrecv}; do
    to=256M
    case $op in allgather | alltoall) to=64M ;; esac
    to=${last:-$to}
    echo "== $op"
    measure graph nccl "$op" -b "$first" -e "$to" -f 4
    measure stream nccl "$op" -b "$first" -e "$to" -f 4
    case $op$last in
    allreduce | allgather | reduce_scatter) measure graph nccl:symmetric "$op" -b "$first" -e 4M -f 4 ;;
    esac
    case $op$nodes$last in
    allgather | alltoall | broadcast) measure copy nccl "$op" -b 512K -e "$to" -f 4 ;;
    esac
done
gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader | sort | uniq -c | sed 's/^ *\([0-9]*\) /\1 x /')
"$here/record.py" -o "$results.jsonl" --name "$(basename "$results")" --date "$(date +%Y-%m-%d)" --gpus "$gpus" \
    --command "bench/gpu.sh ${nodes:+-N }${nodes:--n $ranks} -t $turns; NCCL_NVLS_ENABLE=$NCCL_NVLS_ENABLE" "$results" ||
    failed=1
echo "raw output: $results, record: $results.jsonl"
exit $failed
