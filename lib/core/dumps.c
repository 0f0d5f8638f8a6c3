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
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/thread.h"
#include "core/hooks.h"
#include "core/lifetime.h"
#include "monitor/dump.h"
#include "monitor/held.h"

#define DYING_MS 100
#define HELD_UP_MS 1000 /* without a file finished, after which the call does not wait any more */

/* The caller's, while it waits, and the writer's: of the communicator they use what outlives its modules. */
typedef struct failure {
    rondo_comm_t comm;
    rd_view_t view;
    const rd_view_comm_t *seen;
    rd_out_t out;
    char folder[400];
    _Atomic int users, finished, over; /* finished: files */
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

/* A file beyond the limit would raise a signal. A call takes less than 512 bytes, a communicator less than 4096. */
static bool too_long(const rd_history_t *h)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           h->nruns * 512 + ((size_t)h->ncomms + 2) * 4096 > limit.rlim_cur;
}

/* Returns 0 or an error. */
static int write_process(failure_t *f, int fd, int process, int rank)
{
    rd_dump_t dump;
    int error = EFBIG;

    if (!rd_dump_read_one(&dump, &f->view, process, rank))
        return ENOMEM;
    if (!too_long(&dump.histories[process])) {
        rd_out_begin(&f->out, fd);
        rd_dump_json(&f->out, &dump, process);
        error = rd_out_end(&f->out);
    }
    rd_dump_free(&dump);
    return error;
}

/* Writes the file of a rank. Returns 0 or an error; EEXIST: another one does. */
static int write_rank(failure_t *f, const rd_view_rank_t *rank)
{
    char path[448];

    snprintf(path, sizeof path, "%s/rondo_dump_%d.json", f->folder, rank->comm.rank);
    int fd = rd_fd_high(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)), error = errno;
    if (fd < 0)
        return error;
    error = write_process(f, fd, rank->process, rank->comm.rank);
    close(fd);
    if (error)
        unlink(path); /* half a dump would only mislead */
    return error;
}

/* Of the ranks of this node: the lowest one, who is to blame, and who has found it out, which is this rank. */
static bool is_wanted(const failure_t *f, int i)
{
    int rank = f->seen->ranks[i].comm.rank;

    return i == 0 || strcmp(f->comm->env.dump, "all") == 0 || rank == f->comm->team.rank ||
           rank == atomic_load(&f->comm->health.stop.failed_rank);
}

static int write_all(failure_t *f)
{
    int error = make_folder(f), files = 0;

    for (int i = 0; i < f->seen->nranks && !error; i++) {
        if (!is_wanted(f, i))
            continue;
        error = write_rank(f, &f->seen->ranks[i]);
        if (error == EEXIST && i == 0)
            return 0; /* another rank of the node writes */
        error = error == EEXIST ? 0 : error;
        files += !error;
        atomic_fetch_add(&f->finished, 1);
    }
    if (!error)
        rd_hooks_post(RONDO_HOOK_DUMPED, f->comm, RONDO_SUCCESS, f->folder);
    if (!error)
        rd_log(&f->comm->ctx, RD_LOG_WARN, "%d rank%s of this node left %s last calls in %s: see rondo-ras analyse",
               files, files == 1 ? "" : "s", files == 1 ? "its" : "their", f->folder);
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
    rd_view_free(&f->view);
    rd_comm_release(f->comm);
    free(f);
}

static void *write_down(void *arg)
{
    failure_t *f = arg;
    int error = write_all(f);

    if (error)
        complain(f->comm, rd_fd_strerror(error));
    atomic_store(&f->over, 1);
    drop(f);
    return NULL;
}

/* Where no thread can be had, the caller writes. */
static void start(failure_t *f)
{
    pthread_t thread;

    atomic_fetch_add(&f->users, 1);
    if (rd_thread_start(&thread, write_down, f) == 0)
        pthread_detach(thread);
    else
        write_down(f);
}

static void wait_for(failure_t *f)
{
    const struct timespec pause = {0, 1000000};
    int finished = 0;

    for (int ms = 0; !atomic_load(&f->over) && ms < HELD_UP_MS; ms++) {
        if (atomic_load(&f->finished) != finished)
            ms = 0;
        finished = atomic_load(&f->finished);
        nanosleep(&pause, NULL);
    }
    if (!atomic_load(&f->over))
        complain(f->comm, "the folder is slow; the call goes on without them");
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
