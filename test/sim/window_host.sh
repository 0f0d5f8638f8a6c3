#!/bin/sh
# GPUs that do not reach each other: the programs of this folder on a simulated machine that refuses peer access between
# two of them or all, and with RONDO_P2P=0. Results are right as ever; one line says what it costs, and the plan shows it.
set -e
test -x test/sim/matrix || {
    echo "built without CUDA: there is nothing to simulate"
    exit 77
}
# Plans of one machine, whatever this one has.
planned=$(cd "$(dirname "$0")/../topo" && pwd)/h200-8.gpus
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM

SIM_NO_PEERS=0-1 test/sim/matrix --ranks 3 --share 7/60
SIM_NO_PEERS=1 test/sim/matrix --ranks 8 --kind threads --share 5/150
SIM_NO_PEERS=1 test/sim/programs --ranks 4
SIM_NO_PEERS=1 RONDO_PROTO=simple test/sim/programs --ranks 3
SIM_NO_PEERS=0-1 RONDO_DEBUG=info test/sim/long_groups >"$log" 2>&1 || { cat "$log"; exit 1; }
lines=$(grep -c 'the GPU of rank 0 at .* does not reach that of rank 1 at .*pinned host memory' "$log") || :
test "$lines" = 4 || { # one a communicator
    echo "the pair is named $lines times, not 4"
    exit 1
}
SIM_NO_PEERS=2-3 RONDO_DEBUG=info test/sim/programs --ranks 2 --steps 2 >"$log" 2>&1 || { cat "$log"; exit 1; }
if grep 'pinned host memory' "$log"; then
    echo "that pair takes no part"
    exit 1
fi
SIM_NO_PEERS=0-1 RONDO_DEBUG=warn test/sim/programs --ranks 2 --steps 2 >"$log" 2>&1 || { cat "$log"; exit 1; }
lines=$(grep -c 'the GPU of rank 0 at .* does not reach that of rank 1 at .*rondo-info doctor' "$log") || :
test "$lines" -ge 1 || {
    echo "nobody was warned"
    exit 1
}
RONDO_P2P=0 test/sim/life --times 6
test/sim/suspend --host-windows
RONDO_P2P=0 RONDO_TOPO_FILE=$planned ./rondo-info plan allreduce 1M --device cuda --ranks 8 >"$log"
grep -q 'in pinned host memory' "$log" && grep -q '^\* .*sentinel' "$log" && ! grep -q '^. .*ll128 .* us ' "$log" || {
    cat "$log"
    exit 1
}
