/* A message whose two ends give different lengths (kind C, "what is there is not compared"): RONDO_ERR_MISMATCH on
 * every rank without RONDO_CHECK, in a sentence with both lengths, and not a byte in the receiver's buffer, whichever
 * way the message goes. What came before is right, and the sender learns of it with its next call at the latest.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define MOST ((size_t)3 << 20)
#define BYTE 0x77 /* what a receive buffer holds before */

typedef enum { SENDS, GROUPS, ALLTOALLV, GATHERV, SCATTERV, NUM_CALLS } call_t;

static const char *const call_names[NUM_CALLS] = {"send and recv", "send and recv in groups", "alltoallv", "gatherv",
                                                  "scatterv"};

typedef struct {
    const char *name, *variable, *value;
    int nodes;
} way_t;

static const way_t ways[] = {
    {"as chosen", "RONDO_CMA", "1", 1},          {"without cma", "RONDO_CMA", "0", 1},
    {"without lines", "RONDO_LL_MAX", "0", 1},   {"lines alone", "RONDO_PROTO", "ll", 1},
    {"slots alone", "RONDO_PROTO", "simple", 1}, {"one slot", "RONDO_SLOTS", "1", 1},
    {"checked", "RONDO_CHECK", "1", 1},          {"two nodes, checked", "RONDO_CHECK", "1", 2},
    {"two nodes", "RONDO_CMA", "1", 2},          {"two nodes, one slot", "RONDO_SLOTS", "1", 2},
};

static const struct {
    size_t sent, wanted;
} pairs[] = {
    {100, 50},    {50, 100},        {8, 7},           {56, 57},         {0, 8},           {8, 0},        {100, 40000},
    {40000, 100}, {20000, 40000},   {40000, 20000},   {1500, 1400},     {3000, 3001},     {300, 200000}, {200000, 300},
    {2048, 2049}, {1 << 20, 70000}, {70000, 1 << 20}, {MOST, MOST - 1}, {MOST - 1, MOST}, {1000, 10000},
};

typedef struct {
    const way_t *way;
    call_t call;
    size_t sent, wanted;
    int ahead; /* in a group: short messages before it, and as many behind it */
} plan_t;

/* Rank 1 sends to rank 0 in every call; the others have empty blocks. */
static rondo_result_t run_v(const plan_t *p, int rank, int nranks, rondo_comm_t comm, char *buffer, size_t bytes)
{
    size_t some[TEST_MAX_RANKS] = {0}, none[TEST_MAX_RANKS] = {0};
    const int root = p->call == GATHERV ? 0 : 1;

    (void)nranks;
    some[1 - rank < 0 ? 0 : 1 - rank] = rank < 2 ? bytes : 0;
    if (p->call == ALLTOALLV && rank == 1)
        return rondo_alltoallv(buffer, some, NULL, NULL, none, NULL, RONDO_UINT8, comm, NULL);
    if (p->call == ALLTOALLV)
        return rondo_alltoallv(NULL, none, NULL, buffer, rank ? none : some, NULL, RONDO_UINT8, comm, NULL);
    if (p->call == GATHERV)
        return rank == root
                   ? rondo_gatherv(NULL, 0, buffer, some, NULL, RONDO_UINT8, root, comm, NULL)
                   : rondo_gatherv(buffer, rank == 1 ? bytes : 0, NULL, NULL, NULL, RONDO_UINT8, root, comm, NULL);
    return rank == root ? rondo_scatterv(buffer, some, NULL, NULL, 0, RONDO_UINT8, root, comm, NULL)
                        : rondo_scatterv(NULL, NULL, NULL, buffer, rank ? 0 : bytes, RONDO_UINT8, root, comm, NULL);
}

static rondo_result_t message(int rank, rondo_comm_t comm, void *buffer, size_t bytes)
{
    return rank ? rondo_send(buffer, bytes, RONDO_UINT8, 0, comm, NULL)
                : rondo_recv(buffer, bytes, RONDO_UINT8, 1, comm, NULL);
}

static rondo_result_t run_group(const plan_t *p, int rank, rondo_comm_t comm, char *buffer, size_t bytes)
{
    char others[16];
    rondo_result_t result = rondo_group_start(), end;

    for (int i = 0; i <= 2 * p->ahead && result == RONDO_SUCCESS; i++)
        result = i == p->ahead ? message(rank, comm, buffer, bytes) : message(rank, comm, others, sizeof others);
    end = rondo_group_end();
    return result != RONDO_SUCCESS ? result : end;
}

static rondo_result_t run(const plan_t *p, int rank, int nranks, rondo_comm_t comm, char *buffer, size_t bytes)
{
    if (p->call >= ALLTOALLV)
        return run_v(p, rank, nranks, comm, buffer, bytes);
    if (rank > 1)
        return RONDO_SUCCESS;
    return p->call == SENDS ? message(rank, comm, buffer, bytes) : run_group(p, rank, comm, buffer, bytes);
}

