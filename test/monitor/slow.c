/* A rank that comes late to every call is named by rondo-ras, though nobody stands still; and nobody is where ranks
 * only do not have alike much to do, share cores, get none, are late once, or are late because they wait themselves.
 * Which rank is slow, and why, is decided here before the ranks begin, and the number of its process is the truth.
 *
 *     slow [--seed S] [--count N] [--nodes N]
 *
 * Trials of one kind follow each other, so `--count 11` has all kinds. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"

#define HOGS 2 /* on the core of a rank that is starved, which they take it from */
#define SLOW 6 /* the exit status of `who` */

typedef enum {
    SLEEPS,
    COMPUTES,
    SELDOM,
    ELSEWHERE,
    NUM_SLOW,
    EVEN = NUM_SLOW,
    UNEVEN,
    CROWDED,
    STARVED,
    ONCE,
    TWO,
    MESSAGES,
    NUM_KINDS
} kind_t;

static const char *const names[NUM_KINDS] = {"slow, sleeps",
                                             "slow, computes",
                                             "slow, calls seldom",
                                             "slow, in another communicator",
                                             "even",
                                             "half as much again",
                                             "crowded",
                                             "starved",
                                             "late once",
                                             "two are slow",
                                             "serves others"};

static struct shared {
    kind_t kind;
    int nranks, odd;
    _Atomic int over;
} * shared;

static void sleep_ms(int ms)
{
    if (ms)
        obedient_pause(ms);
}

