#!/bin/sh
# What rondo would do on machines that are recorded in test/topo/*.gpus: how their GPUs are said to reach each other,
# what is chosen for every operation and size, and some plans in full, compared with test/topo/*.choices. With --write
# those files are made anew, for a commit that means to change choices (in the build folder:
# sh ../test/topo/choices.sh --write).
set -u
: "${top_builddir=.}" "${top_srcdir=$(cd "$(dirname "$0")/../.." && pwd)}"
info=$top_builddir/rondo-info
[ -x "$info" ] || { echo "no $info"; exit 77; }
"$info" | grep -q '^CUDA  *built without' && { echo "built without CUDA"; exit 77; }
unset RONDO_ALGO RONDO_PROTO RONDO_DEBUG RONDO_DEBUG_FILE RONDO_TUNE RONDO_CUDA_BANK RONDO_CUDA_FIFOS
unset RONDO_CUDA_BLOCKS RONDO_CUDA_BLOCKS_LEAST RONDO_CUDA_COPY RONDO_CTA_POLICY
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
status=0

for machine in "$top_srcdir"/test/topo/*.gpus; do
    name=$(basename "$machine" .gpus)
    want=$top_srcdir/test/topo/$name.choices
    RONDO_TOPO_FILE=$machine
    export RONDO_TOPO_FILE
    {
        "$info" topo
        for plan in "allreduce 8" "allreduce 1M" "allreduce 256M" "broadcast 64M" "alltoall 64K" barrier; do
            echo
            # shellcheck disable=SC2086 # words
            "$info" plan $plan --device cuda
        done
    } > "$dir/got" 2>&1
    if [ "${1:-}" = --write ]; then
        cp "$dir/got" "$want"
    elif ! diff -u "$want" "$dir/got"; then
        echo "$name: other choices than in $want; if that is meant: sh $0 --write"
        status=1
    fi
    # What is written down is what was read.
    "$info" topo --save "$dir/saved" && grep -v '^#' "$machine" | diff - "$dir/saved" || status=1
done
exit $status
