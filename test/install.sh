#!/bin/sh
# make install into an empty folder, a program outside the tree compiled by pkg-config alone, run, and make uninstall,
# which leaves no file behind.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
build=${top_builddir:-.}
# This make is not a part of the make that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "$*"
    exit 1
}
make -C "$build" install DESTDIR="$dir/root" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "make install failed"; }
pc=$(find "$dir/root" -name rondo.pc)
[ -n "$pc" ] || fail "no rondo.pc was installed"
libdir=$(dirname "$(find "$dir/root" -name librondo.so)")
[ -d "$libdir" ] || fail "no librondo.so was installed"

export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$dir/root"
pkg-config --exists rondo || fail "pkg-config does not know rondo"
[ "$(pkg-config --modversion rondo)" = "$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$build/config.h")" ] ||
    fail "rondo.pc has another version than configure"
cp "$source/examples/processes.c" "$dir"
(cd "$dir" && ${CC:-cc} processes.c $(pkg-config --cflags --libs rondo) -o processes) || fail "the example does not compile"
timeout 60 env LD_LIBRARY_PATH="$libdir" "$dir/processes" 3 || fail "the example fails"

make -C "$build" uninstall DESTDIR="$dir/root" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "make uninstall failed"; }
left=$(find "$dir/root" -type f -o -type l)
[ -z "$left" ] || fail "make uninstall left: $left"
