/* Protocols: how a message lies in an inbox (transport/conn.h). */
#ifndef RD_PROTO_H
#define RD_PROTO_H

typedef enum {
    RD_PROTO_LL,     /* lines that carry their own flags: short messages, shared memory only */
    RD_PROTO_SIMPLE, /* slots and a counter */
    RD_PROTO_PULL,   /* the sender posts an address, the receiver reads there: long messages within a node */
    RD_NUM_PROTOS
} rd_proto_t;

/* How messages are written into slots: plainly, past the caches, or as the peer's place asks for (exec/host/nt_store.h). */
typedef enum { RD_STREAM_NEVER, RD_STREAM_ALWAYS, RD_STREAM_ADAPT } rd_stream_t;

#define RD_LL_MOST 2048 /* bytes of the longest LL message: a quarter of the ring */

/* Bytes. Between nodes, two messages that go to one peer behind one another are copied up to this, and may go as one. */
#define RD_JOINED 28672

#define RD_PULL_BLOCK ((size_t)256 << 10) /* of each peer's contribution, staged for a reduction: within L2 */

static inline const char *rd_proto_name(rd_proto_t proto)
{
    return proto == RD_PROTO_LL ? "ll" : proto == RD_PROTO_SIMPLE ? "simple" : "cma";
}

static inline rd_stream_t rd_stream_parse(const char *name)
{
    return name[0] == 'n' ? RD_STREAM_NEVER : name[1] == 'l' ? RD_STREAM_ALWAYS : RD_STREAM_ADAPT;
}

#endif
