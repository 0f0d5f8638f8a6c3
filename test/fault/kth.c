/* The k-th failure: of all the calls by which one rank asks the system for something (memory, mappings, sockets,
 * threads, files), the k-th fails, for every k, while a communicator is made, used, divided, shrunk, given windows,
 * explained, dumped, and freed.
 *
 * The rank must get an error with a sentence, or do without. The other ranks must come to an end too, before that rank
 * does anything more. Afterwards all ranks make a communicator once more and use it, and then the rank has exactly as
 * many allocations, mappings, descriptors and threads as when nothing had failed.
 *
 * These are the calls of librondo's objects alone (calls.h): what other libraries ask for is neither counted nor
 * refused.
 *
 *   kth [--all] [--stage NAME] [--call NAME] [--victim R] [--k K] [--nodes N] [--sample N] [--seed S] [--verbose]
 *       [--where]      a sample of N, or every k; once (K alone fails) and for good (K and all that follow); of all
 *                      calls, or of those of one name
 *
 * By itself it tries a sample of everything, every lack of memory while windows are made and ended, in which all others
 * wait for the rank, and every reading of another rank's memory: that one fails in the middle of an operation, when
 * other parts of it go on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"
#include "util/operation.h"
#include "fault/calls.h"

#define RANKS 3
#define LIMIT_S 30
#define PATIENCE_MS "1500" /* of ranks whose partner could not even come to the rendezvous */

/* ---- one trial ---- */

typedef enum { CREATE, USE, CHECK, SPLIT, SHRINK, WINDOW, MONITOR, DESTROY, ALL_IN_ONE, NUM_STAGES } stage_t;
static const char *const stage_names[NUM_STAGES] = {"create", "use",     "check",   "split",     "shrink",
                                                    "window", "monitor", "destroy", "create_all"};

/* What a rank has when nothing is under way. */
typedef struct {
    long live, mapped;
    int descriptors, threads;
    bool network; /* UCX is loaded */
} things_t;

/* Between the ranks and the parent. */
typedef struct {
    rondo_unique_id_t id[2];
    _Atomic int id_made[2];
    _Atomic int victim_failed;
    _Atomic long asked;
    things_t left;
    char call[CALLS_NAME];
} board_t;

typedef struct {
    stage_t stage;
    int victim, nodes, on;
    long k;        /* 0: nothing fails */
    things_t left; /* what must be left, when something fails */
    board_t *board;
} trial_t;

typedef struct {
    test_rank_t *t;
    const trial_t *trial;
    int victim; /* this rank is it */
} rank_t;

static void arm(const rank_t *r, int on)
{
    atomic_store(&calls.armed, on && r->victim);
}

/* In the stage that is tried: a success, or an error with a sentence. Nonzero: a success. */
static int judged(rank_t *r, rondo_comm_t comm, rondo_result_t result, const char *what)
{
    const char *sentence = *rondo_last_error(comm) ? rondo_last_error(comm) : rondo_last_error(NULL);

    if (result == RONDO_SUCCESS)
        return 1;
    if (r->victim)
        atomic_store(&r->trial->board->victim_failed, 1);
    if (calls.show_where)
        printf("rank %d: %s: %s: %s\n", r->t->rank, what, rondo_result_string(result), sentence);
    if (r->trial->k == 0)
        test_fail(r->t, "%s failed though nothing was refused: %s: %s", what, rondo_result_string(result), sentence);
    else if (result == RONDO_IN_PROGRESS || !*sentence)
        test_fail(r->t, "%s gave %s, with the sentence \"%s\"", what, rondo_result_string(result), sentence);
    return 0;
}

static rondo_result_t create(rank_t *r, int number, rondo_comm_t *comm)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    board_t *board = r->trial->board;

    config.device = RONDO_DEVICE_HOST;
    if (r->t->rank == 0) {
        (void)rondo_unique_id_create(&board->id[number]); /* a failure is carried by the id */
        atomic_store(&board->id_made[number], 1);
    }
    while (!atomic_load(&board->id_made[number]))
        usleep(100);
    return rondo_comm_create(comm, r->t->nranks, &board->id[number], r->t->rank, &config);
}

/* rondo keeps a few ended communicators' structs, each one allocation, to know them again: they are not counted. */
static void end(rank_t *r, rondo_comm_t comm)
{
    TEST_OK(r->t, NULL, rondo_comm_destroy(comm));
    atomic_fetch_sub(&calls.live, 1);
}

