/* Trials: ranks run random operations, by any algorithm and protocol, and at a random moment something happens to one
 * of them. trial.h says what can happen and what must come of it. Hangs, wrong results, crashes and leftovers must all
 * be 0; how long it took to notice and to recover is printed and not judged.
 *
 *   trials [--count N] [--seed S] [--kinds kill,stop,late,abort,birth,second,limit] [--nodes N] [--ranks N] [--jobs N]
 *          [--seconds N] [--verbose]
 *                 trials S, S+1, ..., S+N-1, as far as they have begun after so many seconds, N at a time (2); on N
 *                 played nodes, ranks in turns; at most N ranks. Without --kinds all of them; between nodes all but
 *                 limit: UCX ends a process that it finds without memory or descriptors
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/trial.h"

#define USUAL_RANKS 16 /* at most */
#define MOST_RANKS 32  /* of which a set of victims has bits */
#define MOST_TRIALS 100000
#define MOST_BAD 10 /* then it ends */
#define MOST_JOBS 128
#define ALL ((1u << NUM_KINDS) - 1)
#define SLOW_US 2000000 /* a recovery that takes longer is told, with its seed */

static const char *const kind_names[NUM_KINDS] = {"kill", "stop", "late", "abort", "birth", "second", "limit"};
static const char *const limit_names[NUM_LIMITS] = {"memory", "file size", "descriptors"};
static const char *const stage_names[NUM_STAGES] = {"creation", "an operation", "shrink"};

typedef struct {
    int count, seconds, most, nnodes, jobs, verbose;
    unsigned kinds;
    uint64_t seed;
} choice_t;

/* Times, of as many ranks as have got there. */
typedef struct {
    int64_t *us;
    _Atomic int n;
} times_t;

/* Of all jobs together. */
typedef struct {
    _Atomic int next; /* to be tried */
    _Atomic int trials[NUM_KINDS], ranks[TEST_MAX_RANKS + 1];
    _Atomic int bad, hung, crashed, wrong, leftovers;
    _Atomic int failed_shrink, failed_later; /* ranks of `second` whose shrink, or what came of it, failed */
    _Atomic int limited[NUM_STAGES], failed[NUM_STAGES]; /* trials with a limit; those in which that was an error */
    _Atomic int served[TRIAL_MOST_ALGOS], chosen, refused;
    times_t took[NUM_KINDS], back, back_again, abort;
} tally_t;

/* ---- one trial ---- */

static void happen(_Atomic int64_t *when, pid_t pid, int signal)
{
    atomic_store(when, test_clock_us());
    kill(pid, signal);
}

/* The second death: some time after the first survivor has begun to shrink. */
static void kill_second(trial_t *trial, pid_t pid)
{
    int64_t now = test_clock_us();

    if (trial->shrinking_at == 0 && atomic_load(&trial->board->shrinking) > 0)
        trial->shrinking_at = now;
    if (pid != 0 && trial->shrinking_at && now >= trial->shrinking_at + trial->plan.again_us)
        happen(&trial->board->again, pid, SIGKILL);
}

static void step(test_director_t *d, const pid_t *pid)
{
    trial_t *trial = d->arg;
    const plan_t *p = &trial->plan;
    board_t *board = trial->board;
    int others = p->nranks - 1;
    pid_t victim = pid[p->victim];
    int64_t now = test_clock_us(), pause = p->kind == LATE ? p->delay_us : 0;

    if (p->kind == SECOND && atomic_load(&board->happened) && atomic_load(&board->again) == 0)
        kill_second(trial, pid[p->second]);
    if (victim == 0 || p->kind == ABORT || p->kind == LIMIT || (p->kind == LATE && !p->resume_early))
        return;
    if (p->kind != BIRTH && atomic_load(&board->ready) < p->nranks)
        return;
    if (trial->ready_at == 0)
        trial->ready_at = now;
    if (atomic_load(&board->happened) == 0) {
        if (now >= trial->ready_at + p->delay_us)
            happen(&board->happened, victim, p->kind == STOP || p->kind == LATE ? SIGSTOP : SIGKILL);
        return;
    }
    if (trial->resumed || (p->kind != LATE && p->kind != STOP))
        return;
    if (p->kind == LATE ? now >= atomic_load(&board->happened) + pause
                        : atomic_load(p->resume_early ? &board->noticed : &board->finished) == others) {
        kill(victim, SIGCONT);
        trial->resumed = 1;
    }
}

