/* The tables in which variants.c finds the kernels. Each is filled in by a .cu file; NULL stands for a kernel that does
 * not exist. */
#ifndef RD_KERNELS_TABLE_H
#define RD_KERNELS_TABLE_H

#include <assert.h>

#include "kernels/launch.h"

/* Rows of tables go by protocol, in the order of base/proto.h; C++ cannot name them. Who adds a protocol gives each
 * table of a .cu file its row. */
static_assert(RD_PROTO_LL == 0 && RD_PROTO_LL128 == 1 && RD_PROTO_SENTINEL == 2 && RD_PROTO_SIMPLE == 3 &&
                  RD_GPU_PROTOS == 4,
              "the tables of kernels have a row for each protocol, in their order");

/* The arithmetic for which a kernel was compiled. */
typedef enum {
    RD_KN_F16,
    RD_KN_BF16,
    RD_KN_F32,
    RD_KN_F64,
    RD_KN_I32, /* signed and unsigned */
    RD_KN_I64,
    RD_KN_ANY,  /* type and operator are decided at run time */
    RD_KN_WIDE, /* arith_wide.cuh */
    RD_KN_NUMBERS
} rd_karith_t;

#define RD_KT_SINGLES (RD_KERNEL_STREAMS - RD_KERNEL_COPY)

#ifdef __cplusplus
extern "C" {
#endif

extern const void *const rd_kernels_oneshot[RD_GPU_PROTOS][RD_KN_NUMBERS];
extern const void *const rd_kernels_oneshot_move[RD_GPU_PROTOS];
extern const void *const rd_kernels_fused;
extern const void *const rd_kernels_gdr[RD_KN_NUMBERS];
extern const void *const rd_kernels_twoshot[RD_GPU_PROTOS][RD_KN_NUMBERS];
extern const void *const rd_kernels_twoshot_ahead[RD_GPU_PROTOS][RD_KN_NUMBERS]; /* for two passes */
extern const void *const rd_kernels_rooted_reduce[RD_GPU_PROTOS][RD_KN_NUMBERS]; /* of TWOSHOT */
extern const void *const rd_kernels_rooted_broadcast[RD_GPU_PROTOS];             /* likewise */
extern const void *const rd_kernels_ring[RD_GPU_PROTOS][RD_KN_NUMBERS];
extern const void *const rd_kernels_ring_banks[RD_GPU_PROTOS][RD_KN_NUMBERS]; /* with `banks` */
extern const void *const rd_kernels_chain[RD_GPU_PROTOS][RD_KN_NUMBERS];
extern const void *const rd_kernels_program[RD_GPU_PROTOS][RD_KN_NUMBERS];
extern const void *const rd_kernels_simple[RD_KN_NUMBERS]; /* of RING and CHAIN */
extern const void *const rd_kernels_simple_move;
extern const void *const rd_kernels_messages[RD_GPU_PROTOS];
extern const void *const rd_kernels_streams[RD_GPU_PROTOS];
extern const void *const rd_kernels_mixed[RD_GPU_PROTOS];
extern const void *const rd_kernels_single[RD_KT_SINGLES]; /* from COPY on */

#ifdef __cplusplus
}
#endif

/* The most threads of a block. */
#define RD_KT_GROUPS 512 /* ONESHOT, TWOSHOT: at most 15 groups have a barrier of their own */
#define RD_KT_RING 512
#define RD_KT_SIMPLE (512 + 32)
#define RD_KT_FIFOS 256   /* MESSAGES, MIXED, CHAIN: small blocks spread over more multiprocessors */
#define RD_KT_PROGRAM 128 /* so that the scratch of a block, at most RD_KT_SCRATCH for each warp, fits into 48 KB */
#define RD_KT_SCRATCH 5
#define RD_KT_PIECES 2    /* of a fifo, in a tile of a program */
#define RD_KT_STREAMS 512 /* STREAMS: as many as a multiprocessor holds at the 128 registers that lines need */
#define RD_KT_SINGLE 512
#define RD_KT_BARRIER (32 * RD_KRANKS)
#define RD_KT_FIT 512 /* threads that a multiprocessor holds at 128 registers, which suffice for GROUPS and RING */
#define RD_KT_FIT_PROGRAM 384 /* the same for PROGRAM, which needs up to 168 registers */
#define RD_KT_FIT_SIMPLE 640  /* the same for SIMPLE, whose blocks of 544 leave each thread 96 registers */

/* A grid of at most EARLY threads may let the next kernel of its stream begin beside it: that one's blocks are there,
 * and have computed what they can, when this one ends. A chain has no more, by all the fifos of two ranks. A grid of at
 * most AHEAD threads fetches what it reads first, ahead of that: all warps ask for the same lines, and one request
 * comes after the other, 5 us for 4,224 warps (two H200). */
#define RD_KT_EARLY 16384
#define RD_KT_AHEAD 4096

#define RD_KT_AT_ONCE 2 /* blocks of MESSAGES and MIXED that a multiprocessor runs at the same time */

#endif
