/* Networks that outlive their communicators: a rank has left in order, and a live peer has yet to take what it was
 * sent. A thread, which is there as long as such a network is, looks at them after naps that grow, and closes each when
 * everything has been taken or nobody is left to take it.
 *
 * A network comes here with all that UCX still uses, and without what was the communicator's or the user's. At the end
 * of the process what is here has two seconds more. So long has each in any case that comes before the last few, lest a
 * process that ends many communicators keeps them all. A forked child has none of it; but UCX does not work in a child
 * of a process that has a network, so for as long a fork waits as well.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fork.h"
#include "base/thread.h"
#include "ucx/ucx.h"

#define MOST 16         /* that linger for as long as it takes */
#define LIMIT_MS 2000   /* most time for others, and at the end of the process */
#define NAP_MOST_MS 100 /* from 1 on */
#define LOOKS 1000      /* at one network in a turn, at most */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of this; held during turns */
static rd_ucx_net_t *all;                                /* the youngest first */
static pthread_t thread;
static int runs;         /* the thread does, and will look again */
static int joined = 1;   /* or there is none */
static int registered;   /* for the end of the process */
static int64_t nap_ms;   /* the next one */
static int64_t until_ms; /* of the process's end; 0: it is not near */

static void nap(int64_t ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    pthread_mutex_unlock(&lock);
    nanosleep(&time, NULL);
    pthread_mutex_lock(&lock);
}

/* Who greets it meanwhile hears that it has left. */
static void look(rd_ucx_net_t *net)
{
    for (int i = 0; i < LOOKS && ucp_worker_progress(net->worker) != 0; i++)
        continue;
    rd_ucx_gdr_say(net);
    rd_ucx_say_bye(net, 0);
}

/* Closes those that are over. */
static void turn(int64_t now)
{
    rd_ucx_net_t **at = &all;
    for (int place = 0; *at; place++) {
        rd_ucx_net_t *net = *at;
        look(net);
        int late = (until_ms != 0 && now > until_ms) || (place >= MOST && now - net->left_ms > LIMIT_MS);
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

/* ---- the end of the process, and what forks */

/* What comes while it waits, from a thread that ends a communicator now, has no more time than the others; and what
 * the thread does not see any more registers it again. */
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
    int64_t until = rd_clock_ms() + LIMIT_MS; /* whatever comes to linger meanwhile */
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

/* ---- the others */

/* With the lock, which a thread that has found nothing more to do takes no more. */
static int begin(void)
{
    if (!registered && atexit(at_exit) != 0)
        return 0;
    registered = 1;
    nap_ms = 1;
    if (runs)
        return 1;
    if (!joined)
        pthread_join(thread, NULL);
    runs = rd_thread_start(&thread, run, NULL) == 0;
    joined = !runs;
    return runs;
}

/* What it had of the communicator and of the user's memory is theirs again. */
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

int rd_ucx_linger(rd_ucx_net_t *net)
{
    rd_ucx_alone_t *alone = calloc(1, sizeof *alone);
    if (!alone)
        return 0;
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
