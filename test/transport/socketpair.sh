#!/bin/sh
# The trials of failure by a transport that is not rondo's own: a rank that is killed, stopped, late or aborts is found
# out whatever carries the messages.
set -u
builddir=${top_builddir:-.}
for nodes in 2 3; do
    "$builddir/test/transport/socketpair_trials" --count "${RONDO_TEST_TRIALS:-25}" --nodes $nodes || exit 1
done
