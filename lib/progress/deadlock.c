/* Finds circles of waiting ranks across communicators: see deadlock.h. */
#include "progress/deadlock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fork.h"
#include "progress/queue.h"

#define SAY_MS 100      /* a wait of this length is published */
#define CHECK_MS 20     /* between two checks */
#define MARGIN_MS 500   /* in which everything that was sent within a node has been seen */
#define THREADS_MS 3000 /* the same where several threads call: one may yet come that has not called here before */
#define WARN_MS 5000    /* a rank of another node is waited for */
#define LINKS 64        /* the longest circle that is followed */
#define TRIES 1000      /* to read a record that is being written, which takes some stores */
#define SENTENCE "ranks call communicators in different orders"

/* The contents of one record. */
typedef struct {
    uint64_t caller, awaited;
    int64_t since_ms, still_ms; /* 0: it does not wait */
    bool here;                  /* it waits in the communicator in which this stands */
    bool crosses;               /* the thread that it waits for waits in another communicator */
    int margin_ms;
    char call[RD_WAITING_BYTES];
} link_t;

static rd_queue_t *queues;                               /* of this process, with RONDO_CHECK=1 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list, and what is written into the records */

static uint64_t caller; /* the first thread that called */
static bool several;    /* and there are others */

/* A number for this thread that no other one on the node has, in another process either. */
static uint64_t this_thread(void)
{
    static _Thread_local uint64_t number;
    static _Thread_local pid_t pid;

    if (!number || pid != getpid()) {
        pid = getpid();
        number = ((uint64_t)syscall(SYS_gettid) << 40) ^ ((uint64_t)rd_clock_ns() << 1) ^ 1;
    }
    return number;
}

/* ---- a record in shared memory, under a sequence lock ---- */

