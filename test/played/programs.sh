#!/bin/sh
# Programs whose ranks usually share a node, with their ranks on two to four hosts that network namespaces play: every
# operation, random programs on two communicators whose ranks run in opposite order, wrong calls, aborts, deaths, and how
# programs and communicators end. With --all also groups, trials of faults, and what takes longer.
# Nothing says which rank is where but what rondo finds out: ranks that cannot pass each other a descriptor are apart.
set -u
builddir=${top_builddir:-.}
play=$builddir/test/played/play
"$builddir/rondo-info" 2>/dev/null | grep -q 'ucx' || { echo "rondo is built without UCX"; exit 77; }
# UCX says of each lost peer that it is lost.
UCX_LOG_LEVEL=fatal
export UCX_LOG_LEVEL

# on HOSTS SPREAD PROGRAM...: rank r on the r-th host of the list, which begins again at its end
on() {
    hosts=$1 spread=$2 program=$3
    shift 3
    RONDO_TEST_HOSTS=$spread "$play" "$hosts" "$builddir/test/$program" "$@"
    status=$?
    [ $status -eq 0 ] && return
    echo "$status from: RONDO_TEST_HOSTS=$spread play $hosts test/$program $*"
    exit $status
}

seed=${RONDO_TEST_SEED:-1}
echo "seed $seed"
on 2 0,1 api/op_matrix --ranks 2 --kind processes
on 2 0,0,1 api/op_matrix --ranks 3 --kind processes
on 3 0,0,1,0,2 api/random_programs --count 8 --ranks 5 --seed "$seed"
on 2 0,1 core/signature_mismatch
on 2 0,1 core/lifetime_revoke
on 2 0,1 core/lifetime_exit_fork
on 2 0,1 core/split_kill --count 12 --seed "$seed"
[ "${1:-}" = --all ] || exit 0

on 2 0,1 api/random_programs --count 12 --seed "$seed"
on 2 0,0,1 api/random_programs --count 8 --ranks 3 --seed "$seed"
on 4 0,1,2,3 api/random_programs --count 8 --ranks 8 --seed "$seed"
on 2 0,1 core/groups
on 2 0,1 core/lifetime_peer_leaves "$seed"
on 3 0,1,2 fault/trials --count 12 --kinds kill,stop,late,abort --seed "$seed"
on 2 0,1 core/lifetime_create_destroy
