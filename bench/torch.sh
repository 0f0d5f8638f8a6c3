#!/bin/sh
# Times of PyTorch's all_reduce and of a DDP step under rondo's libnccl.so.2 and under NCCL's, whole programs in turns.
#
#   bench/torch.sh -l LIBRARY [-s STOCK] [-n GPUS] [-o RESULTS] [-t TURNS] [-p PYTHON]
#
#   -l  rondo's libnccl.so.2      -s  NCCL's (what PyTorch finds by itself)
#   -n  ranks, a GPU each (2)     -t  turns of each (3)
#
# Raw output goes to RESULTS (build/results/DATE-torch), a table to standard output: medians, and the ratio of each turn,
# NCCL / rondo: median (least to greatest). NVLink multicast stays off for both. Exit: 0 all ran, 1 not, 2 usage.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/number.sh"
library=
stock=
ranks=2
turns=3
python=python3
results=$here/../build/results/$(date +%Y-%m-%d)-torch
while getopts l:s:n:o:t:p: option; do
    case $option in
    l) library=$OPTARG ;;
    s) stock=$OPTARG ;;
    n) number -n "$OPTARG" && ranks=$OPTARG ;;
    o) results=$OPTARG ;;
    t) number -t "$OPTARG" && turns=$OPTARG ;;
    p) python=$OPTARG ;;
    *) library= ; break ;;
    esac
done
[ -f "$library" ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$results" || exit 1
: "${NCCL_NVLS_ENABLE:=0}"
export NCCL_NVLS_ENABLE NCCL_DEBUG=VERSION

# one WHOSE LIBRARY TURN
one() {
    file=$results/$1-$3.txt
    echo "\$ LD_PRELOAD=$(basename "$2") torchrun --nproc-per-node=$ranks torch_times.py   # $1, turn $3" >"$file"
    LD_PRELOAD=$2 timeout 300 "$python" -m torch.distributed.run --standalone "--nproc-per-node=$ranks" \
        "$here/torch_times.py" >>"$file" 2>&1 || { echo "failed: $file" >&2; failed=1; }
}

failed=0
turn=1
while [ "$turn" -le "$turns" ]; do
    one rondo "$library" "$turn"
    one nccl "$stock" "$turn"
    turn=$((turn + 1))
done
grep -q 'served by rondo' "$results/rondo-1.txt" || { echo "rondo's library was not the one that served" >&2; failed=1; }
"$python" - "$results" "$turns" <<'END'
import statistics
import sys

folder, turns = sys.argv[1], int(sys.argv[2])


def read(whose, turn):
    lines = (line.split() for line in open("%s/%s-%d.txt" % (folder, whose, turn)))
    return {tuple(w[:3]): float(w[3]) for w in lines if len(w) == 4 and w[0] in ("all_reduce", "ddp")}


rondo, nccl = ([read(whose, t + 1) for t in range(turns)] for whose in ("rondo", "nccl"))
print("| what | bytes or parameters | in a | rondo us | NCCL us | ratio |\n|---|---|---|---|---|---|")
for key in rondo[0]:
    ours, theirs = [r.get(key, 0) for r in rondo], [r.get(key, 0) for r in nccl]
    ratios = sorted(t / o for o, t in zip(ours, theirs) if o)
    print("| %s | %s | %s | %.4g | %.4g | **%.2f** (%.2f to %.2f) |" %
          (*key, statistics.median(ours), statistics.median(theirs), statistics.median(ratios), ratios[0], ratios[-1]))
END
exit $failed
