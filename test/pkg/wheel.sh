#!/bin/sh
# The wheel: made from an installation, installed into a virtual environment; it loads, finds its own librondo, is
# preloaded for a program, and leaves nothing when it is uninstalled. Nothing is fetched.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR LD_PRELOAD LD_LIBRARY_PATH PYTHONPATH
# The system's python3 if the first one on the path lacks what a wheel is made with.
python=
for python3 in python3 /usr/bin/python3; do
    for modules in setuptools.command.bdist_wheel "setuptools, wheel.bdist_wheel"; do
        [ -n "$python" ] || ! $python3 -c "import $modules, venv, ensurepip, pip" 2>/dev/null || python=$python3
    done
done
[ -n "$python" ] || { echo "no python3 with pip, setuptools, wheel and venv"; exit 77; }
ls "$build"/.libs/libnccl.so.2 >/dev/null 2>&1 || { echo "no libnccl.so.2 was built"; exit 77; }
case $(sed -n 's/^CFLAGS = //p' "$build/Makefile") in
*-fsanitize*) echo "built with a sanitizer"; exit 77 ;;
esac
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
fail() {
    tail -n 20 "$dir/log"
    echo "$*"
    exit 1
}
make -C "$build" install DESTDIR="$dir/root" >"$dir/log" 2>&1 || fail "make install failed"
cp -r "$source/contrib/python" "$dir/python" && chmod -R u+w "$dir/python" || fail "cannot copy contrib/python"
cd "$dir" || exit 1
RONDO_STAGE=$dir/root $python -m pip --disable-pip-version-check wheel --no-index --no-deps --no-build-isolation \
    -w "$dir/wheel" "$dir/python" >log 2>&1 || fail "pip wheel failed"
ls wheel/rondo_nccl-*-py3-none-linux_*.whl >log 2>&1 || fail "there is no wheel for any Python 3"
$python -m venv env >log 2>&1 || fail "no virtual environment"
find env | sort >before
env/bin/python -m pip --disable-pip-version-check install --no-index wheel/*.whl >log 2>&1 || fail "pip install failed"
library=$(env/bin/python -c 'import rondo_nccl; print(rondo_nccl.path())') && [ -e "$library" ] || fail "no library at $library"
mv root moved # what it needs is its own
ldd "$library" | grep -q "librondo.so.1 => $dir/env/.*/rondo_nccl/lib/" || fail "it finds another librondo: $(ldd "$library")"
env/bin/python -c '
import ctypes, rondo_nccl
version = ctypes.c_int()
assert rondo_nccl.preload().ncclGetVersion(ctypes.byref(version)) == 0 and version.value > 20000, version.value
assert ctypes.CDLL("libnccl.so.2")._handle == rondo_nccl.preload()._handle
' >log 2>&1 || fail "it does not load"
said=$(env/bin/python -m rondo_nccl -- sh -c 'echo "$LD_PRELOAD"') && [ "$said" = "$library" ] || fail "LD_PRELOAD is $said"
env/bin/python -m rondo_nccl -- ./no-such-program >log 2>&1 && fail "a program that is not there ran"
env/bin/python -m pip --disable-pip-version-check uninstall -y rondo-nccl >log 2>&1 || fail "pip uninstall failed"
find env -name __pycache__ -prune -o -print | sort >after
left=$(grep -v -F -x -f before after)
[ -z "$left" ] || fail "after pip uninstall there is still: $left"