/* About half of the operations by an algorithm of those that have them, and half of the trials by one protocol. */
static void draw_forced(plan_t *p, uint64_t *random)
{
    static const char *const protos[] = {"ll", "simple", "cma"};
    int forced = (int)test_below(random, 4), coll, a, n;

    for (coll = 0; coll < RD_NUM_COLLS; coll++) {
        const rd_algo_t *has[TRIAL_MOST_ALGOS];
        for (a = n = 0; rd_algos[a]; a++) /* those over several nodes are called hier_... */
            if (rd_algos[a]->colls & 1u << coll && (p->nnodes > 1 || strncmp(rd_algos[a]->name, "hier", 4) != 0))
                has[n++] = rd_algos[a];
        a = (int)test_below(random, (unsigned)n);
        if (forced && test_below(random, 3))
            p->algo[coll] = has[a];
    }
    if (test_below(random, 2))
        p->proto = protos[test_below(random, p->nnodes > 1 ? 1 : 3)];
    if (p->nnodes > 1 && p->proto)
        p->proto = "simple";
    p->narrow = test_below(random, 5) == 0;
}

static void draw_plan(plan_t *p, uint64_t seed, const choice_t *choice)
{
    uint64_t random = seed;
    int most = choice->most;

    p->seed = test_random(&random);
    do
        p->kind = (kind_t)test_below(&random, NUM_KINDS);
    while (!(choice->kinds & 1u << p->kind));
    if (most > 6 && test_below(&random, 8)) /* many ranks are slow on few cores */
        most = 6;
    p->nnodes = choice->nnodes;
    p->nranks = 2 + (int)test_below(&random, (unsigned)most - 1);
    if (p->kind == SECOND && p->nranks < 3)
        p->nranks = 3;
    p->victim = (int)test_below(&random, (unsigned)p->nranks);
    p->second = (p->victim + 1 + (int)test_below(&random, (unsigned)p->nranks - 1)) % p->nranks;
    p->delay_us = (int)test_below(&random, test_below(&random, 3) ? 20000 : 2000);
    p->again_us = (int)test_below(&random, test_below(&random, 3) ? 5000 + 1000u * (unsigned)p->nranks : 500);
    if (p->kind == LATE)
        p->delay_us *= 3;
    p->resume_early = (int)test_below(&random, 2);
    p->operations = 10 + (int)test_below(&random, 40);
    p->limit = (limit_t)test_below(&random, NUM_LIMITS);
    p->stage = (stage_t)test_below(&random, NUM_STAGES);
    p->room = p->limit == DESCRIPTORS ? (long)test_below(&random, 24)
                                      : (long)test_below(&random, 1u << (6 + test_below(&random, 20)));
    if (p->kind == LIMIT && p->stage == IN_OPERATION && test_below(&random, 3))
        p->room = 0; /* an operation asks for little */
    draw_forced(p, &random);
    p->slow = p->kind != SECOND || test_below(&random, 16) ? -1 : (int)test_below(&random, (unsigned)p->nranks);
    p->unnamed = (p->kind == KILL || p->kind == ABORT || p->kind == SECOND) && test_below(&random, 2);
}

static void describe(const plan_t *p, uint64_t seed, const char *verdict)
{
    int coll;

    printf("trials: seed %llu: %s of rank %d of %d after %d us", (unsigned long long)seed, kind_names[p->kind],
           p->victim, p->nranks, p->delay_us);
    if (p->kind == SECOND)
        printf(", rank %d %d us after shrink began, rank %d slow", p->second, p->again_us, p->slow);
    if (p->kind == LIMIT)
        printf(", %ld left of %s in %s", p->room, limit_names[p->limit], stage_names[p->stage]);
    for (coll = 0; coll < RD_NUM_COLLS; coll++)
        if (p->algo[coll])
            printf(" %s=%s", rd_coll_name((rd_coll_t)coll), p->algo[coll]->name);
    printf("%s%s%s%s: %s\n", p->unnamed ? " to survivors" : "", p->proto ? " " : "", p->proto ? p->proto : "",
           p->narrow ? " narrow" : "", verdict);
}

/* ---- all trials ---- */

static void keep_times(times_t *times, const int64_t *us, int n)
{
    int i;

    for (i = 0; i < n; i++)
        if (us[i] >= 0)
            times->us[atomic_fetch_add(&times->n, 1)] = us[i];
}

