/* Trials: ranks run random operations, by any algorithm and protocol, and at a random moment something happens to one
 * of them. plan.h says what can happen and what must come of it. Hangs, wrong causes, wrong results, crashes and
 * leftovers must all be 0; how long it took to notice and to recover is printed and not judged.
 *
 *   trials [--count N] [--seed S] [--kinds LIST] [--ways LIST] [--works LIST] [--nodes N|mixed] [--ranks N] [--jobs N]
 *          [--seconds N] [--verbose]
 *                 trials S, S+1, ..., S+N-1, as far as they have begun after so many seconds, so many jobs at a time
 *                 (2); on N played nodes, or one to three, as they are drawn; at most so many ranks. The lists say what
 *                 may be drawn, by the names of plan.h. Without --kinds all of them; between nodes all but limit: UCX
 *                 ends a process that it finds without memory or descriptors
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <getopt.h>
#include <limits.h>
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
#define MOST_TRIALS 100000
#define MOST_BAD 10 /* then it ends */
#define MOST_JOBS 128
#define ALL UINT_MAX
#define SLOW_US 2000000 /* a recovery that takes longer is told, with its seed */

typedef struct {
    plan_choice_t plan;
    int count, seconds, jobs, verbose;
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
    _Atomic int ways[NUM_WAYS], works[NUM_WORKS], places[NUM_PLACES], derived;
    _Atomic int bad, hung, crashed, wrong, leftovers, blamed, judged;
    _Atomic int failed_shrink, failed_later; /* ranks of `second` whose shrink, or what came of it, failed */
    _Atomic int limited[NUM_STAGES], failed[NUM_STAGES]; /* trials with a limit; those in which that was an error */
    _Atomic int served[PLAN_MOST_ALGOS], chosen, refused;
    times_t took[NUM_KINDS], back, back_again, abort;
} tally_t;

/* ---- one trial ---- */

static void happen(board_t *board, int rank, _Atomic int64_t *when, pid_t pid, int signal)
{
    trial_fate(board, rank, signal == SIGKILL ? DIED : STOPPED, when);
    kill(pid, signal);
}

/* The second death: some time after the first survivor has begun to shrink. */
static void kill_second(trial_t *trial, pid_t pid)
{
    int64_t now = test_clock_us();

    if (trial->shrinking_at == 0 && atomic_load(&trial->board->shrinking) > 0)
        trial->shrinking_at = now;
    if (pid != 0 && trial->shrinking_at && now >= trial->shrinking_at + trial->plan.again_us)
        happen(trial->board, trial->plan.second, &trial->board->again, pid, SIGKILL);
}

/* What comes from outside begins once all have a communicator, or with the trial. */
static int has_begun(const plan_t *p, board_t *board)
{
    if (p->kind == BIRTH)
        return 1;
    return atomic_load(&board->ready) == p->nranks && (p->way != WITH_CHILD || atomic_load(&board->armed));
}

static int from_outside(const plan_t *p)
{
    if (p->kind == ABORT || p->kind == LIMIT || (p->kind == LATE && !p->resume_early))
        return 0;
    return p->way == BY_SIGNAL || p->way == WITH_CHILD;
}

/* A stopped rank goes on when the others have noticed, or are through; a late one before anybody can. */
static void resume(trial_t *trial, pid_t victim, int64_t now)
{
    const plan_t *p = &trial->plan;
    board_t *board = trial->board;
    int others = p->nranks - 1;

    if (trial->resumed || (p->kind != LATE && p->kind != STOP))
        return;
    if (p->kind == LATE ? now >= atomic_load(&board->happened) + p->delay_us
                        : atomic_load(p->resume_early ? &board->noticed : &board->finished) == others) {
        kill(victim, SIGCONT);
        trial->resumed = 1;
    }
}

