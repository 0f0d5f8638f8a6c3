#!/bin/sh
# Two played nodes of two ranks, and three of uneven size, under mpirun: every operation of rondo-perf, verified, with
# the messages between nodes going over UCX; on two nodes of one rank long ones, which have slots of their own.
set -u
perf=${top_builddir:-.}/rondo-perf
if [ -z "${MPIEXEC:-}" ]; then
    MPIEXEC=$(command -v mpirun) || { echo "no mpirun"; exit 77; }
fi
[ -x "$perf" ] || { echo "no rondo-perf"; exit 77; }
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
options=
if "$MPIEXEC" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
    options="--oversubscribe --bind-to none"
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# nodes OPERATION RANKS-OF-THE-FIRST RANKS-OF-THE-SECOND [..]
nodes() {
    what=$1
    shift
    job= node=0 colon=
    for ranks in "$@"; do
        node=$((node + 1))
        job="$job $colon $options -n $ranks env RONDO_HOSTID=node$node RONDO_DEBUG=info $perf $what $sizes -c"
        colon=:
    done
    # shellcheck disable=SC2086
    timeout 60 "$MPIEXEC" $job >"$log" 2>&1
    status=$?
    if grep -q 'built without UCX' "$log"; then
        echo "rondo is built without UCX"
        exit 77
    fi
    if [ $status -ne 0 ] || ! grep -q 'network ucx' "$log"; then
        cat "$log"
        echo "FAILED with status $status: $what on nodes of $* ranks"
        exit 1
    fi
    echo "good: $what on nodes of $* ranks"
}

sizes="-b 8 -e 512K -f 64 -n 4 -w 1 --turns 1"
for operation in allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv \
    gather gatherv scatter scatterv sendrecv bandwidth pingpong barrier; do
    nodes $operation 2 2
done
for operation in allreduce allgatherv reduce_scatter alltoallv; do
    nodes $operation 1 3
    nodes $operation 1 2 1
done
sizes="-b 4M -e 4M -n 2 -w 1 --turns 1"
nodes allreduce 2 2
for operation in broadcast reduce gather gatherv scatter sendrecv; do
    nodes $operation 1 1
done
