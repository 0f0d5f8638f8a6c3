#!/bin/sh
# Makes the tables of doc/performance.md from a folder of bench/gpu.sh: bench/gpu_tables.sh bench/results/DATE-gpu
set -u
[ $# -eq 1 ] && [ -d "$1" ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
cd "$1" || exit 1
for op in allreduce allgather reduce_scatter broadcast reduce alltoall sendrecv; do
    set --
    for mode in graph-nccl graph-nccl-symmetric stream-nccl copy-nccl; do
        for file in "$op-$mode"-[0-9]*.txt; do
            [ -f "$file" ] && set -- "$@" "$file"
        done
    done
    [ $# -gt 0 ] || continue
    printf '\n### %s\n\n' "$op"
    awk '
    function us(t) { return sprintf(t >= 99.95 ? "%.0f" : "%.3g", t) }
    function human(n) {
        if (n >= 1048576) return n / 1048576 " MB"
        return n >= 1024 ? n / 1024 " KB" : n " B"
    }
    FNR == 1 {
        n++; name[n] = FILENAME; sub(/^[a-z_]*-/, "", name[n]); sub(/-[0-9+]*\.txt$/, "", name[n]); sub(/-/, ", ", name[n])
        ranks = FILENAME; sub(/.*-/, "", ranks); sub(/\.txt$/, "", ranks)
    }
    /^[#$-]/ || NF < 12 || $1 !~ /^[0-9]+$/ { next }
    {
        if (!($1 in seen)) { seen[$1] = 1; order[++sizes] = $1 + 0 }
        cell[n, $1 + 0] = sprintf(" %s | %s | **%.2f** (%.2f to %.2f) |", us($3), us($9), $10, $11, $12)
    }
    END {
        for (i = 2; i <= sizes; i++) { # files have sizes of their own
            v = order[i]
            for (j = i - 1; j > 0 && order[j] > v; j--) order[j + 1] = order[j]
            order[j + 1] = v
        }
        printf "| size |"; for (k = 1; k <= n; k++) printf " %s: rondo us | NCCL us | ratio |", name[k]
        printf "\n|---|"; for (k = 1; k <= n; k++) printf "---|---|---|"
        print ""
        for (i = 1; i <= sizes; i++) {
            printf "| %s |", human(order[i])
            for (k = 1; k <= n; k++) printf "%s", (k, order[i]) in cell ? cell[k, order[i]] : " - | - | - |"
            print ""
        }
    }' "$@"
done
