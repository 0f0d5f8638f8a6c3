#!/bin/sh
# Measures every operation on one node beside the MPIs that are here, in turns, and beside what the machine itself gives;
# makes a record of it, and says which rows are below target.
#
#   bench/suite.sh [-b BUILD] [-o RESULTS] [-r "2 4"] [-p "PEER..."] [-t MINUTES] [-q] [OPERATION...]
#
#   -b  the build folder (build)            -o  where raw output goes (BUILD/results/DATE-COMMIT)
#   -r  numbers of ranks (of 32, 16 and 8 those for which there are cores, then 4 and 2)
#   -p  openmpi        Open MPI as it starts by default
#       openmpi-shm    Open MPI with what its FAQ on shared memory says ("What is the vader BTL?", "How do I specify use
#                      of sm": www.open-mpi.org/faq/?category=sm): --mca pml ob1 --mca btl self,vader
#       mpich          MPICH, where mpicc.mpich and mpirun.mpich are: a rondo-perf for it is compiled first
#       By default all that start here; the fastest of them is the peer in the summary.
#   -q  quick: sizes by factors of 16 to 16 MB, 3 short turns: about a second a run, 48 runs for a number of ranks
#   -t  ends after so many minutes, with a record of what was measured until then
#
# Ranks are bound to cores where there are as many. The record is RESULTS.jsonl; bench/results/README.md says how to compare
# it with another one. Run this on a quiet machine. Exit: 0 every row at its target and right, 1 not, 2 usage.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/number.sh"
build=$here/../build
results=
ranks=
peers='openmpi openmpi-shm mpich'
quick=no
minutes=0
while getopts b:o:r:p:t:q option; do
    case $option in
    b) build=$OPTARG ;;
    o) results=$OPTARG ;;
    r) ranks=$OPTARG ;;
    p) peers=$OPTARG ;;
    t) number -t "$OPTARG" && minutes=$OPTARG ;;
    q) quick=yes ;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
for n in $ranks; do
    number -r "$n"
done
perf=$build/rondo-perf
[ -x "$perf" ] || { echo "suite: no $perf: build first, or name the build folder with -b" >&2; exit 2; }
began=$(date +%s)
cores=$(nproc)
# The most first: they are what is left out last when time runs out.
: "${ranks:=$(for n in 32 16 8; do [ "$n" -gt "$cores" ] || echo "$n"; done) 4 2}"
mpirun=${MPIEXEC:-mpirun}
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
commit=$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)
: "${results:=$build/results/$(date +%Y-%m-%d)-$commit}"
mkdir -p "$results" || exit 1
operations=${*:-allreduce reduce broadcast allgather allgatherv reduce_scatter reduce_scatterv alltoall alltoallv gather
gatherv scatter scatterv sendrecv pingpong barrier}

