/* Inline data goes between kernel and proxy in lines that show by themselves that they have arrived: a line has 16
 * bytes, 8 of them data, and each half bears the number of the trigger. So the kernel raises the trigger at once and
 * needs no fence, and for the output it polls the host's memory once, not first for `done` and then for the data. A
 * slot has the lines of the input and, 2 * RD_KINLINE bytes behind them, those of the output. The host's part is in
 * exec/cuda/proxy/inline.c.
 *
 * A thread has 16 bytes of data in two lines, RD_KINLINE_LEAP apart: so the first lines of a warp lie one behind the
 * other, as do its second ones, and whole lines of the host's memory cross the link. The last thread's second line is
 * left out where it would be empty. */
#ifndef RD_KERNELS_INLINE_CUH
#define RD_KERNELS_INLINE_CUH

#include "kernels/wait.cuh"

/* Stores the lines of the 16 bytes at p; `two` is true if there are more than 8 bytes. */
RD_DEVICE void rd_inline_store(char *lines, uint64_t p, bool two, uint4 v, uint32_t flag)
{
    char *at = lines + rd_kinline_line(p);

    line_store(at, make_uint4(v.x, flag, v.y, flag));
    if (two)
        line_store(at + RD_KINLINE_LEAP, make_uint4(v.z, flag, v.w, flag));
}

/* Loads them: waits until they have arrived or the kernel has to leave (wait->dead). */
RD_DEVICE uint4 rd_inline_load(const char *lines, uint64_t p, bool two, uint32_t flag, rd_wait_t *wait)
{
    const char *first = lines + rd_kinline_line(p), *second = first + (two ? RD_KINLINE_LEAP : 0);
    uint4 a, b;

    do {
        a = line_load(first);
        b = line_load(second);
    } while (((a.y ^ flag) | (a.w ^ flag) | (b.y ^ flag) | (b.w ^ flag)) != 0 && wait->more());
    return make_uint4(a.x, a.z, b.x, b.z);
}

#endif