static void step(test_director_t *d, const pid_t *pid)
{
    trial_t *trial = d->arg;
    const plan_t *p = &trial->plan;
    board_t *board = trial->board;
    pid_t victim = pid[p->victim];
    int64_t now = test_clock_us();

    if (p->kind == SECOND && atomic_load(&board->happened) && atomic_load(&board->again) == 0)
        kill_second(trial, pid[p->second]);
    if (victim && p->way == BY_EXEC && atomic_load(&board->finished) == p->nranks - 1)
        kill(victim, SIGKILL); /* the program that it executes has no end of its own */
    if (victim == 0 || !from_outside(p) || !has_begun(p, board))
        return;
    if (trial->ready_at == 0)
        trial->ready_at = now;
    if (atomic_load(&board->happened) != 0)
        resume(trial, victim, now);
    else if (now >= trial->ready_at + p->delay_us)
        happen(board, p->victim, &board->happened, victim, p->kind == STOP || p->kind == LATE ? SIGSTOP : SIGKILL);
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
    atomic_fetch_add(&tally->blamed, board->blamed);
    atomic_fetch_add(&tally->judged, board->judged);
    atomic_fetch_add(&tally->derived, board->derived);
    atomic_fetch_add(&tally->works[p->work], 1);
    atomic_fetch_add(&tally->places[p->place], 1);
    if (p->kind == KILL)
        atomic_fetch_add(&tally->ways[p->way], 1);
    if (p->kind == LIMIT) {
        atomic_fetch_add(&tally->limited[p->stage], 1);
        atomic_fetch_add(&tally->failed[p->stage], board->failed != 0);
    }
    for (i = 0; i < PLAN_MOST_ALGOS; i++)
        atomic_fetch_add(&tally->served[i], board->served[i]);
    atomic_fetch_add(&tally->chosen, board->chosen);
    atomic_fetch_add(&tally->refused, board->refused);
    if (timed)
        keep_times(&tally->took[p->kind], board->took_us, p->nranks);
    if (p->slow < 0) /* else the others waited for that one */
        keep_times(p->kind == SECOND ? &tally->back_again : &tally->back, board->back_us, p->nranks);
    keep_times(&tally->abort, &board->abort_us, 1);
}

/* For the core, of which nobody knows the name. */
static void make_folder(trial_t *trial, test_director_t *d)
{
    strcpy(trial->folder, "/tmp/rondo-trial-XXXXXX");
    if (!mkdtemp(trial->folder))
        exit(1);
    d->signal = SIGSEGV;
}