# rondo-perf is the only program here that an MPI is compiled into: librondo serves each of them.
perf_mpich=$results/rondo-perf-mpich
build_mpich() {
    command -v mpicc.mpich >/dev/null && command -v mpirun.mpich >/dev/null || return 1
    files=$(ls "$here"/*.c "$here"/../tools/chart.c "$here"/../tools/canvas_none.c "$here"/../tools/number.c \
        "$here"/../tools/progress.c |
        grep -v '_none\.c$\|device_cuda\.c$'; ls "$here"/device_none.c "$here"/../tools/canvas_none.c)
    mpicc.mpich -std=gnu11 -O3 -D_GNU_SOURCE= -I"$here"/.. -I"$here"/../lib -I"$build"/lib -o "$perf_mpich" $files \
        -L"$build"/.libs -Wl,-rpath,"$(cd "$build"/.libs && pwd)" -lrondo -lm -ldl >"$results/mpich.log" 2>&1
}

# PEER RANKS: the command that starts ranks beside this peer, in $start, and the program in $program
starter() {
    bound=
    program=$perf
    case $1 in
    mpich)
        [ "$2" -gt "$cores" ] || bound='-bind-to core'
        start="mpirun.mpich $bound"
        program=$perf_mpich
        ;;
    *)
        bound=--oversubscribe
        [ "$2" -gt "$cores" ] || bound='--bind-to core'
        "$mpirun" --version 2>/dev/null | grep -q 'Open MPI\|OpenRTE' || bound=
        start="$mpirun $bound"
        [ "$1" != openmpi-shm ] || start="$start --mca pml ob1 --mca btl self,vader"
        ;;
    esac
}

present=
for peer in $peers; do
    case $peer in
    openmpi | openmpi-shm | mpich) ;;
    *) echo "suite: -p $peer: not openmpi, openmpi-shm or mpich" >&2; exit 2 ;;
    esac
    [ "$peer" != mpich ] || build_mpich || { echo "suite: no MPICH here, or rondo-perf does not build with it" >&2; continue; }
    starter "$peer" 2
    if timeout 60 $start -n 2 "$program" barrier --turns 1 -n 10 --peer mpi >"$results/start-$peer.log" 2>&1; then
        present="$present $peer"
    else
        echo "suite: $peer does not start here: $results/start-$peer.log" >&2
    fi
done
[ -n "$present" ] || { echo "suite: no peer starts here" >&2; exit 2; }

# name peer ranks options...: one run, its output kept; a failure is kept too, and remembered.
failed=0
late=no
measure() {
    name=$1
    peer=$2
    n=$3
    shift 3
    left=900
    [ "$minutes" = 0 ] || left=$((minutes * 60 - $(date +%s) + began))
    [ "$left" -le 900 ] || left=900
    [ "$left" -gt 0 ] || late=yes
    [ $late = no ] || return 0
    # What MPICH does where ranks share cores is to spin: neither side's time means anything then.
    [ "$peer" != mpich ] || [ "$n" -le "$cores" ] || return 0
    starter "$peer" "$n"
    file=$results/$name-$n-$peer.txt
    echo "== $name, $n ranks, $peer: $*"
    {
        echo "\$ $start -n $n rondo-perf $*"
        timeout $left $start -n "$n" "$program" "$@" 2>&1
    } >"$file"
    status=$?
    [ $status -ne 124 ] || [ "$left" -eq 900 ] || { late=yes; rm -f "$file"; return 0; } # what was cut off
    [ $status -eq 0 ] || { echo "   exit status $status: $file" >&2; failed=1; }
    grep -v '^[#$]' "$file"
}

# Not echo, which takes -e for itself in some shells.
say() {
    printf '%s ' "$@"
}

sizes() {
    case $1-$quick in
    allreduce-no) say -e 64M -f 2 ;;
    *v-no | alltoall-no | allgather-no | gather-no | scatter-no | reduce_scatter-no) say -e 16M -f 4 ;;
    *-no) say -e 64M -f 4 ;;
    # After twelve calls a connection's slots have all been used, so their pages are there.
    *) say -e 16M -f 16 --turns 3 --turn-ms 2 -w 12 ;;
    esac
}

# What the machine gives: by number of ranks, before anything else.
probe=$results/host_bound
if ${CC:-cc} -std=gnu11 -O3 -march=native -o "$probe" "$here/probes/host_bound.c" >"$results/probe.log" 2>&1; then
    for n in $ranks; do
        [ "$n" -le "$cores" ] || continue
        echo "== bare machine, $n ranks"
        wanted=
        for op in $operations; do
            case $op in *v | pingpong) ;; *) wanted="$wanted $op" ;; esac
        done
        [ -n "$wanted" ] || continue
        if [ $quick = yes ]; then set_sizes='-e 16M -f 16 -t 3 -m 1'; else set_sizes='-e 64M -f 2'; fi
        timeout 600 "$probe" -n "$n" $set_sizes $wanted >"$results/bare-$n.txt" 2>&1 || failed=1
        cat "$results/bare-$n.txt"
    done
else
    echo "suite: the probe does not compile: $results/probe.log" >&2
fi

for n in $ranks; do
    for op in $operations; do
        [ "$op-$n" = pingpong-2 ] || [ "$op" != pingpong ] || continue
        for peer in $present; do
            measure "$op" "$peer" "$n" "$op" $(sizes "$op") --peer mpi
        done
    done
    [ $# -eq 0 ] || continue
    first=${present# }
    first=${first%% *}
    measure bound "$first" "$n" allreduce $(sizes allreduce) --peer copy
    measure create "$first" "$n" create
    [ "$n" != 2 ] || measure call "$first" 2 call
done
[ $late = no ] || echo "suite: $minutes minutes are over: the rest is left out" >&2

note='bench/suite.sh'
[ $quick = no ] || note='bench/suite.sh -q: not for a record'
"$here/record.py" -o "$results.jsonl" --name "host-${cores}core" --date "$(date +%Y-%m-%d)" --command "$note" \
    "$results" || failed=1
echo
"$here/tables.py" --summary "$results.jsonl" || failed=1
echo "raw output: $results, record: $results.jsonl"
exit $failed
