#!/bin/sh
# rondo-ras analyse and convert on dumps that this test makes, of jobs that never were: rondo's own, and pickles as
# PyTorch's flight recorder writes them. See analyse.py.
set -u
command -v python3 >/dev/null 2>&1 || { echo "no python3 here"; exit 77; }
[ -x "${top_builddir:-.}/rondo-ras" ] || { echo "rondo-ras is not built"; exit 77; }
exec python3 "${top_srcdir:-$(dirname "$0")/../..}/test/monitor/analyse.py" "${top_builddir:-.}/rondo-ras"
