#!/bin/sh
# The kernels under ThreadSanitizer, each CUDA thread a thread of its own (order.h): collectives of every kind, programs
# of lib/sched, slices, messages, staged operations, signals and rondo_device.cuh are without a data race; and one is
# reported when fences, acquires, barriers, the order of a stream's kernels or what a store depends on are taken away.
set -u
test -x test/sim/raced/collectives || {
    echo "built without a C++ compiler whose thread sanitizer knows fibers"
    exit 77
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM
TSAN_OPTIONS="${TSAN_OPTIONS:-} halt_on_error=1 exitcode=66"
export TSAN_OPTIONS

# run PROGRAM ARGUMENT...: says what it was, if it was wrong.
run() {
    "$@" >"$log" 2>&1 && return
    cat "$log"
    grep -q "ThreadSanitizer: unexpected memory mapping" "$log" && exit 77
    echo "$*: wrong"
    exit 1
}

# found PLANT PROGRAM ARGUMENT...: there must be a report.
found() {
    plant=$1
    shift
    SIM_PLANT=$plant "$@" >"$log" 2>&1
    test $? = 66 && grep -q "WARNING: ThreadSanitizer: data race" "$log" && echo "planted $plant: found by $*" && return
    cat "$log"
    echo "planted $plant: not found by $*"
    exit 1
}

# Windows in the host's memory by 2 ranks, and lines of LL128 by 3; seed 4 has them the other way round.
for seed in ${RONDO_TEST_SEEDS:-3}; do
    run test/sim/raced/collectives "$seed" 1 3
done
run test/sim/raced/messages 1 1 3
run test/sim/raced/messages 32 1 3
run test/sim/raced/proxy 8
run test/sim/raced/device 2 3
run test/sim/raced/signals 3 3
found fence test/sim/raced/device 2 3
found acquire test/sim/raced/device 2 3
found barrier test/sim/raced/device 2 3
found fence test/sim/raced/signals 3 3
found acquire test/sim/raced/signals 3 3
found barrier test/sim/raced/signals 3 3
found fence test/sim/raced/collectives 3 1 3
found acquire test/sim/raced/collectives 3 1 3
found barrier test/sim/raced/collectives 3 1 3
found fence test/sim/raced/messages 1 1 3
found acquire test/sim/raced/messages 1 1 3
found begin test/sim/raced/messages 1 1 3
found follow test/sim/raced/messages 32 1 3
found fence test/sim/raced/proxy 8