static void add(tally_t *tally, const plan_t *p, board_t *board)
{
    int timed = p->kind == KILL || p->kind == STOP || p->kind == ABORT || p->kind == SECOND, i;

    atomic_fetch_add(&tally->trials[p->kind], 1);
    atomic_fetch_add(&tally->ranks[p->nranks], 1);
    atomic_fetch_add(&tally->failed_shrink, board->failed_shrink);
    atomic_fetch_add(&tally->failed_later, board->failed_later);
    atomic_fetch_add(&tally->wrong, board->wrong);
    atomic_fetch_add(&tally->leftovers, board->leftovers);
    if (p->kind == LIMIT) {
        atomic_fetch_add(&tally->limited[p->stage], 1);
        atomic_fetch_add(&tally->failed[p->stage], board->failed != 0);
    }
    for (i = 0; i < TRIAL_MOST_ALGOS; i++)
        atomic_fetch_add(&tally->served[i], board->served[i]);
    atomic_fetch_add(&tally->chosen, board->chosen);
    atomic_fetch_add(&tally->refused, board->refused);
    if (timed)
        keep_times(&tally->took[p->kind], board->took_us, p->nranks);
    if (p->slow < 0) /* else the others waited for that one */
        keep_times(p->kind == SECOND ? &tally->back_again : &tally->back, board->back_us, p->nranks);
    keep_times(&tally->abort, &board->abort_us, 1);
}

static void run_trial(tally_t *tally, uint64_t seed, const choice_t *choice)
{
    board_t *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    trial_t trial = {.board = board};
    test_director_t d = {.step = step, .arg = &trial};
    int files = test_count_files(), bad, r;
    int64_t slowest = 0;

    if (board == MAP_FAILED)
        exit(1);
    for (r = 0; r < TEST_MAX_RANKS; r++)
        board->took_us[r] = board->back_us[r] = -1;
    board->abort_us = -1;
    draw_plan(&trial.plan, seed, choice);
    if (trial.plan.kind == KILL || trial.plan.kind == BIRTH || trial.plan.kind == SECOND)
        d.victims = 1u << trial.plan.victim;
    if (trial.plan.kind == SECOND)
        d.victims |= 1u << trial.plan.second;
    bad = test_run_directed(&d, trial.plan.nranks, TRIAL_LIMIT_S, trial_body, &trial);
    if (test_count_files() > files) {
        atomic_fetch_add(&board->leftovers, 1);
        bad++;
    }
    for (r = 0; r < trial.plan.nranks; r++)
        slowest = board->back_us[r] > slowest ? board->back_us[r] : slowest;
    if (bad || choice->verbose)
        describe(&trial.plan, seed, bad ? "WRONG" : "right");
    else if (slowest > SLOW_US && trial.plan.slow < 0)
        describe(&trial.plan, seed, "slow");
    atomic_fetch_add(&tally->bad, bad != 0);
    atomic_fetch_add(&tally->hung, d.hung);
    atomic_fetch_add(&tally->crashed, d.crashed);
    add(tally, &trial.plan, board);
    munmap(board, sizeof *board);
}

static void run_job(tally_t *tally, const choice_t *choice)
{
    int64_t until = test_clock_us() + (int64_t)choice->seconds * 1000000;
    int i;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (atomic_load(&tally->bad) < MOST_BAD && (choice->seconds == 0 || test_clock_us() < until) &&
           (i = atomic_fetch_add(&tally->next, 1)) < choice->count)
        run_trial(tally, choice->seed + (uint64_t)i, choice);
    exit(0);
}

/* 0, or how many jobs ended otherwise than they should. */
static int run_jobs(tally_t *tally, const choice_t *choice)
{
    pid_t pid[MOST_JOBS];
    int j, status, bad = 0;

    fflush(stdout);
    for (j = 0; j < choice->jobs; j++)
        if ((pid[j] = fork()) == 0)
            run_job(tally, choice);
    for (j = 0; j < choice->jobs; j++)
        bad += pid[j] < 0 || waitpid(pid[j], &status, 0) != pid[j] || status != 0;
    return bad;
}

