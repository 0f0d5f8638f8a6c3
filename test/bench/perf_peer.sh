#!/bin/sh
# rondo-perf beside the MPI: every operation has a peer, both are right, and each row has a ratio.
set -u
perf=${top_builddir:-build}/rondo-perf
[ -x "$perf" ] && [ -n "${MPIEXEC:-}" ] && [ -n "${MPI_LIBS:-}" ] || { echo "no rondo-perf with an MPI here"; exit 77; }
export RONDO_TEST_RANKS=3
failed=0
for op in allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv gather gatherv \
    scatter scatterv sendrecv bandwidth pingpong barrier; do
    skew=
    case $op in *v) [ $op = sendrecv ] || skew=--skew ;; esac
    root=
    case $op in reduce | broadcast | gather* | scatter*) root='-r 2' ;; esac
    out=$(sh "$(dirname "$0")/../util/mpirun.sh" "$perf" $op --peer mpi -b 12 -e 8K -f 32 -n 3 -w 1 --turns 1 $skew $root 2>&1)
    status=$?
    printf '%s\n' "$out" | awk '
        /the peer has/ { exit bad = 1 }
        /^#/ || /^mpirun/ || NF == 0 { next }
        NF != 12 || $10 !~ /^[0-9]/ || ($8 != "0" && $1 != 0) { exit bad = 1 }
        { n++ }
        END { exit bad || !n }' && [ $status -eq 0 ] && continue
    echo "$op beside MPI, exit status $status:"
    printf '%s\n' "$out"
    failed=1
done
exit $failed
