/* A proxy's thread makes turns for all its clients, one after another, so that none waits for another; see
 * proxy_threads.h.
 *
 * It stays awake after anything has moved for as long as its clients ask. Waking it takes 40 to 90 microseconds (a nap
 * ends late by the kernel's timer slack, and a core that sleeps has to wake up), which is as long as a message of 256
 * KB is on its way. After that it sleeps until it is woken if every client is idle. If something may come unannounced,
 * from a kernel that a graph or a long queue of the user's will start at some time, it polls again after a nap, which
 * lasts a tenth of the time for which nothing has moved, but at most two milliseconds: so a client that has long been
 * quiet costs a few thousandths of a core. While something is under way naps are shorter still.
 *
 * What a proxy moves lies on the NUMA node of a device, and so it runs there, if its process may run on as many
 * processors of that node as there are proxies up to this one, and if all its clients' devices are there. */
#define _GNU_SOURCE
#include "progress/proxy_threads.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/thread.h"
#include "base/wait.h"
#include "topo/locality.h"

#define SLACK_NS 1000ul       /* by which naps may end late */
#define NAP_WAITING_NS 100000 /* at most */
#define NAP_DOZING_NS 2000000

typedef struct proxy {
    pthread_mutex_t lock; /* protects the clients; held during turns */
    pthread_cond_t bell;
    pthread_t thread;
    rd_proxy_client_t *clients;
    int nclients, ending;
    int numa;             /* where the thread runs; -1: wherever the process may */
    bool bound;           /* what follows is known: */
    rd_processors_t mask; /* that it was started with */
    int64_t awake_ns;     /* how long to stay awake after anything has moved: the most that a client asks for */
    _Atomic int asking;   /* threads that want the lock, which the proxy would otherwise take again at once */
    _Atomic int resting;  /* the thread sleeps, or is about to */
    _Atomic int woken;    /* set by wakers, cleared when a turn begins */
} proxy_t;

static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER; /* for starting and ending threads; taken before their locks */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static proxy_t proxies[RD_PROXIES];

static void enter(proxy_t *p)
{
    atomic_fetch_add(&p->asking, 1);
    pthread_mutex_lock(&p->lock);
    atomic_fetch_sub(&p->asking, 1);
}

static void fork_prepare(void)
{
    pthread_mutex_lock(&life);
    for (int i = 0; i < RD_PROXIES; i++)
        enter(&proxies[i]);
}

static void fork_parent(void)
{
    for (int i = 0; i < RD_PROXIES; i++)
        pthread_mutex_unlock(&proxies[i].lock);
    pthread_mutex_unlock(&life);
}

/* The threads exist only in the parent. */
static void fork_child(void)
{
    for (int i = 0; i < RD_PROXIES; i++) {
        proxy_t *p = &proxies[i];
        p->clients = NULL;
        p->nclients = 0;
        p->resting = p->asking = p->woken = 0;
        rd_cond_make(&p->bell);
    }
    fork_parent();
}

static const rd_fork_handlers_t at_fork = {.prepare = fork_prepare, .parent = fork_parent, .child = fork_child};

static void begin_once(void)
{
    for (int i = 0; i < RD_PROXIES; i++) {
        pthread_mutex_init(&proxies[i].lock, NULL);
        rd_cond_make(&proxies[i].bell);
    }
    rd_fork_register(RD_FORK_PROXIES, &at_fork);
}

/* ---- the thread ---- */

/* Called with the lock held; others may take it meanwhile. ns < 0: sleeps until it is woken. The next turn clears
 * `woken`, and so knows that the thread was woken. */
static void nap(proxy_t *p, int64_t now, int64_t ns)
{
    atomic_store(&p->resting, 1);
    if (!atomic_load(&p->woken) && !p->ending) {
        if (ns < 0) {
            pthread_cond_wait(&p->bell, &p->lock);
        } else {
            struct timespec until = {(now + ns) / 1000000000, (now + ns) % 1000000000};
            pthread_cond_timedwait(&p->bell, &p->lock, &until);
        }
    }
    atomic_store(&p->resting, 0);
}

/* Gives the lock to threads that want it. */
static void make_path(proxy_t *p)
{
    if (!atomic_load(&p->asking))
        return;
    pthread_mutex_unlock(&p->lock);
    while (atomic_load(&p->asking))
        sched_yield();
    pthread_mutex_lock(&p->lock);
}

