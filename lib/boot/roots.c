/* Links between the roots of one creation: see roots.h. */
#include "boot/roots.h"

#include <errno.h>
#include <stdarg.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART ((int)(RD_RECORD_DATA / sizeof(rd_contact_t))) /* contacts in one record */

/* ---- who is where ---- */

void rd_roots_block(int nranks, int nroots, int index, int *first, int *count)
{
    int each = nranks / nroots, more = nranks % nroots;

    *first = index * each + (index < more ? index : more);
    *count = each + (index < more);
}

int rd_roots_index(int nranks, int nroots, int rank)
{
    int each = nranks / nroots, more = nranks % nroots, long_ones = more * (each + 1);

    return rank < long_ones ? rank / (each + 1) : more + (rank - long_ones) / each;
}

static bool has(const int *list, int n, int one)
{
    while (n > 0 && list[n - 1] != one)
        n--;
    return n > 0;
}

int rd_roots_needed(int nranks, int nroots, int index, int needed[RD_ROOTS_MOST])
{
    int first, count, n = 0;

    rd_roots_block(nranks, nroots, index, &first, &count);
    for (int64_t d = 1; d < nranks; d *= 2) {
        int from = rd_roots_index(nranks, nroots, (int)((first + d) % nranks));
        int to = rd_roots_index(nranks, nroots, (int)((first + count - 1 + d) % nranks));
        for (int i = from;; i = (i + 1) % nroots) {
            if (i != index && !has(needed, n, i) && n < RD_ROOTS_MOST)
                needed[n++] = i;
            if (i == to)
                break;
        }
    }
    return n;
}

/* ---- the record of a rank ---- */

#define NONCE crypto_secretbox_NONCEBYTES
#define EXTRA (NONCE + crypto_secretbox_MACBYTES)

_Static_assert(sizeof(rd_roots_head_t) + EXTRA + RD_ROOTS_MOST * sizeof(rd_root_t) <= RD_RECORD_DATA, "one record");

size_t rd_roots_seal(unsigned char *record, const rd_creds_t *creds, const rd_roots_head_t *head, const rd_root_t *root,
                     int n)
{
    unsigned char key[32], *nonce = record + sizeof(*head);
    size_t bytes = (size_t)n * sizeof(*root);

    memcpy(record, head, sizeof(*head));
    rd_id_key(creds, "roots", head, sizeof(*head), key);
    randombytes_buf(nonce, NONCE);
    crypto_secretbox_easy(nonce + NONCE, (const unsigned char *)root, bytes, nonce, key);
    sodium_memzero(key, sizeof(key));
    return sizeof(*head) + EXTRA + bytes;
}

int rd_roots_open(const unsigned char *record, size_t bytes, const rd_creds_t *creds, rd_roots_head_t *head,
                  rd_root_t root[RD_ROOTS_MOST])
{
    const unsigned char *nonce = record + sizeof(*head);
    size_t n = bytes < sizeof(*head) + EXTRA ? 0 : (bytes - sizeof(*head) - EXTRA) / sizeof(*root);
    unsigned char key[32];

    if (bytes != sizeof(*head) + EXTRA + n * sizeof(*root) || n > RD_ROOTS_MOST)
        return -1;
    memcpy(head, record, sizeof(*head));
    rd_id_key(creds, "roots", head, sizeof(*head), key);
    int bad = crypto_secretbox_open_easy((unsigned char *)root, nonce + NONCE,
                                         n * sizeof(*root) + crypto_secretbox_MACBYTES, nonce, key);
    sodium_memzero(key, sizeof(key));
    return bad ? -1 : (int)n;
}

/* ---- what goes wrong ---- */

static void fail(rd_roots_t *r, rondo_result_t code, const char *format, ...)
{
    va_list args;

    if (r->fail.code)
        return;
    va_start(args, format);
    vsnprintf(r->fail.text, sizeof(r->fail.text), format, args);
    va_end(args);
    r->fail.code = code;
    r->fail.failed_rank = -1;
}

static void heard_failure(rd_roots_t *r, rd_root_link_t *l, const unsigned char *data, size_t bytes)
{
    rd_fail_t said;

    if (bytes != sizeof(said))
        return;
    memcpy(&said, data, bytes);
    said.text[sizeof(said.text) - 1] = 0;
    l->done = 1;
    if (said.code <= RONDO_IN_PROGRESS || said.code > RD_LAST_RESULT)
        said.code = RONDO_ERR_INTERNAL;
    if (said.failed_rank < -1 || said.failed_rank >= r->plan.nranks)
        said.failed_rank = -1;
    if (!r->fail.code)
        r->fail = said;
}

/* How many roots need this one. */
static int expected(const rd_roots_t *r)
{
    int needed[RD_ROOTS_MOST], count = 0;

    for (int i = 0; i < r->plan.nroots; i++)
        count += has(needed, rd_roots_needed(r->plan.nranks, r->plan.nroots, i, needed), r->index);
    return count;
}

