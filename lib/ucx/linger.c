/* Networks that outlive their communicators: the rank has left in order, and a live peer has yet to take what was sent
 * to it. A thread, which exists as long as there is such a network, polls them with growing pauses, and closes each
 * when everything has been taken or no peer is left to take it.
 *
 * A network comes here with all that UCX still uses, and without anything of the communicator's or the user's. At the
 * end of the process the networks here get two more seconds. Each one before the last few gets no more time in any
 * case, lest a process that ends many communicators keeps them all. A forked child has none of them; but UCX does not
 * work in a child of a process that has a network, so a fork waits for that long as well. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fork.h"
#include "base/thread.h"
#include "ucx/ucx.h"

#define MOST 16         /* this many networks linger for as long as it takes */
#define LIMIT_MS 2000   /* the most time for others, and at the end of the process */
#define NAP_MOST_MS 100 /* pauses grow from 1 ms to this */
#define POLLS 1000      /* the most polls of one network in a turn */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of these; held during turns */
static rd_ucx_net_t *all;                                /* the youngest first */
static pthread_t thread;
static int runs;         /* the thread runs, and will poll again */
static int joined = 1;   /* the thread was joined, or there is none */
static int registered;   /* at_exit is registered */
static int64_t nap_ms;   /* the next pause */
static int64_t until_ms; /* the time limit at the end of the process; 0: the process is not ending */

static void nap(int64_t ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    pthread_mutex_unlock(&lock);
    nanosleep(&time, NULL);
    pthread_mutex_lock(&lock);
}

/* A peer that greets the network meanwhile gets its farewell. */
static void poll_one(rd_ucx_net_t *net)
{
    for (int i = 0; i < POLLS && rd_ucp.worker_progress(net->worker) != 0; i++)
        continue;
    rd_ucx_rndv_advance(net);
    rd_ucx_say_bye(net, 0);
}

/* Closes the networks that have finished. */
static void turn(int64_t now)
{
    rd_ucx_net_t **at = &all;
    for (int position = 0; *at; position++) {
        rd_ucx_net_t *net = *at;
        poll_one(net);
        int late = (until_ms != 0 && now > until_ms) || (position >= MOST && now - net->left_ms > LIMIT_MS);
        if (late || !rd_ucx_unread(net)) {
            *at = net->alone->next;
            rd_ucx_end(net);
        } else {
            at = &net->alone->next;
        }
    }
}

static void *run(void *arg)
{
    pthread_mutex_lock(&lock);
    for (turn(rd_clock_ms()); all; turn(rd_clock_ms())) {
        nap(nap_ms);
        nap_ms = nap_ms < NAP_MOST_MS / 2 ? 2 * nap_ms : NAP_MOST_MS;
    }
    runs = 0;
    pthread_mutex_unlock(&lock);
    return arg;
}

/* ---- the end of the process, and forks */

/* A network that is added while this waits, by a thread that ends a communicator now, gets no more time than the
 * others; and a network that the thread does not see any more registers this function again. */
static void at_exit(void)
{
    pthread_mutex_lock(&lock);
    pthread_t its = thread;
    int joins = !joined;
    registered = 0;
    joined = 1;
    until_ms = rd_clock_ms() + LIMIT_MS;
    nap_ms = 1;
    pthread_mutex_unlock(&lock);
    if (joins)
        pthread_join(its, NULL);
    pthread_mutex_lock(&lock);
    until_ms = 0;
    pthread_mutex_unlock(&lock);
}

static void fork_prepare(void)
{
    int64_t until = rd_clock_ms() + LIMIT_MS; /* whichever networks come to linger meanwhile */
    pthread_mutex_lock(&lock);
    while (all && rd_clock_ms() - all->left_ms <= LIMIT_MS && rd_clock_ms() <= until)
        nap(1);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The thread stayed in the parent. */
static void fork_child(void)
{
    all = NULL;
    runs = 0;
    joined = 1;
    until_ms = 0;
    pthread_mutex_unlock(&lock);
}

static const rd_fork_handlers_t at_fork = {fork_prepare, fork_parent, fork_child};

/* ---- the callers */

/* The caller holds the lock, which the thread no longer takes once it has found nothing more to do. */
static bool begin(void)
{
    if (!registered && atexit(at_exit) != 0)
        return false;
    registered = 1;
    nap_ms = 1;
    if (runs)
        return true;
    if (!joined)
        pthread_join(thread, NULL);
    runs = rd_thread_start(&thread, run, NULL) == 0;
    joined = !runs;
    return runs;
}

/* Gives the communicator's and the user's memory back to them. */
static void detach(rd_ucx_net_t *net, rd_ucx_alone_t *alone)
{
    alone->ctx = (rd_log_ctx_t){.rank = net->ctx->rank, .nranks = net->ctx->nranks};
    memcpy(alone->ctx.name, net->ctx->name, sizeof alone->ctx.name);
    for (int r = 0; r < net->nranks; r++) {
        for (int c = 0; c < net->peers[r].nconns; c++) {
            if (net->peers[r].conns[c]) {
                net->peers[r].conns[c]->send = NULL;
                net->peers[r].conns[c]->recv = NULL;
            }
        }
    }
    rd_ucx_gdr_free(net);
    net->ctx = &alone->ctx;
    net->stop = &alone->stop;
    net->boot = NULL;
    net->alone = alone;
}

bool rd_ucx_linger(rd_ucx_net_t *net)
{
    rd_ucx_alone_t *alone = calloc(1, sizeof *alone);
    if (!alone)
        return false;
    rd_fork_register(RD_FORK_LINGER, &at_fork);
    pthread_mutex_lock(&lock);
    int begun = begin();
    if (begun) {
        detach(net, alone);
        alone->next = all;
        all = net;
    }
    pthread_mutex_unlock(&lock);
    if (!begun)
        free(alone);
    return begun;
}
