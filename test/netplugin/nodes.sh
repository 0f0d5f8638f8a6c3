#!/bin/sh
# The tests between played nodes with net plugins of NCCL's as the transport: the test's own plugin, by each version of
# the interface, as one that is as strict as cards are, and as one that moves little.
set -u
builddir=${top_builddir:-.}
RONDO_TRANSPORT=plugin
export RONDO_TRANSPORT

# run VERSION HOW TEST ARGUMENT...
run() {
    version=$1
    how=$2
    program=$3
    shift 3
    RONDO_NET_PLUGIN=$builddir/.libs/libnccl-net-test$version.so TEST_NET=$how "$builddir/test/$program" "$@"
    status=$?
    if [ $status -ne 0 ]; then
        echo "FAILED with status $status: $program by version $version, $how"
        exit 1
    fi
    echo "good: $program by version $version, $how"
}

run 8 plain transport/nodes --short
run 11 strict transport/nodes
for test in transport/nodes_zcopy core/process_state core/closed_descriptors core/lifetime_exit_fork core/timeout_set \
    core/split_kill core/signature_mismatch; do
    run 11 strict $test
done
run 9 strict,lazy transport/nodes_zcopy
run 10 plain transport/nodes_zcopy
run 10 lazy core/progress_across --nodes 2 # on one node there is no transport
