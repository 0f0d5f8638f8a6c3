#!/bin/sh
# Every client here under rondo's libnccl.so.2, and under NCCL itself with --stock: a line for each, and a log.
#
#   run.sh --library LIBNCCL [--stock LIBNCCL] [--python PYTHON] [--program FILE] [--nccl-tests FOLDER] [--mpirun MPIRUN]
#          [--out FOLDER] [--limit SECONDS] [--budget SECONDS] [NAME...]
#
#   --library     rondo's libnccl.so.2               --stock      NCCL's, to compare with
#   --python      with PyTorch, CuPy, JAX (python3)  --program    nccl_program, built
#   --nccl-tests  the folder with all_reduce_perf and its sisters, and with the _mpi ones if --mpirun is given
#   --out         logs and the table (a new folder)  --limit      of each client (60)
#   --budget      of all: no client begins after it  NAME         only clients whose names begin with one of these
#
# Exit: 0 all passed or skipped under rondo, 1 not, 2 usage.
set -u
here=$(cd "$(dirname "$0")" && pwd)
library=
stock=
python=python3
program=
tests=
mpirun=
out=
limit=60
budget=100000
while [ $# -gt 1 ]; do
    case $1 in
    --library) library=$2 ;;
    --stock) stock=$2 ;;
    --python) python=$2 ;;
    --program) program=$2 ;;
    --nccl-tests) tests=$2 ;;
    --mpirun) mpirun=$2 ;;
    --out) out=$2 ;;
    --limit) limit=$2 ;;
    --budget) budget=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ -f "$library" ] || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ -n "$out" ] || out=$(mktemp -d)
mkdir -p "$out"
table=$out/table.txt
: >"$table"
failed=0
start=$(date +%s)
port=29600
ranks=${CLIENT_RANKS:-2}
wanted=$*

# client NAME TIMES COMMAND...: with rondo's library in all that it starts; TIMES: "stock" also with NCCL's.
client() {
    name=$1
    both=$2
    shift 2
    if [ -n "$wanted" ]; then
        chosen=0
        for w in $wanted; do
            case $name in "$w"*) chosen=1 ;; esac
        done
        [ $chosen = 1 ] || return
    fi
    one rondo "$library" "$name" "$@"
    [ "$both" != stock ] || [ -z "$stock" ] || one nccl "$stock" "$name" "$@"
}

one() {
    whose=$1
    lib=$2
    name=$3
    shift 3
    if [ $(($(date +%s) - start)) -gt "$budget" ]; then
        echo "not run   $whose            $name" | tee -a "$table"
        return
    fi
    log=$out/$(echo "$name" | tr '/' '_').$whose.log
    port=$((port + 10))
    echo "# $*" >"$log"
    began=$(date +%s)
    MASTER_PORT=$port MASTER_ADDR=127.0.0.1 CLIENT_LIBRARY=$lib PYTHONUNBUFFERED=1 NCCL_DEBUG=${NCCL_DEBUG:-VERSION} \
        timeout -k 5 "$limit" "$@" >>"$log" 2>&1
    status=$?
    took=$(($(date +%s) - began))
    case $status in
    0) verdict=PASS ;;
    77) verdict=SKIP ;;
    124 | 137) verdict=HUNG ;;
    *) verdict=FAIL ;;
    esac
    # Under rondo's name something else may have run: the line that it prints says who it was.
    if [ $verdict = PASS ] && [ "$whose" = rondo ] && ! grep -q 'served by rondo' "$log"; then
        verdict=NOT-RONDO
    fi
    if [ "$whose" = rondo ] && [ $verdict != PASS ] && [ $verdict != SKIP ]; then
        failed=$((failed + 1))
    fi
    printf '%-9s %-6s %4d s  %-32s %s\n' $verdict "$whose" $took "$name" \
        "$(grep -h -e 'FAIL' -e 'WRONG' -e 'failure' -e 'Error' -e 'NCCL WARN' -e 'skipped' "$log" | head -1 | cut -c 1-150)" |
        tee -a "$table"
}

# The library goes into the clients alone, not into timeout and mpirun. each.sh: a process for each rank, and the first
# bad status; alone.sh: one.
cat >"$out/each.sh" <<'END'
ranks=$1
shift
r=0
all=
while [ $r -lt "$ranks" ]; do
    RANK=$r LOCAL_RANK=$r WORLD_SIZE=$ranks LD_PRELOAD=$CLIENT_LIBRARY "$@" &
    all="$all $!"
    r=$((r + 1))
done
trap 'kill -9 $all 2>/dev/null' TERM INT
status=0
for process in $all; do
    wait "$process"
    s=$?
    [ $status != 0 ] || status=$s
done
exit $status
END
cat >"$out/alone.sh" <<'END'
LD_PRELOAD=$CLIENT_LIBRARY exec "$@"
END
each="sh $out/each.sh $ranks"
alone="sh $out/alone.sh"