/* So much of the processor's time, however long that takes. */
static void compute_ms(int ms)
{
    struct timespec now, from;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

/* ---- a core that is crowded by others ---- */

static pid_t hogs[HOGS];

static void hogs_start(void)
{
    for (int i = 0; i < HOGS; i++)
        if ((hogs[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            obedient_stay_on(0);
            for (;;)
                continue;
        }
}

static void hogs_end(void)
{
    for (int i = 0; i < HOGS; i++)
        if (hogs[i] > 0) {
            kill(hogs[i], SIGKILL);
            waitpid(hogs[i], NULL, 0);
        }
}

/* What a rank does before its call number `call`. */
static void work(int rank, int call)
{
    const bool odd = rank == shared->odd, next = rank == (shared->odd + 1) % shared->nranks;

    switch (shared->kind) {
    case SLEEPS:
        sleep_ms(odd ? 30 : 1);
        return;
    case COMPUTES:
        compute_ms(odd ? 40 : 1);
        return;
    case SELDOM:
        sleep_ms(odd ? 400 : 20);
        return;
    case EVEN:
        sleep_ms(10);
        return;
    case UNEVEN:
        sleep_ms(odd ? 30 : 20);
        return;
    case CROWDED:
        compute_ms(5);
        return;
    case STARVED:
        if (call == 0)
            obedient_stay_on(odd ? 0 : 1);
        if (call == 0 && odd)
            (void)setpriority(PRIO_PROCESS, 0, 10);
        compute_ms(1);
        return;
    case ONCE:
        sleep_ms(odd && call == 20 ? 2500 : 2);
        return;
    case TWO:
        sleep_ms(odd || next ? 30 : 1);
        return;
    default:
        return;
    }
}

/* The last call is the same one on all ranks. */
static rondo_result_t call(rondo_comm_t comm, int *over)
{
    int in = atomic_load(&shared->over);

    return rondo_allreduce(&in, over, 1, RONDO_INT32, RONDO_MAX, comm, NULL);
}

/* The odd rank comes late to the calls of one communicator because it waits for a rank of another one, which is late
 * there. */
static rondo_result_t two_comms(int rank, rondo_comm_t comm)
{
    const int other = (shared->odd + 1) % shared->nranks;
    const bool pair = rank == shared->odd || rank == other;
    rondo_comm_t both, most;
    int over = 0;
    rondo_result_t result = rondo_comm_split(comm, pair ? 0 : -1, rank, &both, NULL);

    if (result == RONDO_SUCCESS)
        result = rondo_comm_split(comm, rank == other ? -1 : 0, rank, &most, NULL);
    while (result == RONDO_SUCCESS && !over) {
        int mine = atomic_load(&shared->over), pairs = mine;
        sleep_ms(rank == other ? 40 : 1);
        if (pair)
            result = rondo_allreduce(&mine, &pairs, 1, RONDO_INT32, RONDO_MAX, both, NULL);
        over = pairs; /* the odd rank tells those of the one what those of the other have agreed on */
        if (result == RONDO_SUCCESS && rank != other)
            result = rondo_broadcast(&pairs, &over, 1, RONDO_INT32, shared->odd - (shared->odd > other), most, NULL);
    }
    if (result == RONDO_SUCCESS && pair)
        result = rondo_comm_destroy(both);
    return result == RONDO_SUCCESS && rank != other ? rondo_comm_destroy(most) : result;
}

/* A rank that serves others waits for them nearly always, and they are not slow. */
static rondo_result_t serve(int rank, rondo_comm_t comm)
{
    int over = 0;
    rondo_result_t result = RONDO_SUCCESS;

    while (result == RONDO_SUCCESS && !over) {
        over = atomic_load(&shared->over);
        if (rank == 1) {
            sleep_ms(20);
            result = rondo_send(&over, 1, RONDO_INT32, 0, comm, NULL);
        } else if (rank == 0) {
            result = rondo_recv(&over, 1, RONDO_INT32, 1, comm, NULL);
        }
    }
    return result;
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    rondo_result_t result = RONDO_SUCCESS;
    int over = 0;

    if (what == OBEDIENT_END)
        return rondo_comm_destroy(comm);
    if (shared->kind == ELSEWHERE)
        return two_comms(rank, comm);
    if (shared->kind == MESSAGES)
        return serve(rank, comm);
    for (int i = 0; result == RONDO_SUCCESS && !over; i++) {
        work(rank, i);
        result = call(comm, &over);
    }
    return result;
}

/* ---- what is said of it ---- */

/* Who is really slow; -1: nobody. */
static int slow_one(void)
{
    if (shared->kind >= NUM_SLOW)
        return -1;
    return shared->kind == ELSEWHERE ? (shared->odd + 1) % shared->nranks : shared->odd;
}

/* Every line that says that a rank is slow names the process. */
static bool names_it(pid_t pid)
{
    char who[32];
    int found = 0;

    snprintf(who, sizeof who, ":%d) is slow: ", (int)pid);
    for (const char *at = obedient_text; (at = strstr(at, ") is slow: ")); at++) {
        const char *name = at;
        while (name > obedient_text && *name != ':')
            name--;
        if (strncmp(name, who, strlen(who)) != 0)
            return false;
        found++;
    }
    return found > 0;
}

/* A line for the matrix of blame.sh. */
static void note(const char *said)
{
    printf("blamed: %s: %s\n", names[shared->kind], said);
}

/* So long the ranks' first threads have been ready to run and had no core, all together, in ns. */
static int64_t queued_ns(void)
{
    int64_t sum = 0;

    for (int r = 0; r < shared->nranks; r++) {
        char path[64];
        long long queued = 0;
        snprintf(path, sizeof path, "/proc/%d/schedstat", (int)obedient_pids[r]);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%*d %lld", &queued) == 1)
            sum += queued;
        if (f)
            fclose(f);
    }
    return sum;
}

/* So many ranks lack a core at any time where no other program runs, as those that wait poll. */
static int crowd(void)
{
    cpu_set_t cores;
    const int n = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;

    return shared->nranks > n ? shared->nranks - n : 0;
}

/* Where ranks have lacked a core for longer, in sum, than the slow one was looked for, and than they themselves are the
 * cause of, it need not be called slow. */
static bool are_starved(int64_t queued_before, int64_t began_us)
{
    return queued_ns() - queued_before > (crowd() + 1) * (test_clock_us() - began_us) * 1000;
}

static void expect_slow(pid_t pid)
{
    const int64_t queued = queued_ns(), began = test_clock_us();
    int status = 0;

    for (int i = 0; i < 60 && status != SLOW; i++)
        status = obedient_ras("who", obedient_job);
    note(status != SLOW ? "nobody" : names_it(pid) ? "slow rank" : "wrong");
    if (status != SLOW && are_starved(queued, began))
        return;
    CHECK(status == SLOW, "%s: the exit status of who is %d: %s", names[shared->kind], status, obedient_text);
    CHECK(names_it(pid), "%s: process %d is to be named: %s", names[shared->kind], (int)pid, obedient_text);
    CHECK(strstr(obedient_text, "it came late to ") && strstr(obedient_text, " ms on average, since "),
          "%s: not how late: %s", names[shared->kind], obedient_text);
    CHECK(shared->kind != SLEEPS || strstr(obedient_text, "; its process sleeps"), "not what it does: %s",
          obedient_text);
    for (int i = 0; i < 20 && (i == 0 || !names_it(pid)); i++)
        obedient_ras("top -n 2 -d 0.7", obedient_job);
    const bool nobody = !strstr(obedient_text, ") is slow: ");
    CHECK(names_it(pid) || (nobody && are_starved(queued, began)), "top does not name process %d: %s", (int)pid,
          obedient_text);
}

static void expect_nobody(void)
{
    const int64_t queued = queued_ns(), began = test_clock_us();
    int before = failures;

    for (int i = 0; i < 6; i++) {
        int status = obedient_ras("who", obedient_job);
        const bool named = status == SLOW || strstr(obedient_text, " is slow: ");
        /* Who lacks a core now and then is late again and again, and its one long time makes the average. */
        if (named && shared->kind == ONCE && names_it(obedient_pids[shared->odd]) && are_starved(queued, began))
            continue;
        CHECK(!named, "%s: somebody is named: %s", names[shared->kind], obedient_text);
    }
    note(failures == before ? "nobody" : "wrong");
}

static void trial(uint64_t seed, kind_t kind)
{
    memset(shared, 0, sizeof *shared);
    shared->kind = kind;
    shared->nranks = kind == CROWDED ? 8 : 3 + (int)(seed % 2);
    shared->odd = (int)(seed / 2 % (unsigned)shared->nranks);
    obedient_start(shared->nranks, "world", obey);
    for (int r = 0; r < shared->nranks; r++)
        obedient_order(r, OBEDIENT_REDUCE);
    if (kind == STARVED)
        hogs_start();
    printf("slow: seed %llu: %s, %d ranks, rank %d\n", (unsigned long long)seed, names[kind], shared->nranks,
           shared->odd);
    if (slow_one() >= 0)
        expect_slow(obedient_pids[slow_one()]);
    else
        expect_nobody();
    if (kind == STARVED)
        hogs_end();
    atomic_store(&shared->over, 1);
    for (int r = 0; r < shared->nranks; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d has failed", r);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

int main(int argc, char **argv)
{
    uint64_t seed = 80;
    int count = NUM_KINDS;

    test_begin("monitor/slow", 600);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0)
            count = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--nodes") == 0)
            obedient_nodes = atoi(argv[i + 1]);
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int i = 0; i < count; i++)
        trial(seed + (uint64_t)i, (kind_t)((seed + (uint64_t)i) % NUM_KINDS));
    printf("slow: %d failures\n", failures);
    return failures != 0;
}
