/* Nobody is blamed who is not to blame: ranks that share a core and call everything that is legal, while they are
 * stopped for less than the limit, one or all at once, are traced, fork, jump in time and lack memory, and who is asked
 * again and again. What is done to whom is written down before it is done; "late" and "stopped" must be so at that
 * time, and nothing else may ever be said. No call may fail.
 *
 *     quiet [--seconds S] [--seed N] [--ranks N]     10 s, ten ranks, on one core that the seed chooses */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"

enum { NOBODY = 0, LATE = 3, BLAMED = 4, UNKNOWN = 5 }; /* the exit status of `who` */

#define RANKS 10
#define COUNT 3000
#define SLACK_MS 500 /* so long after it was let go on a rank may still not have had the core */
#define PRESSURE ((size_t)64 << 20)

/* What is done to a rank, or what it does; `since` 0: it never was. */
typedef struct fact {
    _Atomic int64_t since_ms, until_ms; /* until 0: it goes on */
} fact_t;

static struct shared {
    int nranks;
    uint64_t seed;
    _Atomic int over, traced;
    _Atomic int64_t jump_s; /* of the wall clock */
    _Atomic uint64_t calls;
    fact_t stopped[OBEDIENT_MOST], away[OBEDIENT_MOST];
} * shared;

/* The wall clock of this program jumps; the machine's does not. */
int clock_gettime(clockid_t id, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, id, time);

    if (id == CLOCK_REALTIME && shared)
        time->tv_sec += atomic_load(&shared->jump_s);
    return result;
}

static int64_t now_ms(void)
{
    return test_clock_us() / 1000;
}

static void begins(fact_t *fact)
{
    atomic_store(&fact->until_ms, 0);
    atomic_store(&fact->since_ms, now_ms());
}

static void ends(fact_t *fact)
{
    atomic_store(&fact->until_ms, now_ms());
}

static bool was(fact_t *fact, int64_t from_ms, int64_t to_ms)
{
    int64_t since = atomic_load(&fact->since_ms), until = atomic_load(&fact->until_ms);

    return since && since <= to_ms && (!until || until + SLACK_MS >= from_ms);
}

/* ---- legal calls ---- */

static float in[RANKS * 2 * COUNT], out[RANKS * 2 * COUNT];

/* The same bytes as other types on some ranks, in place on some, and a factor of its own on each. */
static rondo_result_t reduce(int rank, rondo_comm_t comm, size_t count, unsigned odd)
{
    const bool place = odd >> rank % 8 & 1;
    float factor = (float)rank + 0.5f;
    rondo_op_t op;

    if (odd & 1)
        return rondo_allreduce(place ? out : in, out, count, RONDO_FLOAT32, RONDO_MAX, comm, NULL);
    rondo_result_t result = rondo_op_create_premulsum(&op, &factor, RONDO_FLOAT32, 0, comm);
    if (result == RONDO_SUCCESS)
        result = rondo_allreduce(place ? out : in, out, count, RONDO_FLOAT32, op, comm, NULL);
    return result == RONDO_SUCCESS ? rondo_op_destroy(op, comm) : result;
}

static rondo_result_t move(int rank, rondo_comm_t comm, size_t count, unsigned odd, int what)
{
    const bool bytes = odd >> rank % 8 & 1;
    const rondo_type_t type = bytes ? RONDO_INT8 : RONDO_FLOAT32;
    const size_t n = bytes ? 4 * count : count;

    switch (what) {
    case 0:
        return rondo_broadcast(in, bytes ? in : out, n, type, (int)(odd % (unsigned)shared->nranks), comm, NULL);
    case 1:
        return rondo_allgather(bytes ? out + (size_t)rank * count : in, out, n, type, comm, NULL);
    case 2:
        return rondo_alltoall(in, out, n, type, comm, NULL);
    default:
        return rondo_gather(in, out, n, type, (int)(odd % (unsigned)shared->nranks), comm, NULL);
    }
}

/* Around a ring. */
static rondo_result_t messages(int rank, rondo_comm_t comm, size_t count)
{
    const int n = shared->nranks;
    rondo_result_t result = rondo_group_start();

    if (result == RONDO_SUCCESS)
        result = rondo_send(in, 4 * count, RONDO_INT8, (rank + 1) % n, comm, NULL);
    if (result == RONDO_SUCCESS)
        result = rondo_recv(out, count, RONDO_FLOAT32, (rank + n - 1) % n, comm, NULL);
    rondo_result_t end = rondo_group_end();
    return result == RONDO_SUCCESS ? end : result;
}

/* What a rank does between calls: nearly always nothing. */
static void live(int rank, uint64_t *own)
{
    unsigned what = test_below(own, 2000);

    if (what == 0) { /* elsewhere for a while */
        begins(&shared->away[rank]);
        obedient_pause((int)test_below(own, 1500));
        ends(&shared->away[rank]);
    } else if (what == 1) {
        begins(&shared->away[rank]);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
        ends(&shared->away[rank]);
    }
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    uint64_t alike = shared->seed, own = shared->seed + (uint64_t)rank + 1;
    rondo_result_t result = RONDO_SUCCESS;
    int over = 0;

    if (what == OBEDIENT_END)
        return rondo_comm_destroy(comm);
    obedient_stay_on(shared->seed);
    for (uint64_t i = 0; result == RONDO_SUCCESS && !over; i++) {
        size_t count = 1 + test_below(&alike, test_below(&alike, 8) ? 16 : COUNT);
        unsigned kind = test_below(&alike, 8), odd = test_below(&alike, 256);
        live(rank, &own);
        if (kind < 4)
            result = move(rank, comm, count, odd, (int)kind);
        else if (kind < 6)
            result = reduce(rank, comm, count, odd);
        else if (kind == 6)
            result = messages(rank, comm, count);
        for (int again = 0; result == RONDO_SUCCESS && again < 100 && kind == 7; again++)
            result = rondo_allreduce(in, out, 1, RONDO_FLOAT32, RONDO_MAX, comm, NULL);
        if (result == RONDO_SUCCESS && i % 8 == 0) {
            int mine = atomic_load(&shared->over);
            result = rondo_allreduce(&mine, &over, 1, RONDO_INT32, RONDO_MAX, comm, NULL);
        }
        if (rank == 0)
            atomic_fetch_add(&shared->calls, kind == 7 ? 100 : 1);
    }
    if (result != RONDO_SUCCESS)
        printf("quiet: rank %d: %s\n", rank, rondo_last_error(comm));
    return result;
}

