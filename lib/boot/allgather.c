/* Bruck's allgather over the neighbours' connections. After round k a rank holds the blocks of ranks rank..rank+2^k-1
 * (counted round the circle): it sends the blocks that it has to rank - 2^k and receives the next ones from rank + 2^k.
 * There are log2(n) rounds, and each block reaches each rank once; no rank does more than another. What else ranks
 * exchange goes by the same rounds (meet.c). */
#include "boot/boot_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/outstanding.h"

#define WORD_MS 150
#define CALL_BYTES 32              /* of the word for what an exchange is for */
#define QUEUE (4 * RD_RECORD_DATA) /* the most bytes that are queued before the socket has taken some */

typedef struct round {
    rd_boot_t *b;
    rd_neighbour_t *from, *to;
    const unsigned char *out;
    unsigned char *in;
    size_t out_left, in_left; /* bytes still to be queued, and to be received */
    int through;              /* how many ranks, from `from` on, must have come before `from` can send */
    rd_boot_news_t news;
    int64_t began_ms, round_ms; /* when the exchange began, and the round did */
    int64_t until_ms, say_ms;   /* when it fails, and when the log says who is waited for; 0: never */
    int64_t watched_ms;         /* when the watcher was called last; 0: not in this round */
    char call[CALL_BYTES];      /* what the other rank's exchange is for, as far as it has said it; "": nothing */
} round_t;

/* A call of the system has failed on this rank. */
static rondo_result_t cannot(rd_boot_t *b, const char *call, int error)
{
    char why[128];

    snprintf(why, sizeof why, "%s: %s", call, strerror(error));
    rd_thread_error_set(why);
    return rd_boot_drop_out(b, error == ENOMEM ? RONDO_ERR_NO_MEMORY : RONDO_ERR_SYSTEM);
}

static rondo_result_t push(round_t *r)
{
    while (r->out_left && rd_chan_queued(r->to->chan) < QUEUE) {
        size_t bytes = r->out_left < RD_RECORD_DATA ? r->out_left : RD_RECORD_DATA;
        if (rd_chan_send(r->to->chan, RD_REC_DATA, r->out, bytes) != 0)
            return cannot(r->b, "send", r->to->chan->error); /* reading from the neighbours would not report it */
        r->out += bytes;
        r->out_left -= bytes;
    }
    return RONDO_SUCCESS;
}

static void begin_round(round_t *r, int k)
{
    r->from = &r->b->from[k];
    r->to = &r->b->to[k];
    r->through = r->b->nranks - (1 << k) < 1 << k ? r->b->nranks - (1 << k) : 1 << k;
    r->call[0] = 0;
    r->round_ms = rd_clock_ms();
    if (r->b->call)
        rd_chan_send(r->to->chan, RD_REC_CALL, r->b->call, strlen(r->b->call));
}

static void heard_call(round_t *r, const unsigned char *word, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (word[i] != '_' && (word[i] < 'a' || word[i] > 'z'))
            return;
    snprintf(r->call, sizeof r->call, "%.*s", (int)bytes, (const char *)word);
}

static bool is_alike(const round_t *r)
{
    return strcmp(r->call, r->b->call ? r->b->call : "") == 0;
}

static rondo_result_t unlike(round_t *r)
{
    const char *its = *r->call ? r->call : "something else", *own = r->b->call ? r->b->call : "something else";

    snprintf(r->news.failure.text, sizeof r->news.failure.text,
             "ranks do not call the same: rank %d (%s) calls %s, rank %d (%s) calls %s", r->b->rank,
             rd_boot_whois(r->b, r->b->rank), own, r->from->rank, rd_boot_whois(r->b, r->from->rank), its);
    r->news.failure.failed_rank = r->from->rank;
    return RONDO_ERR_MISMATCH;
}

static rondo_result_t take(round_t *r)
{
    const unsigned char *data;
    size_t bytes;
    int type;
    while (r->in_left && rd_chan_next(r->from->chan, &type, &data, &bytes)) {
        if (rd_boot_heard_of(r->b, type, data, bytes))
            continue;
        if (type == RD_REC_CALL) {
            heard_call(r, data, bytes);
            continue;
        }
        if (type == RD_REC_DATA && !is_alike(r))
            return unlike(r);
        if (type == RD_REC_FAREWELL) {
            rondo_result_t code = rd_boot_heard(r->b, r->from, data, bytes, &r->news);
            if (code)
                return code;
        } else if (type == RD_REC_DATA && bytes <= r->in_left) {
            memcpy(r->in, data, bytes);
            r->in += bytes;
            r->in_left -= bytes;
        } else {
            snprintf(r->news.failure.text, sizeof(r->news.failure.text),
                     "rank %d (%s) sent %zu bytes in an exchange where %zu were due", r->from->rank,
                     rd_boot_whois(r->b, r->from->rank), bytes, r->in_left);
            r->news.failure.failed_rank = r->from->rank;
            return RONDO_ERR_INTERNAL;
        }
    }
    return RONDO_SUCCESS;
}

/* Polls all neighbours, not only those of this round: whichever rank is gone, no rank waits for long. `ended`: also
 * those whose connection has ended without a word. */
