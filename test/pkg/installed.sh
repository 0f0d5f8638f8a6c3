#!/bin/sh
# make installcheck: what was installed moves data, and is without what configure did not find. In distcheck, whose build
# has none of the libraries that rondo can do without, the example and rondo-perf run without an MPI, and draw nothing.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
fail() {
    cat "$dir/log" 2>/dev/null
    echo "$*"
    exit 1
}
lacking="mpi ucp fabric" # these, librondo never links
[ -n "$HWLOC_LIBS" ] || lacking="$lacking hwloc"
[ -n "$EXPAT_LIBS" ] || lacking="$lacking expat"
for library in $lacking; do
    ldd "$libdir/librondo.so" | grep "lib$library" && fail "librondo links $library"
done
LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
${CC:-cc} "$source/examples/processes.c" -o "$dir/processes" \
    $(PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=${DESTDIR:-} pkg-config --cflags --libs rondo) \
    >"$dir/log" 2>&1 || fail "the example does not compile"
timeout 180 "$dir/processes" 3 >"$dir/log" 2>&1 || fail "the example fails"
if [ -z "$CAIRO_LIBS" ]; then
    "$bindir/rondo-perf" allreduce --plot "$dir/a.svg" >"$dir/log" 2>&1
    grep -q 'built without cairo' "$dir/log" || fail "a picture is not refused"
fi
timeout 180 "$bindir/rondo-perf" allreduce -b 8 -e 64K -f 16 -c >"$dir/log" 2>&1 || fail "rondo-perf fails"