static void rest(proxy_t *p, rd_proxy_state_t state, int64_t now, int64_t quiet)
{
    int64_t most = state == RD_PROXY_WAITS ? NAP_WAITING_NS : NAP_DOZING_NS;

    if (quiet <= p->awake_ns)
        sched_yield();
    else if (state == RD_PROXY_IDLE)
        nap(p, now, -1);
    else
        nap(p, now, quiet / 10 < most ? quiet / 10 : most);
}

static void *run(void *arg)
{
    int64_t moved = rd_clock_ns();
    proxy_t *p = arg;

    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS);
    pthread_mutex_lock(&p->lock);
    while (!p->ending) {
        rd_proxy_state_t state = RD_PROXY_IDLE;
        int called = atomic_exchange(&p->woken, 0);
        for (rd_proxy_client_t *c = p->clients; c; c = c->next) {
            rd_proxy_state_t its = c->turn(c->arg);
            state = its > state ? its : state;
        }
        int64_t now = rd_clock_ns();
        if (state == RD_PROXY_MOVED || called)
            moved = now;
        else
            rest(p, state, now, now - moved);
        make_path(p);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- other threads ---- */

static int64_t most_awake(const proxy_t *p)
{
    int64_t most = 0;

    for (const rd_proxy_client_t *c = p->clients; c; c = c->next)
        most = c->awake_us > most ? c->awake_us : most;
    return 1000 * most;
}

static int start(proxy_t *p)
{
    p->ending = 0;
    int error = rd_thread_start(&p->thread, run, p);

    p->numa = -1;
    p->bound = error == 0 && pthread_getaffinity_np(p->thread, sizeof p->mask, p->mask.sets) == 0;
    return error;
}

/* Moves the thread to where its clients' devices are. */
static void settle(proxy_t *p)
{
    rd_processors_t mask = p->mask;
    int numa = p->clients ? p->clients->numa : -1;

    for (const rd_proxy_client_t *c = p->clients; c; c = c->next)
        numa = c->numa == numa ? numa : -1;
    if (numa == p->numa || !p->bound)
        return;
    (void)rd_locality_narrow(rd_locality_sys(), numa, (int)(p - proxies) + 1, &mask);
    (void)pthread_setaffinity_np(p->thread, sizeof mask, mask.sets);
    p->numa = numa;
}

int rd_proxy_add(rd_proxy_client_t *client)
{
    proxy_t *p = &proxies[client->proxy];
    int error = 0;

    pthread_once(&once, begin_once);
    pthread_mutex_lock(&life);
    if (p->nclients == 0)
        error = start(p);
    if (error == 0) {
        enter(p);
        p->nclients++;
        client->pid = getpid();
        client->next = p->clients;
        p->clients = client;
        p->awake_ns = most_awake(p);
        settle(p);
        pthread_cond_signal(&p->bell);
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&life);
    return error;
}

void rd_proxy_remove(rd_proxy_client_t *client)
{
    proxy_t *p = &proxies[client->proxy];

    if (client->pid != getpid())
        return;
    pthread_mutex_lock(&life);
    enter(p);
    for (rd_proxy_client_t **at = &p->clients; *at; at = &(*at)->next) {
        if (*at == client) {
            *at = client->next;
            p->nclients--;
            break;
        }
    }
    p->awake_ns = most_awake(p);
    settle(p);
    p->ending = p->nclients == 0;
    int last = p->ending;
    pthread_cond_signal(&p->bell);
    pthread_mutex_unlock(&p->lock);
    if (last)
        pthread_join(p->thread, NULL);
    pthread_mutex_unlock(&life);
}

void rd_proxy_wake(const rd_proxy_client_t *client)
{
    proxy_t *p = &proxies[client->proxy];

    atomic_store(&p->woken, 1);
    if (!atomic_load(&p->resting))
        return;
    enter(p);
    pthread_cond_signal(&p->bell);
    pthread_mutex_unlock(&p->lock);
}

void rd_proxy_nudge(const rd_proxy_client_t *client)
{
    proxy_t *p = &proxies[client->proxy];

    atomic_store(&p->woken, 1);
    if (!atomic_load(&p->resting) || pthread_mutex_trylock(&p->lock) != 0)
        return;
    pthread_cond_signal(&p->bell);
    pthread_mutex_unlock(&p->lock);
}