static rondo_result_t poll_neighbours(rd_boot_t *b, rd_boot_news_t *news, int ms, bool ended)
{
    struct pollfd p[2 * RD_BOOT_ROUNDS];
    rd_neighbour_t *of[2 * RD_BOOT_ROUNDS];
    int n = 0;
    for (int k = 0; k < 2 * b->rounds; k++) {
        rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        if (rd_chan_over(one->chan) && (one->left || !ended))
            continue;
        of[n] = one;
        p[n++] = (struct pollfd){.fd = one->chan->fd, .events = rd_chan_events(one->chan)};
    }
    if (rd_outstanding_any()) {
        rd_outstanding_turn();
        ms = ms < RD_OUTSTANDING_MS ? ms : RD_OUTSTANDING_MS;
    }
    if (!rd_sock_poll(p, (nfds_t)n, ms))
        return cannot(b, "poll", errno);
    for (int i = 0; i < n; i++) {
        if (!p[i].revents)
            continue;
        rd_chan_pump(of[i]->chan);
        rondo_result_t code = rd_boot_hear(b, of[i], news);
        if (code)
            return code;
    }
    return RONDO_SUCCESS;
}

/* A connection has ended without a word. A rank that cannot accept one, for lack of memory, closes it before it says so
 * to its neighbours, and they may know more of one that is gone: what is said within a moment stands instead. */
static rondo_result_t heard_instead(rd_boot_t *b, rondo_result_t code, rd_boot_news_t *news)
{
    int64_t until = rd_clock_ms() + WORD_MS;

    for (int64_t now; (now = rd_clock_ms()) < until;) {
        rd_boot_news_t said = {.failure.failed_rank = -1};
        rondo_result_t heard = poll_neighbours(b, &said, (int)(until - now), false);
        if (heard && !said.silent) {
            *news = said;
            return heard;
        }
    }
    return code;
}

static rondo_result_t gone(round_t *r, rd_neighbour_t *one)
{
    r->news.failure.failed_rank = one->rank;
    snprintf(r->news.failure.text, sizeof(r->news.failure.text),
             "rank %d (%s) has left, but an exchange with it was due", one->rank, rd_boot_whois(r->b, one->rank));
    return RONDO_ERR_REMOTE;
}

/* The one rank that waits for the late one itself says so. */
static void say_late(round_t *r)
{
    const rd_boot_t *b = r->b;

    if (r->say_ms && r->through == 1 && rd_clock_ms() > r->say_ms) {
        rd_log(b->ctx, RD_LOG_WARN, "%s waits for %g s: rank %d (%s) has not come (RONDO_STALL_MS)",
               b->call ? b->call : "a call", (double)b->patience.stall_ms / 1000, r->from->rank,
               rd_boot_whois(b, r->from->rank));
        r->say_ms = 0;
    }
}

static void tell_watcher(round_t *r)
{
    const rd_boot_watcher_t *watcher = &r->b->watcher;
    const int64_t now = rd_clock_ms();

    if (!watcher->waits || !r->b->call || now - (r->watched_ms ? r->watched_ms : r->round_ms) < RD_BOOT_SLICE_MS)
        return;
    r->watched_ms = now;
    watcher->waits(watcher->arg, &(rd_boot_wait_t){.peer = r->in_left ? r->from->rank : r->to->rank,
                                                   .since_ms = r->round_ms,
                                                   .until_ms = r->until_ms});
}

static void end_round(round_t *r, bool failed)
{
    if (r->watched_ms)
        r->b->watcher.waits(r->b->watcher.arg,
                            &(rd_boot_wait_t){.peer = -1, .failed = failed, .since_ms = r->round_ms});
    r->watched_ms = 0;
}

/* The rank that this one waits for may wait itself for one that its block comes through. */
static rondo_result_t late(round_t *r)
{
    const rd_boot_t *b = r->b;
    const char *whois = rd_boot_whois(b, r->from->rank);
    char who[128];

    if (r->through == 1)
        snprintf(who, sizeof(who), "rank %d (%s)", r->from->rank, whois);
    else
        snprintf(who, sizeof(who), "one of the %d ranks from rank %d (%s) on", r->through, r->from->rank, whois);
    r->news.failure.failed_rank = -1;
    if (b->patience.why)
        snprintf(r->news.failure.text, sizeof(r->news.failure.text), "%s", b->patience.why);
    else
        snprintf(r->news.failure.text, sizeof(r->news.failure.text),
                 "%s did not take part in an exchange within %lld ms (%s)", who, (long long)b->patience.ms,
                 b->patience.by ? b->patience.by : "RONDO_CREATE_TIMEOUT_MS");
    if (r->watched_ms)
        b->watcher.explain(b->watcher.arg, r->news.failure.text);
    return RONDO_ERR_TIMEOUT;
}

/* Returns true if the exchange has lasted for too long. Its limit may have become a longer one since it began. */
static bool is_over(round_t *r)
{
    rd_boot_patience_t *p = &r->b->patience;

    if (!r->until_ms || rd_clock_ms() <= r->until_ms)
        return false;
    if (p->ms_now)
        p->ms = p->ms_now(p->of);
    r->until_ms = p->ms > 0 ? r->began_ms + p->ms : 0;
    return r->until_ms && rd_clock_ms() > r->until_ms;
}

