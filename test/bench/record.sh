#!/bin/sh
# Records of measurements: raw output becomes one, comparing finds what became worse and only that, and the records that
# lie in bench/results are well formed.
set -u
bench=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/bench
command -v python3 >/dev/null 2>&1 || { echo "no python3 here"; exit 77; }
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
fail() {
    echo "$*"
    failed=1
}

# expect STATUS TEXT COMMAND...: the command ends so, and says TEXT (a regular expression)
expect() {
    status=$1
    text=$2
    shift 2
    "$@" >"$dir/out" 2>&1
    got=$?
    [ $got -eq "$status" ] || { cat "$dir/out"; fail "exit status $got, not $status: $*"; }
    grep -q -e "$text" "$dir/out" || { cat "$dir/out"; fail "does not say \"$text\": $*"; }
}

convert() {
    python3 "$bench/record.py" -o "$dir/$1.jsonl" --name fixture --date 2026-11-25 --commit 1234567 "$dir/raw"
}

mkdir "$dir/raw"
cat >"$dir/raw/allreduce-1+1-ob1.txt" <<'EOF'
$ mpirun --mca pml ob1 --mca btl tcp,self -n 1 env RONDO_HOSTID=node1 rondo-perf allreduce --peer mpi : --mca pml ob1 -n 1 env RONDO_HOSTID=node2 rondo-perf allreduce --peer mpi
rondo 0.1.0 host:1 0/2 perf: a line that is no row
# rondo-perf 0.1.0: allreduce, float32 sum, 2 ranks, host memory, out of place
# Some CPU; 2 cores (1 for a rank), 24104 MB; Linux 6.18.44-x x86_64
# peer: Open MPI v4.1.4, in turns; ratio = peer / rondo, median of 5 turns: above 1, rondo is faster
#      bytes       count    time us        min        max    algbw    busbw #wrong    peer us   ratio     low    high
#                          (median)                         (GB/s)   (GB/s)          (median)          (25 %)  (75 %)
           8           2      9.582      9.375      9.780    0.001    0.001      0     10.408    1.09    1.07    1.10
     8388608     2097152   8799.581   8377.947   9121.818    0.953    0.953      0   6754.733    0.77    0.75    0.82
# all results right
EOF
cat >"$dir/raw/broadcast-copy-2.txt" <<'EOF'
$ mpirun -n 2 rondo-perf broadcast --device cuda --peer nccl:symmetric --turns 5 --graph --register --algo copy
# rondo-perf 0.1.0: broadcast, float32, root 0, 2 ranks, CUDA, from a graph, in place
# Some CPU; 2 cores (2 for a rank), 24104 MB; Linux 6.18.44-x x86_64
# peer: NCCL 2.28.9 with symmetric windows, /usr/lib/libnccl.so.2, in turns; ratio = peer / rondo, median of 5 turns
      524288      131072     20.100     19.900     20.300   43.700   21.850    N/A      7.640    0.38    0.37    0.38
EOF
cat >"$dir/raw/reduce-forced-4.txt" <<'EOF'
$ mpirun -n 4 rondo-perf reduce --device cuda --graph --algo oneshot --proto ll128
# rondo-perf 0.1.0: reduce, float32 sum, root 0, 4 ranks, CUDA, from a graph, out of place
          16           4      3.912      3.910      3.915    0.004    0.004      0
rondo 0.1.0 vm:2569 0/4 perf: reduce of float32, 262144 elements, RONDO_ALGO 'oneshot', RONDO_PROTO 'll128': too long
EOF
cat >"$dir/raw/call-2.txt" <<'EOF'
$ mpirun -n 2 rondo-perf call
# rondo-perf call: an allreduce of 8 bytes between 2 ranks against a bare exchange over shared lines
# 5 turns of 79998 and 79998 calls; medians, quartiles in brackets
rondo            116.5 ns [107.0 122.1]
bare              65.7 ns [65.0 67.5]
call's path       48.6 ns [40.8 56.8]
# results right
EOF
convert old || fail "raw output is not converted"
python3 - "$dir/old.jsonl" <<'EOF' || fail "the record is not what the raw output says"
import json
import sys

meta, *rows = map(json.loads, open(sys.argv[1]))
assert meta == {"record": "fixture", "date": "2026-11-25", "commit": "1234567", "turns": 5, "type": "float32",
                "machine": "Some CPU, 2 cores, 24104 MB, Linux 6.18.44",
                "peers": ["NCCL 2.28.9", "Open MPI 4.1.4"]}, meta
