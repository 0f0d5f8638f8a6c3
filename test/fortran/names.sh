#!/bin/sh
# The Fortran modules have every constant and every call of rondo.h, under the same names, and the same values.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
header=$source/lib/rondo.h
modules="$source/lib/fortran/rondo_types.f90 $source/lib/fortran/rondo_counts_int64.f90 $source/lib/fortran/rondo.f90"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
{
    echo '#include <rondo.h>'
    sed -n 's/.*parameter, public :: \(RONDO_[A-Z0-9_]*\) = \(-\{0,1\}[0-9]*\).*/_Static_assert(\1 == \2, "\1");/p' $modules
    # What the types of both languages have in common.
    echo '_Static_assert(sizeof(rondo_unique_id_t) == 128, "the id");'
    echo '_Static_assert(sizeof(rondo_device_t) == 8 + 4 * 4 + 16 * 8 + 3 * 8, "device");'
    echo '_Static_assert(sizeof(rondo_device_window_t) == 8 + 16 * 8 + 16 * 8, "view");'
} >"$dir/values.c"
compared=$(grep -c Static_assert "$dir/values.c")
echo "$compared constants are compared"
${CC:-cc} -std=c11 -I"$source/lib" -c "$dir/values.c" -o "$dir/values.o" || failed=1
for name in $(grep -o '\bRONDO_[A-Z0-9_]*' "$header" | sort -u); do
    case $name in
    RONDO_H | RONDO_VERSION* | RONDO_CONFIG_INIT | RONDO_DEVICE_CONFIG_INIT | RONDO_SHAPE_INIT) continue ;; # what Fortran has otherwise
    esac
    grep -q "^    $name\b\|^#define $name " "$header" || continue # spoken of, not defined: the environment
    grep -q "parameter, public :: $name = " $modules || { echo "no such constant in Fortran: $name"; failed=1; }
done
calls=0
for name in $(sed -n 's/^[a-z].*[ *]\(rondo_[a-z_0-9]*\)(.*/\1/p' "$header" | sort -u); do
    calls=$((calls + 1))
    grep -q "\(interface\|subroutine\|function\) $name\b" $modules || { echo "no such call in Fortran: $name"; failed=1; }
done
echo "$calls calls are looked for"
[ "$compared" -gt 50 ] && [ "$calls" -gt 40 ] || { echo "that is too few"; failed=1; }
exit $failed
