#!/bin/sh
# Kernels that are late and out of order by themselves (test/delays/gpu.cuh) are right, and each planted fault is found,
# by one of some seeds: a release that orders nothing, a fence that orders nothing, a flag that goes before its line's
# data. Here the machine lets every store out at once, so that what is found is found by the delays.
set -u
program=test/sim/delayed/collectives
test -x $program || {
    echo "built without a C++ compiler: there is nothing to simulate"
    exit 77
}
SIM_IN_ORDER=1
export SIM_IN_ORDER
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM
for seed in ${RONDO_TEST_SEEDS:-1}; do
    DELAYS_SEED=$seed $program $seed 1 >"$log" 2>&1 || {
        cat "$log"
        echo "DELAYS_SEED=$seed $program $seed 1: wrong"
        exit 1
    }
done
for plant in release fence lines; do
    found=
    for seed in 1 2 3 4 5 6; do
        DELAYS_PLANT=$plant DELAYS_SEED=$seed $program $seed 1 >"$log" 2>&1
        test $? = 1 || continue
        found=$seed
        break
    done
    test -n "$found" || {
        echo "planted $plant: not found"
        exit 1
    }
    echo "planted $plant: found by seed $found"
done
