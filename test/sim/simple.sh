#!/bin/sh
# RONDO_PROTO=simple: what goes through fifos between GPUs goes by slots of plain data, all else is chosen as ever.
set -e
test -x test/sim/matrix || {
    echo "built without CUDA: there is nothing to simulate"
    exit 77
}
RONDO_PROTO=simple
export RONDO_PROTO
test/sim/matrix --ranks 3 --share 9/60
test/sim/programs --ranks 3
test/sim/registered
test/sim/long_groups
RONDO_ALGO=chain,allreduce=ring test/sim/matrix --ranks 4 --operation broadcast --share 3/8
./rondo-info plan broadcast 256M --device cuda --ranks 8 | grep -q '^. chain  *simple .* us ' || {
    echo "the plan has no chain by simple"
    exit 1
}
