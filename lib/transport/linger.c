/* The thread of networks that linger: see linger.h. */
#include "transport/linger.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/fork.h"
#include "base/thread.h"
#include "base/wait.h"

#define MOST 16         /* this many networks linger for as long as it takes */
#define LIMIT_MS 2000   /* the most time for others, and at the end of the process */
#define NAP_MOST_MS 100 /* pauses grow from 1 ms to this */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of these; held during turns */
static rd_linger_t *all;                                 /* the youngest first */
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

/* Closes the networks that have finished. */
static void turn(int64_t now)
{
    rd_linger_t **at = &all;
    for (int position = 0; *at; position++) {
        rd_linger_t *one = *at;
        bool over = one->poll(one);
        bool late = (until_ms != 0 && now > until_ms) || (position >= MOST && now - one->left_ms > LIMIT_MS);
        if (late || over) {
            *at = one->next;
            one->end(one);
        } else {
            at = &one->next;
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

static const rd_fork_handlers_t at_fork = {.prepare = fork_prepare, .parent = fork_parent, .child = fork_child};

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

bool rd_linger_begin(rd_linger_t *linger)
{
    rd_fork_register(RD_FORK_LINGER, &at_fork);
    pthread_mutex_lock(&lock);
    bool begun = begin();
    if (begun) {
        linger->detach(linger);
        linger->next = all;
        all = linger;
    }
    pthread_mutex_unlock(&lock);
    return begun;
}
