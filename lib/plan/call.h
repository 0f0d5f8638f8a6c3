/* One operation as the caller gave it, with its arguments checked. The layers below get it in this form. */
#ifndef RD_PLAN_CALL_H
#define RD_PLAN_CALL_H

#include "plan/plan.h"

struct rd_group;

/* The scalar of an operator that the user has made: one element of its type. */
typedef struct rd_op_scalar {
    unsigned char here[16];
    const void *device; /* its address, if it is on the device; NULL: it is `here` */
} rd_op_scalar_t;

typedef struct rd_call {
    rd_coll_desc_t desc;
    const rd_tables_t *tables; /* NULL: uniform */
    const void *in;
    void *out;
    size_t bounce;         /* bytes of an output over unread input: it is made elsewhere, then copied; 0: no overlap */
    const char *name;      /* for RONDO_CHECK: the user's call, where it runs as another operation; else NULL */
    rd_coll_t kind;        /* with a name: the collective that the user's call is, as a gatherv is a gather */
    int root;              /* with a name: the root of the user's call */
    rondo_stream_t stream; /* NULL on a host communicator */
    rondo_cuda_event_t event; /* recorded when its kernel has been launched; NULL: none is */
    uint64_t tag;             /* of rondo_tag; 0: none */
    struct rd_group *group;   /* records the call, which runs at the group's end; NULL: it runs now */
    /* What the communicator adds for a CUDA one: */
    const rd_op_scalar_t *scalar; /* of an operator that the user has made; NULL: it is a built-in one */
    uint64_t number;              /* of the collective, as the record counts them; 0: it has none */
} rd_call_t;

/* A message. */
typedef struct rd_message {
    void *buffer;
    size_t bytes;
    int send, peer; /* send: nonzero, receive: 0; the peer may be this rank itself */
    rondo_stream_t stream;
    rondo_type_t type; /* as the caller gave it */
    uint64_t tag;      /* as in rd_call_t */
    struct rd_group *group;
} rd_message_t;

#endif
