/* Tuner plugins of NCCL's, by a plugin of each version from 2 to 6 (tuner_plugin.c): what it is shown, that the plans
 * do as it says, what becomes of answers that make no sense, and that ranks with different answers all get one sentence
 * and none hangs. Plans are read off the lines of RONDO_DEBUG=plan.
 *
 *   tuner [--planted N]    N drawn disagreements alone
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nccl/nccl_harness.h"
#include "nccl/tuner_cases.h"

#define RANKS 3
#define COUNT 1000
#define LOG_BYTES (1 << 20)

#ifdef RD_HAVE_UCX
static const bool between_nodes = true;
#else
static const bool between_nodes = false;
#endif

static char folder[400];

/* ---- what is logged ---- */

static int saved = -1, log_fd = -1;
static char logged[LOG_BYTES];

static void log_begin(void)
{
    log_fd = memfd_create("log", MFD_CLOEXEC);
    saved = dup(STDERR_FILENO);
    dup2(log_fd, STDERR_FILENO);
}

static void log_end(void)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t n = pread(log_fd, logged, sizeof logged - 1, 0);
    logged[n < 0 ? 0 : n] = '\0';
    close(log_fd);
}

static int count_of(const char *word)
{
    int n = 0;

    for (const char *at = logged; (at = strstr(at, word)) != NULL; at += strlen(word))
        n++;
    return n;
}

/* ---- calls ---- */

static int in[RANKS * COUNT], out[RANKS * COUNT];

static ncclResult_t grouped(ncclComm_t comm)
{
    ncclResult_t result, ended;

    result = ncclGroupStart();
    for (int i = 0; i < 2 && result == ncclSuccess; i++)
        result = ncclAllReduce(in, out, COUNT, ncclInt, ncclSum, comm, NULL);
    ended = ncclGroupEnd();
    return result != ncclSuccess ? result : ended;
}

/* The plans of such an operator are not kept, the answers are. */
static ncclResult_t scaled(ncclComm_t comm)
{
    int factor = 1;
    ncclRedOp_t op;
    ncclResult_t result = ncclRedOpCreatePreMulSum(&op, &factor, ncclInt, ncclScalarHostImmediate, comm);

    for (int i = 0; i < 4 && result == ncclSuccess; i++)
        result = ncclAllReduce(in, out, COUNT, ncclInt, op, comm, NULL);
    (void)ncclRedOpDestroy(op, comm);
    return result;
}

static ncclResult_t call(what_t what, ncclComm_t comm)
{
    switch (what) {
    case ALLGATHER:
        return ncclAllGather(in, out, COUNT, ncclInt, comm, NULL);
    case BROADCAST:
        return ncclBroadcast(in, out, COUNT, ncclInt, 1, comm, NULL);
    case GROUPED:
        return grouped(comm);
    case SCALED:
        return scaled(comm);
    default:
        return ncclAllReduce(in, out, COUNT, ncclInt, ncclSum, comm, NULL);
    }
}

/* The right element is one that every rank can tell. */
static int right(what_t what, int i)
{
    if (what == ALLGATHER)
        return out[i] == i / COUNT + 1;
    return out[i] == (what == BROADCAST ? 2 : RANKS * (RANKS + 1) / 2);
}

static void check_output(test_rank_t *t, what_t what)
{
    for (int i = 0; i < (what == ALLGATHER ? RANKS : 1) * COUNT; i++)
        if (!right(what, i)) {
            test_fail(t, "element %d is %d", i, out[i]);
            return;
        }
}

/* ---- cases ---- */

static void check_log(test_rank_t *t, const case_t *c)
{
    for (int i = 0; i < WORDS && c->says[i]; i++)
        if (!strstr(logged, c->says[i]))
            test_fail(t, "the log does not say \"%s\":\n%s", c->says[i], logged);
    for (int i = 0; i < WORDS && c->hides[i]; i++)
        if (strstr(logged, c->hides[i]))
            test_fail(t, "the log says \"%s\":\n%s", c->hides[i], logged);
}

static void set_rank(const test_rank_t *t, const case_t *c)
{
    char rank[8];

    snprintf(rank, sizeof rank, "%d", t->rank);
    setenv("TEST_TUNER_RANK", rank, 1);
    if (getenv("TEST_NODES"))
        setenv("RONDO_HOSTID", rank, 1);
    if (c->odd && t->rank == 1)
        setenv("NCCL_TUNER_PLUGIN", c->odd, 1);
}

