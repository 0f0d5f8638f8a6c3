#!/bin/sh
# Programs of lib/sched on simulated GPUs: the matrix with each of them forced, where what they cannot serve is refused,
# and random programs of operations in which they take turns with all other kernels, in streams and graphs, alone on
# the device and not, with little room, and through host memory. The plan shows them, with a price or a reason.
set -e
test -x test/sim/matrix || {
    echo "built without CUDA: there is nothing to simulate"
    exit 77
}
# Plans of one machine, whatever this one has.
planned=$(cd "$(dirname "$0")/../topo" && pwd)/h200-8.gpus
for ranks in 2 3 4 5 8; do
    test/sim/matrix --ranks $ranks --share $ranks/80 --forced tree/ll128,pat/ll128,rd/ll128,binomial/ll128
done
moves=allgather=pat,gather=binomial,scatter=binomial
trees=allreduce=tree,reduce=tree,broadcast=tree,reduce_scatter=pat,$moves
others=allreduce=pat,reduce=binomial,broadcast=binomial,reduce_scatter=pat,$moves
for ranks in 2 3 4 8; do
    RONDO_ALGO=$trees test/sim/programs --ranks $ranks
done
RONDO_ALGO=$others test/sim/programs --ranks 5
RONDO_ALGO=allreduce=rd,broadcast=tree test/sim/programs --ranks 6
RONDO_ALGO=$trees RONDO_CUDA_FIFOS=2 RONDO_CUDA_BLOCKS=2 test/sim/programs --ranks 3
RONDO_ALGO=$others RONDO_P2P=0 test/sim/programs --ranks 4
RONDO_P2P=0 test/sim/matrix --ranks 3 --share 7/80 --forced tree/ll

plan() { # OPERATION SIZE RANKS PATTERN
    RONDO_TOPO_FILE=$planned ./rondo-info plan "$1" "$2" --device cuda --ranks "$3" >"$log"
    grep -q "$4" "$log" || {
        cat "$log"
        echo "$1 of $2, $3 ranks: no line like '$4'"
        exit 1
    }
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM
plan allreduce 1M 8 '^. tree  *ll128  *[0-9.]* us '
plan allreduce 1M 8 '^. pat  *ll128  *[0-9.]* us '
plan allgather 1M 8 '^. tree  *ll128  *does not do this operation'
RONDO_ALGO=tree plan allreduce 1M 8 '^\* tree  *ll128 '
RONDO_ALGO=tree RONDO_CUDA_FIFOS=1 RONDO_TOPO_FILE=$planned ./rondo-info plan allreduce 1M --device cuda --ranks 8 >"$log" 2>&1 && {
    cat "$log"
    echo "a tree has two channels, and there is one fifo"
    exit 1
}
exit 0
