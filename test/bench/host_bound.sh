#!/bin/sh
# The probe of the bare machine: its results are right for every operation at 2 and 3 ranks (it looks itself, and says
# so when it is made to go wrong), its tables become rows of a record, and the summary sets rondo's rows beside them.
set -u
bench=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/bench
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

mkdir "$dir/raw"
${CC:-cc} -O2 -Wall -o "$dir/probe" "$bench/probes/host_bound.c" || { echo "the probe does not compile"; exit 1; }
"$dir/probe" -n 1 2>/dev/null
[ $? -eq 2 ] || fail "one rank is not refused"
for wrong in '-n 2x' '-n 4294967298' '-b 8X' '-e -1' '-f 1K' '-t 0x3' '-m nan'; do
    timeout 60 "$dir/probe" $wrong >/dev/null 2>&1 # shellcheck disable=SC2086
    [ $? -eq 2 ] || fail "$wrong is not refused"
done
"$dir/probe" -n 2 nonsense 2>/dev/null
[ $? -eq 2 ] || fail "an operation that it has not is not refused"
for n in 2 3; do
    timeout 120 "$dir/probe" -n $n -e 1M -f 32 -t 1 -m 0.1 >"$dir/raw/bare-$n.txt" 2>&1 || {
        cat "$dir/raw/bare-$n.txt"
        fail "the probe fails with $n ranks"
    }
    [ "$(grep -c '^# host_bound' "$dir/raw/bare-$n.txt")" = 10 ] || fail "$n ranks: not ten operations"
    grep -q 'line from core to core: [0-9.]* us' "$dir/raw/bare-$n.txt" || fail "$n ranks: no time of a line"
done
# Where it reduces wrongly it says so: one way of each kind is broken in a copy.
for change in 's/to\[i\] += from\[i\]/to[i] += 2 * from[i]/' 's/put(bank(me), in, slot_bytes/put(bank(me), in + 1, slot_bytes/'; do
    cp "$bench/probes/host_bound.c" "$dir/broken.c"
    sed "$change" "$bench/probes/host_calls.h" >"$dir/host_calls.h"
    cmp -s "$dir/host_calls.h" "$bench/probes/host_calls.h" && fail "nothing was broken by $change"
    ${CC:-cc} -O2 -o "$dir/broken" "$dir/broken.c" || fail "the broken probe does not compile"
    timeout 60 "$dir/broken" -n 2 -e 64 -t 1 -m 0.1 allreduce reduce_scatter >"$dir/out" 2>&1
    [ $? -eq 1 ] && grep -q 'wrong elements' "$dir/out" || { cat "$dir/out"; fail "what $change breaks is not seen"; }
done
command -v python3 >/dev/null 2>&1 || { echo "no python3: no record is made"; exit $failed; }

python3 "$bench/record.py" -o "$dir/bare.jsonl" --name bare --date 2026-11-25 --commit 1234567 "$dir/raw" ||
    fail "no record of the probe's tables"
grep -q '"op":"alltoall","ranks":3,"nodes":"3","mode":"bare","bytes":8192,' "$dir/bare.jsonl" || fail "no row of alltoall"

# 16 ranks: rondo is as quick as the slower of two peers only, one row is far from the bare machine and one is not.
cat >"$dir/many.jsonl" <<'END'
{"record":"fixture"}
{"op":"allreduce","ranks":16,"nodes":"16","mode":"host","bytes":8,"us":3,"peer":"Open MPI","peer_us":6,"ratio":2,"low":2,"high":2}
{"op":"allreduce","ranks":16,"nodes":"16","mode":"host","bytes":8,"us":3,"peer":"Open MPI ob1","peer_us":2.7,"ratio":0.9,"low":2,"high":2}
{"op":"broadcast","ranks":16,"nodes":"16","mode":"host","bytes":1048576,"us":200,"peer":"MPICH","peer_us":400,"ratio":2,"low":2,"high":2}
{"op":"allreduce","ranks":16,"nodes":"16","mode":"bare","bytes":8,"us":1}
{"op":"broadcast","ranks":16,"nodes":"16","mode":"bare","bytes":1048576,"us":150}
END
python3 "$bench/tables.py" --summary "$dir/many.jsonl" >"$dir/out"
[ $? -eq 1 ] || fail "a record below target is good"
for line in '^2 rows, 1 below target' '^allreduce  *16 host  *8  *3.000  *2.700  *0.90  *1.00  Open MPI ob1' \
    '^2 rows beside the bare machine, 1 below' '^allreduce  *16  *8  *3.000  *1.000  *0.33  *0.67' '^broadcast  *2.00$'; do
    grep -q "$line" "$dir/out" || { cat "$dir/out"; fail "the summary lacks: $line"; }
done
sed -i 's/"us":3,/"us":1.4,/; s/"ratio":0.9/"ratio":1.6/' "$dir/many.jsonl"
python3 "$bench/tables.py" --summary "$dir/many.jsonl" >"$dir/out" || { cat "$dir/out"; fail "a record at its target is not good"; }
exit $failed
