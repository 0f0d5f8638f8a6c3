#!/bin/sh
# The trials of failure with ranks on two and on three played nodes: who is killed, stopped, late or aborts is found out
# over the network too.
set -u
builddir=${top_builddir:-.}
"$builddir/rondo-info" 2>/dev/null | grep -q 'ucx' || { echo "rondo is built without UCX"; exit 77; }
# UCX says of each lost peer that it is lost.
UCX_LOG_LEVEL=fatal
export UCX_LOG_LEVEL
for nodes in 2 3; do
    "$builddir/test/fault/trials" --count "${RONDO_TEST_TRIALS:-25}" --nodes $nodes || exit 1
done
