/* A set of messages between ranks, the same list on all of them: each rank posts its own sends and receives in an order
 * of its own, which keeps only the order within each pair, and finds afterwards what must have come.
 */
#ifndef TEST_MESSAGES_H
#define TEST_MESSAGES_H

#include "util/reference.h"

typedef struct msg {
    int from, to;
    rondo_type_t type;
    size_t count;
    uint64_t seed;
} msg_t;

typedef struct msg_set {
    const msg_t *list;
    int count, rank, nranks;
    unsigned char **sent, **got; /* per message; NULL where it is not this rank's */
} msg_set_t;

/* `most`: largest count. */
void msg_draw(msg_t *list, int count, int nranks, size_t most, uint64_t *random);
int msg_prepare(msg_set_t *s, const msg_t *list, int count, int rank, int nranks);
/* Posts all within the group that the caller has opened; `order` differs from rank to rank. */
rondo_result_t msg_post(msg_set_t *s, rondo_comm_t comm, uint64_t order);
int msg_verify(const msg_set_t *s, char *text, size_t size); /* 0, or -1 and a sentence */
void msg_release(msg_set_t *s);

#endif