/* ---- the report ---- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void report_times(const char *name, const char *what, times_t *times)
{
    int n = times->n;

    if (n == 0)
        return;
    qsort(times->us, (size_t)n, sizeof times->us[0], by_value);
    printf("trials: %s: %s, ms: median %.2f, p99 %.2f, max %.2f (%d ranks)\n", name, what,
           (double)times->us[n / 2] * 1e-3, (double)times->us[(int)(n * 0.99)] * 1e-3, (double)times->us[n - 1] * 1e-3,
           n);
}

static void report(tally_t *tally, uint64_t seed)
{
    int k, n = 0;

    for (k = 0; k < NUM_KINDS; k++)
        n += tally->trials[k];
    printf("trials: %d trials, seeds %llu to %llu: %d bad (%d hangs, %d wrong results, %d crashes, %d leftovers)\n", n,
           (unsigned long long)seed, (unsigned long long)seed + (uint64_t)n - 1, tally->bad, tally->hung, tally->wrong,
           tally->crashed, tally->leftovers);
    printf("trials: of each kind:");
    for (k = 0; k < NUM_KINDS; k++)
        printf(" %s %d%s", kind_names[k], tally->trials[k], k < NUM_KINDS - 1 ? "," : "\n");
    printf("trials: of each number of ranks:");
    for (k = 2; k <= TEST_MAX_RANKS; k++)
        printf(" %d", tally->ranks[k]);
    printf("\ntrials: operations: %d chosen by cost, %d refused", tally->chosen, tally->refused);
    for (k = 0; rd_algos[k]; k++)
        if (tally->served[k])
            printf(", %d %s", tally->served[k], rd_algos[k]->name);
    printf("\n");
    if (tally->trials[SECOND])
        printf("trials: second: on %d ranks the shrink failed, on %d what it had made\n", tally->failed_shrink,
               tally->failed_later);
    for (k = 0; k < NUM_STAGES; k++)
        if (tally->limited[k])
            printf("trials: limit in %s: an error in %d of %d\n", stage_names[k], tally->failed[k], tally->limited[k]);
    for (k = 0; k < NUM_KINDS; k++)
        report_times(kind_names[k], "noticed after", &tally->took[k]);
    report_times("abort", "rondo_comm_abort took", &tally->abort);
    report_times("recovery", "from the error to a right result of fewer ranks", &tally->back);
    report_times("second", "from the second death to a right result of fewer ranks", &tally->back_again);
}

/* ---- the command line ---- */

static unsigned parse_kinds(const char *text)
{
    unsigned kinds = 0;
    int k;

    for (k = 0; k < NUM_KINDS; k++)
        if (strstr(text, kind_names[k]))
            kinds |= 1u << k;
    return kinds;
}

static void *shared(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        exit(1);
    return at;
}

static int run(const choice_t *choice)
{
    tally_t *tally = shared(sizeof *tally);
    size_t room = (size_t)choice->count * TEST_MAX_RANKS * sizeof(int64_t);
    int k, bad;

    for (k = 0; k < NUM_KINDS; k++)
        tally->took[k].us = shared(room);
    tally->back.us = shared(room);
    tally->back_again.us = shared(room);
    tally->abort.us = shared(room);
    bad = run_jobs(tally, choice);
    report(tally, choice->seed);
    return bad || tally->bad;
}

static int usage(void)
{
    fprintf(stderr,
            "trials [--count N] [--seed S] [--kinds kill,stop,late,abort,birth,second,limit] [--nodes N] [--ranks N]\n"
            "       [--jobs N] [--seconds N] [--verbose]\n"
            "trials: at most %d trials, %d ranks, %d jobs\n",
            MOST_TRIALS, MOST_RANKS, MOST_JOBS);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"count", 1, NULL, 'c'}, {"seed", 1, NULL, 's'},    {"kinds", 1, NULL, 'k'},
                                          {"nodes", 1, NULL, 'n'}, {"verbose", 0, NULL, 'v'}, {"ranks", 1, NULL, 'r'},
                                          {"jobs", 1, NULL, 'j'},  {"seconds", 1, NULL, 't'}, {NULL, 0, NULL, 0}};
    choice_t choice = {.kinds = ALL, .count = 500, .seed = 1, .most = USUAL_RANKS, .nnodes = 1, .jobs = 2};
    int option;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 'c')
            choice.count = atoi(optarg);
        else if (option == 's')
            choice.seed = strtoull(optarg, NULL, 0);
        else if (option == 'k')
            choice.kinds = parse_kinds(optarg);
        else if (option == 'n')
            choice.nnodes = atoi(optarg);
        else if (option == 'r')
            choice.most = atoi(optarg);
        else if (option == 't')
            choice.seconds = atoi(optarg);
        else if (option == 'j')
            choice.jobs = atoi(optarg);
        else if (option == 'v')
            choice.verbose = 1;
        else
            return usage();
    }
    if (choice.kinds == ALL && choice.nnodes > 1)
        choice.kinds &= ~(1u << LIMIT);
    if (choice.count < 1 || choice.count > MOST_TRIALS || choice.kinds == 0 || choice.most < 2 ||
        choice.most > MOST_RANKS || choice.jobs < 1 || choice.jobs > MOST_JOBS || choice.nnodes < 1)
        return usage();
    if (setenv("UCX_LOG_LEVEL", "fatal", 0) == 0 && !getenv("RONDO_TEST_AGAIN")) { /* UCX speaks of each limit */
        setenv("RONDO_TEST_AGAIN", "1", 1); /* and has read its settings by now */
        execv("/proc/self/exe", argv);
    }
    test_begin("trials", 2 * TRIAL_LIMIT_S + 5 * choice.count);
    printf("trials: from seed %llu on\n", (unsigned long long)choice.seed);
    return run(&choice);
}
