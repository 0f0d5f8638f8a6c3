/* Few descriptors are left, on one rank or on all, while a communicator is made: it is made, or all ranks that fail get
 * an error that says "open files", at once and not by a deadline, also where the maker of the id has no core for a
 * second. What is left is swept from none up to where all succeed, on one node and on two.
 *
 * The same where one is made from another, by a split or by a shrink after a death: of the one that leads, or serves,
 * or of another rank. The others are told which rank lacks them, and none that lives is taken for dead.
 * They are told of one that can start no thread, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 3
#define HALT_US 1000000
#define AT_ONCE_US 10000000 /* of the 20 s that creation may take */
/* Times in a row that a rank may find the rendezvous ended: it waits 200 ms for one that the machine keeps from coming.
 */
#define MISSED 10

typedef struct {
    int left, victim, nodes; /* victim: -1: all ranks */
    volatile int made, failed, over, missed;
    bool halts; /* rank 2 stops the process of rank 0, while rank 1 finds that it has no descriptor left */
    volatile pid_t maker;
    volatile int halted;
} job_t;

/* Of `left`: what is open stays so, and the limit is lowered to less than that; or none is left, in a sandbox in which
 * a thread may not have a table of its own by unshare. Or no thread can be started: in the rank that serves, which has
 * descriptors, and in another one that has too few of them. */
#define LIMIT_3 (-1)
#define SANDBOX (-2)
#define NO_THREAD (-3)

/* From here on the call fails, in this thread and those that it starts. */
static void refuse(test_rank_t *t, unsigned call, unsigned error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        test_stop(t, "no sandbox");
}

/* Takes all descriptors but `left`. */
static void take_descriptors(int left)
{
    const struct rlimit limit = {left == LIMIT_3 ? 3 : 128, 128};
    int fds[128], n = 0;

    setrlimit(RLIMIT_NOFILE, &limit);
    while (n < 128 && (fds[n] = fcntl(2, F_DUPFD_CLOEXEC, 3)) >= 0)
        n++;
    for (; left > 0 && n > 0; left--)
        close(fds[--n]);
}

/* Rank 2 comes when rank 0 runs again. */
static void halt(test_rank_t *t, job_t *j)
{
    if (t->rank == 0)
        j->maker = getpid();
    test_barrier(t);
    if (t->rank == 2) {
        kill(j->maker, SIGSTOP);
        j->halted = 1;
        usleep(HALT_US);
        kill(j->maker, SIGCONT);
    }
    while (t->rank == 1 && !j->halted)
        sched_yield();
}

static void body(test_rank_t *t, void *arg)
{
    job_t *j = arg;
    rondo_unique_id_t id;
    rondo_comm_t comm;
    char host[16];

    test_note(t, "%d descriptors left on rank %d (-1: all), %d nodes", j->left, j->victim, j->nodes);
    snprintf(host, sizeof host, "%d", t->rank % j->nodes);
    setenv("RONDO_HOSTID", host, 1);
    test_id(t, &id);
    if (j->victim < 0 || j->victim == t->rank)
        take_descriptors(j->left);
    test_barrier(t);
    if (j->halts)
        halt(t, j);
    int64_t began = test_clock_us();
    rondo_result_t result = rondo_comm_create(&comm, t->nranks, &id, t->rank, NULL);
    __atomic_add_fetch(result == RONDO_SUCCESS ? &j->made : &j->failed, 1, __ATOMIC_SEQ_CST);
    if (result == RONDO_SUCCESS) {
        result = rondo_barrier(comm, NULL);
        if (result != RONDO_SUCCESS && !strstr(rondo_last_error(comm), "open files"))
            test_fail(t, "the barrier: %s", rondo_last_error(comm));
        __atomic_add_fetch(&j->over, 1, __ATOMIC_SEQ_CST);
        while (j->over + j->failed < RANKS) /* what this rank has sent to one in its barrier goes with an abort */
            sched_yield();
        TEST_OK(t, NULL, rondo_comm_abort(comm));
        return;
    }
    if (strstr(rondo_last_error(NULL), "says why") || strstr(rondo_last_error(NULL), "as its message says"))
        j->missed = 1;
    else if (!strstr(rondo_last_error(NULL), "open files"))
        test_fail(t, "%s: %s", rondo_result_string(result), rondo_last_error(NULL));
    if (test_clock_us() - began > AT_ONCE_US)
        test_fail(t, "only after %lld ms: %s", (long long)(test_clock_us() - began) / 1000, rondo_last_error(NULL));
}

static int most = 40;

static int sweep(int nodes, int victim)
{
    job_t *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0, enough = 0, again = 0;

    if (j == MAP_FAILED)
        return 1;
    j->nodes = nodes;
    j->victim = victim;
    for (j->left = 0; j->left <= most && !enough; j->left += again == 0) {
        j->made = j->failed = j->over = j->missed = 0;
        bad += test_run(TEST_PROCESSES, RANKS, 60, body, j) != 0;
        enough = j->made == RANKS;
        again = j->missed && again < MISSED ? again + 1 : 0;
        if (j->missed && !again) {
            printf("%d nodes, rank %d, %d left: a rank hears nothing, every time\n", j->nodes, j->victim, j->left);
            bad++;
        }
    }
    printf("%d nodes, rank %d: made with %d left, %d wrong\n", j->nodes, j->victim, j->left - 1, bad);
    return bad;
}

