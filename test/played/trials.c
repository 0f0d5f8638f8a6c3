/* Trials of failure between hosts that network namespaces play: ranks run random operations, and at a random moment
 * something happens to a host, or to a rank of it.
 *
 *   link    the host's interface goes down
 *   silent  every packet that comes to the host is dropped: nothing is closed anywhere
 *   kill    SIGKILL to one rank
 *   stop    SIGSTOP to one rank: RONDO_ERR_TIMEOUT at the set time
 *   loss    one packet in twenty is lost on every host, also while the communicator is made: nothing but time is lost
 *   crowd   ten times as many processes as cores: nothing but time is lost
 *
 * After the first three every other rank's call ends with RONDO_ERR_REMOTE. The sentence names a rank and its host, and
 * on the others' hosts it is the right one. Then nobody's threads spin: a rank that waits uses no processor time. Those
 * who still reach each other shrink and go on. Every operation that succeeds is verified. How long it took to notice is
 * printed and not judged.
 *
 *   trials [--count N] [--seed S] [--kinds link,silent,kill,stop,loss,crowd] [--verbose]
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/harness.h"
#include "util/hosts.h"
#include "util/operation.h"

#define LIMIT_S 120
#define STOP_TIMEOUT_MS 1000
#define LOSSY_OPERATIONS 30
#define CROWDED_OPERATIONS 100
#define CROWD 10
#define MOST_CROWD 640
#define REST_US 400000   /* in which a rank that waits for nothing may use */
#define REST_CPU_US 4000 /* one that spins gets more than this on the busiest machine */
#define MOST_TRIALS 100000

typedef enum { LINK, SILENT, KILL, STOP, LOSS, CROWDED, NUM_KINDS } kind_t;
static const char *const kind_names[NUM_KINDS] = {"link", "silent", "kill", "stop", "loss", "crowd"};

typedef struct {
    kind_t kind;
    uint64_t seed;
    int nranks, nhosts, victim, delay_us; /* link, silent: it happens to the victim's host */
} plan_t;

typedef struct {
    _Atomic int ready, finished;
    _Atomic int64_t happened;        /* when, us; 0: not yet */
    int64_t took_us[TEST_MAX_RANKS]; /* from then to the error; -1: none */
} board_t;

typedef struct {
    plan_t plan;
    board_t *board;
    int64_t ready_at;
    int resumed;
} trial_t;

static int host_of(const plan_t *p, int rank)
{
    return rank % p->nhosts;
}

static int hits_host(kind_t kind)
{
    return kind == LINK || kind == SILENT;
}

/* ---- what a rank does ---- */

static rondo_result_t one_step(test_rank_t *t, rondo_comm_t comm, uint64_t *random)
{
    char text[256], wrong[256];
    do_call_t call;
    do_case_t c;

    memset(&c, 0, sizeof c);
    c.what = (do_what_t)test_below(random, DO_NUM);
    do {
        c.type = (rondo_type_t)test_below(random, RONDO_NUM_TYPES);
        c.op = (rondo_op_t)test_below(random, RONDO_NUM_OPS);
    } while (do_reduces(c.what) && !ref_valid(c.type, c.op));
    c.data = do_reduces(c.what) ? REF_EXACT : REF_BYTES;
    c.count = test_below(random, 8) ? test_below(random, 800) : test_below(random, 60000);
    c.root = (int)test_below(random, (unsigned)t->nranks);
    c.seed = test_random(random) >> 32;
    do_text(&c, text, sizeof text);
    test_note(t, "%s", text);
    if (do_prepare(&call, &c, t->rank, t->nranks) != 0)
        test_stop(t, "no memory");
    rondo_result_t result = do_post(&call, comm);
    if (result == RONDO_SUCCESS && do_verify(&call, 1, wrong, sizeof wrong) != 0)
        test_fail(t, "wrong result: %s: %s", text, wrong);
    do_release(&call);
    return result;
}