static rondo_result_t run_round(round_t *r)
{
    rd_boot_t *b = r->b;
    for (;;) {
        rondo_result_t code = push(r);
        if (!code)
            code = take(r);
        if (code || (!r->out_left && !r->in_left && !rd_chan_queued(r->to->chan)))
            return code;
        if (r->in_left && r->from->left)
            return gone(r, r->from);
        if (r->out_left && r->to->left)
            return gone(r, r->to);
        code = poll_neighbours(b, &r->news, RD_BOOT_SLICE_MS, true);
        if (!code)
            code = rd_stop_get(b->stop);
        if (code)
            return code;
        tell_watcher(r);
        if (is_over(r))
            return late(r);
        say_late(r);
    }
}

/* From here on the liveness thread reads from the neighbours again. It gets no event for what came before, so this
 * function reads a last time, under the lock that the thread takes: what comes later is a new edge for it. After an
 * error, which one neighbour or none has brought, the thread reads what the others have said: it is the one that knows
 * who had left or spoken before. */
static void end_busy(rd_boot_t *b, rondo_result_t code, rd_boot_news_t *news)
{
    pthread_mutex_lock(&b->lock);
    for (int k = 0; k < 2 * b->rounds && !code; k++) {
        rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        rd_chan_pump(one->chan);
        code = rd_boot_hear(b, one, news);
    }
    b->busy = 0;
    if (code && !rd_stop_get(b->stop)) {
        news->failure.code = code;
        rd_boot_stop(b->stop, b->ctx, &news->failure, b->call != NULL); /* NULL: there is no communicator yet */
    }
    if (b->parting_set) {
        rd_boot_say(b, &b->parting);
    } else if (code) {
        rd_failure_t stands;
        rd_stop_read(b->stop, &stands);
        stands.said = news->failure.said ? news->failure.said : code;
        rd_boot_say(b, &stands);
    }
    rd_boot_tell_gone(b); /* the cause has been said first */
    rd_boot_say_letters(b);
    if (code)
        rd_boot_say_unread(b);
    pthread_mutex_unlock(&b->lock);
}

rondo_result_t rd_boot_rounds(rd_boot_t *b, rd_boot_round_fn each, void *arg)
{
    round_t r = {.b = b, .news.failure.failed_rank = -1};

    pthread_mutex_lock(&b->lock);
    b->busy = 1;
    pthread_mutex_unlock(&b->lock);
    r.began_ms = rd_clock_ms();
    r.until_ms = b->patience.ms > 0 ? r.began_ms + b->patience.ms : 0;
    r.say_ms = b->patience.stall_ms > 0 ? r.began_ms + b->patience.stall_ms : 0;
    rondo_result_t code = rd_stop_get(b->stop);
    for (int k = 0; k < b->rounds && !code; k++) {
        begin_round(&r, k);
        r.out_left = r.in_left = each(arg, k, &r.out, &r.in);
        code = run_round(&r);
        end_round(&r, code != RONDO_SUCCESS);
    }
    if (code && r.news.silent)
        code = heard_instead(b, code, &r.news);
    end_busy(b, code, &r.news);
    return code;
}

typedef struct gathered {
    unsigned char *turned; /* all blocks, this rank's first */
    size_t n, each;
} gathered_t;

static size_t gather(void *arg, int k, const unsigned char **out, unsigned char **in)
{
    const gathered_t *g = arg;
    size_t have = (size_t)1 << k, more = have < g->n - have ? have : g->n - have;

    *out = g->turned;
    *in = g->turned + have * g->each;
    return more * g->each;
}

rondo_result_t rd_boot_allgather(rd_boot_t *b, void *all, size_t each)
{
    size_t n = (size_t)b->nranks, own = (size_t)b->rank;
    if (n == 1 || each == 0)
        return RONDO_SUCCESS;
    gathered_t g = {malloc(n * each), n, each};
    b->exchanges++;
    b->exchanged += each;
    if (!g.turned)
        return rd_boot_drop_out(b, rd_error(b->ctx, RONDO_ERR_NO_MEMORY,
                                            "no memory to exchange %zu bytes with each of %d ranks", each, b->nranks));
    memcpy(g.turned, (unsigned char *)all + own * each, each);
    rondo_result_t code = rd_boot_rounds(b, gather, &g);
    if (!code) {
        memcpy((unsigned char *)all + own * each, g.turned, (n - own) * each);
        memcpy(all, g.turned + (n - own) * each, own * each);
    }
    free(g.turned);
    return code;
}

void rd_boot_exchange_for(rd_boot_t *b, const char *call)
{
    b->call = call;
}

void rd_boot_watch(rd_boot_t *b, const rd_boot_watcher_t *watcher)
{
    b->watcher = *watcher;
}

void rd_boot_exchanged(const rd_boot_t *b, int *exchanges, size_t *bytes)
{
    *exchanges = b->exchanges;
    *bytes = b->exchanged;
}
