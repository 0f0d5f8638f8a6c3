#!/bin/sh
# NCCL's own examples, as they are in docs/examples of its repository, by their own Makefiles against rondo's nccl.h and
# libnccl.so.2. NCCL_SOURCES names a checkout of it; without one, or without CUDA's runtime, the test is skipped. Those
# whose kernels call NCCL's device API need nccl_device.h, which rondo does not have (doc/nccl.md): they are counted.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
library=$(cd "${top_builddir:-.}/.libs" 2>/dev/null && pwd)/libnccl.so
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -d "${NCCL_SOURCES:-}/docs/examples" ] || { echo "no sources of NCCL's: NCCL_SOURCES=FOLDER names them"; exit 77; }
[ -r "$library" ] && [ -r "$cuda/include/cuda_runtime.h" ] || { echo "no libnccl.so, or no CUDA in $cuda"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0 built=0 others=0

mkdir -p "$dir/home/include" "$dir/home/lib" "$dir/nccl/docs"
cp "$source/lib/nccl/nccl.h" "$dir/home/include"
ln -s "$library" "$dir/home/lib/libnccl.so"
ln -s "$library.2" "$dir/home/lib/libnccl.so.2"
mkdir -p "$dir/cuda/include" # CUDA's may have an nccl.h, too
ln -s "$cuda"/include/* "$dir/cuda/include"
rm -f "$dir"/cuda/include/nccl*
for folder in bin lib64 nvvm; do ln -s "$cuda/$folder" "$dir/cuda/$folder"; done
cp -r "$NCCL_SOURCES/makefiles" "$dir/nccl"
cp -r "$NCCL_SOURCES/docs/examples" "$dir/nccl/docs"

for makefile in "$dir"/nccl/docs/examples/*/*/c/Makefile; do
    folder=${makefile%/Makefile}
    name=${folder#"$dir/nccl/docs/examples/"}
    if grep -q nccl_device "$folder"/*.c* "$folder"/*.h 2>/dev/null; then
        others=$((others + 1))
        continue
    fi
    target=$(sed -n 's/^TARGET *= *//p' "$makefile")
    if make -s -B -C "$folder" NCCL_HOME="$dir/home" CUDA_HOME="$dir/cuda" >"$dir/log" 2>&1 && [ -x "$folder/$target" ]; then
        built=$((built + 1))
        # What the program asks of libnccl is there by its name.
        LD_BIND_NOW=1 LD_LIBRARY_PATH="$dir/home/lib:$cuda/lib64" ldd -r "$folder/$target" >"$dir/log" 2>&1
        grep -q 'undefined symbol\|not found' "$dir/log" || continue
    fi
    echo "$name:"
    cat "$dir/log"
    failed=1
done
[ "$built" -ge 5 ] || { echo "only $built examples were built"; failed=1; }
echo "$built of NCCL's examples are built, $others are for its device API"
exit $failed
