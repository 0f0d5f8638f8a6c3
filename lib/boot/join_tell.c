/* A rank that cannot join tells the others, so that nobody waits for it until the deadline: through the rendezvous,
 * which it may have to dial for nothing else, and the neighbours that it has reached. */
#include "boot/join_int.h"

#include <poll.h>
#include <sched.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "boot/registry.h"

#define ALONE_MS 5000 /* the most time to reach it with what no other rank knows: its process may wait for a core */
#define FAILED_MS 500 /* for which a caller that fails waits until that is told; then a thread goes on without it */

/* A rank that has failed because another one is gone, and does not know its number, blames nobody: its sentence does.
 * One whose own thread aborts is itself the cause. */
static int to_blame(const rd_joining_t *j)
{
    if (j->code == RONDO_ERR_ABORTED)
        return j->b->rank;
    return j->code == RONDO_ERR_REMOTE && j->failed_rank == j->b->rank ? -1 : j->failed_rank;
}

static void tell_rendezvous(rd_joining_t *j)
{
    rd_fail_t said;
    if (!rd_dial_open(&j->rendezvous) || j->from_rendezvous)
        return;
    memset(&said, 0, sizeof(said));
    said.code = j->code == RONDO_ERR_ABORTED ? RONDO_ERR_REMOTE : j->code;
    said.failed_rank = to_blame(j);
    memcpy(said.text, j->text, sizeof(said.text));
    if (j->code == RONDO_ERR_ABORTED)
        snprintf(said.text, sizeof(said.text), "aborted while the communicator was made");
    rd_chan_send(j->rendezvous.chan, RD_REC_FAIL, &said, sizeof(said));
}

/* One of them may have left the rendezvous. */
static void tell_neighbours(const rd_joining_t *j)
{
    rd_failure_t failure = {.code = j->code, .said = j->code, .failed_rank = to_blame(j)};

    snprintf(failure.text, sizeof failure.text, "%s", j->text);
    rd_boot_say(j->b, &failure);
}

/* For how long a rank goes on that has to tell what no other one knows. Its caller waits meanwhile: not for longer than
 * all of the creation may take, nor when an abort has ended it. */
static int64_t tell_ms(const rd_joining_t *j)
{
    const int64_t most = j->env->create_timeout_ms;

    if (j->code == RONDO_ERR_ABORTED || (most > 0 && most < RD_JOIN_TELL_MS))
        return RD_JOIN_TELL_MS;
    return most > 0 && most < ALONE_MS ? most : ALONE_MS;
}

/* An abort, or other news, that comes meanwhile leaves only a moment. */
static bool is_over(rd_joining_t *j, int64_t until)
{
    const int64_t now = rd_clock_ms();

    if (j->b->stop && !j->stopped_ms && rd_stop_get(j->b->stop) != RONDO_SUCCESS)
        j->stopped_ms = now;
    return now >= until || (j->stopped_ms && now - j->stopped_ms >= RD_JOIN_TELL_MS) ||
           (j->served && rd_served_cancelled(j->served));
}

/* Dials the rendezvous only to tell it of a failure, for a while at most. Without this the others wait for their
 * deadline. Where nobody listens any more, that is found at once. */
static void dial_and_tell(rd_joining_t *j, int64_t ms)
{
    int64_t until = rd_clock_ms() + ms;
    struct pollfd p = {.events = POLLIN};
    rd_dial_t *d = &j->rendezvous;

    d->cancel_ms = until;
    while (!rd_dial_open(d) && !is_over(j, until) && !rd_dial_pump(d, &j->b->id.creds)) {
        p.fd = d->chan ? d->chan->fd : -1;
        if (!rd_sock_poll(&p, 1, 5))
            sched_yield();
    }
    if (!rd_dial_open(d))
        return;
    rd_join_say(j);
    tell_rendezvous(j);
    while (rd_chan_queued(d->chan) && !rd_chan_over(d->chan) && !is_over(j, until))
        rd_chan_pump(d->chan);
}

