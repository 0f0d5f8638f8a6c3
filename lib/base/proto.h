/* Protocols: how a message lies in a peer's memory, and how it shows that it is there. On host memory that is an inbox
 * (transport/conn.h), between GPUs a window (kernels/work.h). */
#ifndef RD_BASE_PROTO_H
#define RD_BASE_PROTO_H

typedef enum {
    RD_PROTO_LL,    /* lines that carry their own flags: short messages. On the host of shared memory; between GPUs half
                       data, half flags, any type: stores of 8 bytes arrive whole */
    RD_PROTO_LL128, /* GPUs: 15/16 data, any type; lines of 128 bytes arrive whole */
    RD_PROTO_SENTINEL, /* GPUs: all data, each word for itself; sums of float16, bfloat16, float32, float64; moving of
                          what has 4 or 8 bytes a word */
    RD_PROTO_SIMPLE,   /* slots and a counter; between GPUs slices of plain data, told of by a word behind a fence */
    RD_PROTO_PULL,     /* host: the sender posts an address, the receiver reads there: long messages within a node */
    RD_NUM_PROTOS
} rd_proto_t;

#define RD_GPU_PROTOS (RD_PROTO_SIMPLE + 1) /* those between GPUs: the first ones */

/* As bits: those of messages on host memory, and between GPUs. */
#define RD_PROTOS_HOST (1u << RD_PROTO_LL | 1u << RD_PROTO_SIMPLE | 1u << RD_PROTO_PULL)
#define RD_PROTOS_GPU ((1u << RD_GPU_PROTOS) - 1)

#define RD_LL_MOST 2048 /* bytes of the longest LL message: a quarter of the ring */

/* Bytes. Between nodes, two messages that go to one peer behind one another are copied up to this, and may go as one.
 */
#define RD_JOINED 28672

#define RD_PULL_BLOCK ((size_t)256 << 10) /* of each peer's contribution, staged for a reduction: within L2 */

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
    default:
        return "cma";
    }
}

#endif
