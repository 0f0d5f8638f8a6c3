/* Hard values of the narrow floating types (util/narrow.h): every type, operation and operator, by every algorithm and
 * protocol that can be forced, and by those that are chosen; in one pass and in several, in place and not.
 *
 *   narrow [--ranks N]
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sched/algo.h"
#include "util/harness.h"
#include "util/narrow_calls.h"

static const char *const protos[] = {"ll", "simple"};

typedef struct {
    const char *algo, *proto; /* "": not forced */
    int nodes, turn;          /* turn: of narrow_calls */
    _Atomic int *served;      /* operations that went through on rank 0, in shared memory */
} plan_t;

/* Returns false if the algorithm and the protocol cannot go together. */
static bool create(test_rank_t *t, rondo_comm_t *comm, const plan_t *p)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_result_t result;

    test_note(t, "create, '%s' by '%s', %d nodes", p->algo, p->proto, p->nodes);
    if (p->nodes > 1) {
        *comm = test_comm_on(t, p->nodes);
        return *comm != NULL;
    }
    config.device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    result = rondo_comm_create(comm, t->nranks, &id, t->rank, &config);
    test_agree(t, (uint64_t)result, "creation");
    if (*p->algo && result != RONDO_SUCCESS && strstr(rondo_last_error(NULL), "RONDO_"))
        return false;
    return TEST_OK(t, NULL, result);
}

static void body(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {1, 48, 1021};
    plan_t *p = arg;
    rondo_comm_t comm = NULL;

    if (!create(t, &comm, p))
        return;
    int served = narrow_calls(t, comm, &narrow_host, counts, 3, p->turn, *p->algo || *p->proto);
    if (t->rank == 0)
        atomic_fetch_add(p->served, served);
    test_note(t, "destroy");
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

static int run(plan_t *p, int nranks, int slices)
{
    int kind = nranks % 2 ? TEST_THREADS : TEST_PROCESSES, bad;

    setenv("RONDO_ALGO", p->algo, 1);
    setenv("RONDO_PROTO", p->proto, 1);
    if (slices)
        setenv("RONDO_SLICE_BYTES", "192", 1);
    else
        unsetenv("RONDO_SLICE_BYTES");
    bad = test_run((test_kind_t)kind, nranks, 60, body, p);
    if (bad)
        printf("narrow: WRONG: RONDO_ALGO='%s' RONDO_PROTO='%s'%s, %d %s\n", p->algo, p->proto,
               slices ? " RONDO_SLICE_BYTES=192" : "", nranks, test_kind_name((test_kind_t)kind));
    return bad;
}

static bool reduces(const rd_algo_t *algo)
{
    return (algo->colls & (1u << RD_ALLREDUCE | 1u << RD_REDUCE | 1u << RD_REDUCE_SCATTER)) != 0;
}

/* Three ranks for the fractions that no type holds, four for what doubles. What is forced has another number of
 * elements for each number of ranks. */
int main(int argc, char **argv)
{
    static const int ranks[] = {3, 1, 2, 4, 7};
    int only = argc > 2 && strcmp(argv[1], "--ranks") == 0 ? atoi(argv[2]) : 0, bad = 0;
    plan_t p = {"", "", 1, NARROW_ALL, NULL};

    test_begin("narrow", 250);
    p.served = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.served == MAP_FAILED)
        return 1;
    for (int i = 0; i < 5 && !bad; i++) {
        if (only && ranks[i] != only)
            continue;
        bad += run(&p, ranks[i], 0) + run(&p, ranks[i], 1);
        plan_t nodes = {"", "", 2, NARROW_ALL, p.served};
        if (ranks[i] > 1 && !bad)
            bad += run(&nodes, ranks[i], i % 2);
        for (const rd_algo_t *const *algo = rd_algos; *algo && i != 1 && i < 4 && !bad; algo++) {
            for (int k = 0; k < 2 && reduces(*algo) && !bad; k++) {
                plan_t forced = {(*algo)->name, protos[k], 1, (i + 1) / 2, p.served};
                bad += run(&forced, ranks[i], (i + k) % 2);
            }
        }
    }
    printf("narrow: %d operations: %s\n", atomic_load(p.served), bad ? "WRONG" : "right");
    return bad != 0;
}
