#!/bin/sh
# The Debian packages: built from the files of this checkout alone, installed by dpkg into a root of their own, an
# example compiled and run with what lies there, purged, nothing left. Built without optimisation, to be short.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
for tool in dpkg dpkg-buildpackage dh pkg-config; do
    command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
(cd "$source" && dpkg-checkbuilddeps) || { echo "what the packages are built with is not all here"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "dpkg needs root, also for a root of one's own"; exit 77; }
[ -e "$source/.git" ] && command -v git >/dev/null || { echo "not a checkout"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() {
    tail -n 30 "$dir/log"
    echo "$*"
    exit 1
}
mkdir "$dir/rondo" && cd "$source" &&
    git -c safe.directory='*' ls-files -z |
    tar --null -T - --ignore-failed-read -cf - | tar -xf - -C "$dir/rondo" || fail "cannot copy the sources"
(cd "$dir/rondo" &&
    DEB_BUILD_OPTIONS="nocheck noopt noautodbgsym parallel=$(nproc)" dpkg-buildpackage -us -uc -b) >"$dir/log" 2>&1 ||
    fail "dpkg-buildpackage failed"
for package in librondo1 librondo-dev rondo-tools; do
    [ -e "$(echo "$dir/${package}"_*.deb)" ] || fail "no package $package was built"
done
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error "$dir"/*.changes || fail "lintian finds errors"
fi

root=$dir/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" && : >"$root/var/lib/dpkg/status"
# Its root knows no other package, so dependencies are not looked at.
package() {
    dpkg --root="$root" --log="$dir/dpkg.log" --force-depends --force-script-chrootless "$@" >"$dir/log" 2>&1
}
package -i "$dir"/*.deb || fail "the packages cannot be installed"
libdir=$(dirname "$(find "$root" -name 'librondo.so.1')")
export PKG_CONFIG_PATH="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
${CC:-cc} "$root/usr/share/doc/librondo-dev/examples/processes.c" $(pkg-config --cflags --libs rondo) -o "$dir/processes" \
    >"$dir/log" 2>&1 || fail "the example does not compile"
export LD_LIBRARY_PATH="$libdir"
timeout 60 "$dir/processes" 3 || fail "the example fails"
timeout 60 "$root/usr/bin/rondo-perf" allreduce --ranks 2 -b 8 -e 4K -f 8 -n 20 --turns 3 -c >"$dir/log" 2>&1 ||
    fail "rondo-perf fails"
timeout 60 "$root/usr/bin/rondo-info" >"$dir/log" 2>&1 || fail "rondo-info fails"
package --purge librondo1 librondo-dev rondo-tools || fail "the packages cannot be purged"
left=$(find "$root" -path "$root/var" -prune -o -mindepth 1 -print)
[ -z "$left" ] || fail "after the purge there is still: $left"
