/* The messages of a run of the model: connections with as many slots as credits, and the lanes that wait for them. */
#pragma GCC optimize "O3"
#include <stdlib.h>
#include <string.h>

#include "sched/model_parts.h"

static slot_t *slot_of(model_t *m, int link, int seq)
{
    int credits = m->run->credits;

    return &m->slots[link * credits + (m->run->same_bank ? 0 : seq % credits)];
}

/* The next block of a message of several. */
static int take_part(model_t *m, task_t *t, link_t *link, const slot_t *slot, value_t *v)
{
    if (slot->seq != link->taken + 1 || link->got >= slot->nparts)
        return model_wrong(m, t, "message %d from rank %d: its slot holds message %d, and %d of %d blocks are taken",
                           link->taken + 1, link->from, slot->seq, link->got, slot->nparts);
    *v = slot->parts[link->got++];
    return 0;
}

int model_taken(model_t *m, task_t *t, int number)
{
    link_t *link = &m->links[number];
    const slot_t *slot = slot_of(m, number, link->taken);

    if (link->got != slot->nparts)
        return model_wrong(m, t, "message %d from rank %d has %d blocks, and %d were taken", link->taken + 1,
                           link->from, slot->nparts, link->got);
    link->got = 0;
    link->taken++;
    if (link->sender >= 0)
        model_make_ready(m, link->sender);
    link->sender = -1;
    return 0;
}

int model_take(model_t *m, task_t *t, int number, int part, value_t *v)
{
    link_t *link = &m->links[number];
    slot_t *slot = slot_of(m, number, link->taken);

    if (part != RD_ALONE)
        return take_part(m, t, link, slot, v);
    if (slot->nparts != 0)
        return model_wrong(m, t, "message %d from rank %d has %d blocks, and not one", link->taken + 1, link->from,
                           slot->nparts);
    if (slot->seq != link->taken + 1)
        return model_wrong(m, t, "message %d from rank %d: its slot holds message %d (overwritten before it was read)",
                           link->taken + 1, link->from, slot->seq);
    *v = slot->value;
    if (m->know != NULL)
        for (int w = 0; w < m->words; w++)
            m->know[t->rank * m->words + w] |= m->slot_know[(slot - m->slots) * m->words + w];
    link->taken++;
    if (link->sender >= 0)
        model_make_ready(m, link->sender);
    link->sender = -1;
    return 0;
}

static void put_part(link_t *link, slot_t *slot, value_t v)
{
    if (slot->room == link->put) {
        slot->room = 2 * slot->room + 4;
        slot->parts = realloc(slot->parts, (size_t)slot->room * sizeof *slot->parts);
        if (slot->parts == NULL)
            abort();
    }
    slot->seq = 0;
    slot->parts[link->put++] = v;
    slot->nparts = link->put;
}

void model_publish(model_t *m, int number)
{
    link_t *link = &m->links[number];

    slot_of(m, number, link->sent)->seq = link->sent + 1;
    link->sent++;
    link->put = 0;
    if (link->sent - link->taken > m->ahead)
        m->ahead = link->sent - link->taken;
    if (link->receiver >= 0)
        model_make_ready(m, link->receiver);
    link->receiver = -1;
}

int model_end_message(model_t *m, task_t *t, const step_t *s)
{
    for (int k = 0; k < s->nsrc + s->ndst; k++) {
        uint32_t end = m->ends[s->first_end + k];
        if (WHERE(end) != RD_PEER)
            continue;
        if (k >= s->nsrc && m->links[INDEX(end)].put > 0)
            model_publish(m, INDEX(end));
        else if (k < s->nsrc && m->links[INDEX(end)].got > 0 && model_taken(m, t, INDEX(end)) != 0)
            return -1;
    }
    return 0;
}

void model_put(model_t *m, const task_t *t, int number, int part, value_t v)
{
    link_t *link = &m->links[number];
    slot_t *slot = slot_of(m, number, link->sent);

    if (part != RD_ALONE) {
        put_part(link, slot, v);
        return;
    }
    slot->nparts = 0;
    slot->value = v;
    slot->seq = ++link->sent;
    if (link->sent - link->taken > m->ahead)
        m->ahead = link->sent - link->taken;
    if (m->know != NULL)
        memcpy(&m->slot_know[(slot - m->slots) * m->words], &m->know[t->rank * m->words],
               (size_t)m->words * sizeof(*m->know));
    if (link->receiver >= 0)
        model_make_ready(m, link->receiver);
    link->receiver = -1;
}
