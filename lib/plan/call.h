/* One operation as the caller gave it, its arguments checked: what the layers below are handed. */
#ifndef RD_PLAN_CALL_H
#define RD_PLAN_CALL_H

#include "plan/plan.h"

/* The scalar of an operator of the user's own: one element of its type. */
typedef struct rd_op_scalar {
    unsigned char here[16];
    const void *device; /* where it is, if on the device; NULL: `here` */
} rd_op_scalar_t;

typedef struct rd_call {
    rd_coll_desc_t desc;
    const rd_tables_t *tables; /* NULL: uniform */
    const void *in;
    void *out;
    size_t bounce;    /* bytes of an output over input that is still to be read: made elsewhere, then copied; 0: none */
    const char *name; /* what the user called, where that is not the operation that it runs as; NULL. For RONDO_CHECK */
    int root;         /* likewise, with a name */
    rondo_stream_t stream; /* NULL on a host communicator */
    /* What the communicator adds for a CUDA one: */
    const rd_op_scalar_t *scalar; /* of an operator of the user's own; NULL: it is a built-in one */
    int grouped;                  /* the call is inside a group, which runs it at its end */
} rd_call_t;

/* A message, on a CUDA communicator. */
typedef struct rd_message {
    void *buffer;
    size_t bytes;
    int send, peer; /* send: nonzero, else it is received; the peer may be this rank itself */
    rondo_stream_t stream;
    int grouped;
} rd_message_t;

#endif