static void check_sentence(test_rank_t *t, rondo_comm_t comm, const plan_t *p)
{
    const char *text = rondo_last_error(comm);
    char name[40];
    int named = 0;

    for (int r = 0; r < p->nranks; r++) {
        int right = p->kind == KILL                                ? r == p->victim
                    : host_of(p, t->rank) == host_of(p, p->victim) ? 1
                    : hits_host(p->kind)                           ? host_of(p, r) == host_of(p, p->victim)
                                                                   : 1;
        snprintf(name, sizeof name, "rank %d (host%d:", r, host_of(p, r));
        named |= right && strstr(text, name) != NULL;
    }
    if (!named)
        test_fail(t, "the sentence names nobody who could be meant: \"%s\"", text);
}

static int64_t cpu_us(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static void check_rest(test_rank_t *t)
{
    int64_t before = cpu_us();

    test_note(t, "rests");
    usleep(REST_US);
    if (cpu_us() - before > REST_CPU_US)
        test_fail(t, "%lld us of processor time in %d us in which nothing was called", (long long)(cpu_us() - before),
                  REST_US);
}

/* With those who can still be reached. */
static void go_on(test_rank_t *t, rondo_comm_t comm, const plan_t *p)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    int excluded[TEST_MAX_RANKS], n = 0, one = 1, sum = 0;
    int at_victim = host_of(p, t->rank) == host_of(p, p->victim);
    rondo_comm_t small = NULL;

    for (int r = 0; r < p->nranks; r++)
        if (hits_host(p->kind) ? (host_of(p, r) == host_of(p, p->victim)) != at_victim : r == p->victim)
            excluded[n++] = r;
    config.device = RONDO_DEVICE_HOST;
    test_note(t, "shrinks without %d ranks", n);
    if (!TEST_OK(t, comm, rondo_comm_shrink(comm, excluded, n, &small, &config)))
        return;
    test_note(t, "allreduce after the shrink");
    if (TEST_OK(t, small, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, small, NULL)))
        TEST_TRUE(t, sum == p->nranks - n);
    TEST_OK(t, NULL, rondo_comm_destroy(small));
}

static void suffer(test_rank_t *t, trial_t *trial, rondo_comm_t comm, uint64_t *random)
{
    const plan_t *p = &trial->plan;
    board_t *board = trial->board;
    rondo_result_t result;

    do
        result = one_step(t, comm, random);
    while (result == RONDO_SUCCESS);
    if (t->rank == p->victim && !hits_host(p->kind)) {
        rondo_comm_destroy(comm); /* stopped, and let go again: an error is all that is asked */
        return;
    }
    int64_t happened = atomic_load(&board->happened);
    board->took_us[t->rank] = happened ? test_clock_us() - happened : -1;
    if (test_result(t, comm, result, p->kind == STOP ? RONDO_ERR_TIMEOUT : RONDO_ERR_REMOTE, "the pending call"))
        check_sentence(t, comm, p);
    check_rest(t);
    go_on(t, comm, p);
    atomic_fetch_add(&board->finished, 1);
    test_note(t, "destroys");
    rondo_comm_destroy(comm);
}

static void body(test_rank_t *t, void *arg)
{
    trial_t *trial = arg;
    const plan_t *p = &trial->plan;
    rondo_config_t config = RONDO_CONFIG_INIT;
    uint64_t random = p->seed;
    rondo_unique_id_t id;
    rondo_comm_t comm = NULL;
    int steps = p->kind == LOSS ? LOSSY_OPERATIONS : CROWDED_OPERATIONS;

    trial->board->took_us[t->rank] = -1;
    if (hosts_enter(host_of(p, t->rank)) != 0)
        test_stop(t, "cannot go to its host");
    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = p->kind == STOP ? STOP_TIMEOUT_MS : 0;
    test_note(t, "create");
    test_id(t, &id);
    if (!TEST_OK(t, NULL, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config)))
        return;
    atomic_fetch_add(&trial->board->ready, 1);
    if (p->kind != LOSS && p->kind != CROWDED) {
        suffer(t, trial, comm, &random);
    } else {
        for (int k = 0; k < steps; k++)
            if (!TEST_OK(t, comm, one_step(t, comm, &random)))
                return;
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
    test_note(t, "counts its threads");
    for (int i = 0; i < 500 && test_count_entries("/proc/self/task") > 1; i++)
        usleep(10000);
    TEST_TRUE(t, test_count_entries("/proc/self/task") == 1);
}

