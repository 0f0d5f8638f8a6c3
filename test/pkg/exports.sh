#!/bin/sh
# The shared library defines rondo_* for its users and nothing else, and everything that rondo.h declares.
set -u
library=${top_builddir:-.}/.libs/librondo.so
header=${top_srcdir:-$(dirname "$0")/../..}/lib/rondo.h
[ -e "$library" ] || { echo "no shared library was built"; exit 77; }
exported=$(${NM:-nm} -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
others=$(printf '%s\n' "$exported" | grep -v '^rondo_')
if [ -n "$others" ]; then
    echo "exported, but not rondo_*:" $others
    exit 1
fi
failed=0
for name in $(sed -n 's/^[a-z].*[ *]\(rondo_[a-z_0-9]*\)(.*/\1/p' "$header" | sort -u); do
    printf '%s\n' "$exported" | grep -qx "$name" || { echo "declared in rondo.h, but not exported: $name"; failed=1; }
done
exit $failed
