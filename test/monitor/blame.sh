#!/bin/sh
# Who is blamed for what, as a matrix: the trials of late, slow and slow_link, whose truth is decided before the ranks
# begin, and for each of them what was said.
#
#   test/monitor/blame.sh [COUNT] [SEED]     COUNT trials of each program (default 14), seeds from SEED on
#
# Rows are the truth, columns the verdicts; a verdict of the right kind that names another rank or link is in the column
# "wrong". It fails if there is one, if anybody is named where nobody is to be, or if a program fails.
set -u
build=${top_builddir:-.}
count=${1:-14}
seed=${2:-$(date +%s)}
all=$(mktemp) || exit 1
trap 'rm -f "$all"' EXIT
failed=0
echo "blame: $count trials of each, from seed $seed"
for program in late slow slow_link; do
    "$build/test/monitor/$program" --count "$count" --seed "$seed" >"$all.$program" 2>&1 || failed=1
    grep -v '^rondo ' "$all.$program" | grep -v '^blamed: '
    grep '^blamed: ' "$all.$program" >>"$all"
    rm -f "$all.$program"
done
awk -F': ' '
    { n[$2, $3]++; rows[$2] = 1; columns[$3] = 1 }
    END {
        printf "%-32s", "truth"
        for (c in columns) printf " %10s", c
        printf "\n"
        for (r in rows) {
            printf "%-32s", r
            for (c in columns) printf " %10d", n[r, c]
            printf "\n"
        }
    }' "$all" | { IFS= read -r head; echo "$head"; sort; }
grep -q ': wrong$' "$all" && failed=1
exit $failed