/* ---- what the parent does ---- */

#define NFT_IN "nft 'add table ip t; add chain ip t in { type filter hook input priority 0 ; }; add rule ip t in "

static void damage(const plan_t *p, pid_t victim)
{
    int bad = p->kind == LINK     ? hosts_command(host_of(p, p->victim), "ip link set eth0 down")
              : p->kind == SILENT ? hosts_command(host_of(p, p->victim), NFT_IN "iifname eth0 drop'")
                                  : kill(victim, p->kind == STOP ? SIGSTOP : SIGKILL);

    if (bad)
        printf("trials: FAILED: cannot do it: %s\n", kind_names[p->kind]);
}

static void step(test_director_t *d, const pid_t *pid)
{
    trial_t *trial = d->arg;
    const plan_t *p = &trial->plan;
    board_t *board = trial->board;
    int64_t now = test_clock_us();

    if (p->kind == LOSS || p->kind == CROWDED || atomic_load(&board->ready) < p->nranks)
        return;
    if (trial->ready_at == 0)
        trial->ready_at = now;
    if (atomic_load(&board->happened) == 0 && now >= trial->ready_at + p->delay_us) {
        atomic_store(&board->happened, now);
        damage(p, pid[p->victim]);
    } else if (p->kind == STOP && !trial->resumed && atomic_load(&board->finished) == p->nranks - 1) {
        kill(pid[p->victim], SIGCONT);
        trial->resumed = 1;
    }
}