/* Until it has said so to all the connection stays: then the sentence was not lost with it. */
static void dial_anew(rd_joining_t *j, const rd_dial_t *before)
{
    rd_dial_begin(&j->rendezvous, &before->addr, &before->hello);
    dial_and_tell(j, tell_ms(j));
    if (rd_dial_open(&j->rendezvous)) {
        struct pollfd p = {.fd = j->rendezvous.chan->fd, .events = POLLIN};
        poll(&p, 1, RD_JOIN_TELL_MS);
    }
    rd_chan_free(j->rendezvous.chan);
    j->rendezvous.chan = NULL;
}

/* On a thread of its own: takes the failure of a rank to the rendezvous that this rank has no descriptor left to dial.
 */
static void *tell_by_own_table(void *arg)
{
    const rd_joining_t *failed = arg;
    rd_joining_t j = {.b = failed->b, .env = failed->env, .code = failed->code, .failed_rank = failed->failed_rank};

    if (rd_fd_own_table(NULL, 0) != 0)
        return NULL;
    memcpy(j.text, failed->text, sizeof j.text);
    dial_anew(&j, &failed->rendezvous);
    return NULL;
}

/* A last word to a rendezvous, and the thread that takes it there. */
typedef struct {
    rd_served_t served;
    rd_env_t env;
    rd_joining_t joining;
} last_word_t;

static void turn_away(rd_joining_t *j, int64_t ms)
{
    const rd_hello_t hello = {.purpose = RD_FOR_MEETING, .rank = j->b->rank, .nranks = j->b->nranks};

    rd_dial_begin(&j->rendezvous, &j->b->id.addr, &hello);
    dial_and_tell(j, ms);
    rd_chan_free(j->rendezvous.chan);
    rd_boot_destroy(j->b);
}

static void *turn_away_behind(void *arg)
{
    last_word_t *word = arg;

    turn_away(&word->joining, tell_ms(&word->joining));
    rd_served_done(&word->served);
    return NULL;
}

void rd_boot_turn_away(rd_boot_t *b, const rd_env_t *env, rondo_result_t code, int failed_rank, const char *text)
{
    last_word_t *word = calloc(1, sizeof *word);
    rd_joining_t j = {.b = b, .env = env, .code = code, .failed_rank = failed_rank};
    unsigned char job[sizeof word->served.job];

    rd_served_reap(); /* who only joins makes no id, which would */
    snprintf(j.text, sizeof j.text, "%s", text);
    randombytes_buf(job, sizeof job);
    if (word) {
        word->env = *env;
        word->joining = j;
        word->joining.env = &word->env;
        word->joining.served = &word->served;
        memcpy(word->served.job, job, sizeof job);
    }
    if (word && rd_served_start(&word->served, turn_away_behind) == 0) {
        rd_served_finish(job, FAILED_MS, NULL);
        return;
    }
    free(word);
    turn_away(&j, FAILED_MS);
}

/* Without a thread the last descriptor will do, if there is one: none that is left is enough for a communicator. */
static void tell_without_descriptors(rd_joining_t *j)
{
    const rd_dial_t before = {.addr = j->rendezvous.addr, .hello = j->rendezvous.hello};
    pthread_t thread;

    rd_chan_free(j->rendezvous.chan);
    j->rendezvous.chan = NULL;
    if (rd_thread_start(&thread, tell_by_own_table, j) == 0)
        pthread_join(thread, NULL);
    else
        dial_anew(j, &before);
}

/* The rendezvous of this process hears from boot.c. */
static void tell_undialled(rd_joining_t *j)
{
    if (rd_dial_open(&j->rendezvous) || rd_rendezvous_is_here(&j->b->id))
        return;
    if (j->no_fd)
        tell_without_descriptors(j);
    else if (j->no_poll)
        dial_and_tell(j, tell_ms(j));
}

void rd_join_tell(rd_joining_t *j)
{
    tell_undialled(j);
    tell_rendezvous(j);
    tell_neighbours(j);
}
