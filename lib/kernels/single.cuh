/* Kernels that a rank runs without its peers: rd_single copies the rank's own data, scaled if the operation scales;
 * rd_write writes data of the host's in stream order; rd_nothing does nothing; rd_stall holds its stream up until the
 * host lets it go. */
#ifndef RD_KERNELS_SINGLE_CUH
#define RD_KERNELS_SINGLE_CUH

#include "kernels/arith_any.cuh"

RD_KERNEL(512)
rd_single(RD_WORK(rd_kwork_reduce_t))
{
    const rd_kreduce_t &r = work.reduce;
    const uint64_t bytes = r.count * rd_arith_size(r.type), step = (uint64_t)gpu_blocks() * gpu_threads() * 16;
    const rd_part_t in = rd_part(r.in, 0, bytes), out = rd_part(r.out, 0, bytes);

    gpu_begin();
    const rd_arith_any number(r, 1);
    for (uint64_t at = ((uint64_t)gpu_block() * gpu_threads() + gpu_thread()) * 16; at < bytes; at += step)
        rd_part_store(out, at, number.scaled(rd_part_load(in, at)));
}

RD_KERNEL(512)
rd_write(RD_WORK(rd_kwork_t))
{
    const rd_kwrite_t &w = work.write;
    uint64_t *to = (uint64_t *)(work.comm.own + w.offset);

    gpu_begin();
    for (uint32_t i = gpu_block() * gpu_threads() + gpu_thread(); i < w.bytes / 8; i += gpu_blocks() * gpu_threads())
        to[i] = w.data[i];
}

RD_KERNEL(512)
rd_nothing(RD_WORK(rd_kwork_reduce_t))
{
    (void)work;
    gpu_begin();
}

/* Only the host's word ends it, and not the failure behind which it stands. */
RD_KERNEL(512)
rd_stall(RD_WORK(rd_kwork_reduce_t))
{
    gpu_begin();
    while (gpu_thread() == 0 && !word_load(&work.comm.host->released))
        ;
}

#endif
