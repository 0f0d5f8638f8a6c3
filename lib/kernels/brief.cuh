/* What is brief goes between kernel and proxy by lines that show by themselves that they are there: 8 bytes of data in
 * 16, each half of which bears the number of the trigger. So the kernel raises the trigger at once and fences nothing,
 * and what comes back needs one look at the host's memory, not one for `done` and another one for the data. Lines of a
 * slot: those of the input, and 2 * RD_KBRIEF bytes behind them those of the output. The host's part: cuda/brief.c. */
#ifndef RD_BRIEF_CUH
#define RD_BRIEF_CUH

#include "wait.cuh"

RD_DEVICE void rd_brief_store(char *lines, uint64_t p, uint4 v, uint32_t flag)
{
    line_store(lines + 2 * p, make_uint4(v.x, flag, v.y, flag));
    line_store(lines + 2 * p + 16, make_uint4(v.z, flag, v.w, flag));
}

/* Until the 16 bytes are there, or wait.dead. */
RD_DEVICE uint4 rd_brief_load(const char *lines, uint64_t p, uint32_t flag, rd_wait_t *wait)
{
    uint4 a, b;

    do {
        a = line_load(lines + 2 * p);
        b = line_load(lines + 2 * p + 16);
    } while (((a.y ^ flag) | (a.w ^ flag) | (b.y ^ flag) | (b.w ^ flag)) != 0 && wait->more());
    return make_uint4(a.x, a.z, b.x, b.z);
}

#endif
