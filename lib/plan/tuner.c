/* Asks a tuner: see tuner.h. */
#include "plan/tuner.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/hash.h"
#include "plan/candidates.h"

static const rd_tuner_t *_Atomic current;

void rd_tuner_set(const rd_tuner_t *tuner)
{
    atomic_store(&current, tuner);
}

const rd_tuner_t *rd_tuner_get(void)
{
    return atomic_load(&current);
}

/* Lists what may be chosen, in words, and through `from` where each of it stands. Returns how many there are. */
static int list(const rd_choices_t *choices, const rd_forced_t *forced, rd_tuner_candidate_t *to, int *from)
{
    bool named = forced->algo && !forced->except;
    int count = 0;

    for (int i = 0; i < choices->count && !choices->entry[i].excluded; i++) {
        const rd_choice_t *c = &choices->entry[i];

        if (c->wanted_name && !named)
            continue;
        from[count] = i;
        to[count++] = (rd_tuner_candidate_t){.algo = c->algo->name,
                                             .proto = rd_proto_name(c->proto),
                                             .nccl = c->algo->nccl,
                                             .slice = c->slice,
                                             .us = c->us};
    }
    return count;
}

/* Names are constants, so their addresses tell them apart. */
static uint64_t question(const rd_tuner_call_t *call, const rd_tuner_candidate_t *of, int count)
{
    uint64_t hash = rd_hash(RD_HASH_EMPTY, &call->operation, sizeof call->operation);

    hash = rd_hash(hash, &call->bytes, sizeof call->bytes);
    return rd_hash(hash, of, (size_t)count * sizeof *of) | 1;
}

const rd_choice_t *rd_tuner_choice(rd_tuned_t *t, const rd_tuner_call_t *call, const rd_choices_t *choices,
                                   const rd_forced_t *forced)
{
    rd_tuner_candidate_t of[RD_CHOICES_MOST];
    int from[RD_CHOICES_MOST];
    int count = list(choices, forced, of, from);

    if (!t->asked || !count)
        return NULL;
    uint64_t asked = question(call, of, count);
    size_t at = asked >> 32 & (RD_TUNER_ANSWERS - 1);
    if (t->answers[at].question != asked) {
        int answer = t->tuner->choose(t->context, call, of, count);
        t->answers[at].answer = answer >= 0 && answer < count ? answer : -1;
        t->answers[at].question = asked;
    }
    return t->answers[at].answer < 0 ? NULL : &choices->entry[from[t->answers[at].answer]];
}

/* Slices are whole lines of 64 bytes; what a word has no room for tells nobody apart. */
uint64_t rd_tuner_word(const rd_choice_t *c)
{
    return RD_TUNER_CHOICE | (uint64_t)(rd_algo_number(c->algo) & 0x7f) << 56 | (uint64_t)(c->param & 0xff) << 48 |
           (uint64_t)(c->proto & 0xf) << 44 | (uint64_t)(c->slice / 64 & 0xfffffff) << 16 |
           (uint64_t)(c->together & 0xffff);
}

void rd_tuner_describe(uint64_t word, char text[RD_TUNER_TEXT])
{
    int number = (int)(word >> 56 & 0x7f), last = 0;

    if (!(word & RD_TUNER_CHOICE)) {
        snprintf(text, RD_TUNER_TEXT, "%s", word ? "what it forces" : "what rondo chooses");
        return;
    }
    while (rd_algos[last] && last < number)
        last++;
    rd_proto_t proto = (rd_proto_t)(word >> 44 & 0xf);
    snprintf(text, RD_TUNER_TEXT, "%s by %s, slices of %zu bytes",
             word && rd_algos[last] ? rd_algos[last]->name : "something else",
             proto < RD_NUM_PROTOS ? rd_proto_name(proto) : "?", (size_t)(word >> 16 & 0xfffffff) * 64);
}
