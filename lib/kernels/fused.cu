#include "kernels/fused.cuh"
#include "kernels/rows.cuh"

RD_ROWS_SENTINEL(1);

#define SUM(proto, number, lines, arith)                                                                               \
    case RD_KKIND(proto, number):                                                                                      \
        return x.sum<lines, arith>(g, e)
#define MOVE(proto, lines)                                                                                             \
    case RD_KKIND(proto, RD_KN_NUMBERS):                                                                               \
        return x.move<lines>(g, e)

/* By lines, the arithmetic that decides at run time has the same results as all others but the wide one: it stands in
 * for those of less frequent types, which would make the kernel too long (rd_kernel_fuse). Returns false if the group
 * has to leave. */
RD_DEVICE bool rd_fused_serve(rd_fused_t &x, rd_group_t &g, rd_epoch_t &e)
{
    switch (x.kind) {
        SUM(RD_PROTO_LL, RD_KN_F16, rd_lines_ll, rd_arith_f16);
        SUM(RD_PROTO_LL, RD_KN_BF16, rd_lines_ll, rd_arith_bf16);
        SUM(RD_PROTO_LL, RD_KN_F32, rd_lines_ll, rd_arith_f32);
        SUM(RD_PROTO_LL, RD_KN_ANY, rd_lines_ll, rd_arith_any);
        SUM(RD_PROTO_LL, RD_KN_WIDE, rd_lines_ll, rd_arith_wide);
        SUM(RD_PROTO_LL128, RD_KN_ANY, rd_lines_ll128, rd_arith_any);
        SUM(RD_PROTO_LL128, RD_KN_WIDE, rd_lines_ll128, rd_arith_wide);
        SUM(RD_PROTO_SENTINEL, RD_KN_F16, narrow_t, rd_arith_f16);
        SUM(RD_PROTO_SENTINEL, RD_KN_BF16, narrow_t, rd_arith_bf16);
        SUM(RD_PROTO_SENTINEL, RD_KN_F32, narrow_t, rd_arith_f32);
        SUM(RD_PROTO_SENTINEL, RD_KN_F64, wide_t, rd_arith_f64);
        MOVE(RD_PROTO_LL, rd_lines_ll);
        MOVE(RD_PROTO_LL128, rd_lines_ll128);
    default:
        return false;
    }
}

/* The part of a block that serves chains. Fifos have one protocol in a communicator. It is a function of its own, so
 * that neither part spills registers. */
RD_DEVICE_FAR void rd_fused_chained(const rd_kcomm_t &comm, const rd_kfused_t &f, uint32_t blocks)
{
    const uint32_t block = gpu_block() - blocks;

    if (blocks == 0) /* else a block of cells says so, with the epoch */
        rd_begun(comm);
    const bool good = f.op[RD_KFUSED - 1].kind == RD_KKIND(RD_PROTO_LL, RD_KN_NUMBERS)
                          ? rd_fused_chains<rd_lines_ll>(comm, f, block)
                          : rd_fused_chains<rd_lines_ll128>(comm, f, block);
    rd_epoch_t e(comm, 0, f.cell); /* the page stays as it is until this block, too, has come to the end */
    e.begin();
    e.wait.dead = e.wait.dead || !good;
    e.end(f.passes);
}

template <uint32_t THREADS>
RD_KERNEL(THREADS)
rd_fused(RD_WORK(rd_kwork_fused_t))
{
    const rd_kfused_t &f = work.fused;
    const uint32_t blocks = gpu_blocks() - f.blocks; /* for cells */
    rd_group_t g(work.comm);
    bool good = true, begins = true;

    gpu_begin();
    if (gpu_block() >= blocks) {
        rd_fused_chained(work.comm, f, blocks);
        return;
    }
    rd_epoch_t e(work.comm, g.peer, f.cell);
    e.begin();
    for (; good && g.tile < f.tiles; g.tile += blocks * (gpu_threads() / 32 / g.n)) {
        rd_fused_t x(f, g.tile, begins);
        good = rd_fused_serve(x, g, e);
        begins = false;
    }
    e.end(f.passes);
}

const void *const rd_kernels_fused = (const void *)rd_fused<RD_KT_GROUPS>;
