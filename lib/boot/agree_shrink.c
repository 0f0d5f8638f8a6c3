/* The agreement, from the side of a rank that follows; the leader's side is agree_shrink_lead.c. See agree_shrink.h. */
#include "boot/agree_shrink.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#define AGAIN_MS 10 /* between two attempts to connect */

bool rd_agree_shrink_gone(int error)
{
    return error == ECONNREFUSED || error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

rondo_result_t rd_agree_shrink_begin(rd_agree_shrink_t **agreement, rd_boot_t *b, int32_t round,
                                     const rd_agree_shrink_ops_t *ops)
{
    size_t n = (size_t)b->nranks;
    rd_agree_shrink_t *r = calloc(1, sizeof(*r));
    if (r) {
        *r = (rd_agree_shrink_t){.boot = b, .rank = b->rank, .nranks = b->nranks, .ops = *ops, .wake = -1};
        r->bits = calloc(1, (n + 7) / 8);
        r->members = malloc(n * sizeof(*r->members));
    }
    if (!r || !r->bits || !r->members) {
        rd_agree_shrink_end(r);
        return rd_error(b->ctx, RONDO_ERR_NO_MEMORY, "no memory for an agreement of %d ranks", b->nranks);
    }
    /* A key of its own: what is sent here means nothing to a rank that waits at the listener for something else. */
    rd_id_derive(&r->creds, &b->creds, "agreement", NULL, 0);
    r->mine.round = round;
    r->mine.spare = rd_fd_free(rd_boot_fds(b->nranks, ops->env) + 1) - 1; /* one for the connection to the leader */
    snprintf(r->mine.why, sizeof(r->mine.why), "cannot make a communicator: %s", rd_fd_strerror(EMFILE));
    if (b->patience.ms > 0)
        r->deadline_ms = rd_clock_ms() + b->patience.ms;
    *agreement = r;
    return RONDO_SUCCESS;
}

static void hang_up(rd_agree_shrink_t *r)
{
    rd_chan_free(r->up);
    r->up = NULL;
    r->state_sent = 0;
}

void rd_agree_shrink_end(rd_agree_shrink_t *r)
{
    if (!r)
        return;
    hang_up(r);
    rd_agree_shrink_lead_end(r);
    free(r->bits);
    free(r->members);
    sodium_memzero(r, sizeof(*r));
    free(r);
}

void rd_agree_shrink_list(rd_agree_shrink_t *r)
{
    r->nmembers = 0;
    for (int i = 0; i < r->nranks; i++)
        if (r->bits[i / 8] >> i % 8 & 1)
            r->members[r->nmembers++] = i;
}

rondo_result_t rd_agree_shrink_aborted(rd_log_ctx_t *ctx)
{
    return rd_error(ctx, RONDO_ERR_ABORTED, "rondo_comm_shrink: another thread has aborted the communicator");
}

rondo_result_t rd_agree_shrink_check(rd_agree_shrink_t *r, const char *awaited)
{
    if (atomic_load(r->ops.closed))
        return rd_agree_shrink_aborted(r->boot->ctx);
    /* A rank that follows waits a little longer than the leader, whose message says more. */
    if (!r->deadline_ms || rd_clock_ms() < r->deadline_ms + (r->leads ? 0 : 2000))
        return RONDO_SUCCESS;
    return rd_error(
        r->boot->ctx, RONDO_ERR_TIMEOUT,
        "rondo_comm_shrink: %s within %lld ms (RONDO_CREATE_TIMEOUT_MS); a rank that lives and shall be left "
        "out must be named in `excluded`",
        awaited, (long long)r->boot->patience.ms);
}

/* Keeps a connection to the leader, or finds that the leader is gone and goes on to the next rank. That a connection
 * ends proves nothing by itself; what counts is whether a process still listens there. A host that does not answer is
 * gone, but for this one: here the queue of the leader's socket is full, because it has yet to come. */
static rondo_result_t reach(rd_agree_shrink_t *r)
{
    rd_boot_t *b = r->boot;
    rd_hello_t mine = {.purpose = RD_FOR_AGREE_SHRINK, .rank = b->rank, .nranks = b->nranks};
    int64_t now = rd_clock_ms();
    int error = 0;
    if (r->ops.died(r->ops.arg, r->leader)) {
        hang_up(r);
        error = ECONNREFUSED;
    } else if (r->up) {
        rd_chan_pump(r->up);
        int silent = r->up->state == RD_CHAN_CONNECTING && now - r->up->since_ms > RD_AGREE_SHRINK_SILENT_MS;
        if (!rd_chan_over(r->up) && !silent)
            return RONDO_SUCCESS;
        error = silent ? ETIMEDOUT : r->up->error;
        if (error == ETIMEDOUT && rd_addr_same_host(&b->addrs[r->leader], &b->addr))
            error = 0;
        hang_up(r);
        r->again_ms = now + AGAIN_MS;
    } else if (now >= r->again_ms) {
        int fd = rd_boot_dial(b, r->leader);
        error = fd < 0 ? errno : 0;
        r->up = fd < 0 ? NULL : rd_chan_client(fd, &r->creds, &b->addrs[r->leader], sizeof(rd_addr_t), &mine);
        r->again_ms = now + AGAIN_MS;
        if (fd >= 0 && !r->up)
            return rd_error(b->ctx, RONDO_ERR_NO_MEMORY, "no memory for a connection to rank %d", r->leader);
        r->no_fd |= error == EMFILE;
        if (r->no_fd && !r->own_table)
            return RONDO_ERR_SYSTEM;
        r->dial_error = error; /* no port, no memory, no descriptor on the whole host: that passes */
    }
    if (rd_agree_shrink_gone(error)) {
        r->leader++;
        r->again_ms = 0;
        r->dial_error = 0;
    }
    return RONDO_SUCCESS;
}

static void state(rd_agree_shrink_t *r)
{
    r->state_sent = rd_chan_send(r->up, RD_REC_STATE, &r->mine, sizeof(r->mine)) == 0;
}

/* Takes in a part of a list. Returns true if the list is complete. */
static bool on_list(rd_agree_shrink_t *r, const unsigned char *data, size_t bytes)
{
    const size_t head = offsetof(rd_agree_shrink_list_t, bits), all = ((size_t)r->nranks + 7) / 8;
    rd_agree_shrink_list_t part;
    if (bytes <= head || bytes > sizeof(part))
        return false;
    memcpy(&part, data, bytes);
    if (part.round <= r->mine.round || part.offset < 0 || (part.offset && (size_t)part.offset != r->have) ||
        bytes - head > all - (size_t)part.offset)
        return false;
    memcpy(r->bits + part.offset, part.bits, bytes - head);
    r->have = (size_t)part.offset + bytes - head;
    if (r->have < all || !(r->bits[r->rank / 8] >> r->rank % 8 & 1))
        return false;
    r->mine.round = part.round;
    r->mine.standing = RD_STANDS_OUTSIDE;
    rd_agree_shrink_list(r);
    return true;
}

static rondo_result_t on_fail(rd_agree_shrink_t *r, const unsigned char *data, size_t bytes)
{
    rd_fail_t said;
    if (bytes != sizeof(said))
        return RONDO_SUCCESS;
    memcpy(&said, data, bytes);
    said.text[sizeof(said.text) - 1] = 0;
    if (said.code <= RONDO_IN_PROGRESS || said.code > RD_LAST_RESULT)
        said.code = RONDO_ERR_REMOTE;
    return rd_error(r->boot->ctx, (rondo_result_t)said.code, "%s", said.text);
}

/* Reads what the leader has sent. Returns true if that was a verdict or an error. */
static bool listen_up(rd_agree_shrink_t *r, rd_agree_shrink_verdict_t *verdict, rondo_result_t *result)
{
    const unsigned char *data;
    size_t bytes;
    int32_t round;
    int type;
    *result = RONDO_SUCCESS;
    while (rd_chan_next(r->up, &type, &data, &bytes)) {
        if (type == RD_REC_LIST && on_list(r, data, bytes)) {
            *verdict = RD_AGREE_SHRINK_LIST;
            return true;
        }
        if (type == RD_REC_FAIL && (*result = on_fail(r, data, bytes)) != RONDO_SUCCESS)
            return true;
        if (bytes != sizeof(round))
            continue;
        memcpy(&round, data, sizeof(round));
        if (round != r->mine.round || r->mine.standing < RD_STANDS_MADE)
            continue;
        *verdict = RD_AGREE_SHRINK_KEEP;
        if (type == RD_REC_KEEP)
            return true;
        if (type == RD_REC_PREPARE) {
            r->mine.standing = RD_STANDS_READY;
            state(r);
        }
    }
    return false;
}

static void what_is_awaited(const rd_agree_shrink_t *r, char *text, size_t bytes)
{
    const char *whois = rd_boot_whois(r->boot, r->leader);

    if (r->dial_error)
        snprintf(text, bytes, "rank %d (%s) could not be reached (%s)", r->leader, whois,
                 rd_fd_strerror(r->dial_error));
    else
        snprintf(text, bytes, "rank %d (%s) lives and did not come", r->leader, whois);
}

static rondo_result_t follow(rd_agree_shrink_t *r, rd_agree_shrink_verdict_t *verdict)
{
    char awaited[RD_WHOIS + 128];
    rondo_result_t result = RONDO_SUCCESS;
    while (r->leader < r->rank) {
        if ((result = reach(r)))
            return result;
        if (r->up && r->up->state == RD_CHAN_OPEN) {
            if (!r->state_sent)
                state(r);
            if (listen_up(r, verdict, &result))
                return result;
        }
        what_is_awaited(r, awaited, sizeof(awaited));
        if ((result = rd_agree_shrink_check(r, awaited)))
            return result;
        struct pollfd p = {.fd = r->up ? r->up->fd : -1, .events = r->up ? rd_chan_events(r->up) : 0};
        poll(&p, 1, r->up ? RD_BOOT_SLICE_MS : AGAIN_MS);
    }
    return rd_agree_shrink_lead(r, verdict);
}

void rd_agree_shrink_keep(rd_agree_shrink_t *r)
{
    rd_fd_close(r->boot->listener);
    r->boot->listener = -1;
}

/* What a rank without descriptors does on a thread that has some. */
typedef struct {
    rd_agree_shrink_t *agreement;
    rd_agree_shrink_verdict_t *verdict;
    rondo_result_t result;
    char sentence[RD_ERROR_BYTES];
} own_table_t;

static void drop(rd_agree_shrink_t *r)
{
    hang_up(r);
    rd_agree_shrink_lead_end(r);
}

static void *follow_by_own_table(void *arg)
{
    own_table_t *a = arg;
    rd_agree_shrink_t *r = a->agreement;

    if (rd_fd_own_table(&(int){r->boot->listener}, 1) == 0)
        a->result = follow(r, a->verdict);
    else
        a->result = rd_error(r->boot->ctx, RONDO_ERR_SYSTEM, "%s", r->mine.why);
    drop(r); /* what this thread has opened is no descriptor of the process */
    snprintf(a->sentence, sizeof a->sentence, "%s", rd_thread_error());
    return NULL;
}

/* The connections that this rank had end, and are made again: who follows dials until the leader is gone. */
static rondo_result_t go_on_by_own_table(rd_agree_shrink_t *r, rd_agree_shrink_verdict_t *verdict)
{
    own_table_t a = {.agreement = r, .verdict = verdict};
    pthread_t thread;

    drop(r);
    r->own_table = true;
    r->mine.spare = 0;
    snprintf(r->mine.why, sizeof(r->mine.why), "cannot connect to the other ranks: %s", rd_fd_strerror(EMFILE));
    if (rd_thread_start(&thread, follow_by_own_table, &a) != 0)
        return rd_error(r->boot->ctx, RONDO_ERR_SYSTEM, "%s", r->mine.why);
    pthread_join(thread, NULL);
    if (a.result != RONDO_SUCCESS)
        rd_thread_error_set(a.sentence);
    return a.result;
}

rondo_result_t rd_agree_shrink_next(rd_agree_shrink_t *r, rondo_result_t made, rd_agree_shrink_verdict_t *verdict)
{
    if (r->nmembers) {
        r->mine.standing = made == RONDO_SUCCESS ? RD_STANDS_MADE : RD_STANDS_FAILED;
        r->mine.code = made;
    }
    if (made != RONDO_SUCCESS)
        snprintf(r->mine.why, sizeof(r->mine.why), "%s", rd_thread_error());
    r->state_sent = 0;
    if (r->own_table && r->nmembers == 1) { /* nobody else is left, and there is no descriptor to look for others */
        *verdict = RD_AGREE_SHRINK_KEEP;
        return made;
    }
    rondo_result_t result = follow(r, verdict);
    return result != RONDO_SUCCESS && r->no_fd && !r->own_table ? go_on_by_own_table(r, verdict) : result;
}