static void body(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    ncclUniqueId id = nccl_id(t);
    ncclComm_t comm = NULL;

    test_note(t, "%s", c->name);
    set_rank(t, c);
    for (int i = 0; i < COUNT; i++)
        in[i] = t->rank + 1;
    log_begin();
    ncclResult_t result = ncclCommInitRank(&comm, RANKS, id, t->rank);
    int made = result == ncclSuccess;
    if (made)
        result = call(c->what, comm);
    log_end();
    if (result != c->wants)
        test_fail(t, "%s: result %d (%s):\n%s", c->name, (int)result, ncclGetLastError(comm), logged);
    else if (result == ncclSuccess)
        check_output(t, c->what);
    check_log(t, c);
    if (made)
        ncclCommAbort(comm);
}

static int run_case(const case_t *c, int version, test_body_fn run, void *arg)
{
    char file[500], name[64] = "";

    snprintf(file, sizeof file, "%s/libnccl-tuner-test%d.so", folder, version);
    setenv("NCCL_TUNER_PLUGIN", c->plugin ? c->plugin : file, 1);
    setenv("TEST_TUNER", c->answers, 1);
    setenv("RONDO_DEBUG", "plan", 1);
    if (c->set) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(c->set, "="), c->set);
        setenv(name, c->set + strlen(name) + 1, 1);
    }
    int bad = test_run(TEST_PROCESSES, RANKS, 60, run, arg);
    if (*name)
        unsetenv(name);
    if (bad)
        printf("version %d, %s\n", version, c->name);
    return bad;
}

static int run_cases(void)
{
    int bad = 0;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int version = cases[i].from; version <= cases[i].to; version++) {
            if (!between_nodes && cases[i].set && strcmp(cases[i].set, NODES) == 0)
                continue;
            case_t c = cases[i];
            bad += run_case(&c, version, body, &c) != 0;
        }
    return bad;
}

/* ---- what a plugin is shown, and how often ---- */

/* Returns what the log says behind `word`, up to the end of its line, or "". */
static void behind(const char *word, char *text, size_t room)
{
    const char *at = strstr(logged, word);

    *text = '\0';
    if (at)
        snprintf(text, room, "%.*s", (int)strcspn(at + strlen(word), "\n"), at + strlen(word));
}

/* A communicator of rondo's own that is made before the first call of NCCL's has no tuner: its plan is rondo's choice.
 */
static void untouched(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    char own[200], tuned[200];
    ncclComm_t nccl;

    set_rank(t, c);
    log_begin();
    rondo_comm_t comm = test_comm(t, NULL);
    TEST_OK(t, comm, rondo_allreduce(in, out, COUNT, RONDO_INT32, RONDO_SUM, comm, NULL));
    log_end();
    TEST_TRUE(t, count_of("asked: version") == 0);
    behind("allreduce of 1000 int32: ", own, sizeof own);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    log_begin();
    nccl = nccl_comm(t);
    for (int i = 0; i < 5; i++)
        NCCL_OK(t, ncclAllReduce(in, out, COUNT, ncclInt, ncclSum, nccl, NULL));
    NCCL_OK(t, ncclAllReduce(in, out, COUNT / 2, ncclInt, ncclSum, nccl, NULL));
    NCCL_OK(t, grouped(nccl));
    NCCL_OK(t, scaled(nccl));
    log_end();
    behind("allreduce of 1000 int32: ", tuned, sizeof tuned);
    if (!*own || strcmp(own, tuned) != 0)
        test_fail(t, "rondo's choice is \"%s\", and by a table that was not touched \"%s\"", own, tuned);
    if (count_of("asked: version") != 3) /* two lengths, and an operator that may have other candidates */
        test_fail(t, "asked %d times:\n%s", count_of("asked: version"), logged);
    NCCL_OK(t, ncclCommDestroy(nccl));
}

/* Rondo has neither LL128 in host memory nor CollNet or NVLS anywhere; what there is has a price. */
static void table(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    char text[400], *next = text;
    ncclComm_t comm;

    set_rank(t, c);
    log_begin();
    comm = nccl_comm(t);
    NCCL_OK(t, ncclAllReduce(in, out, COUNT, ncclInt, ncclSum, comm, NULL));
    log_end();
    behind("function 4, 4000 bytes: ", text, sizeof text);
    for (int cell = 0; cell < 21; cell++) {
        double us = strtod(next, &next);
        int there = cell == 2 || cell == 5, may = cell == 0 || cell == 3 || cell >= 18;
        if (there ? us <= 0 : us != -1 && !(may && us > 0))
            test_fail(t, "cell %d of \"%s\" is %g", cell, text, us);
    }
    NCCL_OK(t, ncclCommDestroy(comm));
}

