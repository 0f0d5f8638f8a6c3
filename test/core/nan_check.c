/* RONDO_NAN_CHECK. With `fail` a NaN in what a call reads on a rank is RONDO_ERR_NAN on all ranks, in one sentence with
 * rank, call, how many, and which is the first; within a node, between two, blocking and in groups. What a call does
 * not read on that rank is not looked at: the buffers of others than the root, of a receiver, the gaps of a table,
 * outputs. With `warn` a line says it once for each kind of call, and with 0 nothing does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 3
#define N 300
#define ROOT 1

typedef enum {
    ALLREDUCE,
    REDUCE,
    BROADCAST,
    ALLGATHER,
    REDUCE_SCATTER,
    ALLTOALL,
    GATHER,
    SCATTER,
    MESSAGE,
    ALLGATHERV,
    REDUCE_SCATTERV,
    ALLTOALLV,
    GATHERV,
    SCATTERV,
    BARRIER,
    KINDS
} kind_t;

static const char *const names[KINDS] = {"allreduce",       "reduce",    "broadcast", "allgather", "reduce_scatter",
                                         "alltoall",        "gather",    "scatter",   "send",      "allgatherv",
                                         "reduce_scatterv", "alltoallv", "gatherv",   "scatterv",  "barrier"};

/* Blocks of a table: as many elements, so far apart. */
static const size_t counts[RANKS] = {3, 5, 4}, displs[RANKS] = {0, 10, 20};

typedef struct {
    kind_t kind;
    int nodes, grouped;
    int at;      /* index of the NaN in the input of `of` */
    int of;      /* the rank that has it */
    int is_read; /* the call reads it */
} case_t;

static rondo_result_t call(test_rank_t *t, rondo_comm_t comm, kind_t kind, double *in, double *out)
{
    const size_t own = counts[t->rank];
    const rondo_type_t type = RONDO_FLOAT64;

    switch (kind) {
    case ALLREDUCE:
        return rondo_allreduce(in, out, N, type, RONDO_SUM, comm, NULL);
    case REDUCE:
        return rondo_reduce(in, out, N, type, RONDO_MAX, ROOT, comm, NULL);
    case BROADCAST:
        return rondo_broadcast(in, out, N, type, ROOT, comm, NULL);
    case ALLGATHER:
        return rondo_allgather(in, out, N, type, comm, NULL);
    case REDUCE_SCATTER:
        return rondo_reduce_scatter(in, out, N, type, RONDO_SUM, comm, NULL);
    case ALLTOALL:
        return rondo_alltoall(in, out, N, type, comm, NULL);
    case GATHER:
        return rondo_gather(in, out, N, type, ROOT, comm, NULL);
    case SCATTER:
        return rondo_scatter(in, out, N, type, ROOT, comm, NULL);
    case MESSAGE: /* rank 1 sends to rank 2 */
        return t->rank == 0   ? RONDO_SUCCESS
               : t->rank == 1 ? rondo_send(in, N, type, 2, comm, NULL)
                              : rondo_recv(out, N, type, 1, comm, NULL);
    case ALLGATHERV:
        return rondo_allgatherv(in, own, out, counts, displs, type, comm, NULL);
    case REDUCE_SCATTERV:
        return rondo_reduce_scatterv(in, out, counts, type, RONDO_SUM, comm, NULL);
    case ALLTOALLV: {
        const size_t blocks[RANKS] = {own, own, own};
        const size_t sends[RANKS] = {counts[0], counts[1], counts[2]};
        return rondo_alltoallv(in, sends, displs, out, blocks, displs, type, comm, NULL);
    }
    case GATHERV:
        return rondo_gatherv(in, own, out, counts, displs, type, ROOT, comm, NULL);
    case SCATTERV:
        return rondo_scatterv(in, counts, displs, out, own, type, ROOT, comm, NULL);
    default:
        return rondo_barrier(comm, NULL);
    }
}