/* Equal lengths, after which nothing is left of an earlier message in any slot or line that is not that of an earlier
 * message. */
static void run_equal(test_rank_t *t, const plan_t *p, rondo_comm_t comm, char *buffer)
{
    static const size_t lengths[] = {8, 100, 40000, 0, 20000, 300000, 1};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t wrong = 0;
        memset(buffer, t->rank == 1 ? (int)i + 1 : BYTE, lengths[i] + 1);
        test_note(t, "%s, %s, %zu bytes on both ranks", p->way->name, call_names[p->call], lengths[i]);
        if (!test_result(t, comm, run(p, t->rank, t->nranks, comm, buffer, lengths[i]), RONDO_SUCCESS, test_noted(t)))
            test_stop(t, "cannot go on");
        for (size_t k = 0; k < lengths[i] && t->rank == 0; k++)
            wrong += buffer[k] != (char)(i + 1);
        if (wrong || (t->rank == 0 && buffer[lengths[i]] != BYTE))
            test_fail(t, "%zu bytes are wrong, or one was written behind", wrong);
    }
}

static void check_sentence(test_rank_t *t, const plan_t *p, const char *said)
{
    char sent[32], wanted[32];

    snprintf(sent, sizeof sent, " %zu bytes", p->sent);
    snprintf(wanted, sizeof wanted, "expects %zu", p->wanted);
    if (!strstr(said, sent) || !strstr(said, wanted) || !strstr(said, "rank 0") || !strstr(said, "rank 1"))
        test_fail(t, "%s: the sentence must name ranks 0 and 1, and%s and %s: \"%s\"", test_noted(t), sent, wanted,
                  said);
}

/* Where a block is empty on one side only, it is no message of this operation: only RONDO_CHECK=1 finds that. */
static int is_told(const plan_t *p)
{
    return p->call < ALLTOALLV || (p->sent && p->wanted) || strcmp(p->way->variable, "RONDO_CHECK") == 0;
}

static void body(test_rank_t *t, void *arg)
{
    plan_t *p = arg;
    rondo_comm_t comm = test_comm_on(t, p->way->nodes);
    char *buffer = malloc(MOST + 1);
    rondo_result_t result;
    size_t i;

    if (!comm || !buffer) { /* built without a network */
        free(buffer);
        return;
    }
    TEST_OK(t, comm, rondo_barrier(comm, NULL)); /* all have it */
    run_equal(t, p, comm, buffer);
    test_barrier(t); /* a rank without a message would hear before it has come so far */
    memset(buffer, BYTE, MOST + 1);
    test_note(t, "%s, %s: %zu bytes sent, %zu expected", p->way->name, call_names[p->call], p->sent, p->wanted);
    if (t->rank == 1)
        memset(buffer, 3, p->sent);
    result = run(p, t->rank, t->nranks, comm, buffer, t->rank == 1 ? p->sent : p->wanted);
    if (t->rank == 0)
        test_result(t, comm, result, RONDO_ERR_MISMATCH, test_noted(t));
    else if (result != RONDO_SUCCESS)
        test_result(t, comm, result, RONDO_ERR_MISMATCH, test_noted(t));
    for (i = 0; t->rank != 1 && i <= MOST && buffer[i] == BYTE; i++)
        ;
    if (t->rank != 1 && i <= MOST)
        test_fail(t, "%s: byte %zu was written", test_noted(t), i);
    test_result(t, comm, rondo_barrier(comm, NULL), RONDO_ERR_MISMATCH, test_noted(t));
    check_sentence(t, p, rondo_last_error(comm));
    TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, rondo_send(buffer, 1, RONDO_UINT8, (t->rank + 1) % t->nranks, comm, NULL));
    free(buffer);
    test_note(t, "destroy");
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0, number = 0;

    test_begin("lengths", 400);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        setenv(ways[w].variable, ways[w].value, 1);
        for (int call = 0; call < NUM_CALLS; call++)
            for (size_t k = 0; k < sizeof pairs / sizeof pairs[0] && !bad; k++) {
                plan_t p = {&ways[w], (call_t)call, pairs[k].sent, pairs[k].wanted, k % 4 < 2 ? 3 : 0};
                if (is_told(&p) && (k + w + (size_t)call) % 2 == 0)
                    bad += test_run(number % 2 && ways[w].nodes == 1 ? TEST_THREADS : TEST_PROCESSES, 2 + number % 3,
                                    40, body, &p);
                number++;
            }
        unsetenv(ways[w].variable);
    }
    return bad != 0;
}
