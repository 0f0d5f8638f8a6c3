/* The proxy's thread: turns for all clients, one after another, so that none waits for another; see proxy.h.
 *
 * It stays awake for as long after anything has moved as its clients ask for: to be woken takes 40 to 90 microseconds
 * (a nap ends late by the kernel's slack of timers, and a core that sleeps has to wake up), which is as long as a
 * message of 256 KB is on its way. After that it sleeps for good where every client is idle. Where something may come
 * unannounced, from a kernel that a graph or a long queue of the user's will begin some time, it looks again after a
 * nap, of a tenth of the time for which nothing has moved, two milliseconds at most: so what has long been quiet costs
 * a few thousandths of a core. Where something is under way naps are shorter still.
 */
#define _GNU_SOURCE
#include "proxy.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "thread.h"

#define SLACK_NS 1000ul       /* by which naps may end late */
#define NAP_WAITING_NS 100000 /* at most */
#define NAP_DOZING_NS 2000000

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER; /* starting and ending the thread; taken before `lock` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the clients; held during turns */
static pthread_cond_t bell;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_t thread;
static rd_proxy_client_t *clients;
static int nclients, ending;
static int64_t awake_ns; /* after anything has moved: the most that a client asks for */
static _Atomic int asking;  /* threads that want the lock: the proxy would take it again at once */
static _Atomic int resting; /* the thread sleeps, or is about to */
static _Atomic int woken;   /* since it last looked */

static void fork_prepare(void)
{
    pthread_mutex_lock(&life);
    atomic_fetch_add(&asking, 1);
    pthread_mutex_lock(&lock);
    atomic_fetch_sub(&asking, 1);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&life);
}

static void bell_make(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&bell, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* The thread stayed in the parent. */
static void fork_child(void)
{
    clients = NULL;
    nclients = 0;
    resting = asking = woken = 0;
    bell_make();
    fork_parent();
}

static void begin_once(void)
{
    bell_make();
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- the thread ---- */

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* With the lock, which others may have meanwhile. ns < 0: until somebody rings. */
static void nap(int64_t now, int64_t ns)
{
    atomic_store(&resting, 1);
    if (!atomic_exchange(&woken, 0) && !ending) {
        if (ns < 0) {
            pthread_cond_wait(&bell, &lock);
        } else {
            struct timespec until = {(now + ns) / 1000000000, (now + ns) % 1000000000};
            pthread_cond_timedwait(&bell, &lock, &until);
        }
    }
    atomic_store(&resting, 0);
}

/* Lets go of the lock for who asks for it. */
static void make_way(void)
{
    if (!atomic_load(&asking))
        return;
    pthread_mutex_unlock(&lock);
    while (atomic_load(&asking))
        sched_yield();
    pthread_mutex_lock(&lock);
}

static void rest(rd_proxy_state_t state, int64_t now, int64_t quiet)
{
    int64_t most = state == RD_PROXY_WAITS ? NAP_WAITING_NS : NAP_DOZING_NS;

    if (quiet <= awake_ns)
        sched_yield();
    else if (state == RD_PROXY_IDLE)
        nap(now, -1);
    else
        nap(now, quiet / 10 < most ? quiet / 10 : most);
}

static void *run(void *arg)
{
    int64_t moved = now_ns();

    (void)arg;
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS);
    pthread_mutex_lock(&lock);
    while (!ending) {
        rd_proxy_state_t state = RD_PROXY_IDLE;
        int called = atomic_exchange(&woken, 0);
        for (rd_proxy_client_t *c = clients; c; c = c->next) {
            rd_proxy_state_t its = c->turn(c->arg);
            state = its > state ? its : state;
        }
        int64_t now = now_ns();
        if (state == RD_PROXY_MOVED || called)
            moved = now;
        else
            rest(state, now, now - moved);
        make_way();
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- the others ---- */

static int64_t most_awake(void)
{
    int64_t most = 0;

    for (const rd_proxy_client_t *c = clients; c; c = c->next)
        most = c->awake_us > most ? c->awake_us : most;
    return 1000 * most;
}

static int start(void)
{
    ending = 0;
    return rd_thread_start(&thread, run, NULL);
}

static void enter(void)
{
    atomic_fetch_add(&asking, 1);
    pthread_mutex_lock(&lock);
    atomic_fetch_sub(&asking, 1);
}

int rd_proxy_add(rd_proxy_client_t *client)
{
    int error = 0;

    pthread_once(&once, begin_once);
    pthread_mutex_lock(&life);
    if (nclients == 0)
        error = start();
    if (error == 0) {
        enter();
        nclients++;
        client->pid = getpid();
        client->next = clients;
        clients = client;
        awake_ns = most_awake();
        pthread_cond_signal(&bell);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&life);
    return error;
}

void rd_proxy_remove(rd_proxy_client_t *client)
{
    if (client->pid != getpid())
        return;
    pthread_mutex_lock(&life);
    enter();
    for (rd_proxy_client_t **at = &clients; *at; at = &(*at)->next) {
        if (*at == client) {
            *at = client->next;
            nclients--;
            break;
        }
    }
    awake_ns = most_awake();
    ending = nclients == 0;
    int last = ending;
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(&lock);
    if (last)
        pthread_join(thread, NULL);
    pthread_mutex_unlock(&life);
}

void rd_proxy_wake(void)
{
    atomic_store(&woken, 1);
    if (!atomic_load(&resting))
        return;
    enter();
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(&lock);
}
