/* Each limit of a process (`ulimit -a`) at each small value while a communicator is made, on one rank or on all, on one
 * node and on two played ones: set before the unique id is made, as a shell does it, or behind that.
 *
 * All ranks make the communicator and an allreduce is right; or all get an error, soon and not by a deadline, whose
 * sentence names the limit and the rank that has it. A rank that can say nothing to anybody is the exception
 * (is_silent), and UCX without memory (is_in_ucx).
 *
 *   ulimits [--limit NAME] [--value V] [--victim R] [--nodes N] [--late 0|1] [--all] [--count N] [--seed S] [--verbose]
 *       --all: every setting of what is named; otherwise --count of them, drawn by the seed */
#define _GNU_SOURCE
#include <getopt.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 3
#define SOON_US 5000000
#define STACK (512 << 10) /* more than any call takes */
#define USER 60000        /* and some thousand users after it, who have no process */
#define PAGE 4096L

/* What a value means. */
typedef enum {
    NUMBER, /* what the limit is set to */
    SPACE,  /* bytes above what is mapped */
    DATA,   /* the same for memory of the process's own */
    USERS,  /* processes and threads of a user: root is not limited, so the rank becomes somebody else */
    STACKS  /* 2 to the power of it: bytes of a thread's stack, which the C library takes from the limit at exec */
} unit_t;

static const struct {
    const char *name, *says[2];
    int resource;
    unit_t unit;
    int values;
} limits[] = {
    {"nofile", {"open files", "open files"}, RLIMIT_NOFILE, NUMBER, 80},
    {"as", {"memory", "ulimit -v"}, RLIMIT_AS, SPACE, 170},
    {"data", {"memory", "ulimit -d"}, RLIMIT_DATA, DATA, 150},
    {"nproc", {"ulimit -u", "ulimit -u"}, RLIMIT_NPROC, USERS, 16},
    {"stack", {"ulimit -s", "ulimit -s"}, RLIMIT_STACK, STACKS, 63},
    {"core", {"-", "-"}, RLIMIT_CORE, NUMBER, 4},
    {"fsize", {"ulimit -f", "ulimit -f"}, RLIMIT_FSIZE, NUMBER, 6},
    {"memlock", {"ulimit -l", "memory"}, RLIMIT_MEMLOCK, NUMBER, 6},
    {"msgqueue", {"-", "-"}, RLIMIT_MSGQUEUE, NUMBER, 4},
    {"nice", {"-", "-"}, RLIMIT_NICE, NUMBER, 4},
    {"rtprio", {"-", "-"}, RLIMIT_RTPRIO, NUMBER, 4},
    {"sigpending", {"-", "-"}, RLIMIT_SIGPENDING, NUMBER, 4},
};
#define LIMITS ((int)(sizeof limits / sizeof limits[0]))

typedef struct {
    int limit, victim, nodes, late; /* victim: -1: all ranks; late: the limit comes after the unique id */
    long value;
    rondo_unique_id_t id;
    volatile int made;
} job_t;

static job_t *job;

/* The k-th value: one by one, where it is a number; page by page and then in steps of a sixteenth, where it is bytes.
 */
static long nth(int limit, int k)
{
    long pages = 0;

    if (limits[limit].unit != SPACE && limits[limit].unit != DATA)
        return k;
    for (int i = 0; i < k; i++)
        pages += 1 + pages / 16;
    return pages * PAGE;
}

/* What /proc/self/statm has in its k-th place, in bytes. */
static long statm(int k)
{
    long pages[6] = {0};
    FILE *file = fopen("/proc/self/statm", "r");

    for (int i = 0; file && i < 6; i++)
        if (fscanf(file, "%ld", &pages[i]) != 1)
            pages[i] = 0;
    if (file)
        fclose(file);
    return pages[k] * PAGE;
}

/* A limit ends a process that needs more stack than is there; that is nobody's but the process's own. */
static __attribute__((noinline)) void touch_stack(void)
{
    volatile char stack[STACK];

    for (size_t i = 0; i < sizeof stack; i += 1024)
        stack[i] = 1;
}

/* Returns 0, or -1 if this process may not become somebody else. */
static int become_user(void)
{
    uid_t user = USER + (uid_t)getpid() % 5000;

    if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)
        return -1;
    prctl(PR_SET_DUMPABLE, 1); /* its own /proc */
    return 0;
}

