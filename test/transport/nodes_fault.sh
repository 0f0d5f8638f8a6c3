#!/bin/sh
# The trials of failure with ranks on two and on three played nodes: who is killed, stopped, late or aborts is found out
# over the network too.
set -u
builddir=${top_builddir:-.}
"$builddir/rondo-info" 2>/dev/null | grep -q 'ucx' || { echo "rondo is built without UCX"; exit 77; }
# UCX says of each lost peer that it is lost.
UCX_LOG_LEVEL=fatal
export UCX_LOG_LEVEL
# Not the death of a rank while others still connect (birth): UCX 1.13 then ends another rank's process, once in 800
# trials: lib/ucx/wireup.c says where.
# Nor a program that a rank begins by exec: if UCX has just opened sockets, it still has them, is taken for that rank by
# UCX alone, and what was sent to it before lingers at its peers, once in 240 trials (lib/transport/linger.c).
for nodes in 2 3; do
    "$builddir/test/fault/trials" --count "${RONDO_TEST_TRIALS:-25}" --nodes $nodes --kinds kill,stop,late,abort \
        --ways signal,child,core ||
        exit 1
done
