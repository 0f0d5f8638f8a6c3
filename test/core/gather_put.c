/* Senders of a gather that write into the root's buffer (transport/cma/room.h). This program's own process_vm_writev
 * stands before the kernel's, so that a sender can be held at any moment: whatever becomes of it or of the root, the
 * data are right or the call fails, and nobody writes into a buffer that the root's user has back. */
#define _GNU_SOURCE
#include <errno.h>
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

#include "util/harness.h"

#define MOST ((size_t)300000)
#define BYTE 0x77
#define VICTIM 1
#define PATIENCE 20000 /* turns in which a root that does not wait would be over */

/* What happens to the victim's first write. */
typedef enum { WRITES, REFUSED, HALF, STOPPED, SLOW, KILLED, EXECUTES, KINDS } kind_t;
static const char *const kind_names[KINDS] = {
    "all write",   "one is refused", "one writes a half",           "one is stopped",
    "one is slow", "one is killed",  "one executes another program"};

typedef struct {
    _Atomic int writes, held, over, written; /* calls; the victim is in its own; the root's call is over */
    _Atomic int pid;                         /* of the victim */
} seen_t;

static seen_t *seen;
static kind_t kind; /* of this process; WRITES except in the victim */

static ssize_t forward(pid_t pid, const struct iovec *here, const struct iovec *there)
{
    return syscall(SYS_process_vm_writev, pid, here, 1, there, 1, 0);
}

/* As the kernel does: first it looks where the bytes belong, then it takes its time. */
static ssize_t slowly(pid_t pid, const struct iovec *here, const struct iovec *there)
{
    const struct iovec copy = *there;

    atomic_store(&seen->held, 1);
    for (int i = 0; i < PATIENCE; i++)
        sched_yield();
    ssize_t put = forward(pid, here, &copy);
    atomic_store(&seen->written, 1);
    return put;
}

__attribute__((visibility("default"))) ssize_t process_vm_writev(pid_t pid, const struct iovec *here,
                                                                 unsigned long nhere, const struct iovec *there,
                                                                 unsigned long nthere, unsigned long flags)
{
    const kind_t now = kind;
    struct iovec half = *here;

    (void)nhere, (void)nthere, (void)flags;
    atomic_fetch_add(&seen->writes, 1);
    kind = WRITES;
    switch (now) {
    case REFUSED:
        errno = EPERM;
        return -1;
    case HALF:
        half.iov_len /= 2;
        return forward(pid, &half, there);
    case SLOW:
        return slowly(pid, here, there);
    case STOPPED:
        atomic_store(&seen->held, 1);
        raise(SIGSTOP);
        break;
    case KILLED:
        raise(SIGKILL);
        break;
    case EXECUTES: /* its mark stays, and so does a thread of that number */
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        break;
    default:
        break;
    }
    return forward(pid, here, there);
}

typedef struct {
    kind_t kind;
    bool uneven; /* gatherv */
} job_t;

static unsigned char value(int rank, size_t i)
{
    return (unsigned char)((size_t)rank * 31 + i * 7 + 1);
}

static size_t length(const job_t *j, int rank)
{
    return j->uneven ? MOST / 2 + (size_t)rank * 1001 : MOST;
}

static rondo_result_t gather(const test_rank_t *t, const job_t *j, rondo_comm_t comm, int root, const void *in,
                             void *out)
{
    size_t counts[TEST_MAX_RANKS];

    if (!j->uneven)
        return rondo_gather(in, out, length(j, 0), RONDO_UINT8, root, comm, NULL);
    for (int r = 0; r < t->nranks; r++)
        counts[r] = length(j, r);
    return rondo_gatherv(in, counts[t->rank], out, counts, NULL, RONDO_UINT8, root, comm, NULL);
}

static void check(test_rank_t *t, const job_t *j, const unsigned char *out)
{
    for (int r = 0; r < t->nranks; r++)
        for (size_t i = 0; i < length(j, r); i++, out++)
            if (*out != value(r, i)) {
                test_fail(t, "byte %zu of rank %d is %d", i, r, *out);
                return;
            }
}