static void set_limit(test_rank_t *t)
{
    unit_t unit = limits[job->limit].unit;
    rlim_t value = (rlim_t)job->value;
    pthread_attr_t attributes;

    touch_stack();
    if (unit == STACKS) {
        pthread_attr_init(&attributes);
        if (pthread_attr_setstacksize(&attributes, (size_t)1 << job->value) == 0)
            pthread_setattr_default_np(&attributes);
        pthread_attr_destroy(&attributes);
        return;
    }
    if (unit == SPACE)
        value += (rlim_t)statm(0);
    else if (unit == DATA)
        value += (rlim_t)statm(5);
    if (unit == USERS && become_user() != 0)
        test_stop(t, "this process cannot become another user");
    struct rlimit limit;
    if (getrlimit(limits[job->limit].resource, &limit) != 0)
        test_stop(t, "no limit to set");
    limit.rlim_cur = limit.rlim_max = value < limit.rlim_max ? value : limit.rlim_max;
    if (setrlimit(limits[job->limit].resource, &limit) != 0)
        test_stop(t, "cannot set the limit");
}

/* Without a single descriptor a rank can neither dial nor let anybody in. */
static bool is_silent(void)
{
    return limits[job->limit].resource == RLIMIT_NOFILE && job->value == 0 && job->victim >= 0;
}

static bool maker_ended(const char *text)
{
    return strstr(text, "ended before the communicator was made: the message there says why") ||
           strstr(text, "nobody serves this unique id");
}

/* What the others of a silent rank can see: that the maker of their id is not there any more, or that one of them does
 * not come. */
static bool hears_nothing(const test_rank_t *t, const char *text)
{
    const char *missing = strstr(text, "missing: ");
    char alone[16], last[16]; /* behind one that has lacked a core */

    snprintf(alone, sizeof alone, ": %d", job->victim);
    snprintf(last, sizeof last, ", %d", job->victim);
    if (t->rank == job->victim)
        return false;
    if (job->victim > 0 && missing)
        return strstr(missing, alone) || strstr(missing, last);
    return maker_ended(text);
}

/* UCX that finds no memory ends the process, or says nothing. Then the others know no more than that. */
static bool is_in_ucx(void)
{
    unit_t unit = limits[job->limit].unit;

    return job->nodes > 1 && (unit == SPACE || unit == DATA);
}

static bool is_guess(const char *text)
{
    return is_in_ucx() && (strstr(text, "was not reached over the network") || strstr(text, "did not take part") ||
                           strstr(text, "died"));
}

static void judge(test_rank_t *t, rondo_result_t result, rondo_comm_t comm, int64_t took)
{
    const char *text = rondo_last_error(comm), *const *says = limits[job->limit].says;
    char victim[32];

    snprintf(victim, sizeof victim, "rank %d", job->victim);
    if (result == RONDO_SUCCESS || (is_silent() && hears_nothing(t, text)))
        return;
    if (job->victim < 0 && t->rank != 0 && maker_ended(text)) /* for lack of memory, too */
        return;
    if (!strstr(text, says[0]) && !strstr(text, says[1]) && !is_guess(text))
        test_fail(t, "%s, and the cause is not said: %s", rondo_result_string(result), text);
    if (job->victim >= 0 && t->rank != job->victim && !strstr(text, victim) && !is_guess(text) &&
        !strstr(text, "the rank that makes the unique id")) /* the id carries its error, not its number */

        test_fail(t, "%s, and the rank is not said: %s", rondo_result_string(result), text);
    if (took > SOON_US && !is_guess(text))
        test_fail(t, "only after %lld ms: %s", (long long)took / 1000, text);
}

static void body(test_rank_t *t, void *arg)
{
    bool has_limit = job->victim < 0 || job->victim == t->rank;
    rondo_comm_t comm;
    int32_t one = 1, sum = 0;
    char host[16];

    (void)arg;
    test_note(t, "--limit %s --value %ld --victim %d --nodes %d --late %d", limits[job->limit].name, job->value,
              job->victim, job->nodes, job->late);
    snprintf(host, sizeof host, "%d", t->rank % job->nodes);
    setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_CREATE_TIMEOUT_MS", is_silent() ? "300" : "10000", 1);
    if (has_limit && !job->late)
        set_limit(t);
    if (t->rank == 0)
        rondo_unique_id_create(&job->id); /* one that carries an error serves as well */
    test_barrier(t);
    usleep(3000); /* the rendezvous' thread has begun, and has what it allocates first */
    if (has_limit && job->late)
        set_limit(t);
    int64_t began = test_clock_us();
    rondo_result_t result = rondo_comm_create(&comm, t->nranks, &job->id, t->rank, NULL);
    judge(t, result, NULL, test_clock_us() - began);
    bool made = result == RONDO_SUCCESS;
    if (made) {
        /* What fails on the victim after its last word to the others, they hear in their first call. */
        result = rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
        judge(t, result, comm, 0);
        if (result == RONDO_SUCCESS && sum != RANKS)
            test_fail(t, "the sum is %d", sum);
    }
    if (result == RONDO_SUCCESS)
        __atomic_add_fetch(&job->made, 1, __ATOMIC_SEQ_CST);
    test_barrier(t);
    if (made)
        rondo_comm_destroy(comm);
    TEST_TRUE(t, job->made == 0 || job->made == RANKS);
}

