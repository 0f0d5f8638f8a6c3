/* The rows of the tables of kernels. They are the same for every kernel that reduces, and decide which arithmetic each
 * protocol has a kernel for.
 *
 * K(protocol, number) names one kernel. Sums of floating-point types use Sentinel, whose tiles have `rows` rows of 512
 * bytes. All other types, and the operators for which floating-point types have no fast kernel, use LL128. */
#ifndef RD_KERNELS_ROWS_CUH
#define RD_KERNELS_ROWS_CUH

#include "kernels/proto.cuh"
#include "kernels/arith.cuh"
#include "kernels/arith_any.cuh"
#include "kernels/arith_wide.cuh"
#include "kernels/table.h"

#define RD_ROW_ALL(proto, K)                                                                                           \
    {                                                                                                                  \
        K(proto, rd_arith_f16), K(proto, rd_arith_bf16), K(proto, rd_arith_f32), K(proto, rd_arith_f64),               \
            K(proto, rd_arith_i32), K(proto, rd_arith_i64), K(proto, rd_arith_any), K(proto, rd_arith_wide),           \
    }

/* One kernel that decides type and operator at run time, for a protocol that is not the fastest one, and the one that
 * no other can stand in for. */
#define RD_ROW_ANY(proto, K)                                                                                           \
    {                                                                                                                  \
        nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, K(proto, rd_arith_any), K(proto, rd_arith_wide),         \
    }

#define RD_ROW_LL128(K)                                                                                                \
    {                                                                                                                  \
        nullptr, nullptr, nullptr, nullptr, K(rd_lines_ll128, rd_arith_i32), K(rd_lines_ll128, rd_arith_i64),          \
            K(rd_lines_ll128, rd_arith_any), K(rd_lines_ll128, rd_arith_wide),                                         \
    }

#define RD_ROW_SENTINEL(K)                                                                                             \
    {                                                                                                                  \
        K(narrow_t, rd_arith_f16), K(narrow_t, rd_arith_bf16), K(narrow_t, rd_arith_f32), K(wide_t, rd_arith_f64),     \
    }

/* The two Sentinel protocols of a file, for words of 4 and of 8 bytes. */
#define RD_ROWS_SENTINEL(rows)                                                                                         \
    typedef rd_lines_sentinel<4, rows> narrow_t;                                                                       \
    typedef rd_lines_sentinel<8, rows> wide_t

#endif
