/* Rendezvous threads. The process that made an id may hold any number of its ranks, or none (a launcher), so a thread
 * belongs to the process: the last of its ranks to leave joins it, later ids reap it, and process exit ends it. */
#include "boot/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "boot/sock.h"
#include "base/thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* made before the first thread is started */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static rd_served_t *all;
static rd_served_t
    *volatile inherited; /* in a forked child: those of its parent, which stay allocated; never read, but no leak */

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The threads stayed in the parent, so the structs that they were working on cannot be freed here. */
static void fork_child(void)
{
    if (all)
        inherited = all;
    all = NULL;
    pthread_mutex_unlock(&lock);
    rd_cond_make(&changed);
}

static const rd_fork_handlers_t at_fork = {.prepare = fork_prepare, .parent = fork_parent, .child = fork_child};

static void begin_once(void)
{
    rd_cond_make(&changed);
    rd_fork_register(RD_FORK_RENDEZVOUS, &at_fork);
}

static rd_served_t **find(const unsigned char job[16])
{
    rd_served_t **p = &all;
    while (*p && memcmp((*p)->job, job, 16) != 0)
        p = &(*p)->next;
    return p;
}

static void *run_by_own_table(void *arg)
{
    rd_served_t *s = arg;
    bool has = rd_fd_own_table(&(int){s->wake}, 1) == 0;

    pthread_mutex_lock(&lock);
    s->wake = -1;
    s->table = has ? 1 : -1;
    pthread_cond_broadcast(&changed);
    while (has && s->table == 1) /* until it is on the list */
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return has ? s->run(s) : NULL;
}

int rd_served_start_own_table(rd_served_t *s, void *(*run)(void *), int fd)
{
    pthread_once(&once, begin_once);
    s->moved = malloc(sizeof(*s->moved)); /* nothing of the process's */
    s->run = run;
    s->wake = fd;
    int error = s->moved ? rd_thread_start(&s->thread, run_by_own_table, s) : ENOMEM;
    if (error == 0) {
        pthread_mutex_lock(&lock);
        while (s->table == 0) /* from then on the caller may close `fd` */
            pthread_cond_wait(&changed, &lock);
        bool has = s->table > 0;
        if (has) {
            s->next = all;
            all = s;
            s->table = 2;
            pthread_cond_broadcast(&changed);
        }
        pthread_mutex_unlock(&lock);
        if (has)
            return 0;
        pthread_join(s->thread, NULL);
        error = EMFILE;
    }
    free(s->moved);
    s->moved = NULL;
    errno = error;
    return -1;
}

int rd_served_start(rd_served_t *s, void *(*run)(void *))
{
    pthread_once(&once, begin_once);
    rd_fd_fork_lock();
    s->wake = rd_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    rd_fd_fork_unlock();
    if (s->wake < 0)
        return -1;
    pthread_mutex_lock(&lock);
    int error = rd_thread_start(&s->thread, run, s);
    if (error == 0) {
        s->next = all;
        all = s;
    }
    pthread_mutex_unlock(&lock);
    if (error == 0)
        return 0;
    rd_fd_close(s->wake);
    errno = error;
    return -1;
}

void rd_served_done(rd_served_t *s)
{
    pthread_mutex_lock(&lock);
    s->done = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wake(rd_served_t *s)
{
    uint64_t one = 1;
    if (s->wake < 0)
        return;
    (void)!write(s->wake, &one, sizeof(one)); /* cannot fail: an eventfd counts up to 2^64 */
}

void rd_served_woken(rd_served_t *s)
{
    uint64_t count;
    (void)!read(s->wake, &count, sizeof(count)); /* it does not block */
}

/* The caller holds the lock, or has taken it off the list. The first reason stands. */
static void cancel(rd_served_t *s, const char *why)
{
    if (atomic_load(&s->cancelled))
        return;
    snprintf(s->why, sizeof(s->why), "%s", why);
    atomic_store(&s->cancelled, s->why);
    wake(s);
}

static void join_and_free(rd_served_t *s)
{
    pthread_join(s->thread, NULL);
    for (int i = 0; i < s->nmoved; i++)
        rd_fd_close(s->moved[i]);
    if (!s->moved)
        rd_fd_close(s->wake);
    free(s->moved);
    free(s);
}

void rd_served_finish(const unsigned char job[16], int64_t ms, const char *why)
{
    struct timespec until;
    rd_served_t **p, *mine = NULL;
    int expired = ms <= 0;
    rd_clock_read(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&lock);
    while (*(p = find(job)) &&
           !(*p)->done) { /* looked up again each time: another rank of this process may have freed it */
        (*p)->awaited = !expired || why;
        if (expired && !why)
            break;
        if (expired)
            cancel(*p, why);
        if (expired)
            pthread_cond_wait(&changed, &lock);
        else
            expired = pthread_cond_timedwait(&changed, &lock, &until) == ETIMEDOUT;
    }
    if (*p && (*p)->done) {
        mine = *p;
        *p = mine->next;
    }
    pthread_mutex_unlock(&lock);
    if (mine)
        join_and_free(mine);
}

bool rd_served_here(const unsigned char job[16])
{
    pthread_mutex_lock(&lock);
    const rd_served_t *s = *find(job);
    bool here = s && !s->done;
    pthread_mutex_unlock(&lock);
    return here;
}

bool rd_served_failure(const unsigned char job[16], char sentence[RD_ERROR_BYTES])
{
    pthread_mutex_lock(&lock);
    rd_served_t *s = *find(job);
    const char *failed = s ? rd_served_failed(s) : NULL;
    if (failed)
        snprintf(sentence, RD_ERROR_BYTES, "%s", failed);
    pthread_mutex_unlock(&lock);
    return failed;
}

void rd_served_fail(const unsigned char job[16], const char *sentence)
{
    pthread_mutex_lock(&lock);
    rd_served_t *s = *find(job);
    if (s && !s->done && !atomic_load(&s->failed)) {
        snprintf(s->failure, sizeof(s->failure), "%s", sentence);
        atomic_store(&s->failed, s->failure);
        wake(s);
    }
    pthread_mutex_unlock(&lock);
}

void rd_served_cancel(const unsigned char job[16], const char *why)
{
    pthread_mutex_lock(&lock);
    rd_served_t *s = *find(job);
    if (s && !s->done)
        cancel(s, why);
    pthread_mutex_unlock(&lock);
}

bool rd_served_release(const unsigned char job[16], const char *why)
{
    pthread_mutex_lock(&lock);
    rd_served_t *s = *find(job);
    bool unused = s && atomic_load(&s->members) == 0;
    pthread_mutex_unlock(&lock);
    if (unused)
        rd_served_finish(job, 0, why);
    return unused;
}

static rd_served_t *take_one(int done_only)
{
    rd_served_t **p = &all, *s;
    pthread_mutex_lock(&lock);
    while (*p && done_only && (!(*p)->done || (*p)->awaited))
        p = &(*p)->next;
    s = *p;
    if (s)
        *p = s->next;
    pthread_mutex_unlock(&lock);
    return s;
}

void rd_served_reap(void)
{
    for (rd_served_t *s; (s = take_one(1));)
        join_and_free(s);
}

/* At exit, or when the library is unloaded. */
__attribute__((destructor)) static void end_all(void)
{
    for (rd_served_t *s; (s = take_one(0));) {
        cancel(s, "its process ends");
        join_and_free(s);
    }
}
