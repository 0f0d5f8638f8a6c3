/* A rank fails while another one puts into its window, or gets from it: it has its memory back when its call returns,
 * and nobody writes there any more, nor takes for the window's what lies there. The origin is held at a chosen moment:
 * by this program's own process_vm_writev and process_vm_readv, which stand before the kernel's, or, where ranks are
 * threads, at a page of its own buffer that may not be touched yet. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rma/ways.h"

#define BYTES ((size_t)1 << 20)
#define PUT 0x77
#define AFTER 0x11     /* what the target's user writes once the memory is his */
#define PATIENCE 20000 /* turns in which a target that does not wait would be over */

/* Before the kernel looks where to copy, and so for as long as it takes; and after it has looked. */
typedef enum { STOPPED, SLOW } kind_t;

typedef struct {
    _Atomic int held, over, copied; /* the origin is held; the target's memory is its user's; the origin has copied */
    _Atomic int pid;                /* of the origin */
} seen_t;

typedef struct {
    kind_t kind;
    bool get, destroys; /* destroys: the target calls rondo_window_destroy before it aborts */
} job_t;

static seen_t *seen;
static const job_t *held; /* in the origin, until it has been held */
static char *barred;      /* threads: the page that is not to be touched */

static void take_time(void)
{
    atomic_store(&seen->held, 1);
    for (int i = 0; i < PATIENCE; i++)
        sched_yield();
}

static ssize_t copy(long number, pid_t pid, const struct iovec *here, const struct iovec *there)
{
    const struct iovec looked = *there;
    const job_t *now = held;

    held = NULL;
    if (!now)
        return syscall(number, pid, here, 1, there, 1, 0);
    if (now->kind == STOPPED) {
        atomic_store(&seen->held, 1);
        raise(SIGSTOP);
        return syscall(number, pid, here, 1, there, 1, 0);
    }
    take_time();
    ssize_t done = syscall(number, pid, here, 1, &looked, 1, 0);
    atomic_store(&seen->copied, 1);
    return done;
}

__attribute__((visibility("default"))) ssize_t process_vm_writev(pid_t pid, const struct iovec *here,
                                                                 unsigned long nhere, const struct iovec *there,
                                                                 unsigned long nthere, unsigned long flags)
{
    (void)nhere, (void)nthere, (void)flags;
    return copy(SYS_process_vm_writev, pid, here, there);
}

__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid, const struct iovec *here,
                                                                unsigned long nhere, const struct iovec *there,
                                                                unsigned long nthere, unsigned long flags)
{
    (void)nhere, (void)nthere, (void)flags;
    return copy(SYS_process_vm_readv, pid, here, there);
}

/* A thread has come to the page in the middle of its copy. */
static void touched(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!barred || (char *)info->si_addr < barred || (char *)info->si_addr >= barred + BYTES) {
        signal(number, SIG_DFL);
        return;
    }
    take_time();
    atomic_store(&seen->copied, 1);
    mprotect(barred, BYTES, PROT_READ | PROT_WRITE);
}

static char *pages(test_rank_t *t, int value)
{
    char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        test_stop(t, "no memory");
    memset(at, value, BYTES);
    return at;
}

/* A get that was over when the target failed has what the window had. */
static void origin(test_rank_t *t, const job_t *j, rondo_comm_t comm, rondo_window_t window, char *own)
{
    rondo_result_t result;

    if (t->kind == TEST_THREADS) {
        barred = own;
        mprotect(own, BYTES, PROT_NONE);
    } else {
        atomic_store(&seen->pid, getpid());
        held = j;
    }
    if (j->get)
        result = rondo_get(own, BYTES, RONDO_INT8, 0, window, 0, 0, 0, comm, NULL);
    else
        result = rondo_put(own, BYTES, RONDO_INT8, 0, window, 0, 0, 0, comm, NULL);
    if (j->kind == STOPPED || (j->get && t->kind == TEST_PROCESSES)) {
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, result);
        if (!strstr(rondo_last_error(comm), "rank 0 ("))
            test_fail(t, "no rank 0 in: %s", rondo_last_error(comm));
    } else {
        TEST_OK(t, comm, result);
        TEST_TRUE(t, !j->get || (own[0] == 1 && own[BYTES - 1] == 1));
    }
}

static void target(test_rank_t *t, const job_t *j, rondo_comm_t comm, rondo_window_t window, char *part)
{
    while (!atomic_load(&seen->held) ||
           (t->kind == TEST_PROCESSES && j->kind == STOPPED && !test_is_stopped(atomic_load(&seen->pid))))
        sched_yield();
    if (j->destroys) {
        TEST_OK(t, comm, rondo_comm_revoke(comm));
        TEST_GIVES(t, comm, RONDO_ERR_ABORTED, rondo_window_destroy(comm, window));
    }
    TEST_OK(t, NULL, rondo_comm_abort(comm));
    TEST_TRUE(t, j->kind == STOPPED || atomic_load(&seen->copied));
    memset(part, AFTER, BYTES);
    atomic_store(&seen->over, 1);
}

static void body(test_rank_t *t, void *arg)
{
    const job_t *j = arg;
    rondo_window_t window = NULL;
    size_t changed = 0;

    rondo_comm_t comm = way_comm(t, t->kind == TEST_THREADS ? WAY_THREADS : WAY_CMA, -1, -1);
    char *own = pages(t, PUT), *part = pages(t, 1);
    TEST_OK(t, comm, rondo_window_create(comm, part, BYTES, &window, 0));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t);
    test_note(t, "%s, %s%s", j->get ? "get" : "put", j->kind == STOPPED ? "stopped" : "slow",
              j->destroys ? ", the window is destroyed" : "");
    if (t->rank == 0)
        target(t, j, comm, window, part);
    else
        origin(t, j, comm, window, own);
    test_barrier(t);
    for (size_t i = 0; i < BYTES && t->rank == 0; i++)
        changed += part[i] != AFTER;
    if (changed)
        test_fail(t, "%zu bytes were written after the rank had its memory back", changed);
    if (t->rank)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    munmap(part, BYTES);
    munmap(own, BYTES);
}

/* The origin goes on when the target's user has the memory back. */
static void wake(test_director_t *d, const pid_t *pid)
{
    (void)d;
    if (atomic_load(&seen->over) && pid[1] && test_is_stopped(pid[1]))
        kill(pid[1], SIGCONT);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = touched, .sa_flags = SA_SIGINFO};
    int bad = 0, runs = 0;

    test_begin("taken_back", 120);
    setenv("RONDO_DEBUG", "none", 0);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED || sigaction(SIGSEGV, &action, NULL) != 0)
        return 1;
    for (int i = 0; i < 12; i++, runs++) {
        job_t j = {.kind = i < 8 ? (kind_t)(i / 4) : SLOW, .get = i & 1, .destroys = i & 2};
        test_director_t d = {.step = wake};
        memset((void *)seen, 0, sizeof *seen);
        barred = NULL;
        bad += (i < 8 ? test_run_directed(&d, 2, 30, body, &j) : test_run(TEST_THREADS, 2, 30, body, &j)) != 0;
    }
    printf("%d runs, %d wrong\n", runs, bad);
    return bad != 0;
}
