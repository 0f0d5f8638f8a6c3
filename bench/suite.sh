#!/bin/sh
# Measures every operation on one node beside the MPI in turns, makes a record of it, and says which rows are below target.
#
#   bench/suite.sh [-b BUILD] [-o RESULTS] [-r "2 4"] [-q] [OPERATION...]
#
#   -b  the build folder (build)            -o  where raw output goes (BUILD/results/DATE-COMMIT)
#   -r  numbers of ranks                    -q  quick: fewer sizes, 3 turns: for a first look, not for a record
#
# The record is RESULTS.jsonl; bench/results/README.md says how to compare it with another one. Run this on a quiet
# machine. Exit: 0 every row at its target and right, 1 not, 2 usage.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../build
results=
ranks='2 4'
quick=no
while getopts b:o:r:q option; do
    case $option in
    b) build=$OPTARG ;;
    o) results=$OPTARG ;;
    r) ranks=$OPTARG ;;
    q) quick=yes ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
perf=$build/rondo-perf
[ -x "$perf" ] || { echo "suite: no $perf: build first, or name the build folder with -b" >&2; exit 2; }
mpirun=${MPIEXEC:-mpirun}
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
oversubscribe=
"$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE' && oversubscribe=--oversubscribe
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)
: "${results:=$build/results/$(date +%Y-%m-%d)-$commit}"
mkdir -p "$results" || exit 1
operations=${*:-allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv gather
gatherv scatter scatterv sendrecv pingpong barrier}

# name ranks options...: one run, its output kept; a failure is kept too, and remembered.
failed=0
measure() {
    name=$1
    n=$2
    shift 2
    echo "== $name, $n ranks: $*"
    {
        echo "\$ mpirun -n $n $oversubscribe rondo-perf $*"
        timeout 900 "$mpirun" $oversubscribe -n "$n" "$perf" "$@" 2>&1
    } >"$results/$name-$n.txt"
    status=$?
    [ $status -eq 0 ] || { echo "   exit status $status: $results/$name-$n.txt" >&2; failed=1; }
    grep -v '^[#$]' "$results/$name-$n.txt"
}

sizes() {
    case $1-$quick in
    allreduce-no) echo -e 64M -f 2 ;;
    allreduce-yes) echo -e 64M -f 8 --turns 3 ;;
    *-no) echo -e 16M -f 4 ;;
    *) echo -e 16M -f 16 --turns 3 ;;
    esac
}

for n in $ranks; do
    for op in $operations; do
        [ "$op-$n" = pingpong-2 ] || [ "$op" != pingpong ] || continue
        measure "$op" "$n" "$op" $(sizes "$op") --peer mpi
    done
    [ $# -eq 0 ] || continue
    measure bound "$n" allreduce $(sizes allreduce) --peer copy
    measure create "$n" create
    [ "$n" != 2 ] || measure call 2 call
done

note='bench/suite.sh'
[ $quick = no ] || note='bench/suite.sh -q: not for a record'
"$here/record.py" -o "$results.jsonl" --name "host-$(nproc)core" --date "$(date +%Y-%m-%d)" --command "$note" \
    "$results" || failed=1
echo
"$here/tables.py" --summary "$results.jsonl" || failed=1
echo "raw output: $results, record: $results.jsonl"
exit $failed
