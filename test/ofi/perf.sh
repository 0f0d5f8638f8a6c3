#!/bin/sh
# Two played nodes under mpirun: every operation of rondo-perf, verified, over libfabric, which says nothing of its own
# and is named once by each rank.
set -u
perf=${top_builddir:-.}/rondo-perf
if [ -z "${MPIEXEC:-}" ]; then
    MPIEXEC=$(command -v mpirun) || { echo "no mpirun"; exit 77; }
fi
[ -x "$perf" ] || { echo "no rondo-perf"; exit 77; }
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 RONDO_TRANSPORT=ofi
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM RONDO_TRANSPORT
options=
if "$MPIEXEC" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
    options="--oversubscribe --bind-to none"
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

# nodes OPERATION RANKS-OF-THE-FIRST RANKS-OF-THE-SECOND
nodes() {
    # shellcheck disable=SC2086
    timeout 60 "$MPIEXEC" $options -n "$2" env RONDO_HOSTID=a RONDO_DEBUG=info "$perf" "$1" $sizes -c : \
        $options -n "$3" env RONDO_HOSTID=b RONDO_DEBUG=info "$perf" "$1" $sizes -c >"$log" 2>&1
    status=$?
    if grep -q 'RONDO_TRANSPORT=ofi is not allowed' "$log"; then
        echo "rondo is built without libfabric"
        exit 77
    fi
    named=$(grep -c 'network libfabric .* provider .* domain .* fabric ' "$log")
    if [ $status -ne 0 ] || [ "$named" -ne $(($2 + $3)) ] || grep -q '^libfabric:' "$log"; then
        cat "$log"
        echo "FAILED with status $status: $1 on nodes of $2 and $3 ranks, $named of them name what they go by"
        exit 1
    fi
    echo "good: $1 on nodes of $2 and $3 ranks"
}

sizes="-b 8 -e 512K -f 64 -n 4 -w 1 --turns 1"
for operation in allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv \
    gather gatherv scatter scatterv sendrecv bandwidth pingpong barrier; do
    nodes $operation 2 2
done
sizes="-b 4M -e 4M -n 2 -w 1 --turns 1"
for operation in allreduce broadcast reduce gather scatterv alltoall sendrecv; do
    nodes $operation 1 1
done
