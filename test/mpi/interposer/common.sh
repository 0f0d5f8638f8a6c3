# For the interposer's tests: for each MPI that is here, the interposer built for it and a way to run programs.
# Sourced. After `for_mpi NAME`: $preload, run, compile, compile_fortran.
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=$(cd "${top_builddir:-.}" && pwd)
here=$source/test/mpi/interposer
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL LD_PRELOAD
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
failed=0
fail() {
    echo "$mpi: $*"
    failed=1
}
mpis() {
    for mpi in openmpi mpich; do
        command -v "mpicc.$mpi" >/dev/null && command -v "mpirun.$mpi" >/dev/null && echo $mpi
    done
}
# As a user would, from the installed source: the sentence in doc/mpi.md.
for_mpi() {
    mpi=$1
    mkdir -p "$dir/$mpi"
    make -j2 -s -f "$source/lib/mpi/build.mk" MPICC="mpicc.$mpi" CC=gcc CFLAGS="-O2 -g -Wall -Wextra -Werror" \
        DEST="$dir/$mpi" RONDO_CFLAGS="-I$source/lib" RONDO_LIBS="-L$build/.libs -lrondo -Wl,-rpath,$build/.libs" \
        >"$dir/log" 2>&1 || { cat "$dir/log"; fail "the interposer does not build"; return 1; }
    preload=$dir/$mpi/librondo_mpi.so
}
compile() { # NAME FLAGS...
    name=$1
    shift
    "mpicc.$mpi" -w -g -O1 "$here/$name.c" -o "$dir/$name.$mpi" -pthread "$@" || fail "$name.c does not compile"
}
# run RANKS PROGRAM...: with the interposer; what it prints is in $dir/out, its standard output alone in $dir/said
run() {
    ranks=$1
    shift
    oversubscribe=
    [ "$mpi" = openmpi ] && oversubscribe=--oversubscribe
    timeout "${RONDO_TEST_SECONDS:-120}" "mpirun.$mpi" $oversubscribe -n "$ranks" \
        sh "$build/tools/rondo-run" --library "$preload" "$@" >"$dir/said" 2>"$dir/out"
    code=$?
    cat "$dir/said" >>"$dir/out"
    return $code
}
# good RANKS PROGRAM...: must print "good"
good() {
    run "$@"
    code=$?
    if [ $code -ne 0 ] || ! grep -q '^good$' "$dir/said"; then
        cat "$dir/out"
        fail "result $code: $*"
    fi
    # All ranks end as they should, so none may take another for dead.
    ! grep -q 'rondo .* died' "$dir/out" || { cat "$dir/out"; fail "a rank is said to have died: $*"; }
}
