#!/bin/sh
# Played nodes under mpirun: every operation of rondo-perf, verified, by each transport between nodes. Each rank names
# once a communicator what it goes by, and there is one for each operation; a library says nothing of its own. UCX goes
# between nodes of uneven size, too.
set -u
here=${top_builddir:-.}
perf=$here/rondo-perf
if [ -z "${MPIEXEC:-}" ]; then
    MPIEXEC=$(command -v mpirun) || { echo "no mpirun"; exit 77; }
fi
[ -x "$perf" ] || { echo "no rondo-perf"; exit 77; }
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM RONDO_TRANSPORT
options=
if "$MPIEXEC" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE'; then
    options="--oversubscribe --bind-to none"
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 1' HUP INT TERM

# nodes "OPERATION..." RANKS-OF-THE-FIRST RANKS-OF-THE-SECOND [..]: all of them in one job
nodes() {
    # shellcheck disable=SC2086
    what=$(echo $1 | tr ' ' ,)
    wanted=$(echo "$what" | tr , '\n' | wc -l)
    shift
    job= node=0 colon= all=0
    for ranks in "$@"; do
        node=$((node + 1))
        all=$((all + ranks))
        job="$job $colon $options -n $ranks env RONDO_HOSTID=node$node RONDO_DEBUG=info $perf $what $sizes -c"
        colon=:
    done
    # shellcheck disable=SC2086
    timeout 300 "$MPIEXEC" $job >"$log" 2>&1
    status=$?
    named=$(grep -c "$names" "$log")
    if [ $status -ne 0 ] || [ "$named" -ne $((all * wanted)) ] || grep -q '^libfabric:' "$log"; then
        cat "$log"
        echo "FAILED with status $status: $what by $RONDO_TRANSPORT on nodes of $* ranks, $named name what they go by"
        exit 1
    fi
    echo "good: $what by $RONDO_TRANSPORT on nodes of $* ranks"
}

short="-b 8 -e 512K -f 64 -n 4 -w 1 --turns 1"
long="-b 4M -e 4M -n 2 -w 1 --turns 1" # messages with slots of their own
operations="allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv gather gatherv
    scatter scatterv sendrecv bandwidth pingpong barrier"
served=
for RONDO_TRANSPORT in ucx ofi; do
    "$here/rondo-info" 2>/dev/null | grep -q "$RONDO_TRANSPORT, between nodes" || continue
    served="$served $RONDO_TRANSPORT"
    names='network libfabric .* provider .* domain .* fabric '
    [ "$RONDO_TRANSPORT" = ofi ] || names='network ucx '
    sizes=$short
    nodes "$operations" 2 2
    if [ "$RONDO_TRANSPORT" = ucx ]; then
        nodes "allreduce allgatherv reduce_scatter alltoallv" 1 3
        nodes "allreduce allgatherv reduce_scatter alltoallv" 1 2 1
    fi
    sizes=$long
    nodes allreduce 2 2
    nodes "broadcast reduce gather gatherv scatter scatterv alltoall sendrecv" 1 1
done
[ -n "$served" ] || { echo "rondo is built without UCX and libfabric"; exit 77; }