static void right_sum(rank_t *r, rondo_comm_t comm, int nranks)
{
    int32_t in[300], out[300];
    int i;

    for (i = 0; i < 300; i++)
        in[i] = i + 1;
    if (!TEST_OK(r->t, comm, rondo_allreduce(in, out, 300, RONDO_INT32, RONDO_SUM, comm, NULL)))
        return;
    for (i = 0; i < 300; i++)
        if (out[i] != nranks * in[i]) {
            test_fail(r->t, "element %d of a sum over %d ranks is %d", i, nranks, out[i]);
            return;
        }
}

static int one_operation(rank_t *r, rondo_comm_t comm, do_what_t what, size_t count, int grouped)
{
    do_case_t c = {.what = what, .type = RONDO_FLOAT32, .op = RONDO_SUM, .count = count, .root = 1, .seed = 7};
    rondo_request_t request = NULL;
    char text[200], wrong[200];
    rondo_result_t result;
    do_call_t call;
    int good;

    c.data = do_reduces(what) ? REF_EXACT : REF_BYTES;
    c.skew = do_has_counts(what) ? 3 : 0;
    do_text(&c, text, sizeof text);
    test_note(r->t, "%s%s", text, grouped ? ", submitted" : "");
    if (do_prepare(&call, &c, r->t->rank, r->t->nranks) != 0)
        test_stop(r->t, "no memory");
    arm(r, 1);
    if (grouped) {
        rondo_result_t end;
        result = rondo_group_start();
        if (result == RONDO_SUCCESS)
            result = do_post(&call, comm);
        end = rondo_group_submit(&request);
        result = result ? result : end;
        if (request)
            end = rondo_request_wait(&request);
        result = result ? result : end;
    } else {
        result = do_post(&call, comm);
    }
    arm(r, 0);
    good = judged(r, comm, result, text);
    if (good && do_verify(&call, 1, wrong, sizeof wrong) != 0)
        test_fail(r->t, "wrong result: %s", wrong);
    do_release(&call);
    return good;
}

static int small_calls(rank_t *r, rondo_comm_t comm)
{
    rondo_registration_t reg = NULL;
    float scalar = 2;
    rondo_op_t op;
    void *buffer = NULL;
    int good;

    arm(r, 1);
    good = judged(r, comm, rondo_mem_alloc(&buffer, 10000, comm), "rondo_mem_alloc");
    if (good && (good = judged(r, comm, rondo_comm_register(comm, buffer, 10000, &reg), "rondo_comm_register")))
        judged(r, comm, rondo_comm_deregister(comm, reg), "rondo_comm_deregister");
    if (buffer)
        judged(r, comm, rondo_mem_free(buffer, comm), "rondo_mem_free");
    if (judged(r, comm, rondo_op_create_premulsum(&op, &scalar, RONDO_FLOAT32, 0, comm), "rondo_op_create_premulsum"))
        judged(r, comm, rondo_op_destroy(op, comm), "rondo_op_destroy");
    arm(r, 0);
    atomic_store(&r->trial->board->victim_failed, 0); /* no other rank takes part in any of these */
    return good;
}

static void use(rank_t *r, rondo_comm_t comm)
{
    int what, good = small_calls(r, comm) || 1;

    for (what = 0; what < DO_NUM && good; what++)
        good = one_operation(r, comm, (do_what_t)what, 5, 0) && one_operation(r, comm, (do_what_t)what, 5003, 0) &&
               one_operation(r, comm, (do_what_t)what, 301, 1);
    test_note(r->t, "waits for the others to be through");
    test_barrier(r->t);
    if (atomic_load(&r->trial->board->victim_failed))
        TEST_TRUE(r->t, rondo_barrier(comm, NULL) != RONDO_SUCCESS);
}

static void divide(rank_t *r, rondo_comm_t comm)
{
    rondo_comm_t part = NULL;
    int good, nranks = (r->t->nranks + 1 - r->t->rank % 2) / 2;

    test_note(r->t, "split");
    if (r->trial->k)
        setenv("RONDO_CREATE_TIMEOUT_MS", PATIENCE_MS, 1);
    arm(r, 1);
    good = judged(r, comm, rondo_comm_split(comm, r->t->rank % 2, 0, &part, NULL), "rondo_comm_split");
    arm(r, 0);
    unsetenv("RONDO_CREATE_TIMEOUT_MS");
    test_note(r->t, "waits for the others to be through with the split");
    test_barrier(r->t);
    if (good && !atomic_load(&r->trial->board->victim_failed))
        right_sum(r, part, nranks);
    if (good)
        end(r, part);
}

