/* See no_environ.h. */
#define _GNU_SOURCE
#include "base/no_environ.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "base/fork.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pairs; /* that have begun and not ended */
static char *empty[1];

/* Another thread may call setenv: what it has put there stays. */
static void replace(char **is, char **by)
{
    (void)__atomic_compare_exchange_n(&environ, &is, by, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* What the program has set meanwhile stays. */
static void take_back(void)
{
    pairs = 0;
    replace(empty, NULL);
}

static const rd_fork_handlers_t at_fork = {.child = take_back, .lock = &lock};

void rd_no_environ_begin(void)
{
    rd_fork_register(RD_FORK_ENVIRON, &at_fork);
    pthread_mutex_lock(&lock);
    pairs++;
    replace(NULL, empty);
    pthread_mutex_unlock(&lock);
}

void rd_no_environ_end(void)
{
    pthread_mutex_lock(&lock);
    if (pairs > 0 && --pairs == 0) /* 0 in a child that was forked meanwhile */
        take_back();
    pthread_mutex_unlock(&lock);
}