bool rd_roots_agree(rd_roots_t *r, const rd_roots_head_t *head)
{
    const rd_roots_plan_t *plan = &head->plan;
    bool sound = plan->nroots > 1 && plan->nranks >= plan->nroots && plan->nranks <= RD_MOST_RANKS &&
                 head->index >= 0 && head->index < plan->nroots;

    if (!sound || (r->known && (memcmp(plan, &r->plan, sizeof(*plan)) != 0 || head->index != r->index)))
        return false;
    if (r->known)
        return true;
    r->known = 1;
    r->plan = *plan;
    r->index = head->index;
    rd_roots_block(plan->nranks, plan->nroots, head->index, &r->first, &r->count);
    r->expected = expected(r);
    return true;
}

/* ---- links ---- */

int rd_roots_begin(rd_roots_t *r, const rd_root_t *roots, int n)
{
    if (r->roots_known || n <= 0 || n > RD_ROOTS_MOST)
        return 0;
    r->ask = calloc((size_t)n, sizeof(*r->ask));
    if (!r->ask)
        return -1;
    r->nask = n;
    r->roots_known = 1;
    for (int i = 0; i < n; i++) {
        const rd_hello_t hello = {
            .purpose = RD_FOR_MEETING, .rank = r->index, .nranks = r->plan.nranks, .slot = RD_SLOT_ROOT};
        rd_root_link_t *l = &r->ask[i];
        int first;
        l->root = roots[i];
        l->root.maker[sizeof(l->root.maker) - 1] = 0;
        if (l->root.index < 0 || l->root.index >= r->plan.nroots)
            l->root.index = r->index;
        rd_roots_block(r->plan.nranks, r->plan.nroots, l->root.index, &first, &l->count);
        l->contacts = calloc((size_t)l->count, sizeof(*l->contacts));
        if (!l->contacts)
            return -1;
        rd_dial_begin(&l->dial, &l->root.addr, &hello);
    }
    return 0;
}

int rd_roots_admit(rd_roots_t *r, rd_chan_t *chan)
{
    if (r->ncame == r->room) {
        int room = r->room ? 2 * r->room : 16;
        rd_root_link_t *more = realloc(r->came, (size_t)room * sizeof(*more));
        if (!more) {
            rd_chan_free(chan);
            return -1;
        }
        r->came = more;
        r->room = room;
    }
    r->came[r->ncame++] = (rd_root_link_t){.dial = {.chan = chan}};
    return 0;
}

static rd_root_link_t *link_at(const rd_roots_t *r, int i)
{
    return i < r->nask ? &r->ask[i] : &r->came[i - r->nask];
}

static bool is_open(const rd_root_link_t *l)
{
    return rd_dial_open(&l->dial) && !rd_chan_over(l->dial.chan);
}

static void give(const rd_roots_t *r, rd_root_link_t *l)
{
    for (int i = 0; i < r->count; i += PART) {
        int n = r->count - i < PART ? r->count - i : PART;
        rd_chan_send(l->dial.chan, RD_REC_BLOCK, r->own + i, (size_t)n * sizeof(*r->own));
    }
    l->given = 1;
}

static void on_ask(rd_roots_t *r, rd_root_link_t *l, const unsigned char *data, size_t bytes)
{
    rd_roots_head_t head;

    if (bytes != sizeof(head) || l->asked)
        return;
    memcpy(&head, data, bytes);
    l->asked = 1;
    if (r->single)
        fail(
            r, RONDO_ERR_INVALID_ARGUMENT,
            "some ranks come with one id, made by %s, others with several: nranks and the list of ids must be equal on "
            "all ranks",
            r->maker);
    else if (!rd_roots_agree(r, &head))
        fail(r, RONDO_ERR_INVALID_ARGUMENT,
             "the ranks that come to the id of %s have other ids, or another number of ranks, than those of other ids: "
             "the list of ids and nranks must be equal on all ranks",
             r->maker);
}

static void on_block(rd_root_link_t *l, const unsigned char *data, size_t bytes)
{
    size_t n = bytes / sizeof(rd_contact_t);

    if (bytes % sizeof(rd_contact_t) != 0 || n > (size_t)(l->count - l->got))
        return;
    memcpy(l->contacts + l->got, data, bytes);
    l->got += (int)n;
}

static void hear(rd_roots_t *r, rd_root_link_t *l, bool dialled)
{
    const unsigned char *data;
    size_t bytes;
    int type;

    while (rd_chan_next(l->dial.chan, &type, &data, &bytes)) {
        if (type == RD_REC_FAIL)
            heard_failure(r, l, data, bytes);
        else if (type == RD_REC_READY)
            l->done = 1;
        else if (type == RD_REC_BLOCK && dialled)
            on_block(l, data, bytes);
        else if (type == RD_REC_ASK && !dialled)
            on_ask(r, l, data, bytes);
    }
}

static void ended(rd_roots_t *r, rd_root_link_t *l, bool dialled, int error)
{
    int first, count;

    if (l->done || r->ready)
        return;
    l->done = 1;
    if (!dialled) {
        fail(r, RONDO_ERR_REMOTE, "the rendezvous of another id ended before the communicator was made");
        return;
    }
    rd_roots_block(r->plan.nranks, r->plan.nroots, l->root.index, &first, &count);
    fail(r, RONDO_ERR_REMOTE, "the id of ranks %d to %d, made by %s, is served no more: %s", first, first + count - 1,
         l->root.maker, error ? strerror(error) : "it ended before the communicator was made");
}

