/* After creation: how a rank leaves, and how its neighbours learn of it.
 *
 * A rank that leaves in order sends a farewell. A rank that has failed, or has learnt of a failure, sends a farewell
 * that names the rank to blame. A rank that dies sends nothing, and its sockets end. Each rank that hears of a failure
 * passes it on once, with the number of the rank that found it out, so all ranks know after at most log2(n) hops. If
 * the rank that found it out is itself to blame, because it can no longer receive, they have its name too. */
#include "boot/boot_int.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static bool has_died(const rd_boot_t *b, int rank)
{
    return rd_boot_is_dead(b, rank) && !rd_boot_is_lost(b, rank);
}

void rd_boot_report(const rd_boot_t *b, int from, rd_failure_t *f)
{
    const int failed_rank = f->failed_rank;
    const rondo_result_t said = f->said;
    int first = f->reporter > 0 && f->reporter <= b->nranks && f->reporter - 1 != failed_rank ? f->reporter - 1 : from;
    const char *said_by = rd_boot_whois(b, first), *ctx = rd_boot_whois(b, failed_rank);
    const size_t size = sizeof f->text;

    f->died = said == RONDO_ERR_REMOTE && failed_rank != b->rank && has_died(b, failed_rank);
    f->code = f->said = said == RONDO_ERR_TIMEOUT && failed_rank != from ? RONDO_ERR_TIMEOUT : RONDO_ERR_REMOTE;
    if (f->died)
        rd_death_text(failed_rank, ctx, f->text, size);
    else if (failed_rank == from && said == RONDO_ERR_ABORTED)
        rd_abort_text(failed_rank, ctx, f->text, size);
    else if (failed_rank == from)
        snprintf(f->text, size, "rank %d (%s) %s", failed_rank, ctx,
                 said == RONDO_ERR_TIMEOUT ? "gave up waiting" : "has failed");
    else if (said == RONDO_ERR_TIMEOUT) /* the rank is alive, as far as is known */
        snprintf(f->text, size, "rank %d (%s) did not come in time, as rank %d (%s) reports", failed_rank, ctx, first,
                 said_by);
    else if (failed_rank == b->rank) /* a network that is cut in one direction: this rank receives from the others, and
                                        they do not receive from it */
        snprintf(f->text, size, "rank %d (%s) reports that rank %d (%s) was lost: nothing of it arrives any more",
                 first, said_by, failed_rank, ctx);
    else
        snprintf(f->text, size, "rank %d (%s) failed, or the connection to it was lost, as rank %d (%s) reports",
                 failed_rank, ctx, first, said_by);
}

/* The record by which a rank leaves. A sentence, without its terminating zero, follows a code that means something only
 * with it: a mismatch, the reason why a rank could not make the communicator, or the end of a rendezvous. It also
 * follows the word of one rank that another one is late, or lost for another reason than a death, so that all say the
 * same of that. */
typedef struct __attribute__((packed)) farewell {
    int32_t code, failed_rank, reporter;
    char text[RD_ERROR_BYTES];
} farewell_t;

#define SHORT offsetof(farewell_t, text)

bool rd_boot_says_why(int code)
{
    return code != RONDO_SUCCESS && code != RONDO_ERR_REMOTE && code != RONDO_ERR_TIMEOUT && code != RONDO_ERR_ABORTED;
}

/* A rank that has failed because of another one, and does not know its number, has only a sentence. */
static bool blames_nobody(const farewell_t *said)
{
    return said->code == RONDO_ERR_REMOTE && said->failed_rank < 0;
}

static bool says_who_is_late(const farewell_t *said)
{
    return said->code == RONDO_ERR_TIMEOUT && said->failed_rank != said->reporter - 1;
}

/* Why a connection to that rank was lost, its finder alone knows. */
static bool says_who_is_lost(const farewell_t *said)
{
    return said->code == RONDO_ERR_REMOTE && said->failed_rank >= 0;
}

