#!/bin/sh
# The trials of failure with ranks on two and on three played nodes, with a net plugin between them: who is killed, also
# while others still connect, is stopped, is late or aborts is found out.
set -u
builddir=${top_builddir:-.}
RONDO_TRANSPORT=plugin
export RONDO_TRANSPORT
for way in '8 plain' '11 strict'; do
    RONDO_NET_PLUGIN=$builddir/.libs/libnccl-net-test${way% *}.so
    TEST_NET=${way#* }
    export RONDO_NET_PLUGIN TEST_NET
    for nodes in 2 3; do
        "$builddir/test/fault/trials" --count "${RONDO_TEST_TRIALS:-15}" --nodes $nodes \
            --kinds kill,stop,late,abort,birth --ways signal,child,core || exit 1
    done
done