static uint64_t hash(const char *text)
{
    uint64_t h = 1;

    for (; *text; text++)
        h = test_mix(h ^ (unsigned char)*text);
    return h;
}

static bool has_root(kind_t kind)
{
    return kind == REDUCE || kind == BROADCAST || kind == GATHER || kind == SCATTER || kind == GATHERV ||
           kind == SCATTERV;
}

/* Some ranks' part may be over before they know: the next call fails. */
static void body(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    double *in = calloc(RANKS * N, sizeof *in), *out = calloc(RANKS * N, sizeof *out);
    char word[160];

    test_note(t, "%s, NaN at %d of rank %d, %d nodes%s", names[c->kind], c->at, c->of, c->nodes,
              c->grouped ? ", in a group" : "");
    rondo_comm_t comm = test_comm_on(t, c->nodes);
    if (!comm)
        test_stop(t, "no communicator");
    in[0] = INFINITY;
    out[7] = NAN;
    test_barrier(t); /* what is under way fails with the communicator, as a creation or a call */
    TEST_OK(t, comm, call(t, comm, c->kind, in, out));
    test_barrier(t);
    if (t->rank == c->of)
        in[c->at] = in[RANKS * N - 1] = NAN;
    if (c->grouped)
        rondo_group_start();
    rondo_result_t result = call(t, comm, c->kind, in, out);
    if (c->grouped)
        result = rondo_group_end();
    if (result == RONDO_SUCCESS)
        result = rondo_barrier(comm, NULL);
    TEST_GIVES(t, comm, c->is_read ? RONDO_ERR_NAN : RONDO_SUCCESS, result);
    if (c->is_read) {
        const char *said = rondo_last_error(comm);
        int two = c->at < RANKS * N - 1 && (c->kind == REDUCE_SCATTER || c->kind == ALLTOALL || c->kind == SCATTER);
        snprintf(word, sizeof word, "has %d elements that are not a number in the input of its %s, %s", two ? 2 : 1,
                 names[c->kind],
                 c->grouped           ? "in a group"
                 : c->kind == MESSAGE ? "message number 2"
                                      : "collective number 2");
        TEST_TRUE(t, strstr(said, word));
        snprintf(word, sizeof word, "the first is element %d of ", c->at);
        TEST_TRUE(t, strstr(said, word));
        snprintf(word, sizeof word, "rank %d (", c->of);
        TEST_TRUE(t, strncmp(said, word, strlen(word)) == 0);
        TEST_TRUE(t, !strstr(said, ", root ") == !has_root(c->kind));
        test_agree(t, hash(said), "the sentence");
        TEST_GIVES(t, comm, RONDO_ERR_NAN, rondo_barrier(comm, NULL));
    }
    test_barrier(t); /* an abort ends what others are still in */
    TEST_OK(t, NULL, rondo_comm_abort(comm));
    free(in);
    free(out);
}

/* ---- warn ---- */

static int warnings(const char *file)
{
    FILE *f = fopen(file, "r");
    char line[1024];
    int n = 0;

    while (f && fgets(line, sizeof line, f))
        n += strstr(line, "not a number") != NULL;
    if (f)
        fclose(f);
    return n;
}

