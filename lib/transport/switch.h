/* The switch of a communicator: a collective network, which adds what the heads of the nodes send it (rd_switch_of in
 * sched/program.h). It is a transport of its own beside the one that carries messages, and has one connection to this
 * rank and one from it. A message that is posted to it is this rank's part of a sum, of the slice that all ranks of the
 * rail post as the same number; the message that comes back is the sum.
 *
 * `peer` of both connections is the head on the next node: who waits for the switch waits for a rank that has not sent
 * it its part yet, and from head to head those who look for it come to that rank. */
#ifndef RD_TRANSPORT_SWITCH_H
#define RD_TRANSPORT_SWITCH_H

#include "transport/transport.h"

#define RD_COLLNET_SLOTS 8 /* messages that may be under way; a power of two */

typedef struct rd_collnet {
    rd_transport_t transport;
    rd_send_t send; /* of a rank that is no head, these are never used */
    rd_recv_t recv;
    size_t most;                    /* bytes of a message: a multiple of 64 */
    uint16_t adds[RONDO_NUM_TYPES]; /* the operators that it has for each type on all ranks, by bits */
    rondo_type_t type;              /* of the messages that are posted next, */
    rondo_op_t op;                  /* and what is made of them: whoever posts sets both before */
} rd_collnet_t;

/* `collnet` is NULL if the communicator has no switch. */
static inline bool rd_collnet_adds(const rd_collnet_t *collnet, rondo_type_t type, rondo_op_t op)
{
    return collnet && (unsigned)type < RONDO_NUM_TYPES && (unsigned)op < RONDO_NUM_OPS && collnet->adds[type] >> op & 1;
}

/* Returns the bytes of its slots, both ways. */
static inline size_t rd_collnet_bytes(size_t slot_bytes)
{
    return 2 * RD_COLLNET_SLOTS * slot_bytes;
}

#endif
