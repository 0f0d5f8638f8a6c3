#!/bin/sh
# More ranks than map each other's memory, on simulated GPUs: on one node and on two, where a node has few or more than
# that itself, and on many of one or two ranks, whose rails are longer than a launch's table.
set -e
test -x test/sim/matrix || {
    echo "built without CUDA: there is nothing to simulate"
    exit 77
}
./rondo-info 2>&1 | grep -q 'ucx [0-9]' || {
    echo "built without UCX: no nodes can be played"
    exit 77
}
RONDO_PROXY_THREADS=2
export RONDO_PROXY_THREADS
test/sim/matrix --ranks 18 --share 7/300
said=$(RONDO_DEBUG=warn test/sim/matrix --ranks 17 --operation alltoallv 2>&1)
echo "$said" | grep -q '17 ranks on one node, more than the 16.*Communicators of fewer' || {
    echo "$said"
    exit 1
}
test/sim/matrix --nodes 18+2 --share 11/300
test/sim/matrix --nodes 1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1 --operation allgatherv
for operation in allgather alltoall reduce_scatter; do
    test/sim/matrix --nodes 2+2+2+2+2+2+2+2+2 --operation $operation
done
for operation in gather scatter reduce_scatterv; do
    RONDO_PROXY_ROUND=1K test/sim/matrix --nodes 2+2+2+2+2+2+2+2+2 --operation $operation --share 1/20
done
test/sim/programs --ranks 17 --steps 12
test/sim/programs --nodes 9+9 --steps 12
test/sim/rounds --many
test/sim/life --part many --times 3 --on 10+10
test/sim/life --part many --times 3 --on 24