static void pump_dialled(rd_roots_t *r, rd_root_link_t *l)
{
    const rd_roots_head_t head = {.plan = r->plan, .index = l->root.index, .from = r->index};
    int error;

    if (l->done && !l->dial.chan)
        return;
    error = rd_dial_pump(&l->dial, &l->root.creds);
    if (error) {
        ended(r, l, true, error);
        return;
    }
    if (rd_dial_open(&l->dial) && !l->asked) {
        rd_chan_send(l->dial.chan, RD_REC_ASK, &head, sizeof(head));
        l->asked = 1;
    }
    if (!rd_dial_open(&l->dial))
        return;
    hear(r, l, true);
    if (rd_chan_over(l->dial.chan))
        ended(r, l, true, 0);
}

void rd_roots_pump(rd_roots_t *r)
{
    for (int i = 0; i < r->nask; i++)
        pump_dialled(r, &r->ask[i]);
    for (int i = 0; i < r->ncame; i++) {
        rd_root_link_t *l = &r->came[i];
        rd_chan_pump(l->dial.chan);
        hear(r, l, false);
        if (rd_chan_over(l->dial.chan) && l->asked)
            ended(r, l, false, 0);
        else if (r->own && l->asked && !l->given && is_open(l))
            give(r, l);
    }
}

int rd_roots_polls(const rd_roots_t *r)
{
    return r->nask + r->ncame;
}

int rd_roots_fill(const rd_roots_t *r, struct pollfd *p)
{
    int n = 0;

    for (int i = 0; i < r->nask + r->ncame; i++) {
        const rd_chan_t *c = link_at(r, i)->dial.chan;
        if (c && !rd_chan_over(c))
            p[n++] = (struct pollfd){.fd = c->fd, .events = rd_chan_events(c)};
    }
    return n;
}

int rd_roots_fds(const rd_roots_t *r, int *fds)
{
    int n = 0;

    for (int i = 0; i < r->nask + r->ncame; i++) {
        const rd_chan_t *c = link_at(r, i)->dial.chan;
        if (c && c->fd >= 0)
            fds[n++] = c->fd;
    }
    return n;
}

bool rd_roots_complete(const rd_roots_t *r)
{
    bool all = r->roots_known;

    for (int i = 0; i < r->nask; i++)
        all &= r->ask[i].got == r->ask[i].count;
    return all;
}

const rd_contact_t *rd_roots_contact(const rd_roots_t *r, int rank)
{
    int index = rd_roots_index(r->plan.nranks, r->plan.nroots, rank), first, count;

    rd_roots_block(r->plan.nranks, r->plan.nroots, index, &first, &count);
    for (int i = 0; i < r->nask; i++)
        if (r->ask[i].root.index == index)
            return &r->ask[i].contacts[rank - first];
    return NULL;
}

void rd_roots_tell(rd_roots_t *r, const rd_fail_t *said)
{
    for (int i = 0; i < r->nask + r->ncame; i++) {
        rd_root_link_t *l = link_at(r, i);
        if (l->informed || !is_open(l) || !l->asked)
            continue;
        rd_chan_send(l->dial.chan, RD_REC_FAIL, said, sizeof(*said));
        l->informed = 1;
    }
}

bool rd_roots_parted(const rd_roots_t *r)
{
    for (int i = 0; i < r->nask + r->ncame; i++)
        if (!link_at(r, i)->done && is_open(link_at(r, i)))
            return false;
    return true;
}

bool rd_roots_informed(const rd_roots_t *r)
{
    int informed = 0;

    for (int i = 0; i < r->nask; i++)
        if (!r->ask[i].informed && !r->ask[i].done)
            return false;
    for (int i = 0; i < r->ncame; i++)
        informed += r->came[i].informed || r->came[i].done;
    return informed >= r->expected;
}

void rd_roots_ready(rd_roots_t *r)
{
    for (int i = 0; i < r->nask + r->ncame && !r->ready; i++)
        if (is_open(link_at(r, i)))
            rd_chan_send(link_at(r, i)->dial.chan, RD_REC_READY, NULL, 0);
    r->ready = 1;
}

bool rd_roots_flushed(const rd_roots_t *r)
{
    for (int i = 0; i < r->nask + r->ncame; i++)
        if (is_open(link_at(r, i)) && rd_chan_queued(link_at(r, i)->dial.chan))
            return false;
    return true;
}

void rd_roots_end(rd_roots_t *r)
{
    for (int i = 0; i < r->nask + r->ncame; i++) {
        rd_root_link_t *l = link_at(r, i);
        rd_chan_free(l->dial.chan);
        free(l->contacts);
        sodium_memzero(&l->root.creds, sizeof(l->root.creds));
    }
    free(r->ask);
    free(r->came);
    r->ask = r->came = NULL;
    r->nask = r->ncame = 0;
}
