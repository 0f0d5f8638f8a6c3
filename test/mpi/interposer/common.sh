# For the interposer's tests: for each MPI that is here, the interposer built for it and a way to run programs.
# Sourced. After `for_mpi NAME`: $preload, $mpicc, $mpirun, $mpif90, $family (openmpi or mpich), run, compile.
#
# The MPIs are the distribution's, mpicc.openmpi and mpicc.mpich, as far as they are there. RONDO_TEST_MPIS names others,
# by the folder of their mpicc and mpirun, with a name for each, or less of these:
#
#   RONDO_TEST_MPIS="openmpi5=/opt/openmpi-5/bin mpich43=/opt/mpich-4.3/bin" test/mpi/interposer_corners.sh
#   RONDO_TEST_MPIS=mpich test/mpi/interposer_corners.sh
#
# RONDO_TEST_RANKS="16 33" has the corners run with these numbers of ranks instead of 2 and 4, all on this machine.
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=$(cd "${top_builddir:-.}" && pwd)
here=$source/test/mpi/interposer
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
unset MAKEFLAGS MFLAGS MAKELEVEL LD_PRELOAD
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
failed=0
fail() {
    echo "$mpi: $*"
    failed=1
}
# A name, or NAME=FOLDER, for each MPI.
mpis() {
    for mpi in ${RONDO_TEST_MPIS:-openmpi mpich}; do
        tools_of "$mpi"
        if command -v "$mpicc" >/dev/null && command -v "$mpirun" >/dev/null; then
            echo "$mpi"
        elif [ -n "${RONDO_TEST_MPIS:-}" ]; then
            echo "RONDO_TEST_MPIS: $mpi: there are no $mpicc and $mpirun" >&2
        fi
    done
}
tools_of() {
    case $1 in
    *=*) mpicc=${1#*=}/mpicc mpirun=${1#*=}/mpirun mpif90=${1#*=}/mpif90 ;;
    *) mpicc=mpicc.$1 mpirun=mpirun.$1 mpif90=mpif90.$1 ;;
    esac
}
# What a macro of mpi.h says.
macro() {
    echo "$1" | "$mpicc" -include mpi.h -E - | tail -n 1
}
use_mpi() {
    tools_of "$1"
    mpi=${1%%=*}
    family=mpich
    [ "$(macro OPEN_MPI)" = OPEN_MPI ] || family=openmpi
    oversubscribe=
    [ $family = openmpi ] && oversubscribe=--oversubscribe
    preload=$dir/$mpi/librondo_mpi.so
    gives_way=
    [ $family = openmpi ] || gives_way=$dir/gives_way.so
    [ -z "$gives_way" ] || [ -e "$gives_way" ] ||
        gcc -shared -fPIC -O1 "$source/test/util/gives_way.c" -o "$gives_way" || fail "gives_way.c"
}
# As a user would, from the installed source: the sentence in doc/mpi.md.
build_for() { # FOLDER FLAGS...
    into=$1
    shift
    make -j2 -s -f "$source/lib/mpi/build.mk" MPICC="$mpicc" CC=gcc CFLAGS="-O2 -g -Wall -Wextra -Werror $*" \
        DEST="$into" RONDO_CFLAGS="-I$source/lib" RONDO_LIBS="-L$build/.libs -lrondo -Wl,-rpath,$build/.libs" \
        >"$dir/log" 2>&1 || { cat "$dir/log"; fail "the interposer does not build"; return 1; }
}
# Without flags it is built once for all scripts, which may run at a time: whoever comes first builds it, and whoever
# finds it older than its sources, or built by another compiler. Each has a copy.
for_mpi() { # MPI FLAGS...
    use_mpi "$1"
    shift
    mkdir -p "$dir/$mpi"
    kept=$build/test/mpi/built.$mpi
    if [ $# -gt 0 ] || ! command -v flock >/dev/null || ! mkdir -p "$kept"; then
        build_for "$dir/$mpi" "$@"
        return
    fi
    compiler=$(command -v "$mpicc")
    by="$compiler for $build"
    (
        flock 9
        if [ "$(cat "$kept/by" 2>/dev/null)" != "$by" ] ||
            [ -n "$(find -L "$source/lib/mpi" "$source/lib/rondo.h" "$here/common.sh" "$compiler" -newer "$kept/by")" ]; then
            rm -f "$kept/by" "$kept"/*.o # of a build that failed
            touch "$dir/began"
            build_for "$kept" || exit 1
            echo "$by" >"$kept/by"
            touch -r "$dir/began" "$kept/by"
        fi
        cp "$kept/librondo_mpi.so" "$kept/librondo_mpi_calls.so" "$dir/$mpi"
    ) 9>"$kept/lock" || { failed=1; return 1; }
}
compile() { # NAME FLAGS...
    name=$1
    shift
    "$mpicc" -w -O0 "$here/$name.c" -o "$dir/$name.$mpi" -pthread "$@" || fail "$name.c does not compile"
}
# run RANKS PROGRAM...: with the interposer; what it prints is in $dir/out, its standard output alone in $dir/said
run() {
    ranks=$1
    shift
    LD_PRELOAD=${LD_PRELOAD:-}${gives_way:+:$gives_way} \
        timeout "${RONDO_TEST_SECONDS:-240}" "$mpirun" $oversubscribe -n "$ranks" \
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
