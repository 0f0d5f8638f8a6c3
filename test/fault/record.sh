#!/bin/sh
# The recorded trials of doc/reliability.md: 20,000 and more, on a quiet machine, an hour. From a build folder:
#
#   ../test/fault/record.sh [DIVISOR]       DIVISOR 100: a hundredth of them, to see that all is there
set -u
by=${1:-1}
here=$(cd "$(dirname "$0")/../.." && pwd)
failed=0
# On a machine with GPUs a UCX with CUDA opens the driver, which leaves descriptors and threads until the process ends.
export UCX_MODULES="${UCX_MODULES-^cuda}"
run() {
    echo "\$ $*"
    "$@" || failed=1
}
echo "$(date -u +%Y-%m-%d), $(cd "$here" && git rev-parse --short HEAD 2>/dev/null), $(nproc) cores, $(uname -sr)"
run test/fault/trials --count $((20000 / by)) --seed 100000 --jobs "$(nproc)"
run test/fault/trials --count $((2500 / by)) --seed 300000 --jobs "$(nproc)" --nodes 2 --kinds kill,stop,late,abort
run test/fault/refused --sample $((100 / by))
run test/fault/kth --seed 1 --sample $((1000 / by))
run test/fault/kth --seed 2 --nodes 2 --sample $((100 / by))
[ "$by" -gt 1 ] || run "$here/test/fault/mutants.sh"
run test/fault/hostile --count $((3400 / by))
exit $failed
