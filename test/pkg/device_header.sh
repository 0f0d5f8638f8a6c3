#!/bin/sh
# rondo_device.cuh compiles for a program's kernels, with warnings as errors and for the oldest GPUs that this nvcc
# knows, too; and the examples that have kernels of their own compile and link as their first lines say. Without a GPU
# they say so. 77: there is no nvcc.
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
nvcc=$(sed -n 's/^#define RONDO_NVCC "\(.*\)"/\1/p' config.h 2>/dev/null)
[ -n "$nvcc" ] && [ -e .libs/librondo.so ] || {
    echo "built without nvcc"
    exit 77
}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$dir/all.cu" <<'END'
#include <rondo_device.cuh>

template <typename GROUP>
__device__ bool all(GROUP group, const rondo_device_t &d, const rondo_device_window_t &w)
{
    const int peer = rondo_dev_nranks(d) - 1 - rondo_dev_rank(d);
    return rondo_dev_put(group, d, w, peer, 4, rondo_dev_pointer<char>(w, peer), rondo_dev_bytes(w, peer)) &&
           rondo_dev_put_signal(group, d, w, peer, 0, rondo_dev_pointer<char>(w, peer, 8), 8, 1) &&
           rondo_dev_signal_set(group, d, peer, 2, 3) && rondo_dev_signal_add(group, d, peer, 0, 2) &&
           rondo_dev_signal_wait(group, d, peer, 0) && rondo_dev_signal_until(group, d, peer, 2, 3) &&
           rondo_dev_signal_read(d, peer, 2) && rondo_dev_barrier(group, d, blockIdx.x) && !rondo_dev_failed(d);
}

__global__ void kernel(const __grid_constant__ rondo_device_t d, const __grid_constant__ rondo_device_window_t w, int *n)
{
    *n += all(rondo_dev_block(), d, w) + all(rondo_dev_warp(), d, w) + all(rondo_dev_thread(), d, w);
}
END
oldest=$("$nvcc" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort -n | head -n 1)
for arch in "$oldest" 90; do
    "$nvcc" -std=c++17 -arch=sm_"$arch" -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Werror -I"$source/lib" \
        -c "$dir/all.cu" -o "$dir/all.o" || { echo "sm_$arch: rondo_device.cuh does not compile"; exit 1; }
    echo "sm_$arch: compiled"
done
for example in allreduce_rmsnorm halo_device; do
    "$nvcc" -std=c++17 -arch=sm_90 -fmad=false -I"$source/lib" "$source/examples/$example.cu" -L.libs -lrondo \
        -Xlinker -rpath -Xlinker "$PWD/.libs" -o "$dir/$example" || { echo "$example: does not build"; exit 1; }
    "$dir/$example" >"$dir/said" 2>&1
    status=$?
    cat "$dir/said"
    [ $status -eq 0 ] || [ $status -eq 77 ] || exit 1
done
