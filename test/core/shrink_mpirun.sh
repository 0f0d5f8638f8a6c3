#!/bin/sh
# A rank that kills itself under mpirun, told not to end the job for it: with each MPI that is here, the others shrink to
# who is left and come to the right result. The program is examples/survive.c, compiled by each MPI's own wrapper.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
tried=0
for mpi in openmpi mpich; do
    mpicc=$(command -v mpicc.$mpi) && mpirun=$(command -v mpirun.$mpi) || { echo "no $mpi"; continue; }
    tried=$((tried + 1))
    $mpicc "$source/examples/survive.c" -I"$source/lib" -L"$build/.libs" -lrondo -lm -Wl,-rpath,"$build/.libs" \
        -o "$dir/survive" || { echo "$mpicc does not compile the program"; exit 1; }
    case $mpi in
    openmpi) spared="$mpirun --oversubscribe --enable-recovery" attempts=1 ;;
    mpich) spared="$mpirun -disable-auto-cleanup" attempts=40 ;;
    esac
    # The launcher's own status tells of the dead rank, or does not: the launchers differ. MPICH's (hydra 4.0.2) ends the
    # others in about half of the runs all the same, whatever the program; so there one good run of many is asked for.
    for victim in 0 2; do
        good=
        for attempt in $(seq $attempts); do
            timeout 100 $spared -n 4 "$dir/survive" $victim 30 >"$dir/out" 2>"$dir/err"
            grep -qx 'pi is 3.141592654, by 3 ranks at the end' "$dir/out" && good=$attempt && break
        done
        [ -n "$good" ] || {
            cat "$dir/out" "$dir/err"
            echo "under $mpi, without rank $victim: no result of 3 ranks in $attempts attempts"
            exit 1
        }
        echo "$mpi: good without rank $victim, at attempt $good"
    done
done
[ $tried -gt 0 ] || exit 77