void rd_boot_stop(rd_stop_t *stop, rd_log_ctx_t *ctx, const rd_failure_t *news, bool advised)
{
    rd_failure_t failure = *news;

    if (advised && !rd_error_is_common(news->code) && news->code != RONDO_ERR_TIMEOUT)
        rd_failure_advise(&failure);
    rd_stop_heard(stop, ctx, &failure);
}

rondo_result_t rd_boot_heard(rd_boot_t *b, rd_neighbour_t *from, const unsigned char *data, size_t bytes,
                             rd_boot_news_t *news)
{
    farewell_t said = {0};
    if (bytes < SHORT || bytes >= sizeof said)
        return RONDO_SUCCESS;
    memcpy(&said, data, bytes);
    /* A rank that leaves over a mismatch and does not say which has sent all that the others need to find it
     * themselves, with the same words. */
    if (said.code == RONDO_SUCCESS || (said.code == RONDO_ERR_MISMATCH && bytes == SHORT)) {
        from->left = 1;
        return RONDO_SUCCESS;
    }
    rd_failure_t *f = &news->failure;
    f->failed_rank = said.failed_rank >= 0 && said.failed_rank < b->nranks ? said.failed_rank : from->rank;
    f->reporter = said.reporter > 0 && said.reporter <= b->nranks ? said.reporter : from->rank + 1;
    f->said = said.code;
    bool late = says_who_is_late(&said);
    if ((rd_boot_says_why(said.code) || blames_nobody(&said) || late) && bytes > SHORT) {
        memcpy(f->text, said.text, sizeof f->text);
        if (blames_nobody(&said) || (late && said.failed_rank < 0))
            f->failed_rank = -1;
        return f->code = rd_error_is_common(said.code) || late ? said.code : RONDO_ERR_REMOTE;
    }
    const bool lost = says_who_is_lost(&said) && bytes > SHORT;
    rd_boot_report(b, from->rank, f);
    if (lost && !f->died)
        memcpy(f->text, said.text, sizeof f->text);
    return f->code;
}

void rd_boot_ask_who_lives(rd_boot_t *b, bool (*lives)(const void *arg, int rank), const void *arg)
{
    pthread_mutex_lock(&b->lock);
    b->lives = lives;
    b->lives_arg = arg;
    pthread_mutex_unlock(&b->lock);
}

/* What a connection that has ended says of its rank. A process that ends closes it, and then nothing is left to be read
 * here; on one host nothing else ends it but the program, on either side, or its place being taken by another program.
 * From another host a reset comes, too, when that host has heard nothing of
 * this one for five seconds, or from something on the way, and the process goes on. */
static rd_silence_t silence_text(const rd_boot_t *b, int rank, const rd_chan_t *chan, char *text, size_t size)
{
    const bool reset = chan->error == ECONNRESET || chan->error == EPIPE;
    const char *whois = rd_boot_whois(b, rank);

    switch (chan->error) {
    case EBADF:
    case ENOTSOCK:
        snprintf(
            text, size,
            "rank %d (%s) cannot be heard by rank %d any more, whose program has closed descriptors that are not its "
            "own, as closefrom(3) does",
            rank, whois, b->rank);
        return RD_SILENCE_CUT;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        snprintf(
            text, size,
            "rank %d (%s) is cut off from rank %d: its host or the network to it has not answered for five seconds",
            rank, whois, b->rank);
        return RD_SILENCE_CUT;
    case ENOBUFS:
    case ENOMEM:
        snprintf(
            text, size,
            "rank %d (%s) cannot be heard by rank %d any more, whose host's kernel has no memory for the connection",
            rank, whois, b->rank);
        return RD_SILENCE_CUT;
    default:
        if ((chan->error == 0 || (reset && !chan->far)) && b->lives && b->lives(b->lives_arg, rank)) {
            snprintf(text, size,
                     "rank %d (%s) has closed its connections, though its process goes on: its program has closed "
                     "descriptors that are not its own, as closefrom(3) does, or executes another program",
                     rank, whois);
            return RD_SILENCE_CUT;
        }
        if (chan->error == 0 || (reset && !chan->far)) {
            rd_death_text(rank, whois, text, size);
            return RD_SILENCE_DEATH;
        }
        snprintf(text, size,
                 "the connection to rank %d (%s) from rank %d was lost: %s; the process of rank %d may have ended",
                 rank, whois, b->rank, reset ? "it was reset" : strerror(chan->error), rank);
        return RD_SILENCE_BREAK;
    }
}