/* Every rank is root once, and after a refusal all goes on. */
static void succeed(test_rank_t *t, const job_t *j, rondo_comm_t comm, const unsigned char *in, unsigned char *out)
{
    const int n = t->nranks, refused = j->kind == REFUSED || j->kind == HALF;

    for (int root = 0; root < 2 * n; root++) {
        memset(out, BYTE, (size_t)n * MOST);
        test_note(t, "root %d", root % n);
        TEST_OK(t, comm, gather(t, j, comm, root % n, in, out));
        if (t->rank == root % n)
            check(t, j, out);
    }
    test_barrier(t);
    /* A rank that may not write to another one does not try it again. */
    TEST_TRUE(t, atomic_load(&seen->writes) == 2 * n * (n - 1) - refused);
}

static void wait_for(_Atomic int *flag)
{
    while (!atomic_load(flag))
        sched_yield();
}

/* The last rank ends it while the victim writes. The root has its buffer back, and uses it for something else. */
static void fail(test_rank_t *t, const job_t *j, rondo_comm_t comm, const unsigned char *in, unsigned char *out)
{
    const int n = t->nranks;

    if (t->rank == n - 1 && j->kind < KILLED) {
        wait_for(&seen->held);
        while (j->kind == STOPPED && !test_is_stopped(atomic_load(&seen->pid)))
            sched_yield();
        TEST_OK(t, comm, rondo_comm_revoke(comm));
    } else if (t->rank == 0 || (t->rank == VICTIM && j->kind == STOPPED)) {
        TEST_GIVES(t, comm, RONDO_ERR_REMOTE, gather(t, j, comm, 0, in, out));
    } else {
        (void)gather(t, j, comm, 0, in, out); /* who has written is done */
    }
    if (t->rank == 0) {
        if (j->kind == SLOW)
            TEST_TRUE(t, atomic_load(&seen->written));
        memset(out, BYTE, (size_t)n * MOST);
        atomic_store(&seen->over, 1);
    }
}

static void body(test_rank_t *t, void *arg)
{
    const job_t *j = arg;
    size_t all = (size_t)t->nranks * MOST;
    unsigned char *in = malloc(MOST), *out = malloc(all);
    rondo_comm_t comm = test_comm(t, NULL);

    if (!in || !out)
        test_stop(t, "no memory");
    for (size_t i = 0; i < MOST; i++)
        in[i] = value(t->rank, i);
    memset(out, BYTE, all);
    if (t->rank == VICTIM) {
        atomic_store(&seen->pid, getpid());
        kind = j->kind;
    }
    test_note(t, "%s, %s", kind_names[j->kind], j->uneven ? "gatherv" : "gather");
    test_barrier(t); /* a rank that is still making the communicator would fail there when the victim is killed */
    if (j->kind < STOPPED)
        succeed(t, j, comm, in, out);
    else
        fail(t, j, comm, in, out);
    if (j->kind == STOPPED || j->kind == SLOW)
        test_barrier(t);
    for (size_t i = 0; i < all && t->rank == 0 && j->kind >= STOPPED; i++)
        if (out[i] != BYTE) {
            test_fail(t, "byte %zu was written after the call had failed", i);
            break;
        }
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    free(out);
    free(in);
}

/* The victim goes on when the root's user has the buffer back; the other program has no end of its own. */
static void wake(test_director_t *d, const pid_t *pid)
{
    if (!atomic_load(&seen->over) || !pid[VICTIM])
        return;
    if (test_is_stopped(pid[VICTIM]))
        kill(pid[VICTIM], SIGCONT);
    if (*(const kind_t *)d->arg == EXECUTES)
        kill(pid[VICTIM], SIGKILL);
}

int main(void)
{
    job_t j;
    int bad = 0, runs = 0;

    test_begin("gather_put", 120);
    setenv("RONDO_PROTO", "cma", 1);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    for (j.kind = WRITES; j.kind < KINDS; j.kind++)
        for (int uneven = 0; uneven < 2; uneven++)
            for (int n = 3; n <= 5; n++, runs++) {
                test_director_t d = {.step = wake, .arg = &j.kind, .victims = j.kind >= KILLED ? 1u << VICTIM : 0};
                j.uneven = uneven;
                memset((void *)seen, 0, sizeof *seen);
                bad += test_run_directed(&d, n, 30, body, &j) != 0;
            }
    printf("%d runs, %d wrong\n", runs, bad);
    return bad != 0;
}
