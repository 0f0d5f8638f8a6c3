#!/bin/sh
# With neither UCX nor hwloc nor expat nor MPI nor CUDA nor cairo the tree configures, compiles, and moves data: a build of its own, quickly
# compiled (with the smaller shell, on all cores, and behind whatever else runs), whose example and whose rondo-perf run without an MPI.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
dir=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
fail() {
    tail -n 30 "$dir/log"
    echo "$*"
    exit 1
}
# A tree that is configured in place cannot be built a second time elsewhere.
[ ! -e "$source/config.status" ] || { echo "the source folder is configured"; exit 77; }
cd "$dir" || exit 1
CONFIG_SHELL=/bin/sh "$source/configure" CC="${CC:-cc}" CFLAGS="-O1" --prefix="$dir/prefix" --enable-werror --disable-dependency-tracking \
    --with-cuda=no --with-ucx=no --with-libfabric=no --with-hwloc=no --with-expat=no --with-mpi=no --with-cairo=no >log 2>&1 || fail "configure failed"
nice make -j"${RONDO_QUICKSTART_JOBS:-$(nproc 2>/dev/null || echo 2)}" >log 2>&1 || fail "make failed"
make install >log 2>&1 || fail "make install failed"
for library in mpi ucp hwloc expat; do
    ldd prefix/lib/librondo.so | grep "lib$library" && fail "librondo links $library"
done
${CC:-cc} "$source/examples/processes.c" -o processes $(PKG_CONFIG_PATH=prefix/lib/pkgconfig pkg-config --cflags --libs rondo) \
    -Wl,-rpath,"$dir/prefix/lib" >log 2>&1 || fail "the example does not compile"
timeout 180 ./processes 3 >log 2>&1 || fail "the example fails"
prefix/bin/rondo-perf allreduce --plot a.svg 2>&1 | grep -q 'built without cairo' || fail "a picture is not refused"
timeout 180 prefix/bin/rondo-perf allreduce -b 8 -e 64K -f 16 -c >log 2>&1 || fail "rondo-perf fails"
cat log
