/* Protocols: how a message lies in a peer's memory, and how the peer detects that it has arrived. On host memory the
 * place is an inbox (transport/conn.h), between GPUs a window (kernels/work.h). */
#ifndef RD_BASE_PROTO_H
#define RD_BASE_PROTO_H

#include <stdbool.h>
#include <string.h>

#include "base/word_list.h"

typedef enum {
    RD_PROTO_LL, /* lines that carry their own flags, for short messages. On the host these are lines in shared memory;
                    between GPUs half data, half flags, any type: stores of 8 bytes arrive whole */
    RD_PROTO_LL128,    /* GPUs: 15/16 data, any type; lines of 128 bytes arrive whole */
    RD_PROTO_SENTINEL, /* GPUs: only data, each word is checked by itself; sums of float16, bfloat16, float32, float64;
                          moving of data with words of 4 or 8 bytes */
    RD_PROTO_SIMPLE,   /* slots and a counter; between GPUs slices of plain data, announced by a word after a fence */
    RD_PROTO_CMA,      /* host: the sender posts an address, the receiver reads there: long messages within a node */
    RD_PROTO_BOARD_LL, /* host: the sender writes the lines once, on its board, and every receiver reads them there */
    RD_PROTO_BOARD,    /* host: the same with slots, for long messages */
    RD_NUM_PROTOS
} rd_proto_t;

#define RD_GPU_PROTOS (RD_PROTO_SIMPLE + 1) /* the protocols between GPUs are the first ones */

/* As bits: the protocols of messages on host memory, and between GPUs. */
#define RD_PROTOS_BOARD (1u << RD_PROTO_BOARD_LL | 1u << RD_PROTO_BOARD)
#define RD_PROTOS_HOST (1u << RD_PROTO_LL | 1u << RD_PROTO_SIMPLE | 1u << RD_PROTO_CMA | RD_PROTOS_BOARD)
#define RD_PROTOS_GPU ((1u << RD_GPU_PROTOS) - 1)

#define RD_LL_MOST 2048 /* bytes of the longest LL message: a quarter of the ring */

/* In bytes: between nodes, two messages in a row to one peer are copied up to this length, and may be sent as one. */
#define RD_JOINED 28672

#define RD_CMA_BLOCK ((size_t)256 << 10) /* bytes of each peer that are copied at a time for a reduction: in L2 */

static inline const char *rd_proto_name(rd_proto_t proto)
{
    switch (proto) {
    case RD_PROTO_LL:
        return "ll";
    case RD_PROTO_LL128:
        return "ll128";
    case RD_PROTO_SENTINEL:
        return "sentinel";
    case RD_PROTO_SIMPLE:
        return "simple";
    case RD_PROTO_BOARD_LL:
        return "board-ll";
    case RD_PROTO_BOARD:
        return "board";
    default:
        return "cma";
    }
}

/* Returns true if a message lies on its sender's board, where all its receivers read it. */
static inline bool rd_proto_is_board(rd_proto_t proto)
{
    return RD_PROTOS_BOARD >> proto & 1;
}

/* Returns the protocol of this name, or -1 if there is none. */
static inline int rd_proto_find(const char *word, size_t length)
{
    for (int p = 0; p < RD_NUM_PROTOS; p++)
        if (rd_word_is(rd_proto_name((rd_proto_t)p), word, length))
            return p;
    return -1;
}

/* Returns 0, or -1 if no protocol has the name. */
static inline int rd_proto_parse(const char *name, rd_proto_t *proto)
{
    for (int p = 0; p < RD_NUM_PROTOS; p++) {
        if (strcmp(name, rd_proto_name((rd_proto_t)p)) == 0) {
            *proto = (rd_proto_t)p;
            return 0;
        }
    }
    return -1;
}

#endif
