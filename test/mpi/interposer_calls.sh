#!/bin/sh
# The interposer serves every call, from C and from Fortran, with the MPI's own answers; preloaded and linked; and says in
# a sentence where it cannot serve. With Open MPI and MPICH, each by the interposer built for it from source.
set -u
. "${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/test/mpi/interposer/common.sh"
[ -n "$(mpis)" ] || { echo "neither mpicc.openmpi nor mpicc.mpich is here"; exit 77; }

# All of a program's calls but the few that start a communicator.
served() { # LEAST_PERCENT
    share=$(sed -n 's/^  all  *[0-9]*  *[0-9]*  *\([0-9]*\)\..*/\1/p' "$dir/out")
    [ "${share:-0}" -ge "$1" ] || { cat "$dir/out"; fail "only ${share:-0} percent were served"; }
}
for mpi in $(mpis); do
    for_mpi "$mpi" || continue
    # It compiles for an MPI without persistent collectives as well.
    for file in "$source"/lib/mpi/*.c; do
        "$mpicc" -std=gnu11 -D_GNU_SOURCE= -DRD_MPI_HAS_INIT=0 -fsyntax-only -Wall -Wextra -Werror -I"$source/lib" \
            "$file" || fail "$file without persistent collectives"
    done
    # Random calls against the MPI's own. Open MPI's tuned ones hang or go wrong themselves where ranks describe one
    # signature by different types, because they choose by what one rank sees: its basic ones are asked.
    OMPI_MCA_coll=basic,libnbc,self,inter
    export OMPI_MCA_coll
    compile random
    for ranks in 2 3; do
        run $ranks --report "$dir/random.$mpi" --count 250 --seed $((ranks * 77)) || { cat "$dir/out"; fail "random"; }
        served 100
    done
    run 3 --reproducible --report "$dir/random.$mpi" --count 100 || { cat "$dir/out"; fail "random, reproducible"; }
    for ranks in 2 3; do
        run $ranks --table=off --report "$dir/random.$mpi" --nonblocking 1 --count 120 --seed $((ranks * 78)) ||
            { cat "$dir/out"; fail "random, nonblocking"; }
        served 95 # not the first ones
    done
    # The switches: off, by operation, by bytes.
    run 2 --serve=off --report "$dir/random.$mpi" --count 40 || fail "off"
    grep -q '^  all  *[0-9]*  *0 ' "$dir/out" || { cat "$dir/out"; fail "off, but something was served"; }
    RONDO_MPI_REPRODUCIBLE=99999999999999999999 \
        run 2 --serve=-bcast,allreduce=0-64,scan=0-17179869184G --log --report "$dir/random.$mpi" --count 100 || fail "by operation"
    grep -q '^  bcast  *[0-9]*  *0 ' "$dir/out" && grep -q '^  gather .* 100.0%' "$dir/out" &&
        grep -q 'MPI bcast is handed on: outside of the bytes' "$dir/out" || { cat "$dir/out"; fail "by operation"; }
    grep -q "scan=0-17179869184G' is not a range of bytes" "$dir/out" && grep -q '99999 is not a number' "$dir/out" ||
        { cat "$dir/out"; fail "what overflows is taken"; }
    run 3 --serve=all,gather=0-64,gatherv=0-64,scatterv=-64,allgatherv=64-,alltoallv=0-64,reduce_scatter=0-64 \
        "$dir/random.$mpi" --count 100 --seed 9 || { cat "$dir/out"; fail "by bytes, which differ by rank"; }
    run 2 --compare=10 "$dir/random.$mpi" --count 100 || fail "compared"
    grep -q 'the MPI served [0-9]* to compare' "$dir/out" || { cat "$dir/out"; fail "compared"; }
    unset OMPI_MCA_coll
    # Fortran's three ways.
    if command -v "$mpif90" >/dev/null; then
        flags=
        [ $family = mpich ] && flags=-DSECTIONS
        [ "$(macro OMPI_MAJOR_VERSION)" = 4 ] && flags=-DEXTENDED
        for way in 1 2 3; do
            "$mpif90" -w -fallow-argument-mismatch -DWAY=$way $flags "$here/fortran.F90" -J "$dir" \
                -o "$dir/fortran.$mpi" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "Fortran, way $way"; continue; }
            good 2 --report "$dir/fortran.$mpi"
            served 97 # not the first nonblocking ones
            grep -q '^  allreduce_init .* 100.0%' "$dir/out" || { cat "$dir/out"; fail "allreduce_init from Fortran"; }
        done
    else
        echo "$mpi: no mpif90: Fortran is left out"
    fi
    # Linked before the MPI instead.
    compile corners -L"$dir/$mpi" -Wl,--no-as-needed -lrondo_mpi -Wl,-rpath,"$dir/$mpi"
    RONDO_MPI_REPORT=1 timeout 60 "$mpirun" $oversubscribe -n 2 "$dir/corners.$mpi" plain >"$dir/out" 2>&1 ||
        fail "linked"
    served 99
    # An MPI that is opened, and whose names are not global.
    gcc -w -o "$dir/opened" "$here/opening.c" -ldl || fail "opening.c"
    "$mpicc" -w -shared -fPIC "$here/opened.c" -o "$dir/opened.so"
    good 2 --report "$dir/opened" "$dir/opened.so"
    served 99
    # The same behind many libraries in a folder whose name has "mpi" in it.
    mkdir -p "$dir/mpis"
    gcc -w -x c -shared -fPIC /dev/null -o "$dir/mpis/lib1.so" || fail "lib1.so"
    for i in 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
        cp "$dir/mpis/lib1.so" "$dir/mpis/lib$i.so"
    done
    good 2 --report "$dir/opened" "$dir"/mpis/lib*.so "$dir/opened.so"
    served 99
    # Another tool behind it gets what is handed on, and nothing else.
    compile corners
    "$mpicc" -w -shared -fPIC "$here/behind.c" -o "$dir/behind.so"
    for serve in all off; do
        [ $serve = all ] && calls=0 || calls=12
        LD_PRELOAD=$dir/behind.so run 2 --serve=$serve "$dir/corners.$mpi" plain
        [ "$(grep -c "^behind: $calls calls" "$dir/out")" = 2 ] || { cat "$dir/out"; fail "a tool behind, $serve"; }
    done
    LD_PRELOAD=$dir/behind.so good 2 "$dir/corners.$mpi" builtin
    # Sessions of MPI 4, whose calls come before MPI_Init: what comes behind that is served.
    if [ "$(macro MPI_VERSION)" -ge 4 ] && [ $family = mpich ]; then
        compile sessions
        good 2 --report "$dir/sessions.$mpi"
        good 2 --report "$dir/sessions.$mpi" world
        served 60
    fi
    # One before it hides calls for requests: then persistent operations are the MPI's, and nonblocking ones go on.
    compile persistent
    compile nonblocking
    "$mpicc" -w -shared -fPIC "$here/before.c" -o "$dir/before.so"
    for program in "persistent.$mpi again" "nonblocking.$mpi elsewhere collectives orders mixed"; do
        RONDO_MPI_REPORT=1 timeout 60 "$mpirun" $oversubscribe -n 2 \
            env LD_PRELOAD="$dir/before.so $preload" "$dir/"$program >"$dir/out" 2>&1
        grep -q '^good$' "$dir/out" || { cat "$dir/out"; fail "a tool before it: $program"; }
        case $program in
        persistent*) wanted='^  reduce_init  *60  *0 ' ;;
        *) wanted='^  iallreduce  *[0-9]*  *[1-9]' ;;
        esac
        grep -q "$wanted" "$dir/out" || { cat "$dir/out"; fail "a tool before it: who served $program"; }
    done
    # On one rank alone: then the ranks do not wait for each other where the others could be in order. Open MPI's own
    # persistent ones crash where an operator is freed.
    compile ordered
    [ $family = openmpi ] && corners=persistent || corners="persistent operators"
    tool=$dir/before.so preload=$preload RONDO_MPI_REPRODUCIBLE=1 timeout 60 "$mpirun" $oversubscribe -n 2 sh -c '
        [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 0 ] || tool=
        LD_PRELOAD="$tool $preload" exec "$@"' sh "$dir/ordered.$mpi" $corners >"$dir/out" 2>&1
    code=$?
    grep -q '^good$' "$dir/out" || grep -q 'is in another order' "$dir/out" ||
        { cat "$dir/out"; fail "a tool before it on one rank: result $code"; }
    # In the environment of the launcher, too.
    LD_PRELOAD=$preload timeout 60 "$mpirun" $oversubscribe -n 2 "$dir/corners.$mpi" plain >"$dir/out" 2>&1
    [ "$(cat "$dir/out")" = good ] || { cat "$dir/out"; fail "the launcher is not left alone"; }
    # What has no MPI sees nothing.
    LD_PRELOAD=$preload sh -c 'echo quiet' >"$dir/out" 2>&1
    [ "$(cat "$dir/out")" = quiet ] || { cat "$dir/out"; fail "a shell is not left alone"; }
done
# So does one whose program was compiled for the standard ABI of MPI 5, played by its version.
for mpi in $(mpis); do
    use_mpi "$mpi"
    echo 'int PMPI_Abi_get_version(int *major, int *minor) { *major = 1; *minor = 0; return 0; }' |
        gcc -w -x c -shared -fPIC - -o "$dir/abi.so" || fail "abi.so"
    compile corners
    LD_PRELOAD=$dir/abi.so good 2 "$dir/corners.$mpi" plain
    [ "$(grep -c "the program was for MPI's standard ABI: it serves nothing" "$dir/out")" = 2 ] ||
        { cat "$dir/out"; fail "the standard ABI"; }
done
# MPI 4.1's calls that ask for several requests: played, where the MPI does not have them.
for one in $(mpis); do
    use_mpi "$one"
    [ $family = mpich ] && [ "$(macro MPI_VERSION)" = 4 ] && [ "$(macro MPI_SUBVERSION)" = 0 ] || continue
    mv "$dir/$mpi" "$dir/without"
    for_mpi "$one" -DRD_MPI_HAS_GET_STATUSES=1 || continue
    "$mpicc" -w -shared -fPIC "$here/played_statuses.c" -o "$dir/libplayed.so" || fail "played_statuses.c"
    compile asks -L"$dir" -lplayed -Wl,-rpath,"$dir" -ldl
    for ranks in 2 3; do
        good $ranks "$dir/asks.$mpi" asks
    done
    rm -rf "$dir/$mpi"
    mv "$dir/without" "$dir/$mpi"
done
# An interposer for another MPI says so.
for one in $(mpis); do
    for other in $(mpis); do
        use_mpi "$other"
        wrong=$preload others=$family
        use_mpi "$one"
        [ $family = "$others" ] && continue
        preload=$wrong
        compile corners
        good 2 "$dir/corners.$mpi" plain ties bottom
        [ "$(grep -c 'was built for .* serves nothing in this process' "$dir/out")" = 2 ] ||
            { cat "$dir/out"; fail "the interposer of $other does not say that it is the wrong one"; }
        break
    done
done
exit $failed
