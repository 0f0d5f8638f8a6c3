/* Signatures of calls, and what a rank keeps of its last ones: see called.h. */
#include "monitor/called.h"

void rd_sign_hash(rd_signed_call_t *s, bool reduces)
{
    const rd_monitor_call_t *c = &s->call;
    uint64_t what =
        (uint64_t)c->kind | (uint64_t)(c->flags & RD_MONITOR_TABLES) << 8 | (uint64_t)(uint32_t)c->root << 32;

    if (reduces)
        what |= (uint64_t)c->type << 16 | (uint64_t)c->op << 24;
    uint64_t amount = reduces ? c->count : c->flags & RD_MONITOR_TABLES ? 0 : c->bytes;
    uint64_t hash = rd_sign_mix(rd_sign_mix(rd_sign_mix(UINT64_C(0xcbf29ce484222325), what), amount), s->tables);
    hash = c->tag ? rd_sign_mix(hash, c->tag) : hash;
    s->hash = (s->tuned ? rd_sign_mix(hash, s->tuned) : hash) | 1;
}

/* A reader that sees any of the new words sees that the run is being written, or what follows that. */
static void store_run(rd_called_run_t *run, const rd_called_words_t *w)
{
    atomic_store_explicit(&run->first, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&run->count, w->count, memory_order_relaxed);
    atomic_store_explicit(&run->bytes, w->bytes, memory_order_relaxed);
    atomic_store_explicit(&run->tables, w->tables, memory_order_relaxed);
    atomic_store_explicit(&run->tag, w->tag, memory_order_relaxed);
    atomic_store_explicit(&run->tuned, w->tuned, memory_order_relaxed);
    atomic_store_explicit(&run->what, w->what, memory_order_relaxed);
    atomic_store_explicit(&run->first, w->first, memory_order_release);
}

/* Returns what lies there; `first` is 0 if that is being written. */
static rd_called_words_t load_run(const rd_called_run_t *run)
{
    rd_called_words_t w = {.first = atomic_load_explicit(&run->first, memory_order_acquire)};

    w.count = atomic_load_explicit(&run->count, memory_order_relaxed);
    w.bytes = atomic_load_explicit(&run->bytes, memory_order_relaxed);
    w.tables = atomic_load_explicit(&run->tables, memory_order_relaxed);
    w.tag = atomic_load_explicit(&run->tag, memory_order_relaxed);
    w.tuned = atomic_load_explicit(&run->tuned, memory_order_relaxed);
    w.what = atomic_load_explicit(&run->what, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&run->first, memory_order_relaxed) != w.first)
        w.first = 0;
    return w;
}

static rd_called_words_t words_of(const rd_signed_call_t *s, uint64_t first)
{
    const rd_monitor_call_t *c = &s->call;

    return (rd_called_words_t){.first = first,
                               .count = c->count,
                               .bytes = c->bytes,
                               .tables = s->tables,
                               .tag = c->tag,
                               .tuned = s->tuned,
                               .what = (uint64_t)c->kind | (uint64_t)c->type << 8 | (uint64_t)c->op << 16 |
                                       (uint64_t)c->flags << 24 | (uint64_t)(uint32_t)c->root << 32};
}

static rd_signed_call_t call_of(const rd_called_words_t *w)
{
    return (rd_signed_call_t){.call = {.count = w->count,
                                       .bytes = w->bytes,
                                       .tag = w->tag,
                                       .root = (int32_t)(uint32_t)(w->what >> 32),
                                       .kind = (uint8_t)w->what,
                                       .type = (uint8_t)(w->what >> 8),
                                       .op = (uint8_t)(w->what >> 16),
                                       .flags = (uint8_t)(w->what >> 24)},
                              .tables = w->tables,
                              .tuned = w->tuned};
}

/* The run is there before the word of its first call, so who knows of the call finds what it was. */
uint64_t rd_sign_call(rd_signing_t *s, const rd_signed_call_t *call, uint64_t number)
{
    /* Calls that move the same bytes in another type are alike, but are said as they were made. */
    if (call->hash != s->last || call->call.count != s->last_count || call->call.type != s->last_type) {
        const rd_called_words_t words = words_of(call, number);
        store_run(&s->called->runs[s->runs++ % RD_CALLED_RUNS], &words);
    }
    s->last = call->hash;
    s->last_count = call->call.count;
    s->last_type = call->call.type;
    return rd_sign_repeat(s, call->hash, number);
}

/* Runs follow each other, so the call belongs to the last one that has begun by then, unless that is overwritten: then
 * all that are left have begun later. */
bool rd_called_find(const rd_called_t *called, uint64_t number, rd_signed_call_t *call)
{
    uint64_t latest = 0;

    for (int i = 0; i < RD_CALLED_RUNS; i++) {
        const rd_called_words_t words = load_run(&called->runs[i]);
        if (words.first > latest && words.first <= number) {
            latest = words.first;
            *call = call_of(&words);
        }
    }
    return latest != 0;
}

/* ---- for ranks on other nodes ---- */

/* Returns where the word of the last call lies: the next one has a word that is not of the next number. */
static size_t newest(const rd_called_t *called)
{
    size_t at = 0;

    while (at + 1 < RD_CALLED && (uint32_t)atomic_load_explicit(&called->words[at + 1], memory_order_relaxed) ==
                                     (uint32_t)atomic_load_explicit(&called->words[at], memory_order_relaxed) + 1)
        at++;
    return at;
}

void rd_called_tell(const rd_called_t *called, rd_called_digest_t *d)
{
    size_t last = newest(called);

    for (size_t i = 0; i < RD_CALLED_SENT; i++)
        d->words[i] = atomic_load_explicit(&called->words[(last + 1 + i + RD_CALLED - RD_CALLED_SENT) % RD_CALLED],
                                           memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire); /* a run is there before the word of its first call */
    for (int i = 0; i < RD_CALLED_RUNS; i++)
        d->runs[i] = load_run(&called->runs[i]);
}

/* A word says its number, from which follows where it belongs. */
void rd_called_hear(rd_called_t *heard, const rd_called_digest_t *d)
{
    for (size_t i = 0; i < RD_CALLED_SENT; i++)
        if ((uint32_t)d->words[i])
            atomic_store_explicit(&heard->words[d->words[i] % RD_CALLED], d->words[i], memory_order_relaxed);
    for (int i = 0; i < RD_CALLED_RUNS; i++)
        store_run(&heard->runs[i], &d->runs[i]);
}