static void remove_folder(const trial_t *trial)
{
    char path[sizeof trial->folder + 256];
    DIR *dir = *trial->folder ? opendir(trial->folder) : NULL;
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", trial->folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    if (*trial->folder)
        rmdir(trial->folder);
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
    plan_draw(&trial.plan, seed, &choice->plan);
    if (trial.plan.way == BY_CORE)
        make_folder(&trial, &d);
    if (trial.plan.kind == KILL || trial.plan.kind == BIRTH || trial.plan.kind == SECOND)
        d.victims = 1u << trial.plan.victim;
    if (trial.plan.kind == SECOND)
        d.victims |= 1u << trial.plan.second;
    bad = test_run_directed(&d, trial.plan.nranks, TRIAL_LIMIT_S, trial_body, &trial);
    atomic_store(&board->over, 1);
    remove_folder(&trial);
    if (test_count_files() > files) {
        atomic_fetch_add(&board->leftovers, 1);
        bad++;
    }
    for (r = 0; r < trial.plan.nranks; r++)
        slowest = board->back_us[r] > slowest ? board->back_us[r] : slowest;
    if (bad || choice->verbose)
        plan_describe(&trial.plan, seed, bad ? "WRONG" : "right");
    else if (slowest > SLOW_US && trial.plan.slow < 0)
        plan_describe(&trial.plan, seed, "slow");
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

static void report_counts(const char *what, const char *const *names, const _Atomic int *counts, int n)
{
    printf("trials: %s:", what);
    for (int k = 0; k < n; k++)
        printf(" %s %d%s", names[k], counts[k], k < n - 1 ? "," : "\n");
}

static void report(tally_t *tally, uint64_t seed)
{
    int k, n = 0;

    for (k = 0; k < NUM_KINDS; k++)
        n += tally->trials[k];
    printf("trials: %d trials, seeds %llu to %llu: %d bad (%d hangs, %d wrong causes of %d, %d wrong results, "
           "%d crashes, %d leftovers)\n",
           n, (unsigned long long)seed, (unsigned long long)seed + (uint64_t)n - 1, tally->bad, tally->hung,
           tally->blamed, tally->judged, tally->wrong, tally->crashed, tally->leftovers);
    report_counts("of each kind", kind_names, tally->trials, NUM_KINDS);
    report_counts("kill by", way_names, tally->ways, NUM_WAYS);
    report_counts("most of the time in", work_names, tally->works, NUM_WORKS);
    report_counts("ranks", place_names, tally->places, NUM_PLACES);
    printf("trials: of each number of ranks:");
    for (k = 2; k <= TEST_MAX_RANKS; k++)
        printf(" %d", tally->ranks[k]);
    printf("\ntrials: operations: %d splits, shrinks and grows, %d chosen by cost, %d refused", tally->derived,
           tally->chosen, tally->refused);
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

/* Cores go to files in the folder of who dumps them. */
static int writes_cores(void)
{
    FILE *f = fopen("/proc/sys/kernel/core_pattern", "r");
    int c = f ? fgetc(f) : EOF;

    if (f)
        fclose(f);
    return c != EOF && c != '|' && c != '/' && c != '\n';
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
            "trials [--count N] [--seed S] [--kinds kill,stop,late,abort,birth,second,limit]\n"
            "       [--ways signal,child,exec,core] [--works calls,groups,submits,splits,shrinks,grows]\n"
            "       [--nodes N|mixed] [--ranks N] [--jobs N] [--seconds N] [--verbose]\n"
            "trials: at most %d trials, %d ranks, %d jobs\n",
            MOST_TRIALS, PLAN_MOST_RANKS, MOST_JOBS);
    return 2;
}

/* Returns whether the option is one. */
static int take_option(choice_t *choice, int option, const char *text)
{
    plan_choice_t *plan = &choice->plan;
    int *number = option == 'c'   ? &choice->count
                  : option == 'n' ? &plan->nnodes /* "mixed" is 0 */
                  : option == 'r' ? &plan->most
                  : option == 't' ? &choice->seconds
                  : option == 'j' ? &choice->jobs
                                  : NULL;

    if (number)
        *number = atoi(text);
    else if (option == 's')
        choice->seed = strtoull(text, NULL, 0);
    else if (option == 'k')
        plan->kinds = plan_parse(text, kind_names, NUM_KINDS);
    else if (option == 'w')
        plan->ways = plan_parse(text, way_names, NUM_WAYS);
    else if (option == 'o')
        plan->works = plan_parse(text, work_names, NUM_WORKS);
    else if (option == 'v')
        choice->verbose = 1;
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"count", 1, NULL, 'c'},   {"seed", 1, NULL, 's'},  {"kinds", 1, NULL, 'k'},
                                          {"ways", 1, NULL, 'w'},    {"works", 1, NULL, 'o'}, {"nodes", 1, NULL, 'n'},
                                          {"ranks", 1, NULL, 'r'},   {"jobs", 1, NULL, 'j'},  {"seconds", 1, NULL, 't'},
                                          {"verbose", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
    choice_t choice = {.plan = {ALL, ALL, ALL, USUAL_RANKS, 1, writes_cores()}, .count = 300, .seed = 1, .jobs = 2};
    plan_choice_t *plan = &choice.plan;
    int option;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
        if (!take_option(&choice, option, optarg))
            return usage();
    if (plan->kinds == ALL && plan->nnodes > 1)
        plan->kinds &= ~(1u << LIMIT);
    if (choice.count < 1 || choice.count > MOST_TRIALS || plan->kinds == 0 || plan->most < 2 ||
        plan->most > PLAN_MOST_RANKS || choice.jobs < 1 || choice.jobs > MOST_JOBS || plan->nnodes < 0)
        return usage();
    if (!plan_fits()) {
        printf("trials: FAILED: there are more algorithms than PLAN_MOST_ALGOS\n");
        return 1;
    }
    test_begin("trials", 2 * TRIAL_LIMIT_S + 5 * choice.count);
    printf("trials: from seed %llu on\n", (unsigned long long)choice.seed);
    return run(&choice);
}
