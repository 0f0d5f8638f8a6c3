#!/bin/sh
# The Debian packages: built from the files of this checkout alone, installed by dpkg into a root of their own, an
# example in C and a program in Fortran compiled and run with what lies there, purged, nothing left. Built without
# optimisation, with the smaller shell and without compression, to be short, and behind whatever else runs.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
for tool in dpkg dpkg-buildpackage dh pkg-config; do
    command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
(cd "$source" && dpkg-checkbuilddeps) || { echo "what the packages are built with is not all here"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "dpkg needs root, also for a root of one's own"; exit 77; }
[ -e "$source/.git" ] && command -v git >/dev/null || { echo "not a checkout"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
fail() {
    tail -n 30 "$dir/log"
    echo "$*"
    exit 1
}
mkdir "$dir/rondo" && cd "$source" &&
    git -c safe.directory='*' ls-files -z |
    tar --null -T - --ignore-failed-read -cf - | tar -xf - -C "$dir/rondo" || fail "cannot copy the sources"
(cd "$dir/rondo" &&
    CONFIG_SHELL=/bin/sh DPKG_DEB_COMPRESSOR_TYPE=none \
        DEB_BUILD_OPTIONS="nocheck noopt noautodbgsym parallel=${RONDO_QUICKSTART_JOBS:-$(nproc)}" nice dpkg-buildpackage -us -uc -b) >"$dir/log" 2>&1 ||
    fail "dpkg-buildpackage failed"
packages="librondo1 librondo-dev librondo-fortran1 librondo-fortran-dev librondo-mpi rondo-tools"
for package in $packages; do
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
timeout 180 "$dir/processes" 3 || fail "the example fails"
cat >"$dir/alone.f90" <<'END'
program alone
  use rondo
  implicit none
  type(rondo_unique_id) :: id
  type(rondo_comm) :: comm
  real :: x = 3, y = 0

  call rondo_unique_id_create(id)
  call rondo_comm_create(comm, 1, id, 0)
  call rondo_allreduce(x, y, 1, RONDO_FLOAT32, RONDO_SUM, comm)
  call rondo_comm_destroy(comm)
  if (y /= x) error stop 'another sum'
end program
END
gfortran "$dir/alone.f90" $(pkg-config --cflags --libs rondo-fortran) -o "$dir/alone" >"$dir/log" 2>&1 ||
    fail "a program with module rondo does not compile"
timeout 180 "$dir/alone" || fail "a program with module rondo fails"
timeout 180 "$root/usr/bin/rondo-perf" allreduce --ranks 2 -b 8 -e 4K -f 8 -n 20 --turns 3 -c >"$dir/log" 2>&1 ||
    fail "rondo-perf fails"
timeout 180 "$root/usr/bin/rondo-info" >"$dir/log" 2>&1 || fail "rondo-info fails"
package --purge $packages || fail "the packages cannot be purged"
left=$(find "$root" -path "$root/var" -prune -o -mindepth 1 -print)
[ -z "$left" ] || fail "after the purge there is still: $left"

# A release's build of all of it is taken away without a rest; distcheck's has neither MPI nor Fortran's module for it.
make -C "$dir/rondo/build-debian" distclean >"$dir/log" 2>&1 || fail "make distclean fails"
left=$(find "$dir/rondo/build-debian" -type f)
[ -z "$left" ] || fail "make distclean has left: $left"