static void write_record(rd_waiting_t *w, const link_t *from)
{
    uint64_t words[RD_WAITING_BYTES / 8], version = atomic_load_explicit(&w->version, memory_order_relaxed);

    memcpy(words, from->call, sizeof words);
    atomic_store_explicit(&w->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* a reader that sees a new word sees the odd version */
    atomic_store_explicit(&w->caller, from->caller, memory_order_relaxed);
    atomic_store_explicit(&w->awaited, from->awaited, memory_order_relaxed);
    atomic_store_explicit(&w->since_ms, from->since_ms, memory_order_relaxed);
    atomic_store_explicit(&w->still_ms, from->still_ms, memory_order_relaxed);
    atomic_store_explicit(&w->here, from->here, memory_order_relaxed);
    atomic_store_explicit(&w->crosses, from->crosses, memory_order_relaxed);
    atomic_store_explicit(&w->margin_ms, from->margin_ms, memory_order_relaxed);
    for (size_t i = 0; i < sizeof words / 8; i++)
        atomic_store_explicit(&w->call[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&w->version, version + 2, memory_order_release);
}

/* Returns false if the record is being written. */
static bool read_record(const rd_waiting_t *w, link_t *to)
{
    uint64_t words[RD_WAITING_BYTES / 8], version = atomic_load_explicit(&w->version, memory_order_acquire);

    to->caller = atomic_load_explicit(&w->caller, memory_order_relaxed);
    to->awaited = atomic_load_explicit(&w->awaited, memory_order_relaxed);
    to->since_ms = atomic_load_explicit(&w->since_ms, memory_order_relaxed);
    to->still_ms = atomic_load_explicit(&w->still_ms, memory_order_relaxed);
    to->here = atomic_load_explicit(&w->here, memory_order_relaxed) != 0;
    to->margin_ms = atomic_load_explicit(&w->margin_ms, memory_order_relaxed);
    to->crosses = atomic_load_explicit(&w->crosses, memory_order_relaxed) != 0;
    for (size_t i = 0; i < sizeof words / 8; i++)
        words[i] = atomic_load_explicit(&w->call[i], memory_order_relaxed);
    memcpy(to->call, words, sizeof words);
    to->call[sizeof to->call - 1] = '\0';
    atomic_thread_fence(memory_order_acquire);
    return version % 2 == 0 && atomic_load_explicit(&w->version, memory_order_relaxed) == version;
}

/* ---- the records of this process ---- */

/* The parent's communicators are not the child's. */
static void fork_child(void)
{
    queues = NULL;
    caller = 0;
    several = false;
    pthread_mutex_init(&lock, NULL);
}

static const rd_fork_handlers_t at_fork = {.child = fork_child};

void rd_deadlock_join(rd_queue_t *q)
{
    if (!q->team->env->check || q->team->nranks == 1 || !q->planner)
        return;
    rd_fork_register(RD_FORK_DEADLOCK, &at_fork);
    pthread_mutex_lock(&lock);
    q->deadlock.next = queues;
    queues = q;
    q->deadlock.listed = true;
    pthread_mutex_unlock(&lock);
    rd_deadlock_call(q, "nothing", -1);
}

void rd_deadlock_leave(rd_queue_t *q)
{
    if (!q->deadlock.listed)
        return;
    pthread_mutex_lock(&lock);
    for (rd_queue_t **at = &queues; *at; at = &(*at)->deadlock.next)
        if (*at == q) {
            *at = q->deadlock.next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void rd_deadlock_call(rd_queue_t *q, const char *name, int64_t number)
{
    rd_deadlock_t *d = &q->deadlock;
    char which[32] = "";

    if (!d->listed)
        return;
    const link_t idle = {.caller = this_thread()};
    if (number >= 0)
        snprintf(which, sizeof which, " number %lld", (long long)number);
    pthread_mutex_lock(&lock);
    d->caller = idle.caller;
    caller = caller ? caller : d->caller;
    several |= caller != d->caller;
    d->said = false;
    snprintf(d->call, sizeof d->call, "rank %d of %s (%s) waits in %s%s", q->team->rank, q->team->ctx->name,
             rd_health_whois(q->health, q->team->rank), name, which);
    write_record(&q->self->waiting, &idle);
    pthread_mutex_unlock(&lock);
}

/* Says in every communicator that this thread has called last where it waits. Where it has something outstanding it is
 * not missed: waits make progress for that. */
static void say(rd_queue_t *q, const link_t *own)
{
    for (rd_queue_t *other = queues; other; other = other->deadlock.next) {
        link_t there = *own;
        if (other->deadlock.caller != own->caller)
            continue;
        there.here = other == q;
        if (other != q && rd_outstanding_listed(&other->outstanding))
            there.since_ms = there.still_ms = 0;
        write_record(&other->self->waiting, &there);
    }
}

void rd_deadlock_moved(rd_queue_t *q)
{
    const link_t idle = {.caller = q->deadlock.caller};

    pthread_mutex_lock(&lock);
    q->deadlock.said = false;
    say(q, &idle);
    pthread_mutex_unlock(&lock);
}

/* ---- the records of all processes of the node ---- */

/* Finds a thread's record in any communicator of this process. */
static bool find(uint64_t caller, link_t *link)
{
    for (rd_queue_t *q = queues; q; q = q->deadlock.next) {
        for (int r = 0; r < q->team->nranks; r++) {
            const rd_control_t *control = q->controls[r];
            if (control && atomic_load_explicit(&control->waiting.caller, memory_order_relaxed) == caller &&
                read_record(&control->waiting, link) && link->caller == caller && link->since_ms)
                return true;
        }
    }
    return false;
}

/* Sets the thread that is waited for, and whether it waits in another communicator itself. */
static void awaited(rd_queue_t *q, int peer, link_t *own)
{
    const rd_control_t *control = peer < 0 ? NULL : q->controls[peer];
    link_t its;

    own->awaited = 0;
    if (!control || !read_record(&control->waiting, &its) || !its.since_ms)
        return;
    own->awaited = its.caller;
    own->crosses = !its.here;
}

/* Follows the records from this thread's own, links[0]. Returns the number of links, the last of which waits for the
 * thread of links[*first]; 0: they do not lead round. */
static int follow(link_t *links, int *first)
{
    for (int n = 1; n < LINKS && links[n - 1].awaited; n++) {
        for (int i = 0; i < n; i++)
            if (links[i].caller == links[n - 1].awaited) {
                *first = i;
                return n;
            }
        if (!find(links[n - 1].awaited, &links[n]))
            return 0;
    }
    return 0;
}

/* Returns true if all of them waited at one time, for long enough to have seen everything that the others had sent
 * before they began to wait. Ranks that wait within one communicator may only seem to wait for each other, because each
 * has several lanes; so at least one must wait for a thread that waits in another communicator. */
static bool stuck(const link_t *links, int n)
{
    int64_t since = 0, still = INT64_MAX;
    int margin = 0;
    bool crosses = false;

    for (int i = 0; i < n; i++) {
        since = links[i].since_ms > since ? links[i].since_ms : since;
        still = links[i].still_ms < still ? links[i].still_ms : still;
        margin = links[i].margin_ms > margin ? links[i].margin_ms : margin;
        crosses |= links[i].crosses;
    }
    return crosses && still >= since + margin;
}

/* Returns true if that rank waits for this thread in this communicator. */
static bool waits_for(const rd_queue_t *q, int rank, uint64_t self)
{
    const rd_control_t *control = q->controls[rank];
    link_t its;

    for (int i = 0; control && control != q->self && i < TRIES; i++) {
        if (read_record(&control->waiting, &its))
            return its.here && its.awaited == self;
    }
    return false;
}

/* The communicators in which a rank of the circle waits for this thread fail, too: else it would hear later, by other
 * words, that this rank has left. */
static void fail_others(uint64_t self, const char *text)
{
    for (rd_queue_t *q = queues; q; q = q->deadlock.next) {
        for (int r = 0; r < q->team->nranks && q->deadlock.caller == self; r++)
            if (waits_for(q, r, self))
                (void)rd_health_fail(q->health, RONDO_ERR_MISMATCH, r, "%s", text);
    }
}

void rd_deadlock_heard(rd_queue_t *q)
{
    const char *text = q->health->stop.text;

    if (strncmp(text, SENTENCE, sizeof SENTENCE - 1) != 0)
        return;
    pthread_mutex_lock(&lock);
    fail_others(q->deadlock.caller, text);
    pthread_mutex_unlock(&lock);
}

static rondo_result_t report(rd_queue_t *q, const link_t *links, int n, int first, int peer)
{
    char text[RD_ERROR_BYTES] = "";
    size_t used = 0;

    for (int i = first; i < n && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i == first ? "" : " for the next, ",
                                 links[i].call);
    rondo_result_t result =
        rd_health_fail(q->health, RONDO_ERR_MISMATCH, peer, SENTENCE ", and none can go on: %s for the first", text);
    fail_others(links[0].caller, q->health->stop.text);
    return result;
}

/* Nothing is known of where ranks of other nodes wait. */
static void warn(rd_queue_t *q, int peer, int64_t now)
{
    if (q->deadlock.warned || peer < 0 || q->controls[peer] || now - q->wait.began_ms < WARN_MS)
        return;
    q->deadlock.warned = true;
    rd_log(q->team->ctx, RD_LOG_WARN,
           "%s for rank %d (%s): if that one waits in another communicator, ranks call these in different orders, "
           "which RONDO_CHECK=1 finds within a node only",
           q->deadlock.call, peer, rd_health_whois(q->health, peer));
}

rondo_result_t rd_deadlock_check(rd_queue_t *q, int peer, int64_t now)
{
    rd_deadlock_t *d = &q->deadlock;
    rondo_result_t result = RONDO_SUCCESS;
    link_t links[LINKS];
    int first = 0, n;

    if (q->wait.alone || now - q->wait.began_ms < SAY_MS || now - d->checked_ms < CHECK_MS)
        return RONDO_SUCCESS;
    d->checked_ms = now;
    pthread_mutex_lock(&lock);
    links[0] = (link_t){.caller = this_thread(), .still_ms = now, .margin_ms = several ? THREADS_MS : MARGIN_MS};
    memcpy(links[0].call, d->call, sizeof d->call);
    awaited(q, peer, &links[0]);
    if (!d->said || d->awaited != links[0].awaited)
        d->since_ms = now;
    d->said = true;
    d->awaited = links[0].awaited;
    links[0].since_ms = d->since_ms;
    say(q, &links[0]);
    n = follow(links, &first);
    if (n && stuck(links + first, n - first))
        result = report(q, links, n, first, peer);
    warn(q, peer, now);
    pthread_mutex_unlock(&lock);
    return result;
}
