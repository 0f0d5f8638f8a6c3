#!/bin/sh
# make install into an empty folder; the examples compiled outside the tree, by pkg-config alone, with librondo.a and by
# CMake, and run; make uninstall, which leaves no file behind.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
# This make is not a part of the make that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
fail() {
    echo "$*"
    exit 1
}
make -C "$build" install DESTDIR="$dir/root" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "make install failed"; }
pc=$(find "$dir/root" -name rondo.pc)
[ -n "$pc" ] || fail "no rondo.pc was installed"
libdir=$(dirname "$(find "$dir/root" -name librondo.so)")
[ -d "$libdir" ] || fail "no librondo.so was installed"
# UCX is loaded where a communicator spans nodes, and nobody links it.
for library in "$libdir/librondo.so" "$libdir/rondo/libnccl.so.2"; do
    [ -e "$library" ] || continue
    LD_LIBRARY_PATH=$libdir ldd "$library" | grep libuc && fail "$library is linked with UCX"
done
grep -i 'lucp\|lucs' "$pc" && fail "rondo.pc links UCX"

export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$dir/root"
pkg-config --exists rondo || fail "pkg-config does not know rondo"
[ "$(pkg-config --modversion rondo)" = "$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$build/config.h")" ] ||
    fail "rondo.pc has another version than configure"
# Examples that speak to an MPI need its flags, and its mpirun.
speaks_mpi() {
    grep -q 'rondo_mpi\.h' "$source/examples/$1.c"
}
examples=
for example in "$source"/examples/*.c; do
    example=$(basename "$example" .c)
    speaks_mpi "$example" && [ -z "${MPI_LIBS:-}" ] && continue
    grep -q cuda_runtime "$source/examples/$example.c" && continue # needs a GPU: make check-gpu
    examples="$examples $example"
done
# run_example PROGRAM NAME
run_example() {
    if speaks_mpi "$2"; then
        RONDO_TEST_RANKS=2 sh "$source/test/util/mpirun.sh" "$1"
    else
        timeout 60 "$1" 3
    fi
}

mkdir "$dir/plain" "$dir/cmake" "$dir/cmake/build"
for example in $examples; do
    cp "$source/examples/$example.c" "$dir/plain"
    mpi=
    speaks_mpi "$example" && mpi="$MPI_CFLAGS $MPI_LIBS"
    (cd "$dir/plain" && ${CC:-cc} "$example.c" $(pkg-config --cflags --libs rondo) $mpi -lm -o "$example") ||
        fail "$example.c does not compile by pkg-config"
    (LD_LIBRARY_PATH="$libdir" && export LD_LIBRARY_PATH && run_example "$dir/plain/$example" "$example") ||
        fail "$example fails"
done

# The same without librondo.so, by what rondo.pc says for that. The paths of other libraries are not in this root.
static() {
    flags="-L$libdir $(PKG_CONFIG_SYSROOT_DIR='' pkg-config --static --libs rondo | sed 's/-lrondo /-l:librondo.a /')"
    cd "$dir/plain" && ${CC:-cc} processes.c $(pkg-config --cflags rondo) $flags -lm -o processes_static &&
        ! ldd processes_static | grep librondo && run_example "$dir/plain/processes_static" processes
}
if [ -f "$libdir/librondo.a" ]; then
    (static) || fail "processes.c does not link with librondo.a, or fails"
else
    echo "configured with --disable-static: its part is left out"
fi

# The same by CMake, which finds rondo in a root that is not the one for which it was configured.
by_cmake() {
    {
        echo 'cmake_minimum_required(VERSION 3.10)'
        echo 'project(examples C)'
        echo "find_package(rondo $(pkg-config --modversion rondo) EXACT REQUIRED CONFIG)"
        for example in $examples; do
            echo "add_executable($example ../plain/$example.c)"
            echo "target_link_libraries($example rondo::rondo m)"
            speaks_mpi "$example" || continue
            echo "find_package(MPI REQUIRED COMPONENTS C)"
            echo "target_link_libraries($example MPI::MPI_C)"
        done
    } >"$dir/cmake/CMakeLists.txt"
    cd "$dir/cmake/build" &&
        cmake -DCMAKE_C_COMPILER="${CC:-cc}" ${MPICC:+-DMPI_C_COMPILER="$MPICC"} \
            -DCMAKE_PREFIX_PATH="$(dirname "${libdir%/*-linux-*}")" .. >"$dir/log" 2>&1 && make >"$dir/log" 2>&1
}
# asks VERSION: is find_package content?
asks() {
    mkdir -p "$dir/asks" && cd "$dir/asks" || return 1
    printf 'cmake_minimum_required(VERSION 3.10)\nproject(asks C)\nfind_package(rondo %s REQUIRED CONFIG)\n' "$1" \
        >CMakeLists.txt
    cmake -DCMAKE_C_COMPILER="${CC:-cc}" -Drondo_DIR="$libdir/cmake/rondo" . >"$dir/log" 2>&1
}
if command -v cmake >/dev/null; then
    (by_cmake) || { cat "$dir/log"; fail "the examples do not compile by CMake"; }
    for example in $examples; do
        run_example "$dir/cmake/build/$example" "$example" || fail "$example, made by CMake, fails"
    done
    (asks "") || { cat "$dir/log"; fail "CMake does not find rondo of any version"; }
    for version in 0.0.1 99.0; do
        (asks $version) && fail "CMake is content with this rondo where $version is asked for"
    done
else
    echo "no cmake: its part is left out"
fi

# The interposer: rondo-run finds what was installed beside it, and the installed source builds for the MPI at hand.
if [ -n "${MPI_LIBS:-}" ]; then
    run=$(find "$dir/root" -name rondo-run) source_mk=$(find "$dir/root" -name build.mk)
    ${MPICC:-mpicc} -w "$source/test/mpi/interposer/corners.c" -pthread -o "$dir/corners" || fail "corners.c"
    env -u PKG_CONFIG_PATH make -s -f "$source_mk" MPICC="${MPICC:-mpicc}" DEST="$dir/built" \
        >"$dir/log" 2>&1 || { cat "$dir/log"; fail "build.mk"; }
    for library in "$libdir/librondo_mpi.so" "$dir/built/librondo_mpi.so"; do
        RONDO_MPI_REPORT=1 LD_LIBRARY_PATH="$libdir" RONDO_TEST_RANKS=2 sh "$source/test/util/mpirun.sh" \
            "$run" --library "$library" "$dir/corners" plain >"$dir/log" 2>&1 || { cat "$dir/log"; fail "rondo-run"; }
        grep -q '^  all .* 100.0%' "$dir/log" || { cat "$dir/log"; fail "rondo-run serves nothing"; }
    done
fi

make -C "$build" uninstall DESTDIR="$dir/root" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "make uninstall failed"; }
left=$(find "$dir/root" -type f -o -type l -o -name 'rondo*')
[ -z "$left" ] || fail "make uninstall left: $left"
