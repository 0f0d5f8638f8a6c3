/* See living.h. */
#include "core/living.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/lifetime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_comm_t first; /* the youngest */
static pid_t owner;        /* the process that has them: a bare clone of it has not */

void rd_living_lock(void)
{
    pthread_mutex_lock(&lock);
}

void rd_living_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void rd_living_forget(void)
{
    first = NULL;
    rd_living_unlock();
}

void rd_living_add(rondo_comm_t comm)
{
    if (comm->internal)
        return;
    rd_living_lock();
    owner = getpid();
    comm->next = first;
    first = comm;
    rd_living_unlock();
}

void rd_living_remove(rondo_comm_t comm)
{
    rd_living_lock();
    for (rondo_comm_t *at = &first; *at; at = &(*at)->next)
        if (*at == comm) {
            *at = comm->next;
            break;
        }
    rd_living_unlock();
}

rondo_comm_t rd_living_find(bool (*is)(rondo_comm_t comm, const void *arg), const void *arg)
{
    rd_living_lock();
    rondo_comm_t comm = first;
    while (comm && !is(comm, arg))
        comm = comm->next;
    if (comm)
        rd_comm_retain(comm);
    rd_living_unlock();
    return comm;
}

static int count(void)
{
    int n = 0;

    for (rondo_comm_t comm = first; comm; comm = comm->next)
        n++;
    return n;
}

void rd_living_each(void (*call)(rondo_comm_t comm, void *arg), void *arg)
{
    int n = 0;

    rd_living_lock();
    rondo_comm_t *comms = malloc((size_t)(count() + 1) * sizeof(rondo_comm_t));
    for (rondo_comm_t comm = first; comms && comm; comm = comm->next) {
        rd_comm_retain(comm);
        comms[n++] = comm;
    }
    rd_living_unlock();
    for (int i = 0; i < n; i++) {
        call(comms[i], arg);
        rd_comm_release(comms[i]);
    }
    free(comms);
}

/* ---- the end of the process ---- */

/* To the others of it, this process will have died. Not so once it has been finalized. */
static bool is_left_over(const rondo_comm_t comm)
{
    return comm->conns.self && comm->team.nranks > 1 &&
           !atomic_load_explicit(&comm->conns.self->left, memory_order_relaxed);
}

/* One rank of a node says so: the lowest that is still a member. */
static bool speaks(const rondo_comm_t comm)
{
    for (int r = 0; r < comm->team.rank; r++) {
        const rd_control_t *its = comm->conns.controls[r];
        if (its && !atomic_load_explicit(&its->left, memory_order_relaxed))
            return false;
    }
    return true;
}

/* Comes behind all exit handlers, which may destroy; another thread that holds the lock may never come back. */
__attribute__((destructor)) static void say_left_over(void)
{
    rondo_comm_t one = NULL;
    bool warns = false;
    int n = 0;

    if (!first || owner != getpid() || pthread_mutex_trylock(&lock) != 0)
        return;
    for (rondo_comm_t comm = first; comm; comm = comm->next)
        if (is_left_over(comm)) {
            one = comm;
            warns |= speaks(comm);
            n++;
        }
    if (one)
        rd_log(&one->ctx, warns ? RD_LOG_WARN : RD_LOG_INFO,
               "the process ends, and %d of its communicators %s not destroyed: ranks that still wait for it there "
               "hear that it has died; call rondo_comm_destroy before, or rondo_comm_abort after a failure",
               n, n == 1 ? "was" : "were");
    pthread_mutex_unlock(&lock);
}
