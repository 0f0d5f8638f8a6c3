#include "kernels/fused.cuh"
#include "kernels/rows.cuh"

RD_ROWS_SENTINEL(1);

#define SUM(proto, lines, number, arith)                                                                               \
    case RD_KKIND(proto, number):                                                                                      \
        return x.sum<lines, arith>(g, e)
#define MOVE(proto, lines)                                                                                             \
    case RD_KKIND(proto, RD_KN_NUMBERS):                                                                               \
        return x.move<lines>(g, e)

/* The same kinds as oneshot.cu has kernels for. Returns false if the group has to leave. */
RD_DEVICE bool rd_fused_serve(rd_fused_t &x, rd_group_t &g, rd_epoch_t &e)
{
    switch (x.kind) {
        SUM(RD_PROTO_LL, rd_lines_ll, RD_KN_F16, rd_arith_f16);
        SUM(RD_PROTO_LL, rd_lines_ll, RD_KN_BF16, rd_arith_bf16);
        SUM(RD_PROTO_LL, rd_lines_ll, RD_KN_F32, rd_arith_f32);
        SUM(RD_PROTO_LL, rd_lines_ll, RD_KN_F64, rd_arith_f64);
        SUM(RD_PROTO_LL, rd_lines_ll, RD_KN_I32, rd_arith_i32);
        SUM(RD_PROTO_LL, rd_lines_ll, RD_KN_I64, rd_arith_i64);
        SUM(RD_PROTO_LL, rd_lines_ll, RD_KN_ANY, rd_arith_any);
        SUM(RD_PROTO_LL, rd_lines_ll, RD_KN_WIDE, rd_arith_wide);
        SUM(RD_PROTO_LL128, rd_lines_ll128, RD_KN_I32, rd_arith_i32);
        SUM(RD_PROTO_LL128, rd_lines_ll128, RD_KN_I64, rd_arith_i64);
        SUM(RD_PROTO_LL128, rd_lines_ll128, RD_KN_ANY, rd_arith_any);
        SUM(RD_PROTO_LL128, rd_lines_ll128, RD_KN_WIDE, rd_arith_wide);
        SUM(RD_PROTO_SENTINEL, narrow_t, RD_KN_F16, rd_arith_f16);
        SUM(RD_PROTO_SENTINEL, narrow_t, RD_KN_BF16, rd_arith_bf16);
        SUM(RD_PROTO_SENTINEL, narrow_t, RD_KN_F32, rd_arith_f32);
        SUM(RD_PROTO_SENTINEL, wide_t, RD_KN_F64, rd_arith_f64);
        MOVE(RD_PROTO_LL, rd_lines_ll);
        MOVE(RD_PROTO_LL128, rd_lines_ll128);
    default:
        return false;
    }
}

template <uint32_t THREADS>
RD_KERNEL(THREADS)
rd_fused(RD_WORK(rd_kwork_fused_t))
{
    const rd_kfused_t &f = work.fused;
    rd_group_t g(work.comm);
    bool good = true, begins = true;

    gpu_begin();
    rd_epoch_t e(work.comm, g.peer, f.cell);
    for (; good && g.tile < f.tiles; g.next(0)) {
        rd_fused_t x(f, g.tile, begins);
        good = rd_fused_serve(x, g, e);
        begins = false;
    }
    e.end(f.count);
}

const void *const rd_kernels_fused = (const void *)rd_fused<RD_KT_GROUPS>;