bool rd_boot_heard_of(rd_boot_t *b, int type, const unsigned char *data, size_t bytes)
{
    if (type == RD_REC_DEATH || type == RD_REC_LOST || type == RD_REC_LEFT)
        rd_boot_heard_gone(b, type, data, bytes);
    else if (type == RD_REC_NAME)
        rd_boot_heard_name(b, data, bytes);
    else if (type == RD_REC_LETTER)
        rd_boot_heard_letter(b, data, bytes);
    else
        return false;
    return true;
}

rondo_result_t rd_boot_hear(rd_boot_t *b, rd_neighbour_t *from, rd_boot_news_t *news)
{
    const unsigned char *data;
    size_t bytes;
    int type;
    while (rd_chan_next(from->chan, &type, &data, &bytes)) {
        if (type == RD_REC_DATA || type == RD_REC_CALL) { /* it belongs to an exchange that has yet to begin here */
            rd_chan_put_back(from->chan);
            return RONDO_SUCCESS;
        }
        rondo_result_t code =
            rd_boot_heard_of(b, type, data, bytes) ? RONDO_SUCCESS : rd_boot_heard(b, from, data, bytes, news);
        if (code)
            return code;
    }
    if (!rd_chan_over(from->chan) || from->left)
        return RONDO_SUCCESS;
    rd_failure_t *f = &news->failure;
    *f = (rd_failure_t){.code = RONDO_ERR_REMOTE, .said = RONDO_ERR_REMOTE, .failed_rank = from->rank};
    news->silent = silence_text(b, from->rank, from->chan, f->text, sizeof f->text);
    f->died = news->silent == RD_SILENCE_DEATH;
    return f->code;
}

/* Also to those that have left themselves: one whose modules are still ending hears this rank, and would take the end
 * of its connection for a death, which its farewells over the network then pass on. */
static void say_to_all(rd_boot_t *b, const farewell_t *said, size_t bytes)
{
    b->said = 1;
    b->parted |= said->code == RONDO_SUCCESS;
    for (int k = 0; k < 2 * b->rounds; k++) {
        rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        if (!one->chan)
            continue;
        if (said->failed_rank >= 0) {
            rd_boot_say_name(b, one->chan, said->failed_rank);
            rd_boot_say_name(b, one->chan, said->reporter - 1);
        }
        rd_chan_send(one->chan, RD_REC_FAREWELL, said, bytes);
    }
}

/* Whoever passes a death on may have it from the others of its node, and not have seen itself that the process ended.
 */
static void say_death(rd_boot_t *b, const farewell_t *said, bool died)
{
    const int rank = said->failed_rank;

    if (said->code != RONDO_ERR_REMOTE || rank < 0 || rank == b->rank || rank >= b->nranks || !b->rounds)
        return;
    if (died || has_died(b, rank))
        rd_boot_say_died(b, rank);
}

/* What is said has a sentence, and whether that is of a death; or both are in the stop word. */
static void say_first(rd_boot_t *b, const rd_failure_t *failure)
{
    farewell_t said = {failure->said, failure->failed_rank, rd_reporter(failure->reporter, b->rank), ""};
    size_t bytes = SHORT;
    rd_failure_t stands = {.failed_rank = -1};
    rondo_result_t stopped = rd_stop_read(b->stop, &stands);
    const char *text = failure->text;
    /* Leaving after a failure is not leaving in order; but the others find a mismatch or a missed deadline themselves.
     */
    if (said.code == RONDO_SUCCESS && stopped && stopped != RONDO_ERR_MISMATCH && stopped != RONDO_ERR_TIMEOUT) {
        said.code = stopped;
        said.failed_rank = stands.failed_rank;
        said.reporter = rd_reporter(stands.reporter, b->rank);
        text = stands.text;
    }
    const bool died = *failure->text ? failure->died : stands.died && stands.failed_rank == said.failed_rank;
    const bool lost = says_who_is_lost(&said) && !died;
    bool late = says_who_is_late(&said);
    if ((rd_boot_says_why(said.code) || blames_nobody(&said) || late || lost) && *text) {
        if (!rd_error_is_common(said.code) && !late && !lost &&
            said.failed_rank == b->rank) /* of others the sentence says so */
            snprintf(said.text, sizeof said.text, "rank %d (%s): %.*s", b->rank, rd_boot_whois(b, b->rank),
                     RD_ERROR_BYTES - 100, text);
        else
            snprintf(said.text, sizeof said.text, "%s", text);
        bytes += strlen(said.text);
    }
    say_death(b, &said, died);
    say_to_all(b, &said, bytes);
}

