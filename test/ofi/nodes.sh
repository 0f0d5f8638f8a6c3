#!/bin/sh
# The tests between played nodes with libfabric as the transport, by the provider that it chooses; messages of all
# lengths, zero-copy ones too, also by tcp without ofi_rxm, and by shm, which keep less order and complete later.
set -u
builddir=${top_builddir:-.}
RONDO_TRANSPORT=ofi
export RONDO_TRANSPORT
"$builddir/rondo-info" 2>/dev/null | grep -q 'ofi, between nodes' || { echo "rondo is built without libfabric"; exit 77; }

# run PROVIDER TEST ARGUMENT...
run() {
    provider=$1
    program=$2
    shift 2
    RONDO_OFI_PROVIDER=$provider "$builddir/test/$program" "$@"
    status=$?
    if [ $status -ne 0 ] && [ $status -ne 77 ]; then
        echo "FAILED with status $status: $program by $provider"
        exit 1
    fi
    echo "good: $program by $provider (status $status)"
}

# Not core/lifetime_peer_leaves: its 66 ranks, each with endpoints of its own, take minutes on two busy cores.
for test in "transport/nodes --short" transport/nodes_zcopy core/process_state core/closed_descriptors core/lifetime_exit_fork \
    core/timeout_set core/split_kill core/signature_mismatch; do
    run auto $test # with its options
done
run auto core/progress_across --nodes 2 --short # on one node there is no transport
for name in tcp shm; do
    run $name transport/nodes_zcopy
done

# Sockets that hold little: what a call has sent goes out though the rank polls no more until its next one.
little="ip link set lo up && echo '4096 16384 32768' | tee /proc/sys/net/ipv4/tcp_wmem >/proc/sys/net/ipv4/tcp_rmem"
if unshare -n sh -c "$little" 2>/dev/null; then
    for turn in 1 2; do
        RONDO_IFACE=lo unshare -n sh -c "$little && exec '$builddir/test/transport/nodes_zcopy'" ||
            { echo "FAILED: nodes_zcopy over sockets that hold little, turn $turn"; exit 1; }
    done
    echo "good: transport/nodes_zcopy over sockets that hold little"
fi
