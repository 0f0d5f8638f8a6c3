/* Messages of a rank to itself: a send and a receive of one group, which match in order and are copies. */
#ifndef RD_CORE_SELF_MESSAGES_H
#define RD_CORE_SELF_MESSAGES_H

#include <stdbool.h>

#include "core/comm.h"

typedef struct rd_self_message rd_self_message_t;

/* Those of one group; all zero: none. */
typedef struct rd_self_messages {
    rd_self_message_t *first, *last;
} rd_self_messages_t;

/* Returns false if there is no memory. */
bool rd_self_add(rd_self_messages_t *messages, rondo_comm_t comm, int send, void *buffer, size_t bytes);
/* Refuses those that have no partner, or one of another length. */
rondo_result_t rd_self_match(const rd_self_messages_t *messages);
/* Carries out those that match. */
void rd_self_copy(const rd_self_messages_t *messages);
void rd_self_clear(rd_self_messages_t *messages);

#endif