/* The rank behind the victim is left out. */
static void shrink(rank_t *r, rondo_comm_t comm)
{
    int out = (r->trial->victim + 1) % r->t->nranks, good = 0;
    rondo_comm_t smaller = NULL;

    test_note(r->t, "shrink");
    if (r->trial->k)
        setenv("RONDO_CREATE_TIMEOUT_MS", PATIENCE_MS, 1);
    arm(r, 1);
    if (r->t->rank != out)
        good = judged(r, comm, rondo_comm_shrink(comm, &out, 1, &smaller, NULL), "rondo_comm_shrink");
    arm(r, 0);
    unsetenv("RONDO_CREATE_TIMEOUT_MS");
    test_note(r->t, "waits for the others to be through with the shrink");
    test_barrier(r->t);
    if (good && !atomic_load(&r->trial->board->victim_failed) && (r->trial->k == 0 || r->victim))
        TEST_TRUE(r->t, smaller != NULL);
    if (good)
        end(r, smaller);
    if (!r->trial->k || r->t->rank == out) /* who tries again must meet the others, however early it failed */
        return;
    test_note(r->t, "shrink again");
    if (TEST_OK(r->t, comm, rondo_comm_shrink(comm, &out, 1, &smaller, NULL))) {
        right_sum(r, smaller, r->t->nranks - 1);
        end(r, smaller);
    }
}

/* Two windows, of rondo's memory and of this rank's, with RONDO_CHECK=1. What fails here fails on all ranks, and names
 * the one whose fault it is. */
static void windows(rank_t *r, rondo_comm_t comm)
{
    char own[4096] = "", byte = 7;
    rondo_window_t made[2] = {NULL, NULL};
    int good = 1;

    test_note(r->t, "windows");
    arm(r, 1);
    for (int w = 0; w < 2 && good; w++)
        good =
            judged(r, comm, rondo_window_create(comm, w ? own : NULL, sizeof own, &made[w], 0), "rondo_window_create");
    for (int w = 0; w < 2 && good; w++)
        good = judged(r, comm, rondo_put(&byte, 1, RONDO_INT8, 0, made[w], 0, 0, 0, comm, NULL), "rondo_put") &&
               judged(r, comm, rondo_window_destroy(comm, made[w]), "rondo_window_destroy");
    arm(r, 0);
    if (!good && !r->victim)
        TEST_TRUE(r->t, rondo_last_error(comm)[0] && !strstr(rondo_last_error(comm), "internal"));
    test_note(r->t, "waits for the others to be through with the windows");
    test_barrier(r->t);
}

/* What is asked of the monitor fails by itself: no communicator does, so all go on. */
static void monitored(rank_t *r, rondo_comm_t comm)
{
    rondo_status_t status = {.size = sizeof status};
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char text[512] = "";

    test_note(r->t, "monitor");
    right_sum(r, comm, r->t->nranks);
    arm(r, 1);
    (void)judged(r, comm, rondo_explain(comm, text, sizeof text), "rondo_explain");
    (void)judged(r, comm, rondo_comm_status(comm, &status), "rondo_comm_status");
    (void)judged(r, NULL, rondo_dump_fd(nothing, RONDO_DUMP_JSON), "rondo_dump_fd");
    rondo_result_t record = rondo_dump_fd(nothing, RONDO_DUMP_RECORD); /* which makes no message */
    arm(r, 0);
    if (record != RONDO_SUCCESS && r->trial->k == 0)
        test_fail(r->t, "rondo_dump_fd of the record failed though nothing was refused");
    close(nothing);
    test_note(r->t, "waits for the others to be through with the monitor");
    test_barrier(r->t);
    right_sum(r, comm, r->t->nranks);
}

/* The stage in which something fails; all that it has made is given back. */
static void tried(rank_t *r)
{
    const trial_t *trial = r->trial;
    rondo_comm_t comm = NULL;
    rondo_result_t result;
    int good;

    setenv("RONDO_CHECK", trial->stage == CHECK || trial->stage == WINDOW ? "1" : "0", 1);
    test_note(r->t, "create");
    if (trial->stage == CREATE && trial->k)
        setenv("RONDO_CREATE_TIMEOUT_MS", PATIENCE_MS, 1);
    arm(r, trial->stage == CREATE);
    result = create(r, 0, &comm);
    arm(r, 0);
    unsetenv("RONDO_CREATE_TIMEOUT_MS");
    good = trial->stage == CREATE ? judged(r, NULL, result, "rondo_comm_create") : TEST_OK(r->t, NULL, result);
    test_barrier(r->t); /* who fails now shall find nobody still at work on the creation */
    if (!good)
        return;
    if (trial->stage == USE || trial->stage == CHECK)
        use(r, comm);
    else if (trial->stage == SPLIT)
        divide(r, comm);
    else if (trial->stage == SHRINK)
        shrink(r, comm);
    else if (trial->stage == WINDOW)
        windows(r, comm);
    else if (trial->stage == MONITOR)
        monitored(r, comm);
    test_note(r->t, "destroy");
    arm(r, trial->stage == DESTROY);
    end(r, comm);
    arm(r, 0);
}