/* ---- disturbances ---- */

static void stop(int from, int to, int ms)
{
    for (int r = from; r < to; r++) {
        begins(&shared->stopped[r]);
        kill(obedient_pids[r], SIGSTOP);
    }
    obedient_pause(ms);
    for (int r = from; r < to; r++)
        kill(obedient_pids[r], SIGCONT);
    for (int r = from; r < to; r++)
        ends(&shared->stopped[r]);
}

/* A rank that forks meanwhile is left alone: only its own process is traced. */
static void trace(int rank, int ms)
{
    const pid_t pid = obedient_pids[rank];

    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
        return; /* not allowed here */
    begins(&shared->stopped[rank]);
    if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0 && waitpid(pid, NULL, __WALL) == pid)
        obedient_pause(ms);
    ptrace(PTRACE_DETACH, pid, NULL, NULL);
    ends(&shared->stopped[rank]);
    atomic_fetch_add(&shared->traced, 1);
}

static void press(void)
{
    char *much = mmap(NULL, PRESSURE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (int turn = 0; much != MAP_FAILED && turn < 4; turn++)
        memset(much, turn, PRESSURE);
    if (much != MAP_FAILED)
        munmap(much, PRESSURE);
}

static void disturb(void)
{
    uint64_t random = shared->seed + 1000;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!atomic_load(&shared->over)) {
        int rank = (int)test_below(&random, (unsigned)shared->nranks);
        switch (test_below(&random, 8)) {
        case 0:
            stop(0, shared->nranks, 3000);
            break;
        case 1:
            trace(rank, 300);
            break;
        case 2:
            atomic_store(&shared->jump_s, (int)test_below(&random, 20000) - 10000);
            break;
        case 3:
            press();
            break;
        case 4:
            stop(rank, rank + 1, 100 + (int)test_below(&random, 2400));
            break;
        default:
            obedient_pause((int)test_below(&random, 1500));
        }
    }
    _exit(0);
}

/* ---- what is said ---- */

static int asked, answered, late, stopped;

/* The process that the verdict begins with; -1: none. */
static int named(void)
{
    const char *at = strstr(obedient_text, "': rank ");

    for (int r = 0; at && r < shared->nranks; r++) {
        char who[32];
        snprintf(who, sizeof who, ":%d) is ", (int)obedient_pids[r]);
        const char *is = strstr(at, ") is ");
        if (is && is - at > 0 && strstr(at, who) && strstr(at, who) + strlen(who) == is + 5)
            return r;
    }
    return -1;
}

static void ask(void)
{
    int64_t from = now_ms();
    int status = obedient_ras("who", obedient_job), rank = named();
    int64_t to = now_ms();

    asked++;
    answered += status != 1;
    if (status == NOBODY || status == UNKNOWN || status == 1) /* 1: no job, as everybody is stopped: nobody answers */
        return;
    bool is_stopped = rank >= 0 && was(&shared->stopped[rank], from, to);
    if (status == BLAMED && is_stopped && strstr(obedient_text, ") is stopped, ")) {
        stopped++;
        return;
    }
    if (status == LATE && rank >= 0 && (is_stopped || was(&shared->away[rank], from, to))) {
        late++;
        return;
    }
    CHECK(false, "after %d questions, exit %d, rank %d: %s", asked, status, rank, obedient_text);
}

static void run(int seconds)
{
    int64_t until = now_ms() + seconds * INT64_C(1000);

    obedient_start(shared->nranks, "world", obey);
    for (int r = 0; r < shared->nranks; r++)
        obedient_order(r, OBEDIENT_REDUCE);
    fflush(stdout);
    pid_t disturber = fork();
    if (disturber == 0)
        disturb();
    while (now_ms() < until && failures < 5)
        ask();
    atomic_store(&shared->over, 1);
    waitpid(disturber, NULL, 0);
    for (int r = 0; r < shared->nranks; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "a call of rank %d has failed", r);
    CHECK(answered > 0, "asked %d times, and nobody has answered", asked);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

int main(int argc, char **argv)
{
    int seconds = 10, ranks = RANKS;
    uint64_t seed = 1;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--ranks") == 0)
            ranks = atoi(argv[i + 1]);
    }
    if (ranks < 2 || ranks > RANKS || seconds < 1)
        return 2;
    test_begin("monitor/quiet", seconds + 300);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    shared->nranks = ranks;
    shared->seed = seed;
    run(seconds);
    printf(
        "quiet: seed %llu: %d s, %d ranks, %llu calls each, asked %d times: %d late and %d stopped, which they were; "
        "traced %d times; %d false\n",
        (unsigned long long)seed, seconds, ranks, (unsigned long long)atomic_load(&shared->calls), asked, late, stopped,
        atomic_load(&shared->traced), failures);
    return failures != 0;
}
