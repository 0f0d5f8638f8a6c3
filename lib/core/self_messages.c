/* See self_messages.h. */
#include "core/self_messages.h"

#include <stdlib.h>
#include <string.h>

/* One half of a pair that must be complete within the group. */
struct rd_self_message {
    struct rd_self_message *next;
    rondo_comm_t comm;
    int send, matched;
    void *buffer;
    size_t bytes;
};

bool rd_self_add(rd_self_messages_t *list, rondo_comm_t comm, int send, void *buffer, size_t bytes)
{
    rd_self_message_t *m = malloc(sizeof *m);

    if (!m)
        return false;
    *m = (rd_self_message_t){NULL, comm, send, 0, buffer, bytes};
    if (list->last)
        list->last->next = m;
    else
        list->first = m;
    list->last = m;
    return true;
}

/* Returns the first message of the other direction on the same communicator that has no partner yet. */
static rd_self_message_t *partner(const rd_self_messages_t *list, const rd_self_message_t *of)
{
    for (rd_self_message_t *m = list->first; m; m = m->next) {
        if (!m->matched && m->comm == of->comm && m->send != of->send)
            return m;
    }
    return NULL;
}

rondo_result_t rd_self_match(const rd_self_messages_t *list)
{
    for (rd_self_message_t *m = list->first; m; m = m->next) {
        if (m->matched)
            continue;
        rd_self_message_t *p = partner(list, m);
        if (!p)
            return rd_error(&m->comm->ctx, RONDO_ERR_INVALID_USAGE,
                            "%s to this rank itself has no matching %s in the same group",
                            m->send ? "a send" : "a recv", m->send ? "recv" : "send");
        if (p->bytes != m->bytes)
            return rd_error(&m->comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                            "a rank sends itself %zu bytes and receives %zu: the counts must match",
                            m->send ? m->bytes : p->bytes, m->send ? p->bytes : m->bytes);
        p->matched = m->matched = 1;
    }
    return RONDO_SUCCESS;
}

void rd_self_copy(const rd_self_messages_t *list)
{
    for (rd_self_message_t *m = list->first; m; m = m->next)
        m->matched = 0;
    for (rd_self_message_t *m = list->first; m; m = m->next) {
        if (m->matched)
            continue;
        rd_self_message_t *p = partner(list, m);
        m->matched = p->matched = 1;
        if (m->bytes) /* else the buffers may be NULL */
            memmove(m->send ? p->buffer : m->buffer, m->send ? m->buffer : p->buffer, m->bytes);
    }
}

void rd_self_clear(rd_self_messages_t *list)
{
    while (list->first) {
        rd_self_message_t *m = list->first;
        list->first = m->next;
        free(m);
    }
    list->last = NULL;
}