/* Rows as in others' tables: operation, bytes, algorithm and protocol. At the first and the last length of each, the
 * plan is the row's. NCCL's numbers: broadcast 0, reduce 1, allgather 2, reduce_scatter 3, allreduce 4; tree 0, ring 1,
 * pat 6; ll 0, simple 2. */
static const struct {
    int function, from, to, algo, proto;
    const char *says[2];
} rows[] = {
    {4, 0, 64, 0, 0, {"int32: tree,", "lane 0: ll,"}},
    {4, 65, 1200, 1, 2, {"int32: ring,", "lane 0: simple,"}},
    {4, 1201, 4000, 0, 2, {"int32: tree,", "lane 0: simple,"}},
    {0, 0, 2000, 1, 2, {"int32: ring,", "lane 0: simple,"}},
    {0, 2001, 4000, 0, 2, {"int32: tree,", "lane 0: simple,"}},
    {2, 0, 2400, 6, 2, {"int32: pat,", "lane 0: simple,"}},
    {2, 2401, 12000, 1, 2, {"int32: ring,", "lane 0: simple,"}},
    {3, 0, 2400, 1, 2, {"int32: ring,", "lane 0: simple,"}},
    {3, 2401, 12000, 6, 2, {"int32: pat,", "lane 0: simple,"}},
    {1, 0, 4000, 0, 2, {"int32: tree,", "lane 0: simple,"}},
};
#define ROWS (int)(sizeof rows / sizeof rows[0])

static ncclResult_t row_call(int function, size_t count, ncclComm_t comm)
{
    switch (function) {
    case 0:
        return ncclBroadcast(in, out, count, ncclInt, 1, comm, NULL);
    case 1:
        return ncclReduce(in, out, count, ncclInt, ncclSum, 1, comm, NULL);
    case 2:
        return ncclAllGather(in, out, count / RANKS, ncclInt, comm, NULL);
    case 3:
        return ncclReduceScatter(in, out, count / RANKS, ncclInt, ncclSum, comm, NULL);
    default:
        return ncclAllReduce(in, out, count, ncclInt, ncclSum, comm, NULL);
    }
}

static void steered(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    ncclComm_t comm;

    set_rank(t, c);
    comm = nccl_comm(t);
    for (int i = 0; i < 2 * ROWS; i++) {
        const int blocks = rows[i / 2].function == 2 || rows[i / 2].function == 3 ? RANKS : 1;
        const int least = rows[i / 2].from / 4 + 1, most = rows[i / 2].to / 4;
        const int count = i % 2 ? most / blocks * blocks : (least + blocks - 1) / blocks * blocks;
        log_begin();
        ncclResult_t result = row_call(rows[i / 2].function, (size_t)count, comm);
        log_end();
        const char *const *says = rows[i / 2].says;
        if (result != ncclSuccess || !strstr(logged, says[0]) || !strstr(logged, says[1]))
            test_fail(t, "row %d, %d bytes: result %d, and not %s %s\n%s", i / 2, 4 * count, (int)result, says[0],
                      says[1], logged);
    }
    NCCL_OK(t, ncclCommDestroy(comm));
}

static int run_rows(void)
{
    char answers[512] = "";
    case_t c = {.name = "rows", .answers = answers};
    size_t used = 0;
    int bad = 0;

    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(answers + used, sizeof answers - used, "%srow=%d,%d,%d,%d,%d", i ? ";" : "",
                                 rows[i].function, rows[i].from, rows[i].to, rows[i].algo, rows[i].proto);
    for (int version = 2; version <= 6; version++)
        bad += run_case(&c, version, steered, &c) != 0;
    return bad;
}

static int run_shown(void)
{
    case_t c = {.name = "untouched", .answers = "print"};
    int bad = 0;

    for (int version = 2; version <= 6; version++) {
        bad += run_case(&c, version, untouched, &c) != 0;
        if (version > 2)
            bad += run_case(&c, version, table, &c) != 0;
    }
    return bad;
}

/* ---- drawn disagreements: one rank, one length, one answer ---- */

static int planted = 40; /* for all versions together */
static uint64_t drawn;

static int below(int n)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (int)((drawn >> 33) % (uint64_t)n);
}

