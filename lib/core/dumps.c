/* Dumps at a failure: see dumps.h.
 *
 * The records of a node are in the hands of all its processes, so one of them writes for all, also for those that are
 * dead, stopped, or in no call. Which one is decided by the first file, that of the node's lowest rank: whoever makes
 * it goes on. A folder belongs to one communicator, by its number, so nothing is ever written over.
 *
 * A thread writes, since a file server that does not answer may hold it for hours. The call that has failed waits for
 * it only as long as it gets on; an abort from another thread waits for that call. */
#include "core/dumps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/thread.h"
#include "core/dump_files.h"
#include "core/dump_wait.h"
#include "core/hooks.h"
#include "core/lifetime.h"
#include "monitor/held.h"
#include "monitor/stacks.h"

#define DYING_MS 100

/* What a failure's dumps are written from. The caller, while it waits, and the thread that writes share it. They use
 * nothing of the communicator but what outlives its modules. */
typedef struct failure {
    rondo_comm_t comm;
    rd_view_t view;
    const rd_view_comm_t *seen;
    rd_dump_t all;        /* for formats that need all processes */
    rd_streams_t streams; /* of it */
    char folder[400];
    _Atomic int users, finished, over; /* finished: files */
    _Atomic int awaited;               /* the end of the process waits for it */
} failure_t;

/* "DIR/world-00c0ffee00c0ffee", of the user's own. Returns 0 or an error. */
static int make_folder(failure_t *f)
{
    const rondo_comm_t comm = f->comm;
    char name[RD_MONITOR_NAME];
    struct stat st;

    snprintf(name, sizeof name, "%s", f->seen->ranks[0].comm.name);
    for (char *at = name; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *at))
            *at = '_';
    snprintf(f->folder, sizeof f->folder, "%s/%s-%016llx", comm->env.dump_dir, name, (unsigned long long)f->seen->id);
    if (mkdir(f->folder, 0700) != 0 && errno != EEXIST)
        return errno;
    if (lstat(f->folder, &st) != 0)
        return errno;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0 ? 0 : EPERM;
}

/* Writes the file of a rank. Returns 0 or an error; EEXIST: another one does. */
static int write_rank(failure_t *f, rd_dump_format_t format, const rd_view_rank_t *rank)
{
    const int number =
        format == RD_DUMP_AS_FR ? f->all.numbers[rank->process] : rank->comm.rank; /* fr: of the job, as in it */
    rd_dump_t one = {0};
    char path[448];

    rd_dump_file_path(path, sizeof path, f->folder, format, number);
    if (format != RD_DUMP_AS_JSON)
        return rd_dump_file(path, format, &f->all, &f->streams, rank->process);
    if (!rd_dump_read_one(&one, &f->view, rank->process, number))
        return ENOMEM;
    int error = rd_dump_file(path, format, &one, NULL, rank->process);
    rd_dump_free(&one);
    return error;
}

/* Is this rank of the node written down? Without RONDO_DUMP=all these are: the lowest one, the one to blame, and this
 * rank, which has found the failure. */
static bool is_wanted(const failure_t *f, int i)
{
    int rank = f->seen->ranks[i].comm.rank;

    return i == 0 || strcmp(f->comm->env.dump, "all") == 0 || rank == f->comm->team.rank ||
           rank == atomic_load(&f->comm->health.stop.failed_rank);
}

/* Returns 0 or an error; EEXIST: another rank of the node writes, because it has made the first file, the lowest
 * rank's. */
static int write_format(failure_t *f, rd_dump_format_t format, bool first, int *files)
{
    int error = 0;

    for (int i = 0; i < f->seen->nranks && !error; i++) {
        if (!is_wanted(f, i) || (format == RD_DUMP_AS_CHROME && i > 0)) /* which is one file of all */
            continue;
        error = write_rank(f, format, &f->seen->ranks[i]);
        if (error == EEXIST && first && i == 0)
            return error;
        *files += !error;
        error = error == EEXIST ? 0 : error;
        atomic_fetch_add(&f->finished, 1);
    }
    return error;
}

/* What other formats than rondo's own need: all processes. Returns 0 or an error. */
static int read_all(failure_t *f)
{
    const char *formats = f->comm->env.dump_format;

    if (!rd_dump_format_wanted(formats, RD_DUMP_AS_FR) && !rd_dump_format_wanted(formats, RD_DUMP_AS_CHROME))
        return 0;
    return rd_dump_read(&f->all, &f->view, 0) && rd_streams_find(&f->streams, &f->all) ? 0 : ENOMEM;
}

