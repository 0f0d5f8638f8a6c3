/* Ranks without an MPI: forked here, speaking through memory that was mapped before the fork. The first process only
 * waits: when a rank fails it ends the others, so that none is left. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

#define SLICE 512 /* doubles of one rank that gather moves at a time */
#define SHARED_BYTES 65536

typedef struct {
    atomic_int arrived, round;
    rondo_unique_id_t id;
    _Alignas(4096) char shared[SHARED_BYTES];
    double slots[][SLICE];
} common_t;

static common_t *common;
static pid_t *children;

static void fork_barrier(void)
{
    int round = atomic_load(&common->round);

    if (atomic_fetch_add(&common->arrived, 1) == world.nranks - 1) {
        atomic_store(&common->arrived, 0);
        atomic_fetch_add(&common->round, 1);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&common->round, memory_order_acquire) == round; spins++)
        if (spins > 200)
            sched_yield();
}

static void fork_gather(const double *mine, int n, double *all)
{
    for (int at = 0; at < n; at += SLICE) {
        int m = n - at < SLICE ? n - at : SLICE;

        memcpy(common->slots[world.rank], mine + at, (size_t)m * sizeof *mine);
        fork_barrier();
        for (int r = 0; r < world.nranks; r++)
            memcpy(all + (size_t)r * (size_t)n + at, common->slots[r], (size_t)m * sizeof *mine);
        fork_barrier();
    }
}

static rondo_result_t fork_comm_create(rondo_comm_t *comm, const rondo_config_t *config)
{
    rondo_unique_id_t id;

    if (world.rank == 0)
        (void)rondo_unique_id_create(&common->id); /* on failure it carries the error to all */
    fork_barrier();
    id = common->id;
    fork_barrier();
    return rondo_comm_create(comm, world.nranks, &id, world.rank, config);
}

static void *fork_shared(size_t bytes)
{
    return bytes <= SHARED_BYTES ? common->shared : NULL;
}

static void fork_abort(int status)
{
    fflush(NULL);
    _exit(status);
}

static void fork_end(void)
{
}

static void kill_children(int n)
{
    for (int r = 0; r < n; r++)
        if (children[r] > 0)
            kill(children[r], SIGKILL);
}

/* Waits for all; the first that fails gives the exit status, and the others a moment to say what they saw. */
static _Noreturn void supervise(int n)
{
    int status, worst = 0;
    pid_t pid;

    while ((pid = wait(&status)) > 0 || (pid < 0 && errno == EINTR)) {
        int code = pid < 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;

        for (int r = 0; r < n; r++)
            if (children[r] == pid) {
                children[r] = 0;
                if (WIFSIGNALED(status) && !worst)
                    fprintf(stderr, "rondo-perf: rank %d was ended by signal %d\n", r, WTERMSIG(status));
            }
        if (code && !worst) {
            worst = code;
            nanosleep(&(struct timespec){.tv_nsec = 200 * 1000000}, NULL);
            kill_children(n);
        }
    }
    exit(worst);
}

/* A core for each rank, as mpirun does where there are enough: two that wait for each other on one core measure the
 * scheduler. */
static void bind_to_core(int rank, int nranks)
{
    cpu_set_t allowed[16], one[16]; /* of 1,024 processors each: Linux counts up to 8,192 */
    int seen = 0;

    if (sched_getaffinity(0, sizeof allowed, allowed) != 0 || CPU_COUNT_S(sizeof allowed, allowed) < nranks)
        return;
    for (size_t cpu = 0; cpu < 8 * sizeof allowed; cpu++) {
        if (!CPU_ISSET_S(cpu, sizeof allowed, allowed) || seen++ != rank)
            continue;
        CPU_ZERO_S(sizeof one, one);
        CPU_SET_S(cpu, sizeof one, one);
        (void)sched_setaffinity(0, sizeof one, one);
        return;
    }
}

void world_start_fork(int nranks)
{
    size_t bytes = sizeof *common + (size_t)nranks * sizeof common->slots[0];
    pid_t parent = getpid();

    common = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    children = calloc((size_t)nranks, sizeof *children);
    if (common == MAP_FAILED || !children) {
        fprintf(stderr, "rondo-perf: no memory for %d ranks\n", nranks);
        exit(1);
    }
    for (int r = 0; r < nranks; r++) {
        children[r] = fork();
        if (children[r] < 0) {
            fprintf(stderr, "rondo-perf: cannot fork rank %d of %d: %s\n", r, nranks, strerror(errno));
            kill_children(r);
            exit(1);
        }
        if (children[r] > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* no rank outlives the command */
        if (getppid() != parent)
            _exit(1);
        free(children);
        bind_to_core(r, nranks);
        world = (world_t){.rank = r,
                          .nranks = nranks,
                          .launcher = "fork",
                          .barrier = fork_barrier,
                          .gather = fork_gather,
                          .comm_create = fork_comm_create,
                          .shared = fork_shared,
                          .abort = fork_abort,
                          .end = fork_end};
        return;
    }
    supervise(nranks);
}
