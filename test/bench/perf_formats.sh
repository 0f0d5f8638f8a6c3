#!/bin/sh
# rondo-perf's formats, read as users' scripts read them: OSU's by column, nccl-tests' by column and by its last lines,
# JSON as a whole, the table by its header's words. Ranks are forked, so no MPI is needed.
set -u
perf=${top_builddir:-build}/rondo-perf
[ -x "$perf" ] || { echo "no rondo-perf here"; exit 77; }
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
quick='-b 8 -e 4K -f 8 --turns 3 --turn-ms 0.5 -w 2 --ranks 2'

# get OPTIONS...: runs, and fails loudly
get() {
    timeout 60 "$perf" $quick "$@" >"$out" 2>&1 && return
    echo "rondo-perf $* failed:"
    cat "$out"
    failed=1
}

# holds WHAT AWK: the reader must exit 0
holds() {
    awk "$2" "$out" && return
    echo "$1: not as expected:"
    cat "$out"
    failed=1
}

get allreduce --format osu
holds 'OSU, as "grep -v # | awk {print \$1, \$2}" reads it' '
    /^# OSU MPI Allreduce Latency Test v[0-9.]+$/ { title = 1 }
    /^# Size +Avg Latency\(us\)$/ { header = 1 }
    /^#/ || NF == 0 { next }
    NF != 2 || $1 != 8 * 8 ^ n || $2 !~ /^[0-9]+\.[0-9][0-9]$/ { exit bad = 1 }
    { n++ }
    END { exit bad || !title || !header || n != 4 }'

get allreduce --format osu --full
holds 'OSU with its further columns' '
    /^# Size +Avg Latency\(us\) +Min Latency\(us\) +Max Latency\(us\) +Iterations$/ { header = 1 }
    /^#/ || NF == 0 { next }
    NF != 5 || $3 > $2 || $2 > $4 || $5 < 1 { exit bad = 1 }
    { n++ }
    END { exit bad || !header || n != 4 }'

get pingpong --format osu --full --ranks 4
holds 'OSU, of two ranks that are not alone' '
    /^#/ || NF == 0 { next }
    NF != 5 || $3 <= 0 { exit bad = 1 }
    { n++ }
    END { exit bad || n != 4 }'

get bandwidth --format osu
holds 'OSU, a rate' '
    /^# OSU MPI Bi-Directional Bandwidth Test/ { title = 1 }
    /^# Size +Bandwidth \(MB\/s\)$/ { header = 1 }
    /^#/ || NF == 0 { next }
    NF != 2 || $2 !~ /^[0-9]+\.[0-9][0-9]$/ { exit bad = 1 }
    { n++ }
    END { exit bad || !title || !header || n != 4 }'

get barrier --format osu
holds 'OSU, an operation without a size' '
    /^# OSU MPI Barrier Latency Test/ { title = 1 }
    /^#/ || NF == 0 { next }
    NF != 1 || $1 <= 0 { exit bad = 1 }
    { n++ }
    END { exit bad || !title || n != 1 }'

get allreduce --format nccl
holds 'nccl-tests, allreduce' '
    /^# +size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw +busbw +#wrong *$/ { header = 1 }
    /^# Out of bounds values : 0 OK$/ { ok = 1 }
    /^# Avg bus bandwidth +: [0-9.e+-]+ *$/ { average = 1 }
    /^#/ || NF == 0 { next }
    NF != 13 || $1 != 4 * $2 || $3 != "float" || $4 != "sum" || $5 != -1 || $9 != 0 || $13 != 0 { exit bad = 1 }
    { n++ }
    END { exit bad || !header || !ok || !average || n != 4 }'

get alltoall --format nccl -b 64
holds 'nccl-tests, a size is the whole buffer, and no result in place' '
    /^#/ || NF == 0 { next }
    NF != 13 || $1 != 2 * 4 * $2 || $4 != "none" || $9 != 0 || $13 != "N/A" { exit bad = 1 }
    { n++ }
    END { exit bad || n != 3 }'

get reduce --format nccl -r 1
holds 'nccl-tests, a root' '!/^#/ && NF { if ($5 != 1) bad = 1; n++ } END { exit bad || n != 4 }'

get allreduce --percentiles
holds 'the table, by the names in its header' '
    /^# +bytes / { for (i = 2; i <= NF; i++) { at[$i == "time" ? "time" : $i] = 1 }; header = 1 }
    /^# all results right$/ { right = 1 }
    /^#/ || NF == 0 { next }
    NF != 11 || $3 < $4 || $3 > $5 || $9 > $10 || $10 > $11 || $8 != 0 { exit bad = 1 }
    { n++ }
    END { exit bad || !header || !at["bytes"] || !at["busbw"] || !right || n != 4 }'

get allreduce --format json --percentiles --peer copy
holds 'JSON: as many braces opened as closed, the keys that are promised' '
    { for (i = 1; i <= length($0); i++) { c = substr($0, i, 1); depth += c == "{" || c == "["; depth -= c == "}" || c == "]" } }
    /"operation": "allreduce"/ { seen++ }
    /"ranks": 2,/ { seen++ }
    /"bytes": [0-9]+, "count"/ && /"time_us": \{"median": /  && /"p99_us": / && /"peer_p99_us": / && /"ratio": \{/ && /"wrong": 0\}/ { n++ }
    END { exit depth != 0 || seen != 2 || n != 4 }'
if command -v python3 >/dev/null 2>&1; then
    python3 -c '
import json, sys
run = json.load(open(sys.argv[1]))
assert [r["bytes"] for r in run["results"]] == [8, 64, 512, 4096] and run["wrong"] == 0' "$out" ||
        { echo "JSON: a parser refuses it"; failed=1; }
fi

get allreduce,barrier --format json
if command -v python3 >/dev/null 2>&1; then
    python3 -c '
import json, sys
assert [r["operation"] for r in json.load(open(sys.argv[1]))] == ["allreduce", "barrier"]' "$out" ||
        { echo "JSON of two operations: a parser refuses it"; failed=1; }
fi

"$perf" barrier --ranks 2 --turns 1 --turn-ms 0.5 >/dev/full 2>"$out" && { echo "what cannot be written is no failure"; failed=1; }
grep -q "could not be written" "$out" || { echo "nothing says that it cannot be written"; failed=1; }
"$perf" barrier -e '8 ' --ranks 2 >"$out" 2>&1
[ $? = 2 ] || { echo "'8 ' is a size"; failed=1; }

exit $failed
