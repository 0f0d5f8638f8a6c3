#!/bin/sh
# One librondo serves every MPI: the program in README.md compiled by each MPI's own wrapper against the same library,
# and run by that MPI's launcher.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '/^```/d' >"$dir/sum.c"
tried=0
for mpi in openmpi mpich; do
    mpicc=$(command -v mpicc.$mpi) && mpirun=$(command -v mpirun.$mpi) || { echo "no $mpi"; continue; }
    tried=$((tried + 1))
    $mpicc "$dir/sum.c" -I"$source/lib" -L"$build/.libs" -lrondo -Wl,-rpath,"$build/.libs" -o "$dir/sum.$mpi" ||
        { echo "$mpicc does not compile the program"; exit 1; }
    RONDO_TEST_RANKS=3 MPIEXEC=$mpirun sh "$source/test/util/mpirun.sh" "$dir/sum.$mpi" >"$dir/out" 2>&1 ||
        { cat "$dir/out"; echo "it fails under $mpi"; exit 1; }
    said=$(grep -c '^the sum over 3 ranks is 3$' "$dir/out")
    [ "$said" = 3 ] || { cat "$dir/out"; echo "under $mpi, $said of 3 ranks said the right thing"; exit 1; }
    echo "$mpi: good"
done
[ $tried -gt 0 ] || exit 77
