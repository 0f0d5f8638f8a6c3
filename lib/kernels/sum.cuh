/* rd_sum: the sum of several ranks' contributions, all of which lie in this GPU's memory: this rank's own, and those of
 * the others, which the network has put there (exec/cuda/proxy/gdr_collective.c). It needs no peer and waits for
 * nobody. Contributions are added in the order of the ranks, and the sum is rounded after each. */
#ifndef RD_KERNELS_SUM_CUH
#define RD_KERNELS_SUM_CUH

#include "kernels/access.cuh"
#include "kernels/arith_wide.cuh"

/* The contribution of rank k. */
template <class ARITH>
RD_DEVICE typename ARITH::part_t rd_summand(const rd_ksummed_t &s, uint32_t k, uint64_t bytes)
{
    const char *other = s.others + (k - (k > s.own)) * s.stride;

    return ARITH::part(s.reduce, k == s.own ? (const char *)s.reduce.in : other, 0, bytes);
}

/* Each thread sums ITEMS lines at once. */
template <class ARITH, uint32_t ITEMS, uint32_t THREADS>
RD_KERNEL(THREADS)
rd_sum(RD_WORK(rd_kwork_summed_t))
{
    const rd_ksummed_t &s = work.summed;
    const uint64_t bytes = s.reduce.count * rd_arith_size(s.reduce.type);
    const uint64_t row = (uint64_t)gpu_blocks() * gpu_threads() * 16;
    const typename ARITH::part_t out = ARITH::part(s.reduce, s.reduce.out, 0, bytes);

    gpu_begin();
    const ARITH number(s.reduce, s.n);
    for (uint64_t at = ((uint64_t)gpu_block() * gpu_threads() + gpu_thread()) * 16; at < bytes; at += ITEMS * row) {
        uint4 sum[ITEMS], v[ITEMS];
        for (uint32_t k = 0; k < s.n; k++) {
            const typename ARITH::part_t in = rd_summand<ARITH>(s, k, bytes);
#pragma unroll
            for (uint32_t j = 0; j < ITEMS; j++)
                v[j] = rd_part_load(in, at + j * row);
#pragma unroll
            for (uint32_t j = 0; j < ITEMS; j++)
                sum[j] = k ? number.two(sum[j], number.scaled(v[j])) : number.scaled(v[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < ITEMS; j++)
            rd_part_store(out, at + j * row, number.finished(sum[j]));
    }
}

#endif
