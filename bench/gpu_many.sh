#!/bin/sh
# What is to be known of a machine of more than two GPUs: whether rondo is right there, how it does beside NCCL, and which
# of its ways is the quickest. In steps, of which a second call leaves out those that are over.
#
#   bench/gpu_many.sh [-c FOLDER] [-p RONDO-PERF] [-l LIBNCCL] [-b LIMIT] [-o RESULTS] [-s SECONDS] [-t TURNS] [PART...]
#
#   -c FOLDER       the installed GPU tests (make install-gpu-tests)   -p, -l, -t   as bench/gpu.sh has them
#   -b LIMIT        a program that prints what bare kernels take, called with the number of GPUs; without it: none
#   -s SECONDS      no step goes on for longer than this after the start (570)
#
# Parts: right (check-gpu at every number of ranks, nodes that are played, programs, graphs), bare, nccl (every operation
# in turns with NCCL, on all GPUs, then on fewer), long (from 1 GB), ways (every algorithm and protocol forced, from a
# graph) and nodes (played, over tcp). All of them, in this order, if none is named.
#
# RESULTS (build/results/DATE-gpu-many) gets the output of each step, and folders as bench/gpu.sh leaves them. Exit: 0 all
# steps are over and right, 1 a step failed, 2 usage, 3 there are steps left: call again.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/number.sh"
tests=$here/../build/test/gpu
perf=$here/../build/rondo-perf
nccl=libnccl.so.2
bare=
results=$here/../build/results/$(date +%Y-%m-%d)-gpu-many
seconds=570
turns=5
while getopts c:p:l:b:o:s:t: option; do
    case $option in
    c) tests=$OPTARG ;;
    p) perf=$OPTARG ;;
    l) nccl=$OPTARG ;;
    b) bare=$OPTARG ;;
    o) results=$OPTARG ;;
    s) number -s "$OPTARG" && seconds=$OPTARG ;;
    t) number -t "$OPTARG" && turns=$OPTARG ;;
    *) sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
mkdir -p "$results" || exit 1
: "${NCCL_NVLS_ENABLE:=0}"
export NCCL_NVLS_ENABLE
began=$(date +%s)
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
[ "$gpus" -gt 2 ] || { echo "gpu_many.sh: there are $gpus GPUs here; bench/gpu.sh is for two" >&2; exit 1; }
oversubscribe=
mpirun --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE' && oversubscribe=--oversubscribe
case $gpus in
3) counts=3 fewer='' layouts='2+1' ;;
[4-7]) counts='3 4' fewer=3 layouts='2+2 3+1 1+1+1+1' ;;
*) counts='3 4 5 7 8' fewer='4 5 7' layouts='4+4 2+2+2+2 3+5' ;;
esac
failed=0 left=0

# step NAME LIMIT COMMAND...: once; what is cut by the clock is left for the next call.
step() {
    name=$1 limit=$2
    shift 2
    [ ! -e "$results/$name.over" ] || { [ ! -s "$results/$name.over" ] || failed=1; return; }
    rest=$((seconds - $(date +%s) + began))
    [ $rest -ge $((limit / 2)) ] || { left=$((left + 1)); return; }
    [ "$limit" -lt $rest ] || limit=$rest
    mkdir -p "$(dirname "$results/$name")"
    start=$(date +%s)
    echo "\$ $*" >"$results/$name.txt"
    timeout -k 5 "$limit" "$@" >>"$results/$name.txt" 2>&1
    status=$?
    echo "$name: status $status, $(($(date +%s) - start)) s; $(tail -n 1 "$results/$name.txt" | cut -c1-120)"
    case $status in
    0) : >"$results/$name.over" ;;
    124 | 137) left=$((left + 1)) ;;
    *) echo "$status" >"$results/$name.over"; failed=1 ;;
    esac
}

right() {
    for n in $counts; do
        step "matrix-$n" 60 "$tests/matrix" --ranks "$n" --share 1/40
        step "programs-$n" 60 "$tests/programs" --ranks "$n" --seconds 10
    done
    for layout in $layouts; do
        step "matrix-$layout" 60 "$tests/matrix" --nodes "$layout" --share 1/40
        step "programs-$layout" 60 "$tests/programs" --nodes "$layout" --seconds 10
    done
    for program in rails registered copy_engine rounds long_groups narrow life; do
        step "$program" 180 "$tests/$program"
    done
}

# beside FOLDER OPTIONS...: a step an operation, because turns with NCCL take time.
beside() {
    folder=$1
    shift
    for what in allreduce allgather reduce_scatter broadcast reduce alltoall sendrecv; do
        step "beside-$folder/$what" 150 "$here/gpu.sh" -p "$perf" -l "$nccl" -t "$turns" -o "$results/$folder" "$@" $what
    done
}

# way OPERATION ALGO/PROTO...: forced, without a peer; where a way cannot serve a size, the command ends: no failure.
way() {
    op=$1
    shift
    for forced in chosen "$@"; do
        before=$failed raw=ways-$gpus/$op-$(echo "$forced" | tr / -)
        set -- "$op" --device cuda --graph -b 16 -e 256M -f 4 --turns "$turns"
        [ "$forced" = chosen ] || set -- "$@" --algo "${forced%/*}" --proto "${forced#*/}"
        step "$raw" 30 mpirun $oversubscribe -n "$gpus" "$perf" "$@"
        grep -q ' failed: unsupported: ' "$results/$raw.txt" 2>/dev/null && failed=$before
    done
}

ways() {
    way allreduce oneshot/ll oneshot/ll128 oneshot/sentinel twoshot/ll128 twoshot/sentinel ring/ll128 ring/sentinel \
        ring/simple tree/ll128 pat/ll128 rd/ll128
    way broadcast oneshot/ll128 twoshot/ll128 chain/ll128 chain/simple tree/ll128 binomial/ll128
    way reduce oneshot/ll128 twoshot/ll128 chain/ll128 chain/simple tree/ll128 binomial/ll128
    way alltoall oneshot/ll oneshot/ll128 messages/ll128 messages/simple
    way sendrecv messages/ll128 messages/simple
    way allgather oneshot/ll128 ring/ll128 ring/simple pat/ll128
    way reduce_scatter oneshot/ll oneshot/ll128 oneshot/sentinel ring/ll128 ring/sentinel ring/simple pat/ll128
}

for part in ${*:-right bare nccl long ways nodes}; do
    case $part in
    right) right ;;
    bare) [ -z "$bare" ] || step "bare-$gpus" 90 "$bare" "$gpus" ;;
    nccl) for n in $gpus $fewer; do beside "$n" -n "$n" -b 16; done ;;
    long) beside "$gpus-long" -n "$gpus" -b 1G -e 4G ;;
    ways) ways ;;
    nodes) for layout in $layouts; do beside "$layout" -N "$layout" -b 16; done ;;
    *) echo "gpu_many.sh: there is no part $part" >&2; exit 2 ;;
    esac
done
[ $left -eq 0 ] || { echo "$left steps are left: call again with -o $results"; exit 3; }
exit $failed
