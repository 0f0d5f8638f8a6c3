#!/bin/sh
# rondo.h compiles alone, as C11 and as C++17, with warnings as errors and with neither CUDA nor MPI in sight; its
# initialiser works in both languages.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$dir/alone.c" <<'EOF'
#include <rondo.h>
int main(void)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_op_t op = RONDO_SUM;
    return config.size == sizeof config && op == 0 && RONDO_SUCCESS == 0 ? 0 : 1;
}
EOF
cp "$dir/alone.c" "$dir/alone.cc"
failed=0
try() {
    echo "$*"
    "$@" || failed=1
}
# The first word alone, behind a ccache: configure may have added a -std of its own.
c=${CC:-cc}
c=${c#ccache }
c=${c%% *}
cxx=${CXX:-c++}
cxx=${cxx#ccache }
include=-I${top_srcdir:-$(dirname "$0")/../..}/lib
try "$c" -std=c11 -pedantic -Wall -Wextra -Werror "$include" -o "$dir/c" "$dir/alone.c"
try "$dir/c"
if command -v "$cxx" >/dev/null 2>&1; then
    try "$cxx" -std=c++17 -pedantic -Wall -Wextra -Werror "$include" -o "$dir/cxx" "$dir/alone.cc"
    try "$dir/cxx"
else
    echo "no C++ compiler: the C++17 half is not checked"
fi
exit $failed
