#!/bin/sh
# Makes the tables of doc/performance.md from a folder of bench/suite.sh: bench/tables.sh bench/results/DATE-COMMIT
set -u
[ $# -eq 1 ] && [ -d "$1" ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
cd "$1" || exit 1

human='function us(t) { return sprintf(t >= 99.95 ? "%.0f" : "%.3g", t) }
function human(n) {
    if (n >= 1048576) return n / 1048576 " MB"
    return n >= 1024 ? n / 1024 " KB" : n " B"
}'

# Both rank counts of an operation side by side: one line a size.
table() {
    op=$1
    set --
    for file in "$op"-[0-9]*.txt; do
        [ -f "$file" ] && set -- "$@" "$file"
    done
    [ $# -gt 0 ] || return
    printf '\n### %s\n\n' "$op"
    awk "$human"'
    FNR == 1 { n++; ranks[n] = FILENAME; sub(/.*-/, "", ranks[n]); sub(/\.txt$/, "", ranks[n]) }
    /^[#$]/ || NF < 12 { next }
    {
        if (!($1 in seen)) { seen[$1] = 1; order[++sizes] = $1 + 0 }
        cell[n, $1 + 0] = sprintf(" %s | %s | **%.2f** (%.2f to %.2f) |", us($3), us($9), $10, $11, $12)
    }
    END {
        for (i = 2; i <= sizes; i++) { # sizes of reduce_scatter differ between rank counts
            v = order[i]
            for (j = i - 1; j > 0 && order[j] > v; j--) order[j + 1] = order[j]
            order[j + 1] = v
        }
        printf "| size |"; for (k = 1; k <= n; k++) printf " %d ranks: rondo us | peer us | ratio |", ranks[k]
        printf "\n|---|"; for (k = 1; k <= n; k++) printf "---|---|---|"
        print ""
        for (i = 1; i <= sizes; i++) {
            printf "| %s |", op == "barrier" ? "-" : human(order[i])
            for (k = 1; k <= n; k++) printf "%s", (k, order[i]) in cell ? cell[k, order[i]] : " - | - | - |"
            print ""
        }
    }' op="$op" "$@"
}

for op in allreduce broadcast allgather allgatherv reduce_scatter reduce_scatterv reduce alltoall alltoallv gather gatherv \
    scatter scatterv sendrecv pingpong barrier bound; do
    table $op
done
for special in call create; do
    for file in $special-[0-9]*.txt; do
        [ -f "$file" ] || continue
        printf '\n### %s\n\n' "${file%.txt}"
        sed 's/^/    /' "$file"
    done
done
