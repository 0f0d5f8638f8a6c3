/* The rows of a table of kernels, the same for every kind of kernel that sums: they decide what a protocol serves.
 *
 * K(protocol, number) names one kernel. Floating types use Sentinel, whose tiles have `rows` rows of 512 bytes; all
 * other types, and operators that the fast kernels of floating types do not have, use LL128. */
#ifndef RD_KERNELS_ROWS_CUH
#define RD_KERNELS_ROWS_CUH

#include "kernels/proto.cuh"
#include "kernels/arith.cuh"
#include "kernels/arith_any.cuh"
#include "kernels/table.h"

#define RD_ROW_ALL(proto, K)                                                                                           \
    {                                                                                                                  \
        K(proto, rd_arith_f16), K(proto, rd_arith_bf16), K(proto, rd_arith_f32), K(proto, rd_arith_f64),               \
            K(proto, rd_arith_i32), K(proto, rd_arith_i64), K(proto, rd_arith_any),                                    \
    }

/* Where speed is another's: one kernel for all. */
#define RD_ROW_ANY(proto, K)                                                                                           \
    {                                                                                                                  \
        nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, K(proto, rd_arith_any),                                  \
    }

#define RD_ROW_LL128(K)                                                                                                \
    {                                                                                                                  \
        nullptr, nullptr, nullptr, nullptr, K(rd_lines_ll128, rd_arith_i32), K(rd_lines_ll128, rd_arith_i64),          \
            K(rd_lines_ll128, rd_arith_any),                                                                           \
    }

#define RD_ROW_SENTINEL(K)                                                                                             \
    {                                                                                                                  \
        K(narrow_t, rd_arith_f16), K(narrow_t, rd_arith_bf16), K(narrow_t, rd_arith_f32), K(wide_t, rd_arith_f64),     \
    }

/* The two Sentinel protocols of a file, by the length of a word. */
#define RD_ROWS_SENTINEL(rows)                                                                                         \
    typedef rd_lines_sentinel<4, rows> narrow_t;                                                                       \
    typedef rd_lines_sentinel<8, rows> wide_t

#endif
