/* See triggers.h. */
#include "core/triggers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "boot/sock.h"
#include "core/dumps.h"
#include "core/monitor_thread.h"
#include "monitor/process.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static _Atomic int asked; /* by the signal, and not answered yet */
static int number;        /* of the signal; 0: none */
static struct sigaction before;
static bool called;            /* the program's handler calls this one, whether that is installed or not, */
static struct sigaction under; /* and it had been installed over this */
static _Atomic int pipe_fd = -1;
static char path[320]; /* of the pipe */
static pid_t maker;

/* ---- the signal ---- */

static void chain(const struct sigaction *to, int signal, siginfo_t *info, void *context)
{
    if (to->sa_flags & SA_SIGINFO)
        to->sa_sigaction(signal, info, context);
    else if (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN)
        to->sa_handler(signal);
}

/* Where it has been installed again over one of the program's that calls it, it goes on below that one. So it does in a
 * thread that comes while another one is in that of the program. */
static void handler(int signal, siginfo_t *info, void *context)
{
    static _Atomic int chaining;
    const bool chains = called, below = chains && atomic_exchange(&chaining, 1);
    int saved = errno;

    if (!below) {
        atomic_store(&asked, 1); /* once */
        rd_monitor_thread_wake();
    }
    chain(below ? &under : &before, signal, info, context);
    if (chains && !below)
        atomic_store(&chaining, 0);
    errno = saved;
}

static void install(const char *name)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    int wanted = strcmp(name, "USR1") == 0 ? SIGUSR1 : strcmp(name, "USR2") == 0 ? SIGUSR2 : 0;

    if (wanted && sigaction(wanted, NULL, &before) == 0 && sigaction(wanted, &action, NULL) == 0)
        number = wanted;
}

/* One that was installed over this one calls it, and goes on doing so. */
static void restore(void)
{
    struct sigaction now;

    if (number && sigaction(number, NULL, &now) == 0) {
        bool on_top = now.sa_flags & SA_SIGINFO && now.sa_sigaction == handler;
        if (on_top)
            (void)sigaction(number, &before, NULL);
        if (on_top && called)
            before = under;
        if (!on_top && !called)
            under = before;
        called |= !on_top;
    }
    number = 0;
}

/* ---- the pipe ---- */

/* A pipe of that name that nobody reads has been left by a process that was killed. */
static bool make_pipe(void)
{
    struct stat st;

    if (mkfifo(path, 0600) == 0)
        return true;
    if (errno != EEXIST || lstat(path, &st) != 0 || !S_ISFIFO(st.st_mode) || st.st_uid != geteuid()) {
        errno = EEXIST;
        return false;
    }
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || errno != ENXIO) {
        errno = EEXIST;
        return false;
    }
    return unlink(path) == 0 && mkfifo(path, 0600) == 0;
}

/* Open for writing, too, so that it never ends. */
static bool open_pipe(void)
{
    rd_fd_fork_lock();
    int fd = rd_fd_keep(open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    rd_fd_fork_unlock();
    atomic_store(&pipe_fd, fd);
    return fd >= 0;
}

static void remove_pipe(void)
{
    if (maker == getpid() && path[0])
        unlink(path);
    path[0] = 0;
}

static void begin_pipe(rondo_comm_t comm)
{
    static _Atomic int registered;
    int rank = rd_record_job_rank();

    if (!comm->env.dump_pipe[0] || atomic_load(&pipe_fd) >= 0)
        return;
    snprintf(path, sizeof path, "%s%d.pipe", comm->env.dump_pipe, rank >= 0 ? rank : comm->team.rank);
    if (make_pipe()) {
        maker = getpid();
        if (!atomic_exchange(&registered, 1))
            (void)atexit(remove_pipe); /* of a process that does not destroy its communicators */
        if (open_pipe())
            return;
    }
    rd_log(&comm->ctx, RD_LOG_WARN, "the pipe %s of RONDO_DUMP_PIPE cannot be made: %s", path, rd_fd_strerror(errno));
    remove_pipe();
}

static void end_pipe(void)
{
    int fd = atomic_exchange(&pipe_fd, -1);

    if (fd >= 0)
        rd_fd_close(fd);
    remove_pipe();
}

/* ---- who wants it ---- */

void rd_triggers_join(rondo_comm_t comm)
{
    if (comm->internal || (!comm->env.dump_signal[0] && !comm->env.dump_pipe[0]) || !rd_monitor_thread_join())
        return;
    comm->triggers = true;
    pthread_mutex_lock(&lock);
    if (users++ == 0) {
        install(comm->env.dump_signal);
        begin_pipe(comm);
        if (!comm->env.dump_dir[0])
            rd_log(&comm->ctx, RD_LOG_WARN, "dumps that are asked for need a folder: RONDO_DUMP_DIR is not set");
    }
    pthread_mutex_unlock(&lock);
    rd_monitor_thread_wake(); /* it polls the pipe from now on */
}

void rd_triggers_leave(rondo_comm_t comm)
{
    if (!comm->triggers)
        return;
    comm->triggers = false;
    pthread_mutex_lock(&lock);
    bool last = users && --users == 0;
    if (last)
        restore();
    pthread_mutex_unlock(&lock);
    rd_monitor_thread_leave();
    pthread_mutex_lock(&lock);
    if (last && !users)
        end_pipe();
    pthread_mutex_unlock(&lock);
}

int rd_triggers_fd(void)
{
    return atomic_load(&pipe_fd);
}

void rd_triggers_turn(void)
{
    char bytes[64];
    int fd = atomic_load(&pipe_fd);
    bool wanted = atomic_exchange(&asked, 0);

    while (fd >= 0 && read(fd, bytes, sizeof bytes) > 0)
        wanted = true;
    if (wanted)
        (void)rd_dump_asked();
}

/* The handlers of a fork have the lock of the monitor thread alone: who holds this one may be gone. */
void rd_triggers_forget(void)
{
    pthread_mutex_init(&lock, NULL);
    restore();
    atomic_store(&asked, 0);
    atomic_store(&pipe_fd, -1); /* closed with all others */
    path[0] = 0;
    users = 0;
}
