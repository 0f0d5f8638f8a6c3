#!/bin/sh
# The program in README.md, as it stands there, compiles and says what README.md says it says.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
build=${top_builddir:-.}
[ -n "${MPI_LIBS:-}" ] || { echo "no MPI"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '/^```/d' >"$dir/sum.c"
[ -s "$dir/sum.c" ] || { echo "README.md shows no program"; exit 1; }
${CC:-cc} -Wall -Wextra -Werror "$dir/sum.c" -I"$source/lib" $MPI_CFLAGS -L"$build/.libs" -lrondo $MPI_LIBS \
    -Wl,-rpath,"$build/.libs" -o "$dir/sum" || exit 1
for ranks in 2 4; do
    RONDO_TEST_RANKS=$ranks sh "$source/test/mpirun.sh" "$dir/sum" >"$dir/out" 2>&1 || { cat "$dir/out"; exit 1; }
    cat "$dir/out"
    said=$(grep -c "^the sum over $ranks ranks is $ranks\$" "$dir/out")
    [ "$said" = "$ranks" ] || { echo "$said of $ranks ranks said the right thing"; exit 1; }
done