assert rows[0] == {"op": "allreduce", "ranks": 2, "nodes": "1+1", "mode": "host", "bytes": 8, "us": 9.582, "min": 9.375,
                   "max": 9.78, "peer": "Open MPI ob1", "peer_us": 10.408, "ratio": 1.09, "low": 1.07, "high": 1.1,
                   "wrong": 0}, rows[0]
assert rows[2]["mode"] == "graph" and rows[2]["algo"] == "copy" and rows[2]["nodes"] == "2", rows[2]
assert rows[2]["peer"] == "NCCL symmetric" and "wrong" not in rows[2], rows[2]
assert [(row["op"], row["us"]) for row in rows[3:]] == [("call", 0.1165), ("call_bare", 0.0657),
                                                        ("call_path", 0.0486), ("reduce", 3.912)], rows[3:]
assert rows[6]["algo"] == "oneshot/ll128", rows[6]
EOF

cp "$dir/old.jsonl" "$dir/same.jsonl"
expect 0 '7 rows compared, 0 worse' python3 "$bench/compare.py" "$dir/old.jsonl" "$dir/same.jsonl"
# A time that grew by 5 %, a ratio that fell by 4 %, a wrong element, a row that is gone: each is found, and by its name.
sed 's/"us":9.582/"us":10.061/' "$dir/old.jsonl" >"$dir/slower.jsonl"
expect 1 'worse: allreduce, 8 B, ranks 1+1, host, Open MPI ob1: time' \
    python3 "$bench/compare.py" "$dir/old.jsonl" "$dir/slower.jsonl"
expect 0 '0 worse' python3 "$bench/compare.py" --worse 6 "$dir/old.jsonl" "$dir/slower.jsonl"
expect 0 '0 worse' python3 "$bench/compare.py" --only ratio "$dir/old.jsonl" "$dir/slower.jsonl"
expect 0 '0 worse' python3 "$bench/compare.py" "$dir/slower.jsonl" "$dir/old.jsonl"
sed 's/"ratio":0.77/"ratio":0.74/' "$dir/old.jsonl" >"$dir/behind.jsonl"
expect 1 'worse: allreduce, 8388608 B, .*: ratio 0.77 to 0.74' \
    python3 "$bench/compare.py" "$dir/old.jsonl" "$dir/behind.jsonl"
sed '0,/"wrong":0/s//"wrong":2/' "$dir/old.jsonl" >"$dir/wrong.jsonl"
expect 1 '2 wrong elements' python3 "$bench/compare.py" "$dir/old.jsonl" "$dir/wrong.jsonl"
sed '/broadcast/d' "$dir/old.jsonl" >"$dir/fewer.jsonl"
expect 0 'only in .*old.jsonl: broadcast, 524288 B' python3 "$bench/compare.py" "$dir/old.jsonl" "$dir/fewer.jsonl"
# What is no record is refused with a reason.
sed -n '1p;2p;2p' "$dir/old.jsonl" >"$dir/twice.jsonl"
expect 1 'repeats a row: allreduce, 8 B' python3 "$bench/record.py" --check "$dir/twice.jsonl"
expect 2 'call-2.txt is no record' python3 "$bench/compare.py" "$dir/old.jsonl" "$dir/raw/call-2.txt"
sed 1d "$dir/old.jsonl" >"$dir/headless.jsonl"
expect 2 'its first line names none' python3 "$bench/compare.py" "$dir/headless.jsonl" "$dir/old.jsonl"
expect 2 'no such file or folder' python3 "$bench/record.py" -o "$dir/x.jsonl" --name x --date 2026-11-25 "$dir/none"
echo 'mpirun failed' >"$dir/raw/failed.txt"
expect 1 'no measurement in .*failed.txt' convert again
cmp -s "$dir/old.jsonl" "$dir/again.jsonl" || fail "a file without a measurement changes the others' rows"

expect 1 '3 rows, 2 below target, 0 wrong' python3 "$bench/tables.py" --summary "$dir/old.jsonl"
expect 0 '^| 8 B | 9.58 | 10.4 | \*\*1.09\*\*' python3 "$bench/tables.py" "$dir/old.jsonl"
expect 0 '^| allreduce | 8 B | 9.58 | \*\*1.09\*\* Open MPI ob1 ' python3 "$bench/tables.py" --fastest "$dir/old.jsonl"

python3 "$bench/record.py" --check "$bench"/results/*.jsonl || failed=1
for record in "$bench"/results/*.jsonl; do
    python3 "$bench/tables.py" "$record" >/dev/null || fail "no tables of $record"
    python3 "$bench/compare.py" "$record" "$record" >/dev/null || fail "not the same as itself: $record"
done
exit $failed