/* What a rank says of a failure is said once. That it leaves is said then, too, before its modules end, which may take
 * seconds: its lifelines end before its connections do, and others wait for it in a shrink. */
void rd_boot_say(rd_boot_t *b, const rd_failure_t *failure)
{
    const farewell_t parting = {.code = RONDO_SUCCESS, .failed_rank = -1};

    if (!b->said)
        say_first(b, failure);
    if (failure->said == RONDO_SUCCESS && !b->parted)
        say_to_all(b, &parting, SHORT);
}

void rd_boot_farewell(rd_boot_t *b, rondo_result_t code, int failed_rank)
{
    const rd_failure_t failure = {.code = code, .said = code, .failed_rank = failed_rank};

    rd_boot_pass_on(b, &failure);
}

void rd_boot_pass_on(rd_boot_t *b, const rd_failure_t *failure)
{
    pthread_mutex_lock(&b->lock);
    if (b->busy && !b->parting_set) { /* the first one stands */
        b->parting = *failure;
        b->parting_set = 1;
    } else if (!b->busy) {
        rd_boot_say(b, failure);
    }
    pthread_mutex_unlock(&b->lock);
}

void rd_boot_farewell_alike(rd_boot_t *b)
{
    rd_boot_farewell(b, RONDO_ERR_MISMATCH, b->rank);
}

int rd_boot_sockets(const rd_boot_t *b, int *fds, int *ranks, int most)
{
    int n = 0;
    for (int k = 0; k < 2 * b->rounds && n < most; k++) {
        const rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        fds[n] = one->chan->fd;
        ranks[n++] = one->rank;
    }
    return n;
}

rondo_result_t rd_boot_socket_ready(rd_boot_t *b, int fd, rd_boot_news_t *news)
{
    rondo_result_t code = RONDO_SUCCESS;
    memset(news, 0, sizeof(*news));
    pthread_mutex_lock(&b->lock);
    for (int k = 0; k < 2 * b->rounds && !b->busy; k++) {
        rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        if (one->chan->fd != fd)
            continue;
        rd_chan_pump(one->chan);
        code = rd_boot_hear(b, one, news);
        news->left = one->left;
        break;
    }
    pthread_mutex_unlock(&b->lock);
    return code;
}

bool rd_boot_has_left(rd_boot_t *b, int rank)
{
    bool left = false;
    pthread_mutex_lock(&b->lock);
    for (int k = 0; k < 2 * b->rounds; k++) {
        const rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        left |= one->rank == rank && one->left;
    }
    pthread_mutex_unlock(&b->lock);
    return left;
}

rondo_result_t rd_boot_check(rd_boot_t *b)
{
    rondo_result_t code = rd_stop_get(b->stop);
    rd_boot_news_t news = {0};
    pthread_mutex_lock(&b->lock);
    for (int k = 0; k < 2 * b->rounds && !b->busy && !code; k++) {
        rd_neighbour_t *one = k % 2 ? &b->to[k / 2] : &b->from[k / 2];
        rd_chan_pump(one->chan);
        code = rd_boot_hear(b, one, &news);
        if (code == RONDO_SUCCESS)
            continue;
        rd_boot_say(b, &news.failure);
        rd_boot_stop(b->stop, b->ctx, &news.failure, false);
    }
    pthread_mutex_unlock(&b->lock);
    return code;
}