/* ---- all of it ---- */

typedef struct {
    const char *limit;
    long value;
    int victim, nodes, late, all, count, verbose;
    uint64_t seed;
    int runs, bad;
} wanted_t;

static void run(wanted_t *w)
{
    job->made = 0;
    test_director_t ends = {.victims = is_in_ucx() ? (1 << RANKS) - 1 : 0, .signal = SIGABRT};
    int bad = test_run_directed(&ends, RANKS, 60, body, NULL) != 0;
    w->runs++;
    w->bad += bad;
    if (w->verbose || bad)
        printf("--limit %s --value %ld --victim %d --nodes %d --late %d: made on %d%s\n", limits[job->limit].name,
               job->value, job->victim, job->nodes, job->late, job->made, bad ? ": WRONG" : "");
}

static bool is_wanted(const wanted_t *w, int limit)
{
    if (limits[limit].unit == USERS && geteuid() != 0)
        return false;
    return !w->limit || strcmp(w->limit, limits[limit].name) == 0;
}

/* The values of the present limit, from none up to where it limits nothing any more. */
static void sweep_values(wanted_t *w)
{
    int enough = 0;

    for (int k = 0; k < limits[job->limit].values && enough < 4; k++) {
        job->value = nth(job->limit, k);
        run(w);
        enough = job->made == RANKS && limits[job->limit].unit != STACKS ? enough + 1 : 0;
    }
}

static void sweep(wanted_t *w)
{
    for (job->nodes = 1; job->nodes <= 2; job->nodes++)
        for (job->limit = 0; job->limit < LIMITS; job->limit++)
            for (job->victim = -1; job->victim < RANKS; job->victim++)
                for (job->late = 0; job->late < 2; job->late++) {
                    if (!is_wanted(w, job->limit) || (w->nodes && w->nodes != job->nodes) ||
                        (w->victim != -2 && w->victim != job->victim) || (w->late >= 0 && w->late != job->late))
                        continue;
                    if (w->value >= 0) {
                        job->value = w->value;
                        run(w);
                    } else {
                        sweep_values(w);
                    }
                }
}

static void draw(wanted_t *w)
{
    uint64_t random = w->seed;

    while (w->runs < w->count) {
        job->limit = (int)test_below(&random, LIMITS);
        job->value = nth(job->limit, (int)test_below(&random, (unsigned)limits[job->limit].values));
        job->victim = (int)test_below(&random, RANKS + 1) - 1;
        job->nodes = 1 + (int)test_below(&random, 2);
        job->late = (int)test_below(&random, 2);
        if (is_wanted(w, job->limit))
            run(w);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"limit", 1, NULL, 'l'}, {"value", 1, NULL, 'v'}, {"victim", 1, NULL, 'r'},
                                            {"nodes", 1, NULL, 'n'}, {"late", 1, NULL, 't'},  {"all", 0, NULL, 'a'},
                                            {"count", 1, NULL, 'c'}, {"seed", 1, NULL, 's'},  {"verbose", 0, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    wanted_t w = {.value = -1, .victim = -2, .late = -1, .count = 200, .seed = 1};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        long value = optarg ? atol(optarg) : 0;
        if (option == 'l')
            w.limit = optarg;
        else if (option == 'v')
            w.value = value;
        else if (option == 'r')
            w.victim = (int)value;
        else if (option == 'n')
            w.nodes = (int)value;
        else if (option == 't')
            w.late = (int)value;
        else if (option == 'a')
            w.all = 1;
        else if (option == 'c')
            w.count = (int)value;
        else if (option == 's')
            w.seed = (uint64_t)value;
        else if (option == 'V')
            w.verbose = 1;
        else
            return 2;
    }
    test_begin("ulimits", 3600);
    job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job == MAP_FAILED)
        return 1;
    if (w.all || w.value >= 0)
        sweep(&w);
    else
        draw(&w);
    printf("ulimits: seed %llu, %d runs, %d wrong\n", (unsigned long long)w.seed, w.runs, w.bad);
    return w.bad != 0;
}