static void warned(test_rank_t *t, void *arg)
{
    float in[4] = {1, NAN, 2, NAN}, out[4];
    int64_t whole[2] = {-1, -1}, sum[2]; /* as a float it would be NaN */

    rondo_comm_t comm = test_comm_on(t, 1);
    for (int i = 0; i < 5; i++)
        TEST_OK(t, comm, rondo_allreduce(in, out, 4, RONDO_FLOAT32, RONDO_MAX, comm, NULL));
    TEST_OK(t, comm, rondo_allreduce(whole, sum, 2, RONDO_INT64, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_allreduce(in, out, 1, RONDO_FLOAT32, RONDO_MAX, comm, NULL));
    for (int i = 0; i < 5; i++)
        TEST_OK(t, comm, rondo_allreduce(in, out, 3, RONDO_FLOAT32, RONDO_MAX, comm, NULL));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    test_barrier(t);
    TEST_TRUE(t, warnings(arg) == (strcmp(getenv("RONDO_NAN_CHECK"), "warn") == 0 ? 2 * t->nranks : 0));
}

static int warns(const char *mode)
{
    char file[] = "/tmp/rondo-nan-XXXXXX";
    int fd = mkstemp(file);

    if (fd < 0)
        return 1;
    close(fd);
    setenv("RONDO_NAN_CHECK", mode, 1);
    setenv("RONDO_DEBUG_FILE", file, 1);
    setenv("RONDO_DEBUG", "warn", 1);
    int bad = test_run(TEST_PROCESSES, 2, 20, warned, file) != 0;
    unsetenv("RONDO_DEBUG_FILE");
    setenv("RONDO_DEBUG", "none", 1);
    unlink(file);
    return bad;
}

/* ---- by the config ---- */

/* It takes precedence over the variable, on the communicator that it makes alone. */
static void by_config(test_rank_t *t, void *arg)
{
    const int check = *(const int *)arg;
    const float in = NAN;
    rondo_config_t config = test_host_config();
    float out;

    config.nan_check = check;
    rondo_comm_t comm = test_comm(t, &config), other = test_comm_on(t, 1);
    TEST_GIVES(t, comm, check == RONDO_NAN_FAIL ? RONDO_ERR_NAN : RONDO_SUCCESS,
               rondo_allreduce(&in, &out, 1, RONDO_FLOAT32, RONDO_MAX, comm, NULL));
    TEST_GIVES(t, other, check == RONDO_NAN_FAIL ? RONDO_SUCCESS : RONDO_ERR_NAN,
               rondo_allreduce(&in, &out, 1, RONDO_FLOAT32, RONDO_MAX, other, NULL));
    test_barrier(t);
    rondo_comm_abort(comm);
    rondo_comm_abort(other);
}

static int config_counts(const char *variable, int check)
{
    setenv("RONDO_NAN_CHECK", variable, 1);
    return test_run(TEST_PROCESSES, 2, 20, by_config, &check) != 0;
}

int main(void)
{
    static const case_t more[] = {
        {BROADCAST, 1, 0, 3, 0, 0},  {SCATTER, 1, 0, 3, 2, 0},     {SCATTERV, 1, 0, 1, 0, 0},
        {MESSAGE, 1, 0, 0, 2, 0},    {BARRIER, 1, 0, 0, 1, 0},     {ALLTOALLV, 1, 0, 3, 1, 0},
        {GATHERV, 1, 0, 6, 1, 0},    {ALLGATHERV, 1, 0, 8, 1, 0},  {REDUCE_SCATTERV, 1, 0, 12, 1, 0},
        {ALLTOALLV, 1, 0, 21, 0, 1}, {ALLREDUCE, 1, 1, 299, 2, 1}, {MESSAGE, 1, 1, 0, 1, 1},
        {ALLREDUCE, 2, 0, 12, 0, 1}, {ALLTOALL, 2, 0, 899, 1, 1},  {MESSAGE, 2, 1, 8, 1, 1},
    };
    int bad = 0;

    test_begin("nan_check", 120);
    setenv("RONDO_DEBUG", "none", 1);
    setenv("RONDO_NAN_CHECK", "fail", 1);
    for (int kind = 0; kind < BARRIER; kind++) {
        const case_t c = {(kind_t)kind, 1, 0, 2, ROOT, 1};
        bad |= test_run(TEST_PROCESSES, RANKS, 20, body, (void *)(uintptr_t)&c) != 0;
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        bad |= test_run(TEST_PROCESSES, RANKS, 30, body, (void *)(uintptr_t)&more[i]) != 0;
    return bad | config_counts("0", RONDO_NAN_FAIL) | config_counts("fail", RONDO_NAN_IGNORE) | warns("warn") |
           warns("0");
}
