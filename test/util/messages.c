/* See messages.h. */
#define _GNU_SOURCE
#include "util/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define GUARD 32

static void input_of(const msg_t *m, ref_input_t *in)
{
    *in = (ref_input_t){m->type, RONDO_SUM, REF_BYTES, m->seed, 1};
}

void msg_draw(msg_t *list, int count, int nranks, size_t most, uint64_t *random)
{
    int i;

    for (i = 0; i < count; i++) {
        list[i].from = (int)test_below(random, (unsigned)nranks);
        list[i].to = (int)test_below(random, (unsigned)nranks);
        list[i].type = (rondo_type_t)test_below(random, RONDO_NUM_TYPES);
        list[i].count = test_below(random, 8) == 0   ? 0
                        : test_below(random, 3) == 0 ? test_below(random, (unsigned)most + 1)
                                                     : test_below(random, 40);
        list[i].seed = test_random(random) >> 32;
    }
}

int msg_prepare(msg_set_t *s, const msg_t *list, int count, int rank, int nranks)
{
    int i;

    *s = (msg_set_t){list,
                     count,
                     rank,
                     nranks,
                     calloc((size_t)count + 1, sizeof *s->sent),
                     calloc((size_t)count + 1, sizeof *s->got)};
    if (!s->sent || !s->got)
        goto fail;
    for (i = 0; i < count; i++) {
        size_t bytes = list[i].count * ref_size(list[i].type);
        ref_input_t in;

        input_of(&list[i], &in);
        if (list[i].from == rank) {
            if (!(s->sent[i] = malloc(bytes + 1)))
                goto fail;
            ref_fill(&in, list[i].from, 0, list[i].count, s->sent[i]);
        }
        if (list[i].to == rank) {
            if (!(s->got[i] = malloc(bytes + GUARD)))
                goto fail;
            memset(s->got[i], 0xa5, bytes + GUARD);
        }
    }
    return 0;
fail:
    msg_release(s);
    return -1;
}

/* A half is "message i as sender" (2i) or "as receiver" (2i+1). A half may go when every earlier half of the same
 * pair and direction has gone. */
static int may_go(const msg_set_t *s, const unsigned char *gone, int half)
{
    const msg_t *m = &s->list[half / 2];
    int i;

    for (i = half % 2; i < half; i += 2)
        if (!gone[i] && s->list[i / 2].from == m->from && s->list[i / 2].to == m->to)
            return 0;
    return 1;
}

static rondo_result_t post_half(msg_set_t *s, int half, rondo_comm_t comm)
{
    const msg_t *m = &s->list[half / 2];

    if (half % 2 == 0)
        return rondo_send(s->sent[half / 2], m->count, m->type, m->to, comm, NULL);
    return rondo_recv(s->got[half / 2], m->count, m->type, m->from, comm, NULL);
}

rondo_result_t msg_post(msg_set_t *s, rondo_comm_t comm, uint64_t order)
{
    int halves = 2 * s->count, left = 0, i;
    unsigned char *gone = malloc((size_t)halves + 1);
    rondo_result_t result = RONDO_SUCCESS;

    if (!gone)
        return RONDO_ERR_NO_MEMORY;
    for (i = 0; i < halves; i++) {
        gone[i] = (i % 2 ? s->list[i / 2].to : s->list[i / 2].from) != s->rank;
        left += !gone[i];
    }
    while (left > 0 && result == RONDO_SUCCESS) {
        i = (int)test_below(&order, (unsigned)halves);
        if (gone[i] || !may_go(s, gone, i))
            continue;
        result = post_half(s, i, comm);
        gone[i] = 1;
        left--;
    }
    free(gone);
    return result;
}

int msg_verify(const msg_set_t *s, char *text, size_t size)
{
    int i;

    for (i = 0; i < s->count; i++) {
        const msg_t *m = &s->list[i];
        size_t bytes = m->count * ref_size(m->type), k;
        unsigned char *should;
        ref_input_t in;

        if (m->to != s->rank)
            continue;
        if (!(should = malloc(bytes + GUARD)))
            return -1;
        memset(should, 0xa5, bytes + GUARD);
        input_of(m, &in);
        ref_fill(&in, m->from, 0, m->count, should);
        for (k = 0; k < bytes + GUARD && s->got[i][k] == should[k];)
            k++;
        free(should);
        if (k < bytes + GUARD) {
            snprintf(text, size, "message %d, %zu bytes from rank %d: byte %zu is wrong", i, bytes, m->from, k);
            return -1;
        }
    }
    return 0;
}

void msg_release(msg_set_t *s)
{
    int i;

    for (i = 0; i < s->count; i++) {
        if (s->sent)
            free(s->sent[i]);
        if (s->got)
            free(s->got[i]);
    }
    free(s->sent);
    free(s->got);
    memset(s, 0, sizeof *s);
}
