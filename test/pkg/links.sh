#!/bin/sh
# What the documents link to within the tree is there.
set -u
cd "${top_srcdir:-$(dirname "$0")/../..}" || exit 1
failed=0
for page in README.md bench/results/README.md doc/*.md doc/notebook/*.md; do
    for target in $(grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//; s/#.*//; /^[a-z]*:/d'); do
        [ -e "$(dirname "$page")/$target" ] || { echo "$page links to $target, which is not there"; failed=1; }
    done
done
exit $failed
