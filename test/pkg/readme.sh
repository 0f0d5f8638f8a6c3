#!/bin/sh
# The programs in README.md, as they stand there, compile and say what README.md says they say: C, and Fortran where it is
# built.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
[ -n "${MPI_LIBS:-}" ] || { echo "no MPI"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
# extract LANGUAGE FILE
extract() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$source/README.md" | sed '/^```/d' >"$dir/$2"
    [ -s "$dir/$2" ] || { echo "README.md shows no program in $1"; exit 1; }
}
try() {
    for ranks in 2 4; do
        RONDO_TEST_RANKS=$ranks sh "$source/test/util/mpirun.sh" "$1" >"$dir/out" 2>&1 || { cat "$dir/out"; exit 1; }
        cat "$dir/out"
        said=$(grep -c "^the sum over $ranks ranks is $ranks\$" "$dir/out")
        [ "$said" = "$ranks" ] || { echo "$said of $ranks ranks said the right thing"; exit 1; }
    done
}
extract c sum.c
${CC:-cc} -Wall -Wextra -Werror "$dir/sum.c" -I"$source/lib" $MPI_CFLAGS -L"$build/.libs" -lrondo $MPI_LIBS \
    -Wl,-rpath,"$build/.libs" -o "$dir/sum" || exit 1
try "$dir/sum"
[ -n "${MPI_FCLIBS:-}" ] || { echo "no Fortran, or no MPI for it"; exit 0; }
extract fortran add.f90
(cd "$dir" && $FC $MPI_FCFLAGS -I"$build/lib/fortran" "$source/lib/fortran/rondo_mpi.F90" add.f90 -L"$build/.libs" \
    -lrondo_fortran -lrondo $MPI_FCLIBS -Wl,-rpath,"$build/.libs" -o add) || exit 1
try "$dir/add"