static int crowd_begin(pid_t *crowd)
{
    int n = CROWD * (int)sysconf(_SC_NPROCESSORS_ONLN);

    n = n < MOST_CROWD ? n : MOST_CROWD;
    for (int i = 0; i < n; i++)
        if ((crowd[i] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (volatile unsigned spin = 0;; spin++)
                continue;
        }
    return n;
}

static void crowd_end(const pid_t *crowd, int n)
{
    for (int i = 0; i < n; i++)
        if (crowd[i] > 0 && kill(crowd[i], SIGKILL) == 0)
            waitpid(crowd[i], NULL, 0);
}

static void draw_plan(plan_t *p, uint64_t seed, unsigned kinds)
{
    uint64_t random = test_mix(seed);

    p->seed = test_random(&random);
    do
        p->kind = (kind_t)test_below(&random, NUM_KINDS);
    while (!(kinds & 1u << p->kind));
    p->nhosts = 2 + (int)test_below(&random, 3);
    p->nranks = p->nhosts + (int)test_below(&random, 5);
    p->victim = (int)test_below(&random, (unsigned)p->nranks);
    p->delay_us = (int)test_below(&random, 40000);
}

typedef struct {
    int trials, bad, hung, crashed;
    int64_t *took[NUM_KINDS];
    int ntook[NUM_KINDS];
} tally_t;

/* -1: no hosts can be made here */
static int run_trial(tally_t *tally, uint64_t seed, unsigned kinds, int verbose)
{
    board_t *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    trial_t trial = {.board = board};
    plan_t *p = &trial.plan;
    test_director_t d = {.step = step, .arg = &trial};
    pid_t crowd[MOST_CROWD];
    int bad = 0, ncrowd = 0;

    if (board == MAP_FAILED)
        exit(1);
    draw_plan(p, seed, kinds);
    if (hosts_make(p->nhosts) != 0)
        return -1;
    d.victims = p->kind == KILL ? 1u << p->victim : 0;
    for (int h = 0; h < p->nhosts && p->kind == LOSS; h++)
        bad |= hosts_command(h, NFT_IN "iifname eth0 numgen random mod 100 < 5 drop'") != 0;
    if (p->kind == CROWDED)
        ncrowd = crowd_begin(crowd);
    bad = bad ? 1 : test_run_directed(&d, p->nranks, LIMIT_S, body, &trial);
    crowd_end(crowd, ncrowd);
    hosts_remove();
    tally->trials++;
    tally->bad += bad != 0;
    tally->hung += d.hung;
    tally->crashed += d.crashed;
    if (bad || verbose)
        printf("trials: seed %llu: %s of rank %d of %d on %d hosts after %d us: %s\n", (unsigned long long)seed,
               kind_names[p->kind], p->victim, p->nranks, p->nhosts, p->delay_us, bad ? "WRONG" : "right");
    for (int r = 0; r < p->nranks; r++)
        if (board->took_us[r] >= 0)
            tally->took[p->kind][tally->ntook[p->kind]++] = board->took_us[r];
    munmap(board, sizeof *board);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void report(tally_t *tally)
{
    printf("trials: %d trials: %d wrong (%d hangs, %d crashes)\n", tally->trials, tally->bad, tally->hung,
           tally->crashed);
    for (int k = 0; k < NUM_KINDS; k++) {
        int64_t *us = tally->took[k];
        int n = tally->ntook[k];
        if (n == 0)
            continue;
        qsort(us, (size_t)n, sizeof *us, by_value);
        printf("trials: %s: noticed after, ms: median %.2f, p99 %.2f, max %.2f (%d ranks)\n", kind_names[k],
               (double)us[n / 2] * 1e-3, (double)us[(int)(n * 0.99)] * 1e-3, (double)us[n - 1] * 1e-3, n);
    }
}

static unsigned parse_kinds(const char *text)
{
    unsigned kinds = 0;

    for (int k = 0; k < NUM_KINDS; k++)
        if (strstr(text, kind_names[k]))
            kinds |= 1u << k;
    return kinds;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"count", 1, NULL, 'c'},
                                          {"seed", 1, NULL, 's'},
                                          {"kinds", 1, NULL, 'k'},
                                          {"verbose", 0, NULL, 'v'},
                                          {NULL, 0, NULL, 0}};
    int option, count = 8, verbose = 0;
    unsigned kinds = (1u << NUM_KINDS) - 1;
    uint64_t seed = 1;
    tally_t tally = {0};

    if (!getenv("UCX_LOG_LEVEL")) { /* it says of each lost peer that it is lost, and asks when it is loaded */
        setenv("UCX_LOG_LEVEL", "fatal", 1);
        execv("/proc/self/exe", argv);
    }
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 'c')
            count = atoi(optarg);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 'k')
            kinds = parse_kinds(optarg);
        else if (option == 'v')
            verbose = 1;
        else
            return 2;
    }
    if (count < 1 || count > MOST_TRIALS || kinds == 0)
        return 2;
    test_begin("trials", 2 * LIMIT_S + 20 * count);
    if (system("nft --version >/dev/null 2>&1") != 0)
        kinds &= ~(1u << SILENT | 1u << LOSS);
    for (int k = 0; k < NUM_KINDS; k++)
        tally.took[k] = calloc((size_t)count * TEST_MAX_RANKS, sizeof *tally.took[k]);
    for (int i = 0; i < count && tally.bad < 10; i++)
        if (run_trial(&tally, seed + (uint64_t)i, kinds, verbose) != 0) {
            printf("trials: skipped: needs root and network namespaces\n");
            return TEST_SKIPPED;
        }
    report(&tally);
    for (int k = 0; k < NUM_KINDS; k++)
        free(tally.took[k]);
    return tally.bad != 0;
}
