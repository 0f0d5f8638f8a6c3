/* The switch of a communicator: a collective network, which adds what the heads of the nodes send it (rd_switch_of in
 * sched/program.h). It is a transport of its own beside the one that carries messages, and has one connection to this
 * rank and one from it. All ranks of a rail post a message as the same number, and to each of them one comes back:
 *
 *     allreduce, reduce    their sum
 *     broadcast            the message of the root's node; what the others post does not count
 *     allgather            all messages, one behind the other in the order of the nodes
 *     reduce_scatter       each message has a block for each node, all of one length: the sum of this node's blocks
 *
 * `peer` of both connections is the head on the next node: who waits for the switch waits for a rank that has not sent
 * it its part yet, and from head to head those who look for it come to that rank. */
#ifndef RD_TRANSPORT_SWITCH_H
#define RD_TRANSPORT_SWITCH_H

#include "sched/program.h"
#include "transport/transport.h"

#define RD_COLLNET_SLOTS 8 /* messages that may be under way; a power of two */

typedef struct rd_collnet {
    rd_transport_t transport;
    rd_send_t send; /* of a rank that is no head, these are never used */
    rd_recv_t recv;
    size_t most;                    /* bytes of a message, either way: a multiple of 64 */
    uint16_t adds[RONDO_NUM_TYPES]; /* the operators that it has for each type on all ranks, by bits */
    bool gathers, scatters;         /* it has an allgather, a reduce_scatter of its own on all ranks */
    bool carries; /* it adds integers of the type `integer`, and so passes on any bytes beside zeros */
    rondo_type_t integer;
    /* What the messages are that are posted next: whoever posts sets it before. */
    rd_coll_t coll;
    int root; /* the node of a broadcast's */
    rondo_type_t type;
    rondo_op_t op;
} rd_collnet_t;

/* Returns the bytes of the longest message, either way, of an operation; 0: it does not serve. `collnet` is NULL if the
 * communicator has no switch. */
static inline size_t rd_collnet_serves(const rd_collnet_t *collnet, rd_coll_t coll, rondo_type_t type, rondo_op_t op)
{
    if (!collnet)
        return 0;
    if (coll == RD_BROADCAST || coll == RD_ALLGATHER)
        return collnet->carries || (coll == RD_ALLGATHER && collnet->gathers) ? collnet->most : 0;
    return rd_coll_reduces(coll) && (unsigned)type < RONDO_NUM_TYPES && (unsigned)op < RONDO_NUM_OPS &&
                   collnet->adds[type] >> op & 1
               ? collnet->most
               : 0;
}

/* Returns the bytes of its slots, both ways. */
static inline size_t rd_collnet_bytes(size_t slot_bytes)
{
    return 2 * RD_COLLNET_SLOTS * slot_bytes;
}

#endif
