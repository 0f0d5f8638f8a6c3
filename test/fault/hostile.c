/* Strangers at every port of a job, while its communicator is made, used and shrunk.
 *
 * Ranks are processes on one node, then on two played nodes. Another process finds the TCP ports on which they listen,
 * as a port scanner would (but by /proc), and opens connections of every kind of hostile.h, many at a time, without
 * end. The last rank joins only when that has gone on for a while. No rank may fail, hang, give a wrong result or keep
 * a descriptor; and who sends a wrong or a replayed proof must be shown out.
 *
 *   hostile [--count N] [--seed S] [--nodes 1|2] [--kind NAME] [--verbose]
 *                                    N connections of each kind, in each phase
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"
#include "boot/auth.h"
#include "fault/hostile.h"
#include "core/transports.h"

/* ---- the ranks ---- */

static int enough(const trial_t *trial, phase_t phase)
{
    for (int k = 0; k < NUM_KINDS; k++)
        if ((trial->kind == k || (trial->kind == NUM_KINDS && k != HALF_OPEN)) &&
            atomic_load(&trial->board->done[phase][k]) < trial->count)
            return 0;
    return 1;
}

/* Allreduces until rank 0 has seen enough strangers in this phase. */
static void use(test_rank_t *t, const trial_t *trial, rondo_comm_t comm, phase_t phase)
{
    static int64_t in[20000], out[20000];
    uint64_t random = trial->seed;
    int size = 0, rank = 0, over = 0, calls = 0;

    rondo_comm_size(comm, &size);
    rondo_comm_rank(comm, &rank);
    while (!over) {
        size_t count = 1 + (calls % 8 ? test_below(&random, 64) : test_below(&random, 20000));
        test_note(t, "phase %d, call %d", phase, ++calls);
        in[0] = rank == 0 && enough(trial, phase);
        for (size_t i = 1; i < count; i++)
            in[i] = (int64_t)i * (rank + 1) + calls;
        if (!TEST_OK(t, comm, rondo_allreduce(in, out, count, RONDO_INT64, RONDO_SUM, comm, NULL)))
            test_stop(t, "cannot go on");
        for (size_t i = 1; i < count; i++)
            if (out[i] != (int64_t)i * size * (size + 1) / 2 + (int64_t)calls * size)
                test_stop(t, "element %zu of %zu is %lld", i, count, (long long)out[i]);
        over = out[0] != 0;
        usleep(500); /* the strangers need the cores too */
    }
}

static void next_phase(test_rank_t *t, const trial_t *trial, phase_t phase)
{
    test_barrier(t);
    if (t->rank == 0)
        atomic_store(&trial->board->phase, phase);
}

/* Until enough have come, and those who were to be shown out have been: the rendezvous ends soon after the last rank
 * has come, and all connections with it. */
static void wait_for_pending(const trial_t *trial)
{
    board_t *b = trial->board;
    long proofs;

    while (!enough(trial, MAKING))
        usleep(1000);
    proofs = atomic_load(&b->proofs);
    while (atomic_load(&b->shown_out) < proofs && atomic_load(&b->kept) == 0)
        usleep(1000);
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    board_t *b = trial->board;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm, smaller;
    char host[32];
    int before, last = RANKS - 1;

    snprintf(host, sizeof host, "played%d", t->rank % trial->nodes);
    setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    before = test_count_entries("/proc/self/fd");
    atomic_store(&b->pid[t->rank], getpid());
    test_id(t, &b->id); /* the same bytes from all */
    atomic_store(&b->known, 1);
    test_note(t, "create");
    if (t->rank == last)
        wait_for_pending(trial);
    if (!TEST_OK(t, NULL, rondo_comm_create(&comm, RANKS, &b->id, t->rank, &config)))
        test_stop(t, "cannot go on");
    next_phase(t, trial, RUNNING);
    use(t, trial, comm, RUNNING);
    next_phase(t, trial, SHRINKING);
    if (t->rank != last) {
        test_note(t, "shrink");
        if (!TEST_OK(t, comm, rondo_comm_shrink(comm, &last, 1, &smaller, &config)))
            test_stop(t, "cannot go on");
        use(t, trial, smaller, SHRINKING);
        TEST_OK(t, smaller, rondo_comm_destroy(smaller));
    }
    next_phase(t, trial, OVER);
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    for (int i = 0; i < 100 && test_count_entries("/proc/self/fd") > before; i++)
        usleep(10000);
    if (test_count_entries("/proc/self/fd") > before)
        test_fail(t, "%d descriptors are left", test_count_entries("/proc/self/fd") - before);
}