typedef struct plant {
    int algo; /* what it may also be done by, beside ring, as NCCL numbers algorithms */
    const char *name;
    int blocks; /* of the count, in the bytes that a tuner is told */
} plant_t;

static ncclResult_t planted_call(int which, size_t count, ncclComm_t comm)
{
    switch (which) {
    case 0:
        return ncclAllReduce(in, out, count, ncclInt, ncclSum, comm, NULL);
    case 1:
        return ncclAllGather(in, out, count, ncclInt, comm, NULL);
    case 2:
        return ncclReduceScatter(in, out, count, ncclInt, ncclSum, comm, NULL);
    default:
        return ncclBroadcast(in, out, count, ncclInt, 1, comm, NULL);
    }
}

/* Some calls of other lengths, which all answer alike for, and then the one. All ranks draw the same numbers. */
static void plant_one(test_rank_t *t, int trial)
{
    static const plant_t plants[] = {
        {0, "allreduce", 1}, {6, "allgather", RANKS}, {6, "reduce_scatter", RANKS}, {0, "broadcast", 1}};
    const int which = below(4), odd = below(RANKS), before = below(3), count = 1 + below(COUNT - 1);
    const plant_t *p = &plants[which];
    char answers[160], bytes[32], rank[16];
    ncclResult_t result = ncclSuccess;

    snprintf(answers, sizeof answers, "cell=1,2,0;bytes=%d;cell=1,2,9@%d;cell=%d,2,0@%d", 4 * count * p->blocks, odd,
             p->algo, odd);
    setenv("TEST_TUNER", answers, 1);
    test_note(t, "planted %d: %s, %s before", trial, p->name, answers);
    ncclComm_t comm = nccl_comm(t);
    log_begin();
    for (int i = 0; i < before; i++)
        result = planted_call(which, (size_t)(count + 1 + i) % COUNT, comm);
    if (result != ncclSuccess)
        test_fail(t, "a call before: %s", ncclGetLastError(comm));
    for (int i = 0; i < 1000 && result == ncclSuccess; i++) /* who only sends may learn of it by the next call */
        result = planted_call(which, (size_t)count, comm);
    log_end();
    const char *said = ncclGetLastError(comm);
    snprintf(bytes, sizeof bytes, "of %d bytes", 4 * count * p->blocks);
    snprintf(rank, sizeof rank, "rank %d (", odd);
    if (result != ncclInvalidUsage || !strstr(said, UNLIKE) || !strstr(said, "plugin test") || !strstr(said, p->name) ||
        !strstr(said, bytes) || !strstr(said, rank))
        test_fail(t, "rank %d answers otherwise for %s %s: result %d, %s", odd, p->name, bytes, (int)result, said);
    ncclCommAbort(comm);
}

static void plant_all(test_rank_t *t, void *arg)
{
    const case_t *c = arg;

    set_rank(t, c);
    for (int i = 0; i < planted / 4 && test_failures(t) == 0; i++)
        plant_one(t, i);
}

static int run_planted(void)
{
    case_t c = {.name = "planted", .answers = ""};
    int bad = 0;

    for (int version = 3; version <= 6; version++) {
        drawn = 33 + (uint64_t)version;
        bad += run_case(&c, version, plant_all, &c) != 0;
    }
    printf("planted: %d disagreements, seeds 36 to 39: %s\n", planted / 4 * 4, bad ? "WRONG" : "one sentence each");
    return bad;
}

int main(int argc, char **argv)
{
    const char *build = getenv("top_builddir");
    char file[500];

    if (argc == 3 && strcmp(argv[1], "--planted") == 0)
        planted = atoi(argv[2]);
    snprintf(folder, sizeof folder, "%s/.libs", build ? build : ".");
    if (!getenv("TEST_TUNER")) { /* the loader reads where libraries lie when the program starts */
        setenv("LD_LIBRARY_PATH", folder, 1);
        setenv("TEST_TUNER", "", 1);
        execv("/proc/self/exe", argv);
        perror("execv");
        return 1;
    }
    test_begin("tuner", 500);
    nccl_begin();
    snprintf(file, sizeof file, "%s/libnccl-tuner-test2.so", folder);
    if (access(file, R_OK) != 0) {
        printf("there is no %s: modules are not built\n", file);
        return TEST_SKIPPED;
    }
    return (argc > 1 ? 0 : run_shown() + run_rows() + run_cases()) + run_planted() != 0;
}