/* A rank that has none left, and a maker that is slow. Rank 2 may find that it has ended (`missed`). */
static int slow_maker(void)
{
    job_t *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (j == MAP_FAILED)
        return 1;
    *j = (job_t){.victim = 1, .nodes = 1, .halts = true};
    int bad = test_run(TEST_PROCESSES, RANKS, 60, body, j) != 0;
    printf("a slow maker: made by %d ranks, %d wrong\n", j->made, bad);
    return bad + j->made;
}

typedef enum { SURVIVORS, LIST, SPLIT, CALLS } call_t;
#define DEAD 3 /* in a shrink */
#define SOLE 3 /* numbers of descriptors that a sole survivor has */

typedef struct {
    call_t call;
    int left, victim;
    volatile int over;
} derived_t;

static rondo_result_t derive(call_t call, rondo_comm_t comm, rondo_comm_t *next)
{
    const int dead[] = {DEAD};

    if (call == SPLIT)
        return rondo_comm_split(comm, 0, 0, next, NULL);
    return rondo_comm_shrink(comm, dead, call == LIST ? 1 : RONDO_SURVIVORS, next, NULL);
}

static void derived_body(test_rank_t *t, void *arg)
{
    static const char *const names[CALLS] = {"a shrink to the survivors", "a shrink by a list", "a split"};
    derived_t *d = arg;
    const bool serves = d->victim == 0;
    rondo_comm_t comm = test_comm(t, NULL), next = NULL;
    char lacks[16];

    test_note(t, "%s with %d descriptors left on rank %d", names[d->call], d->left, d->victim);
    test_barrier(t);
    if (d->call != SPLIT && t->rank == DEAD)
        _exit(0);
    if (t->rank == d->victim && d->left == SANDBOX)
        refuse(t, SYS_unshare, EPERM);
    if (t->rank == d->victim && d->left == NO_THREAD) {
        refuse(t, SYS_clone3, EAGAIN);
        refuse(t, SYS_clone, EAGAIN);
    }
    if (t->rank == d->victim && !(d->left == NO_THREAD && serves))
        take_descriptors(d->left == NO_THREAD ? 2 : d->left);
    snprintf(lacks, sizeof lacks, "rank %d (", d->victim);
    int64_t began = test_clock_us();
    rondo_result_t result = derive(d->call, comm, &next);
    if (result == RONDO_SUCCESS)
        test_fail(t, "it was made");
    test_sentence(t, d->left == NO_THREAD && serves ? "more threads" : "open files");
    if (t->rank != d->victim)
        test_sentence(t, lacks);
    if (test_clock_us() - began > AT_ONCE_US)
        test_fail(t, "only after %lld ms", (long long)(test_clock_us() - began) / 1000);
    __atomic_add_fetch(&d->over, 1, __ATOMIC_SEQ_CST);
    while (d->over < RANKS + (d->call == SPLIT)) /* an abort here is news for the others */
        sched_yield();
    rondo_comm_abort(comm);
}

static int derived(int i)
{
    static const int left[] = {0, 1, 2, 6, LIMIT_3, SANDBOX, NO_THREAD};
    derived_t *d = mmap(NULL, sizeof *d, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = d == MAP_FAILED;

    for (int k = 0; k < 7 && !bad; k++) {
        *d = (derived_t){.call = (call_t)(i / 2), .left = left[k], .victim = i % 2 * 2};
        bad = test_run(TEST_PROCESSES, RANKS + 1, 60, derived_body, d) != 0;
    }
    return bad;
}

/* One is left of two, as the other has aborted, and has no descriptor to find that out: it gets a communicator of its
 * own, at once. */
static void sole_body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL), next = NULL;

    test_note(t, "the sole survivor has %d descriptors left", *(int *)arg);
    test_barrier(t);
    if (t->rank != 0)
        rondo_comm_abort(comm);
    test_barrier(t);
    if (t->rank == 0) {
        take_descriptors(*(int *)arg);
        int64_t began = test_clock_us();
        if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, NULL)))
            TEST_OK(t, next, rondo_comm_destroy(next));
        if (test_clock_us() - began > AT_ONCE_US)
            test_fail(t, "only after %lld ms", (long long)(test_clock_us() - began) / 1000);
        rondo_comm_abort(comm);
    }
    test_barrier(t); /* its process lives until then */
}

static int sole(int left)
{
    return test_run(TEST_PROCESSES, 2, 60, sole_body, &left) != 0;
}

static int on_one_node(int i)
{
    return sweep(1, i - 1);
}

static int on_two_nodes(int i)
{
    return sweep(2, i - 1);
}

int main(int argc, char **argv)
{
    int bad;

    if (argc > 1)
        most = atoi(argv[1]);
    test_begin("few_descriptors", 500);
    setenv("RONDO_CREATE_TIMEOUT_MS", "20000", 1);
    bad = slow_maker();
    bad += test_at_once(2 * CALLS, derived);
    bad += test_at_once(SOLE, sole);
    bad += test_at_once(RANKS + 1, on_one_node) + test_at_once(RANKS + 1, on_two_nodes);
    printf("few_descriptors: %d wrong\n", bad);
    return bad != 0;
}
