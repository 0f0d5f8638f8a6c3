/* Kernels with a fault each, to see that compute-sanitizer's tools find what they are for: a clean report about the
 * library's kernels says something only where a planted fault is reported. The kernels are PTX, loaded at run time.
 *
 *   planted memcheck | initcheck | racecheck | synccheck | none
 *
 * Under `compute-sanitizer --tool TOOL --error-exitcode 9` it ends with 9, but with 0 for `none`.
 * Exit: 0 the kernel has run, 1 it has not, 2 usage, 77 no device.
 */
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#define HEAD                                                                                                          \
    ".version 7.8\n.target sm_80\n.address_size 64\n"                                                                \
    ".visible .entry planted(.param .u64 buffer)\n{\n"                                                                \
    ".reg .u64 %a, %a1; .reg .u32 %t, %v, %n; .reg .pred %p; .shared .align 4 .b32 shared[64];\n"                     \
    "ld.param.u64 %a, [buffer]; cvta.to.global.u64 %a, %a; mov.u32 %t, %tid.x; mul.lo.u32 %n, %t, 4;\n"

#define WORDS 64 /* of the buffer, and threads: two warps */

static const struct {
    const char *name, *ptx;
} faults[] = {
    /* every thread stores its own word */
    {"none", HEAD "cvt.u64.u32 %a1, %n; add.u64 %a, %a, %a1; st.global.u32 [%a], %t; ret;\n}\n"},
    /* the first thread stores behind the end */
    {"memcheck", HEAD "setp.ne.u32 %p, %t, 0; @%p ret; st.global.u32 [%a+1048576], %t; ret;\n}\n"},
    /* nobody has written what is read */
    {"initcheck", HEAD "setp.ne.u32 %p, %t, 0; @%p ret; ld.global.u32 %v, [%a+128]; st.global.u32 [%a], %v; ret;\n}\n"},
    /* a word of the other warp's, without a barrier between */
    {"racecheck", HEAD "mov.u32 %v, shared; add.u32 %n, %n, %v; st.shared.u32 [%n], %t; xor.b32 %n, %t, 32;\n"
                       "mul.lo.u32 %n, %n, 4; add.u32 %n, %n, %v; ld.shared.u32 %v, [%n];\n"
                       "setp.eq.u32 %p, %v, 1000; @%p st.global.u32 [%a], %v; ret;\n}\n"},
    /* a lane comes to the barrier of a part of the warp that it does not belong to */
    {"synccheck", HEAD "setp.gt.u32 %p, %t, 16; @%p ret; bar.warp.sync 0xffff; st.global.u32 [%a], %t; ret;\n}\n"},
};

static int say(const char *what, cudaError_t error)
{
    if (error != cudaSuccess)
        fprintf(stderr, "planted: %s: %s\n", what, cudaGetErrorString(error));
    return error != cudaSuccess;
}

static int run(const char *ptx)
{
    cudaLibrary_t library;
    cudaKernel_t kernel;
    void *buffer = NULL, *arguments[] = {&buffer};

    if (say("memory", cudaMalloc(&buffer, WORDS * 4)) ||
        say("PTX", cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0)) ||
        say("kernel", cudaLibraryGetKernel(&kernel, library, "planted")) ||
        say("launch", cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){WORDS, 1, 1}, arguments, 0, NULL)))
        return 1;
    return say("run", cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
    int devices = 0;

    for (size_t i = 0; argc == 2 && i < sizeof faults / sizeof faults[0]; i++) {
        if (strcmp(argv[1], faults[i].name) != 0)
            continue;
        if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
            return 77;
        return run(faults[i].ptx);
    }
    fprintf(stderr, "usage: planted memcheck | initcheck | racecheck | synccheck | none\n");
    return 2;
}
