/* Ranks that are played to be on different nodes (RONDO_HOSTID): the same operations over the network transport, by
 * what the costs choose and by every hierarchical algorithm, forced. What cannot be is refused with
 * RONDO_ERR_UNSUPPORTED on every rank alike, and never goes wrong; allreduce must work.
 *
 *   nodes [--short]   forced ones move 6001 elements where they move 40001
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sched/algo.h"
#include "util/harness.h"
#include "util/operation.h"

typedef struct {
    int nnodes, uneven;
    const char *algo;        /* forced, or NULL */
    size_t forced_most;      /* elements that it moves at most */
    _Atomic int unsupported; /* shared memory: set by the ranks */
    _Atomic int served;      /* operations that went through, of one layout */
} layout_t;

static void run_case(test_rank_t *t, layout_t *l, rondo_comm_t comm, const do_case_t *c)
{
    char text[200];
    rondo_result_t result;
    do_call_t call;

    do_text(c, text, sizeof text);
    test_note(t, "%s", text);
    do_prepare_or_stop(t, &call, c);
    result = do_post(&call, comm);
    test_agree(t, (uint64_t)result, text);
    if (result == RONDO_SUCCESS) {
        do_check(t, &call, text);
        atomic_fetch_add(&l->served, 1);
    } else if (result != RONDO_ERR_UNSUPPORTED || (c->what == DO_ALLREDUCE && !l->algo)) {
        test_stop(t, "%s: %s: %s", text, rondo_result_string(result), rondo_last_error(comm));
    }
    do_release(&call);
}

static void walk(test_rank_t *t, layout_t *l, rondo_comm_t comm)
{
    static const size_t counts[] = {1, 0, 17, 1000, 40001};
    static const rondo_type_t types[] = {RONDO_FLOAT32, RONDO_INT8, RONDO_BFLOAT16, RONDO_FLOAT64};
    uint64_t random = 5;
    do_case_t c;
    int what, k, i;

    for (what = 0; what < DO_NUM; what++)
        for (k = 0; k < 5; k += l->algo ? 2 : 1)
            for (i = 0; i < (what == DO_ALLREDUCE ? 4 : 1); i++) {
                memset(&c, 0, sizeof c);
                c.what = (do_what_t)what;
                c.type = types[(i + k) % 4];
                c.op = k % 2 ? RONDO_MAX : RONDO_SUM;
                c.data = !do_reduces(c.what)                           ? REF_BYTES
                         : k % 2 == 0 && ref_is_float(c.type) && i < 2 ? REF_ROUNDING
                                                                       : REF_EXACT;
                c.count = l->algo && counts[k] > l->forced_most ? l->forced_most : counts[k];
                c.root = (int)test_below(&random, (unsigned)t->nranks);
                c.in_place = do_has_in_place(c.what) && test_below(&random, 2);
                c.seed = test_random(&random) >> 32;
                run_case(t, l, comm, &c);
            }
}

static void body(test_rank_t *t, void *arg)
{
    layout_t *l = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    rondo_result_t result;
    char host[32];
    int node = t->rank % l->nnodes;

    if (l->uneven) /* all but the last ranks on one node */
        node = t->rank >= t->nranks - l->nnodes + 1 ? t->rank - (t->nranks - l->nnodes) : 0;
    snprintf(host, sizeof host, "played%d", node);
    setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    test_note(t, "create, %s", host);
    test_id(t, &id);
    result = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    test_agree(t, (uint64_t)result, "creation");
    if (result == RONDO_ERR_UNSUPPORTED) /* built without UCX */
        atomic_store(&l->unsupported, 1);
    else
        TEST_OK(t, NULL, result);
    if (result != RONDO_SUCCESS)
        return;
    walk(t, l, comm);
    test_note(t, "destroy");
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* By one algorithm: on nodes of two ranks, and on uneven ones with slots as narrow as they may be. */
static int force(layout_t *l, const char *algo)
{
    int bad;

    l->algo = algo;
    l->served = 0;
    setenv("RONDO_ALGO", algo, 1);
    l->nnodes = 2;
    l->uneven = 0;
    bad = test_run(TEST_PROCESSES, 4, 40, body, l);
    setenv("RONDO_SLOTS", "1", 1);
    setenv("RONDO_SLICE_BYTES", "192", 1);
    l->nnodes = 3;
    l->uneven = 1;
    bad += test_run(TEST_PROCESSES, 5, 40, body, l);
    unsetenv("RONDO_SLOTS");
    unsetenv("RONDO_SLICE_BYTES");
    unsetenv("RONDO_ALGO");
    if (!bad && l->served == 0) {
        printf("nodes: FAILED: %s never served\n", algo);
        bad++;
    }
    return bad;
}

/* By one that lets short blocks go as one message: several do among six nodes, or three of two ranks. A vector of one
 * element has blocks that are empty, and messages of nothing else. */
static int force_together(layout_t *l, const rd_algo_t *algo)
{
    int bad;

    l->algo = algo->name;
    l->nnodes = algo->near == RD_PEERS_COUNTED ? 3 : 6;
    l->uneven = 0;
    setenv("RONDO_ALGO", algo->name, 1);
    bad = test_run(TEST_PROCESSES, 6, 40, body, l);
    unsetenv("RONDO_ALGO");
    return bad;
}

/* Returns true if the algorithm is for several nodes and for nothing else. */
static bool is_between_nodes(const rd_algo_t *algo)
{
    static const int node_of[] = {0, 0, 1, 1};
    const rd_shape_t one = {4, 1, NULL}, two = {4, 2, node_of};

    return algo->colls && algo->excluded(&(rd_sched_args_t){.shape = &one}) &&
           !algo->excluded(&(rd_sched_args_t){.shape = &two});
}

int main(int argc, char **argv)
{
    static const int layouts[][2] = {{2, 0}, {2, 1}, {3, 0}, {4, 0}}; /* by four nodes short blocks go together */
    layout_t *l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0, forced = 0, i, nranks;

    test_begin("nodes", 170);
    if (l == MAP_FAILED)
        return 1;
    l->forced_most = argc > 1 && strcmp(argv[1], "--short") == 0 ? 6001 : 40001;
    for (i = 0; i < 4; i++)
        for (nranks = 2; nranks <= 4 && bad == 0 && !l->unsupported; nranks++) {
            l->nnodes = layouts[i][0];
            l->uneven = layouts[i][1];
            if (nranks >= l->nnodes)
                bad += test_run(TEST_PROCESSES, nranks, 40, body, l);
        }
    for (i = 0; rd_algos[i] && bad == 0 && !l->unsupported; i++) {
        if (is_between_nodes(rd_algos[i])) {
            bad += force(l, rd_algos[i]->name);
            forced++;
        }
        if (rd_algos[i]->joins && bad == 0)
            bad += force_together(l, rd_algos[i]);
    }
    if (!bad && !l->unsupported && forced == 0) {
        printf("nodes: FAILED: no card is for several nodes alone\n");
        bad++;
    }
    if (!bad && l->unsupported) {
        printf("nodes: skipped: the library is built without a network transport\n");
        return TEST_SKIPPED;
    }
    return bad != 0;
}