if [ -n "$program" ]; then
    client "nccl_program" stock $alone "$program"
    client "nccl_program-threads" stock $alone "$program" threads
fi
client "torch-c10d" stock $each "$python" "$here/torch_c10d.py"
client "torch-c10d-non-blocking" only env TORCH_NCCL_USE_COMM_NONBLOCKING=1 $each "$python" "$here/torch_c10d.py"
client "torch-c10d-blocking" only env TORCH_NCCL_USE_COMM_NONBLOCKING=0 $each "$python" "$here/torch_c10d.py"
client "torch-train" stock $each "$python" "$here/torch_train.py"
client "torch-torchrun" only $alone "$python" -m torch.distributed.run --standalone "--nproc-per-node=$ranks" \
    "$here/torch_train.py"
client "torch-one-process" stock $alone "$python" "$here/torch_one_process.py"
for case in abort shrink late dead watchdog nonblocking-abort; do
    both=only
    [ $case != watchdog ] || both=stock
    client "torch-trouble-$case" $both $alone "$python" "$here/torch_trouble.py" "$case"
done
client "cupy" stock $alone "$python" "$here/cupy_nccl.py"
client "jax-one-process" stock $alone "$python" "$here/jax_devices.py"
client "jax-two-processes" only env JAX_PROCESSES=2 $alone "$python" "$here/jax_devices.py"
if [ -n "$tests" ]; then
    for name in all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv sendrecv gather scatter hypercube; do
        client "tests-$name" stock $alone "$tests/${name}_perf" -g "$ranks" -b 8 -e 64M -f 8 -n 5 -w 2
    done
    client "tests-types" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 4000 -e 4004 -i 4 -d all -o all -n 2 -w 1
    client "tests-reduce_scatter-types" only $alone "$tests/reduce_scatter_perf" -g "$ranks" -b 8000 -e 8000 -d all \
        -o all -n 2 -w 1
    client "tests-roots" only $alone "$tests/reduce_perf" -g "$ranks" -b 1M -e 1M -r all -d half -o all -n 2 -w 1
    client "tests-broadcast-roots" only $alone "$tests/broadcast_perf" -g "$ranks" -b 3M -e 3M -r all -n 2 -w 1
    client "tests-odd" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 1 -e 4099 -i 683 -d uint8 -n 2 -w 1
    client "tests-unaligned" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 8 -e 8M -f 64 -u 3 -n 2 -w 1
    client "tests-graph" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 8 -e 64M -f 8 -G 5 -n 5 -w 2
    client "tests-sendrecv-graph" only $alone "$tests/sendrecv_perf" -g "$ranks" -b 8 -e 64M -f 64 -G 3 -n 5 -w 2
    client "tests-blocking" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 8 -e 8M -f 64 -z 1 -n 5 -w 2
    client "tests-aggregated" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 8 -e 8M -f 64 -m 4 -n 5 -w 2
    client "tests-null-stream" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 8 -e 8M -f 64 -y 1 -n 5 -w 2
    client "tests-registered" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 8 -e 8M -f 64 -R 1 -n 5 -w 2
    client "tests-windows" only $alone "$tests/all_reduce_perf" -g "$ranks" -b 8 -e 8M -f 64 -R 2 -n 5 -w 2
    client "tests-threads" stock $alone "$tests/all_reduce_perf" -t "$ranks" -b 8 -e 64M -f 8 -n 5 -w 2
    client "tests-parallel-init" only $alone "$tests/all_gather_perf" -t "$ranks" -p 1 -b 8 -e 8M -f 64 -n 5 -w 2
    if [ -n "$mpirun" ]; then
        for name in all_reduce all_gather reduce_scatter alltoall sendrecv; do
            client "tests-mpi-$name" stock "$mpirun" --oversubscribe -n "$ranks" $alone "$tests/${name}_perf_mpi" \
                -b 8 -e 64M -f 8 -n 5 -w 2
        done
    fi
fi
# What a model lost step by step, under both: equal lines are equal bits.
if grep -q 'loss .* 0x' "$out/torch-train.rondo.log" "$out/torch-train.nccl.log" 2>/dev/null; then
    for whose in rondo nccl; do
        sed -n 's/.*\(loss [a-z0-9]* [0-9]* 0x.*\)/\1/p' "$out/torch-train.$whose.log" | sort >"$out/loss.$whose"
    done
    if cmp -s "$out/loss.rondo" "$out/loss.nccl"; then
        echo "losses: bit by bit the same under both libraries" | tee -a "$table"
    else
        echo "losses differ:" | tee -a "$table"
        diff "$out/loss.rondo" "$out/loss.nccl" | tee -a "$table"
    fi
fi
rm -f "$out/each.sh" "$out/alone.sh" "$out"/loss.*
echo "$(grep -c '^PASS *rondo' "$table") passed, $failed failed"
[ $failed -eq 0 ]
