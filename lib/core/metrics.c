/* See metrics.h. */
#include "core/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/lifetime.h"
#include "core/living.h"
#include "core/metrics_text.h"
#include "core/monitor_thread.h"
#include "monitor/own.h"
#include "monitor/process.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* of the beginning and the end */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* the thread's, while it writes */
static _Atomic int ended;                                   /* the process is in exit */
static _Atomic int users;
static char path[320], beside[340]; /* of the file, and where it is written */
static pid_t maker;
static int64_t every_ms, due_ms; /* the thread's, but for the beginning */
static bool complained;

/* The thread's alone. */
static rd_durations_t durations;
static rd_metrics_look_t seen;

/* ---- its name ---- */

/* Returns false if it is too long. */
static bool put(char *to, size_t room, size_t *at, const char *text)
{
    size_t n = strlen(text);

    if (*at + n >= room)
        return false;
    memcpy(to + *at, text, n + 1);
    *at += n;
    return true;
}

/* What stands for %h, %p and %r; NULL: the text means itself. */
static const char *word_for(const char *at, const char *host, const char *pid, const char *rank)
{
    if (at[0] != '%')
        return NULL;
    return at[1] == 'h' ? host : at[1] == 'p' ? pid : at[1] == 'r' ? rank : NULL;
}

/* Returns where the ending of the last name begins, or the end. */
static const char *ending_of(const char *pattern)
{
    const char *name = strrchr(pattern, '/'), *dot = strrchr(name ? name : pattern, '.');

    return dot && dot != (name ? name + 1 : pattern) ? dot : pattern + strlen(pattern);
}

/* Ranks of a node that have one name would replace each other's files. Returns false if it is too long. */
static bool expand(const char *pattern)
{
    char host[RD_MONITOR_NAME] = "host", pid[16], rank[16];
    const char *ending = strstr(pattern, "%p") || strstr(pattern, "%r") ? NULL : ending_of(pattern);
    size_t at = 0;
    bool good = true;

    (void)gethostname(host, sizeof host - 1);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(rank, sizeof rank, "%d", rd_record_job_rank() >= 0 ? rd_record_job_rank() : (int)getpid());
    path[0] = 0;
    for (const char *from = pattern; good; from++) {
        const char *word = word_for(from, host, pid, rank), one[2] = {*from, 0};
        if (from == ending)
            good = put(path, sizeof path, &at, ".") && put(path, sizeof path, &at, rank);
        if (!*from)
            break;
        good = good && put(path, sizeof path, &at, word ? word : one);
        from += word != NULL;
    }
    snprintf(beside, sizeof beside, "%s.part", path);
    return good;
}

/* ---- the file ---- */

static void complain(int error)
{
    if (!complained)
        rd_log(NULL, RD_LOG_WARN, "the file %s of RONDO_METRICS cannot be written: %s", path, rd_fd_strerror(error));
    complained = true;
}

/* Not the process's that it was forked from. */
static void remove_file(void)
{
    if (maker == getpid() && path[0])
        unlink(path);
}

/* The thread goes on in exit, and may be writing: it is waited for, but no file server is for longer than a second. */
static void remove_at_exit(void)
{
    struct timespec until;

    if (maker != getpid())
        return;
    atomic_store(&ended, 1);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    bool has = pthread_mutex_timedlock(&writing, &until) == 0;
    remove_file();
    if (has)
        pthread_mutex_unlock(&writing);
}