static int write_all(failure_t *f)
{
    int error = make_folder(f), files = 0;
    bool first = true;

    rd_stacks_read(&f->view, f->comm->env.dump_wait_ms / 2);
    error = error ? error : read_all(f);
    for (int format = 0; format < RD_DUMP_FORMATS && !error; format++) {
        if (!rd_dump_format_wanted(f->comm->env.dump_format, (rd_dump_format_t)format))
            continue;
        error = write_format(f, (rd_dump_format_t)format, first, &files);
        first = false;
    }
    if (error == EEXIST)
        return 0;
    if (!error)
        rd_hooks_post(RONDO_HOOK_DUMPED, f->comm, RONDO_SUCCESS, f->folder);
    if (!error)
        rd_log(&f->comm->ctx, RD_LOG_WARN,
               "%d file%s in %s ha%s the last calls of ranks of this node: see rondo-ras "
               "analyse",
               files, files == 1 ? "" : "s", f->folder, files == 1 ? "s" : "ve");
    return error;
}

/* Looks once. Returns false if there is nothing to be seen. */
static bool look(failure_t *f)
{
    rd_view_free(&f->view);
    if (!rd_held_view(&f->view) || !rd_view_look(&f->view, 0))
        return false;
    f->seen = rd_view_comm_of(f->view.comms, f->view.ncomms, f->comm->seat.board->id);
    return f->seen;
}

/* The connections of a process that is killed end before the kernel says that it has. */
static bool may_be_dying(const failure_t *f)
{
    const rd_view_rank_t *failed = rd_view_rank_of(f->seen, atomic_load(&f->comm->health.stop.failed_rank));

    return failed && failed->comm.rank != f->comm->team.rank && failed->comm.state == RD_MONITOR_ALIVE &&
           rd_health_check(&f->comm->health) == RONDO_ERR_REMOTE && !rd_view_gone(&f->view, failed);
}

/* All processes get the sentence of the failure along. */
static bool find(failure_t *f)
{
    const struct timespec pause = {0, 1000000};
    bool seen = look(f);

    for (int ms = 0; seen && ms < DYING_MS && may_be_dying(f); ms++) {
        nanosleep(&pause, NULL);
        seen = look(f);
    }
    for (int i = 0; i < f->view.nprocesses; i++)
        snprintf(f->view.processes[i].error, sizeof f->view.processes[i].error, "%s", f->comm->health.stop.text);
    return seen;
}

static void complain(rondo_comm_t comm, const char *why)
{
    rd_log(&comm->ctx, RD_LOG_WARN, "the last calls could not be left in %s: %s", comm->env.dump_dir, why);
}

static void drop(failure_t *f)
{
    if (atomic_fetch_sub(&f->users, 1) != 1)
        return;
    if (f->all.view) {
        rd_streams_free(&f->streams, &f->all);
        rd_dump_free(&f->all);
    }
    rd_view_free(&f->view);
    rd_comm_release(f->comm);
    free(f);
}

static void no_longer_awaited(failure_t *f)
{
    if (atomic_exchange(&f->awaited, 0))
        rd_dump_wait_end();
}

static void *write_down(void *arg)
{
    failure_t *f = arg;
    int error = write_all(f);

    if (error)
        complain(f->comm, rd_fd_strerror(error));
    atomic_store(&f->over, 1);
    no_longer_awaited(f);
    drop(f);
    return NULL;
}

/* Where no thread can be had, the caller writes. */
static void start(failure_t *f)
{
    pthread_t thread;

    atomic_fetch_add(&f->users, 1);
    atomic_store(&f->awaited, 1);
    rd_dump_wait_begin(f->comm->env.dump_wait_ms);
    if (rd_thread_start(&thread, write_down, f) == 0)
        pthread_detach(thread);
    else
        write_down(f);
}

/* Where files do not get on, the end of the process does not wait for them again. */
static void wait_for(failure_t *f)
{
    const struct timespec pause = {0, 1000000};
    int finished = 0;

    for (int64_t ms = 0; !atomic_load(&f->over) && ms < f->comm->env.dump_wait_ms; ms++) {
        if (atomic_load(&f->finished) != finished)
            ms = 0;
        finished = atomic_load(&f->finished);
        nanosleep(&pause, NULL);
    }
    if (atomic_load(&f->over))
        return;
    no_longer_awaited(f);
    if (f->comm->env.dump_wait_ms)
        complain(f->comm, "the folder is slow; the call goes on without them (RONDO_DUMP_WAIT_MS)");
}

void rd_comm_dump(rondo_comm_t comm)
{
    if (!comm->env.dump_dir[0] || strcmp(comm->env.dump, "none") == 0 || !comm->seat.record)
        return;
    failure_t *f = calloc(1, sizeof *f);
    if (!f) {
        complain(comm, rd_fd_strerror(ENOMEM));
        return;
    }
    f->comm = comm;
    f->users = 1;
    rd_comm_retain(comm);
    if (find(f)) {
        start(f);
        wait_for(f);
    } else {
        complain(comm, rd_fd_strerror(ENOMEM));
    }
    drop(f);
}
