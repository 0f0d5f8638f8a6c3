#!/bin/sh
# Collectives and messages between GPUs by slices of plain data: forced, which one-shots alone do not obey, and chosen
# where that leaves multiprocessors to others at little loss.
set -e
test -x test/sim/matrix || {
    echo "built without CUDA: there is nothing to simulate"
    exit 77
}
# Plans of one machine, whatever this one has.
planned=$(cd "$(dirname "$0")/../topo" && pwd)/h200-8.gpus
RONDO_PROTO=simple
export RONDO_PROTO
test/sim/matrix --ranks 3 --share 9/60
test/sim/programs --ranks 3
RONDO_CUDA_CHANNELS=3 test/sim/matrix --ranks 4 --share 5/60
RONDO_CUDA_BLOCKS=2 test/sim/matrix --ranks 2 --share 7/60
SIM_SMS=40 test/sim/matrix --ranks 4 --operation alltoallv
SIM_SMS=40 RONDO_CUDA_CHANNELS=3 test/sim/matrix --ranks 4 --operation shift
SIM_SMS=16 RONDO_P2P=0 test/sim/matrix --ranks 3 --operation alltoall
RONDO_TOPO_FILE=$planned ./rondo-info plan broadcast 256M --device cuda --ranks 8 | grep -q '^. chain  *simple .* us ' || {
    echo "the plan has no chain by simple"
    exit 1
}
unset RONDO_PROTO
for ranks in 2 3 5 8; do # long messages beside short ones
    SIM_SMS=40 SIM_DEVICES=8 RONDO_CUDA_LONG=1024 test/sim/programs --ranks $ranks
done
chosen() {
    RONDO_TOPO_FILE=$planned ./rondo-info plan "$1" "$2" --device cuda --ranks 2 | grep -q "^\* $3 " || {
        echo "$1 of $2, RONDO_CUDA_SPARE=${RONDO_CUDA_SPARE:-3}: not $3"
        exit 1
    }
}
RONDO_CUDA_SPARE=10
export RONDO_CUDA_SPARE
chosen alltoall 64M 'messages  *simple'
chosen allreduce 64M 'ring  *simple'
chosen reduce_scatter 32M 'ring  *simple'
chosen allreduce 1M '.* sentinel'
RONDO_CUDA_SPARE=0
chosen reduce_scatter 32M 'ring  *sentinel'
unset RONDO_CUDA_SPARE
chosen reduce_scatter 32M 'ring  *sentinel'