/* Returns 0 or an error. The one that is left of a process that was killed is replaced. */
static int write_beside(void)
{
    (void)unlink(beside);
    int fd = rd_fd_high(open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    rd_out_t out;

    if (fd < 0)
        return errno;
    rd_out_begin(&out, fd);
    rd_metrics_write(&out, &seen);
    int error = rd_out_end(&out);
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

static void write_file(void)
{
    pthread_mutex_lock(&writing);
    int error = atomic_load(&ended) ? 0 : write_beside();

    if (!error && !atomic_load(&ended) && rename(beside, path) != 0)
        error = errno;
    if (error)
        complain(error);
    if (error || atomic_load(&ended))
        unlink(beside);
    if (!atomic_load(&users))
        remove_file(); /* it was the last communicator's */
    pthread_mutex_unlock(&writing);
}

/* ---- looking ---- */

static void look_at(rd_metrics_comm_t *c, rondo_comm_t comm, const rd_own_t *own)
{
    const rd_monitor_comm_t *board = &own->rank.comm;
    rd_waited_t *waited = comm->waited;

    memset(c, 0, sizeof *c);
    c->comm = *board;
    c->bytes = rd_view_bytes(&own->view, &own->rank);
    c->waits = rd_view_waits_for(board) >= 0 ? rd_view_waits_since(&own->view, &own->rank) : 0;
    c->late = -1;
    if (!waited)
        return;
    c->waited_ms = atomic_load(&waited->total_ms);
    for (int i = 0; i < RD_WAITED_VERDICTS; i++)
        c->stalls[i] = atomic_load(&waited->stalls[i]);
    if (rd_view_waits_for(board) >= 0 && atomic_load(&waited->late_in) == board->waits_in)
        c->late = (int)atomic_load(&waited->late);
    rd_metrics_peers(c, waited);
}

/* From the youngest to the oldest, so the oldest stay. */
static void look(rondo_comm_t comm, void *arg)
{
    rd_own_t own;

    (void)arg;
    if (!rd_comm_query_enter(comm))
        return;
    if (comm->metrics && comm->seat.record && rd_own_look(&own, &comm->seat)) {
        if (seen.ncomms == 0) {
            rd_durations_read(&durations, &own.process);
            snprintf(seen.host, sizeof seen.host, "%s", own.process.reader.head.host);
            seen.pid = own.process.reader.head.pid;
            seen.number = own.process.reader.head.job_rank;
        }
        look_at(&seen.comms[seen.ncomms++ % RD_METRICS_COMMS], comm, &own);
    }
    rd_comm_query_leave(comm);
}

int rd_metrics_turn(void)
{
    int64_t now = rd_clock_ms();

    if (!atomic_load(&users))
        return -1;
    if (now >= due_ms) {
        due_ms = now + every_ms;
        seen.ncomms = 0;
        seen.durations = &durations;
        rd_living_each(look, NULL);
        if (seen.ncomms)
            write_file();
    }
    return due_ms - now > INT32_MAX ? INT32_MAX : (int)(due_ms - now);
}

/* ---- who wants it ---- */

/* Returns false if there can be no such file. */
static bool begin(rondo_comm_t comm)
{
    static _Atomic int registered;

    if (!expand(comm->env.metrics)) {
        rd_log(&comm->ctx, RD_LOG_WARN, "the name of RONDO_METRICS is too long: %s", comm->env.metrics);
        return false;
    }
    maker = getpid();
    every_ms = comm->env.metrics_ms;
    due_ms = 0;
    complained = false;
    if (!atomic_exchange(&registered, 1))
        (void)atexit(remove_at_exit); /* of a process that does not destroy its communicators */
    return true;
}

void rd_metrics_join(rondo_comm_t comm)
{
    if (comm->internal || !comm->env.metrics[0] || !comm->seat.record || !rd_monitor_thread_join())
        return;
    pthread_mutex_lock(&lock);
    comm->metrics = atomic_load(&users) > 0 || begin(comm);
    if (comm->metrics)
        atomic_fetch_add(&users, 1);
    pthread_mutex_unlock(&lock);
    if (!comm->metrics) {
        rd_monitor_thread_leave();
        return;
    }
    comm->waited = rd_waited_make(comm->team.nranks); /* without memory waits are not counted */
    comm->seat.waited = comm->waited;
    rd_monitor_thread_wake();
}

void rd_metrics_leave(rondo_comm_t comm)
{
    if (!comm->metrics)
        return;
    comm->metrics = false;
    pthread_mutex_lock(&lock);
    bool last = atomic_fetch_sub(&users, 1) == 1;
    pthread_mutex_unlock(&lock);
    rd_monitor_thread_leave();
    pthread_mutex_lock(&lock);
    if (last && !atomic_load(&users))
        remove_file();
    pthread_mutex_unlock(&lock);
    free(comm->waited);
    comm->waited = NULL;
}

void rd_metrics_stall(rondo_comm_t comm, int status, int rank)
{
    if (comm->waited)
        rd_waited_stall(comm->waited, status, rank,
                        atomic_load_explicit(&comm->seat.board->waits_in, memory_order_relaxed));
}

/* The parent's communicators, and what counts their waits, stay unused in the child. */
void rd_metrics_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_mutex_init(&writing, NULL);
    atomic_store(&users, 0);
    path[0] = 0;
}
