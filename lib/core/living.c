/* See living.h. */
#include "core/living.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/lifetime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rondo_comm_t first; /* the youngest */

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
