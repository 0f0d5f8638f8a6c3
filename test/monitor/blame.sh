#!/bin/sh
# Who is blamed for what, as a matrix: trials whose truth is decided before the ranks begin, and what was said of each.
#
#   test/monitor/blame.sh [-n TRIALS] [-j JOBS] [-s SEED] [-d DIR] [PROGRAM...]
#
#   -n   of each kind (default 1; 100 are what counts)      -s   the first one's (default 1)
#   -j   at a time (default: a quarter of the cores, as a trial has up to eight ranks)
#   -d   keep what each trial prints there: one that is there is not run again, so a run that was ended goes on
#
# PROGRAM: of late, slow, slow_link, blamed, differ and verdicts; by default all, or, where it is a test by itself (no
# argument), those that take the shortest. The programs are those beside this script (make install-monitor-tests), or of
# the build folder (make check TESTS=). Where there is no CUDA, verdicts, whose ranks have simulated GPUs, is not built,
# and is left out unless it is named.
#
# Rows are the truth, columns the verdicts. It fails unless in each row all are right, or of slow ranks and links 95 of
# a hundred; a message that was lost, and only that, may be "unknown". A verdict that names another rank or link is in
# the column "wrong", which must be empty; a program that ended without a word in "failed".
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${top_builddir:-.}
trials=1 seed=1 jobs=$(($(nproc) / 4 + 1)) folder= named=yes
[ $# -gt 0 ] || { named= && set -- blamed verdicts differ; }
while getopts n:j:s:d: option; do
    case $option in
    n) trials=$OPTARG ;;
    j) jobs=$OPTARG ;;
    s) seed=$OPTARG ;;
    d) folder=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { named= && set -- blamed verdicts differ late slow slow_link; }
if [ ! "$folder" ]; then
    folder=$(mktemp -d) || exit 1
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 1' HUP INT TERM
fi
mkdir -p "$folder" || exit 1
if [ -x "$here/rondo-ras" ]; then
    top_builddir=$here
    export top_builddir
fi

# Where a program is; it has so many kinds, and the seed chooses which. Returns 1 if it is to be left out.
program() {
    case $1 in
    verdicts) sub=sim kinds=1 ;;
    differ) sub=monitor kinds=1 ;;
    late) sub=monitor kinds=5 ;;
    slow) sub=monitor kinds=11 ;;
    slow_link) sub=monitor kinds=7 ;;
    blamed) sub=monitor kinds=3 ;;
    *) echo "blame: there is no program $1" >&2 && exit 2 ;;
    esac
    path=$here/$1
    [ -x "$path" ] || path=$build/test/$sub/$1
    [ -x "$path" ] && return
    if [ "$1" = verdicts ] && [ ! "$named" ]; then
        echo "blame: $path is not built, as there is no CUDA: verdicts on devices are left out"
        return 1
    fi
    echo "blame: $path is not built" >&2
    exit 77
}

# One trial, whose output is whole when it has its name.
cat >"$folder/one" <<'END'
path=$1 name=$2 seed=$3 kinds=$4
log=$5/$name.$seed
[ -e "$log" ] && exit 0
set -- --count 1
[ "$name" = late ] && set -- --count 1 --alone 1
[ "$name" = verdicts ] && set -- --count 0
timeout 300 "$path" "$@" --seed "$seed" >"$log.part" 2>&1
status=$?
case $name in
differ)
    both=$(sed -n 's/.*; \([0-9]*\) named both sides.*/\1/p' "$log.part")
    [ $status -eq 0 ] && [ "${both:-1}" -eq 0 ] && echo "blamed: mismatch: mismatch" >>"$log.part"
    [ $status -eq 0 ] && [ "${both:-1}" -ne 0 ] && echo "blamed: mismatch: both sides" >>"$log.part"
    [ $status -ne 0 ] && echo "blamed: mismatch: wrong" >>"$log.part"
    ;;
verdicts)
    for kind in late held replayed unlike order; do
        said=$kind
        grep -q "FAILED: $kind" "$log.part" && said=wrong
        grep -q "^$kind: " "$log.part" || said=failed
        [ $status -eq 0 ] || [ $said != $kind ] || grep -q "FAILED" "$log.part" || said=failed
        echo "blamed: $kind on a device: $said" >>"$log.part"
    done
    ;;
*) grep -q '^blamed: ' "$log.part" || echo "blamed: $name, kind $((seed % kinds)): failed" >>"$log.part" ;;
esac
echo "exit $status" >>"$log.part"
mv "$log.part" "$log"
END

list=$folder/list
: >"$list"
for name; do
    program "$name" || continue
    n=0
    while [ $n -lt $((trials * kinds)) ]; do
        echo "$path $name $((seed * kinds + n)) $kinds $folder" >>"$list"
        n=$((n + 1))
    done
done
echo "blame: $(wc -l <"$list") runs, $trials trials of each kind from seed $seed, $jobs at a time"
xargs -P "$jobs" -L 1 sh "$folder/one" <"$list"

# Only what this run asked for, though the folder may have more.
while read -r path name number _ _; do
    sed -n "s/^blamed: /$name $number: /p" "$folder/$name.$number"
done <"$list" >"$folder/all"
awk -F': ' '
    function right(truth, said) {
        if (truth ~ /^slow, / || truth == "a slow rank") return said == "slow rank" || (truth == "a slow rank" && said == "nobody")
        if (truth ~ /^a slow link/) return said == "slow link"
        if (truth == "lost") return said == "lost" || said == "unknown"
        if (truth ~ / on a device$/) return truth == said " on a device"
        if (truth == "mismatch") return said == "mismatch" || said == "both sides"
        return truth == said || (said == "nobody" && truth !~ /^(dead|left|stopped|computes|sleeps|order|silent)$/)
    }
    { n[$2, $3]++; of[$2]++; columns[$3] = 1; good[$2] += right($2, $3)
      if (!right($2, $3)) print "blame: " $1 ": " $2 ": " $3 }
    END {
        printf "%-34s", "truth"
        for (c in columns) printf " %10s", c
        printf " %10s\n", "right"
        for (r in of) {
            printf "%-34s", r
            for (c in columns) printf " %10d", n[r, c]
            least = r ~ /^slow, / || r ~ /^a slow link/ ? 95 : 100
            printf " %8.1f %%%s\n", 100 * good[r] / of[r], 100 * good[r] < least * of[r] ? "  TOO FEW" : ""
            if (100 * good[r] < least * of[r] || n[r, "wrong"]) bad = 1
        }
        exit bad
    }' "$folder/all"
