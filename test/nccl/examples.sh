#!/bin/sh
# NCCL's own examples, as they are in docs/examples of its repository, by their own Makefiles against rondo's nccl.h and
# libnccl.so.2, and, where NCCL_INCLUDE names the folder of NCCL's own headers, all of them once more against those.
# NCCL_SOURCES names a checkout of NCCL; without one, or without CUDA's runtime, the test is skipped. Examples whose
# kernels call NCCL's device API need nccl_device.h, which rondo does not have (doc/nccl.md): without NCCL's own they
# are counted. Those without kernels and without MPI then run on simulated GPUs (test/sim), if these were built, all but
# two that move too much for them.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
library=$(cd "${top_builddir:-.}/.libs" 2>/dev/null && pwd)/libnccl.so
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -d "${NCCL_SOURCES:-}/docs/examples" ] || { echo "no sources of NCCL's: NCCL_SOURCES=FOLDER names them"; exit 77; }
[ -r "$library" ] && [ -r "$cuda/include/cuda_runtime.h" ] || { echo "no libnccl.so, or no CUDA in $cuda"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

# own and theirs: what the Makefiles take for an installation of NCCL. CUDA's folders may have NCCL's header and library,
# too, which come before it.
mkdir -p "$dir/own/include" "$dir/own/lib" "$dir/nccl/docs" "$dir/cuda/include" "$dir/cuda/lib64"
cp "$source/lib/nccl/nccl.h" "$dir/own/include"
ln -s "$library" "$dir/own/lib/libnccl.so"
ln -s "$library.2" "$dir/own/lib/libnccl.so.2"
ln -s "$cuda"/include/* "$dir/cuda/include"
ln -s "$cuda"/lib64/* "$dir/cuda/lib64"
rm -f "$dir"/cuda/include/nccl* "$dir"/cuda/lib64/libnccl*
for folder in bin nvvm; do ln -s "$cuda/$folder" "$dir/cuda/$folder"; done
cp -r "$NCCL_SOURCES/makefiles" "$dir/nccl"
cp -r "$NCCL_SOURCES/docs/examples" "$dir/nccl/docs"
homes=own
if [ -n "${NCCL_INCLUDE:-}" ]; then
    homes="own theirs"
    mkdir "$dir/theirs"
    ln -s "$NCCL_INCLUDE" "$dir/theirs/include"
    ln -s "$dir/own/lib" "$dir/theirs/lib"
fi

# Builds the example in folder $1 with installation $2; what it asks of libnccl must be there by its name.
example() {
    target=$(sed -n 's/^TARGET *= *//p' "$1/Makefile")
    make -s -B -C "$1" NCCL_HOME="$dir/$2" CUDA_HOME="$dir/cuda" >"$dir/log" 2>&1 && [ -x "$1/$target" ] || return 1
    LD_BIND_NOW=1 LD_LIBRARY_PATH="$dir/own/lib:$cuda/lib64" ldd -r "$1/$target" >"$dir/log" 2>&1
    ! grep -q 'undefined symbol\|not found' "$dir/log"
}

for home in $homes; do
    built=0 others=0
    for makefile in "$dir"/nccl/docs/examples/*/*/c/Makefile; do
        folder=${makefile%/Makefile}
        if [ $home = own ] && grep -q nccl_device "$folder"/*.c* "$folder"/*.h 2>/dev/null; then
            others=$((others + 1))
        elif example "$folder" $home; then
            built=$((built + 1))
        else
            echo "${folder#"$dir/nccl/docs/examples/"}:"
            cat "$dir/log"
            failed=1
        fi
    done
    [ $built -ge 5 ] || { echo "only $built examples were built"; failed=1; }
    [ $home = own ] || { echo "$built of NCCL's examples are built with NCCL's own headers"; continue; }
    echo "$built of NCCL's examples are built, $others are for its device API"
done

# Runs the example in folder $1, with its sources as they are, on three simulated GPUs.
simulated() {
    common=$dir/nccl/docs/examples/common
    rm -f "$dir"/*.o
    (cd "$dir" && c++ -c -I"$source/lib/nccl" -I"$cuda/include" -I"$common/include" "$1/main.cc" "$common/src/utils.cc") &&
        (cd "${top_builddir:-.}" && ./libtool --quiet --tag=CXX --mode=link c++ -Wl,--wrap=dlopen -Wl,--wrap=dlsym \
            -o "$dir/example" "$dir"/*.o "$driver" libnccl_parts.la librondo_core.la libsim.la -lm) &&
        SIM_DEVICES=3 timeout 120 "$dir/example"
}

driver=test/sim/test_sim_shim-driver.o
[ -r "${top_builddir:-.}/$driver" ] && [ -r "${top_builddir:-.}/libsim.la" ] || exit $failed
ran=0
for main in "$dir"/nccl/docs/examples/*/*/c/main.cc; do
    case $main in *_mpi/* | */01_ring_pattern/* | */03_collectives/*) continue ;; esac
    if simulated "${main%/main.cc}" >"$dir/log" 2>&1; then
        ran=$((ran + 1))
    else
        echo "${main#"$dir/nccl/docs/examples/"} on simulated GPUs:"
        tail -n 20 "$dir/log"
        failed=1
    fi
done
[ $ran -ge 5 ] || { echo "only $ran examples ran on simulated GPUs"; failed=1; }
echo "$ran of NCCL's examples ran on simulated GPUs"
exit $failed