/* ---- one trial ---- */

static int judge(const trial_t *trial)
{
    board_t *b = trial->board;
    long all = 0;
    int bad = 0;

    for (int k = 0; k < NUM_KINDS; k++) {
        long n = 0;
        for (int p = 0; p < OVER; p++)
            n += atomic_load(&b->done[p][k]);
        if (trial->verbose)
            printf("    %-12s %8ld while made, %8ld while used, %8ld while shrunk\n", kind_names[k], b->done[MAKING][k],
                   b->done[RUNNING][k], b->done[SHRINKING][k]);
        all += n;
    }
    printf("hostile: %d node%s: %ld connections, %ld got a hello, %ld genuine handshakes were replayed\n", trial->nodes,
           trial->nodes > 1 ? "s" : "", all, b->answered, b->recorded);
    if (b->kept) {
        printf("hostile: FAILED: %ld wrong or replayed proofs did not end the connection\n", b->kept);
        bad = 1;
    }
    if (trial->kind == NUM_KINDS && (!b->answered || !b->recorded)) {
        printf("hostile: FAILED: the strangers never reached a listener: the trial shows nothing\n");
        bad = 1;
    }
    return bad;
}

static int run(trial_t trial)
{
    pid_t attacker;
    int bad, status;

    trial.board = mmap(NULL, sizeof *trial.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trial.board == MAP_FAILED)
        return 1;
    attacker = fork();
    if (attacker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        attack(&trial);
    }
    bad = test_run(TEST_PROCESSES, RANKS, 500, body, &trial);
    atomic_store(&trial.board->attack_over, 1);
    if (waitpid(attacker, &status, 0) != attacker || status != 0) {
        printf("hostile: FAILED: the attacker ended with %x\n", status);
        bad++;
    }
    bad += judge(&trial);
    munmap(trial.board, sizeof *trial.board);
    return bad;
}

static int kind_find(const char *name)
{
    for (int k = 0; k < NUM_KINDS; k++)
        if (strcmp(kind_names[k], name) == 0)
            return k;
    fprintf(stderr, "hostile: no kind is called %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"count", required_argument, NULL, 'n'}, {"seed", required_argument, NULL, 's'},
        {"nodes", required_argument, NULL, 'N'}, {"kind", required_argument, NULL, 'k'},
        {"verbose", no_argument, NULL, 'v'},     {NULL, 0, NULL, 0}};
    trial_t trial = {.count = 170, .seed = 1, .kind = NUM_KINDS};
    int bad = 0, c, nodes = 0;

    while ((c = getopt_long(argc, argv, "n:s:N:k:v", options, NULL)) != -1) {
        if (c == 'n')
            trial.count = atol(optarg);
        else if (c == 's')
            trial.seed = strtoull(optarg, NULL, 0);
        else if (c == 'N')
            nodes = atoi(optarg);
        else if (c == 'k')
            trial.kind = kind_find(optarg);
        else if (c == 'v')
            trial.verbose = 1;
        else
            return 2;
    }
    test_begin("hostile", 600);
    if (setenv("UCX_LOG_LEVEL", "fatal", 0) == 0 && !getenv("RONDO_TEST_AGAIN")) { /* UCX speaks of each stranger */
        setenv("RONDO_TEST_AGAIN", "1", 1); /* and has read its settings by now */
        execv("/proc/self/exe", argv);
    }
    setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
    setenv("RONDO_CREATE_TIMEOUT_MS", "500000", 0); /* the last rank waits for the strangers, however slow they are */
    if (rd_crypto_init(NULL) != RONDO_SUCCESS)
        return 1;
    printf("hostile: seed %llu, %ld of each kind in each phase\n", (unsigned long long)trial.seed, trial.count);
    for (trial.nodes = 1; trial.nodes <= (rd_transport_named("ucx") ? 2 : 1); trial.nodes++)
        if (nodes == 0 || nodes == trial.nodes)
            bad += run(trial);
    return bad != 0;
}
