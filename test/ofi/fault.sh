#!/bin/sh
# The trials of failure with ranks on two and on three played nodes, with libfabric between them: who is killed, also
# while others still connect, is stopped, is late or aborts is found out.
set -u
builddir=${top_builddir:-.}
RONDO_TRANSPORT=ofi
export RONDO_TRANSPORT
"$builddir/rondo-info" 2>/dev/null | grep -q 'ofi, between nodes' || { echo "rondo is built without libfabric"; exit 77; }
for nodes in 2 3; do
    "$builddir/test/fault/trials" --count "${RONDO_TEST_TRIALS:-25}" --nodes $nodes --kinds kill,stop,late,abort,birth \
        --ways signal,child,core || exit 1
done