static void tried_in_one(rank_t *r)
{
    rondo_comm_t comms[RANKS] = {NULL};
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_result_t result;
    int i;

    config.device = RONDO_DEVICE_HOST;
    test_note(r->t, "create_all");
    if (r->trial->k)
        setenv("RONDO_CREATE_TIMEOUT_MS", PATIENCE_MS, 1);
    arm(r, 1);
    result = rondo_comm_create_all(comms, RANKS, NULL, &config);
    arm(r, 0);
    unsetenv("RONDO_CREATE_TIMEOUT_MS");
    if (judged(r, NULL, result, "rondo_comm_create_all"))
        for (i = 0; i < RANKS; i++)
            end(r, comms[i]);
}

static things_t things(void)
{
    void *network = dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD);
    things_t now = {atomic_load(&calls.live), atomic_load(&calls.mapped), test_count_entries("/proc/self/fd"),
                    test_count_entries("/proc/self/task"), network != NULL};

    if (network)
        dlclose(network);
    return now;
}

/* create_all ends the communicators that it has made when one of them fails, and they are kept as in `end`. A rank that
 * cannot join its node does without, by UCX, whose environment stays (network/net_load.c). */
static int as_before(const things_t *now, const things_t *want, stage_t stage)
{
    long more = now->live - want->live, kept = (stage == ALL_IN_ONE ? RANKS - 1 : 0) + (now->network && !want->network);

    kept += stage == WINDOW; /* the net communicator of windows that messages reach */

    return more >= 0 && more <= kept && now->mapped == want->mapped && now->descriptors == want->descriptors &&
           now->threads <= want->threads; /* one that is ending may have been counted where nothing failed */
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    rank_t r = {t, trial, t->rank == trial->victim};
    rondo_comm_t comm = NULL;
    things_t left;
    char host[32];
    int tries;

    snprintf(host, sizeof host, "played%d", t->rank % trial->nodes);
    if (trial->nodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    calls.failed = trial->board->call;
    atomic_store(&calls.fail_at, trial->k);
    atomic_store(&calls.fail_on, trial->on);
    if (trial->stage == ALL_IN_ONE)
        tried_in_one(&r);
    else
        tried(&r);
    test_note(t, "waits for the others");
    test_barrier(t);
    test_note(t, "once more");
    setenv("RONDO_CHECK", "0", 1);
    if (TEST_OK(t, NULL, create(&r, 1, &comm))) {
        right_sum(&r, comm, t->nranks);
        end(&r, comm);
    }
    if (!r.victim)
        return;
    for (tries = 0, left = things(); tries < 200 && trial->k && !as_before(&left, &trial->left, trial->stage);
         tries++) {
        usleep(10000); /* what a thread or the network still holds goes in a moment */
        left = things();
    }
    if (trial->k && !as_before(&left, &trial->left, trial->stage))
        test_fail(t,
                  "left: %ld allocations, %ld mappings, %d descriptors, %d threads; had nothing failed: %ld %ld %d %d",
                  left.live, left.mapped, left.descriptors, left.threads, trial->left.live, trial->left.mapped,
                  trial->left.descriptors, trial->left.threads);
    trial->board->left = left;
    atomic_store(&trial->board->asked, atomic_load(&calls.asked));
}

/* ---- all trials ---- */

typedef struct {
    int all, verbose, stage, victim;
    long sample, k, refused, tolerated, bad;
    uint64_t random;
} choice_t;

/* Slots carry what cannot be read of another rank's memory: nobody fails for that. Where all that follow fail, too,
 * whatever they are, one of those gives the error. */
static int given_up(const trial_t *trial)
{
    return trial->stage == USE && (!trial->on || calls.counted) &&
           strcmp(trial->board->call, "process_vm_readv") == 0 && trial->board->victim_failed;
}

static int run(trial_t *trial, choice_t *choice)
{
    int nranks = trial->stage == ALL_IN_ONE ? 1 : RANKS, bad;
    int64_t began = test_clock_us();

    memset(trial->board, 0, sizeof *trial->board);
    bad = test_run(TEST_PROCESSES, nranks, LIMIT_S, body, trial) || given_up(trial);
    if (bad || choice->verbose)
        printf("kth: %s, rank %d, call %ld (%s)%s, %d node%s: %s, %lld ms\n", stage_names[trial->stage], trial->victim,
               trial->k, trial->board->call, trial->on ? " and all that follow" : "", trial->nodes,
               trial->nodes > 1 ? "s" : "",
               bad                           ? "WRONG"
               : trial->board->victim_failed ? "an error"
                                             : "done without",
               (long long)(test_clock_us() - began) / 1000);
    if (trial->k) {
        choice->refused++;
        choice->tolerated += !trial->board->victim_failed;
        choice->bad += bad != 0;
    }
    return bad;
}

/* Without --all: on average `sample` trials of a stage. */
static int chosen(choice_t *choice, long ncalls)
{
    return choice->all || (long)test_below(&choice->random, (unsigned)ncalls * 2 * RANKS) < choice->sample;
}

static int try_stage(trial_t *trial, choice_t *choice)
{
    int nvictims = trial->stage == ALL_IN_ONE ? 1 : RANKS;
    long ncalls, most = 0;

    for (trial->victim = 0; trial->victim < nvictims; trial->victim++) {
        if (choice->victim >= 0 && choice->victim != trial->victim)
            continue;
        trial->k = 0;
        if (run(trial, choice) != 0)
            return 1;
        trial->left = trial->board->left;
        ncalls = atomic_load(&trial->board->asked);
        most = ncalls > most ? ncalls : most;
        for (trial->k = 1; trial->k <= ncalls; trial->k++)
            for (trial->on = 0; trial->on < 2; trial->on++)
                if (choice->k ? choice->k == trial->k : chosen(choice, ncalls))
                    run(trial, choice);
        trial->on = 0;
    }
    printf("kth: %s, %d node%s: %ld calls%s%s can fail\n", stage_names[trial->stage], trial->nodes,
           trial->nodes > 1 ? "s" : "", most, calls.counted ? " of " : "", calls.counted ? calls.counted : "");
    return 0;
}

static int stage_find(const char *name)
{
    int s;

    for (s = 0; s < NUM_STAGES; s++)
        if (strcmp(stage_names[s], name) == 0)
            return s;
    fprintf(stderr, "kth: no stage is called %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option table[] = {{"all", 0, NULL, 'a'},  {"stage", 1, NULL, 's'},   {"victim", 1, NULL, 'r'},
                                          {"k", 1, NULL, 'k'},    {"nodes", 1, NULL, 'n'},   {"sample", 1, NULL, 'c'},
                                          {"seed", 1, NULL, 'S'}, {"verbose", 0, NULL, 'v'}, {"where", 0, NULL, 'w'},
                                          {"call", 1, NULL, 'C'}, {NULL, 0, NULL, 0}};
    choice_t choice = {.stage = -1, .victim = -1, .sample = 6};
    trial_t trial = {.nodes = 1};
    uint64_t seed = 1;
    int option, bad = 0;

    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (option == 'a')
            choice.all = 1;
        else if (option == 's')
            choice.stage = stage_find(optarg);
        else if (option == 'r')
            choice.victim = atoi(optarg);
        else if (option == 'k')
            choice.k = atol(optarg);
        else if (option == 'n')
            trial.nodes = atoi(optarg);
        else if (option == 'c')
            choice.sample = atol(optarg);
        else if (option == 'S')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 'v')
            choice.verbose = 1;
        else if (option == 'C')
            calls.counted = optarg;
        else if (option == 'w')
            calls.show_where = 1;
        else
            return 2;
    }
    test_begin("kth", choice.all ? 7200 : 600);
    choice.random = seed;
    trial.board = mmap(NULL, sizeof *trial.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trial.board == MAP_FAILED)
        return 1;
    printf("kth: seed %llu, %s\n", (unsigned long long)seed, choice.all ? "every call" : "a sample");
    for (trial.stage = CREATE; trial.stage < NUM_STAGES; trial.stage++)
        if (choice.stage < 0 || choice.stage == (int)trial.stage)
            bad |= try_stage(&trial, &choice);
    if (argc == 1) {
        choice.all = 1;
        calls.counted = "calloc";
        trial.stage = WINDOW;
        bad |= try_stage(&trial, &choice);
        calls.counted = "process_vm_readv";
        trial.stage = USE;
        bad |= try_stage(&trial, &choice);
    }
    printf("kth: %ld refusals: %ld wrong; %ld times the rank could do without\n", choice.refused, choice.bad,
           choice.tolerated);
    return bad || choice.bad;
}
