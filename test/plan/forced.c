/* Every algorithm by every protocol, forced, with connections as narrow as they may be and with usual ones: each
 * operation either is right on all ranks, or is refused on all of them with a sentence that names the variable; nothing
 * is done by something else in silence. So every schedule is run for real, also those that the costs would not choose
 * here.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sched/algo.h"
#include "util/harness.h"
#include "util/operation.h"

static const char *algos[RD_ALGOS_MOST]; /* those that serve on one node */
static int num_algos;
static const char *const protos[] = {"ll", "simple", "cma", "board-ll", "board"};
#define NUM_PROTOS 5
#define BOARDS 3 /* the first protocol that only the cards' `board` serve: the others are refused alike by any rank */

typedef struct {
    int algo, proto, narrow;
    _Atomic int served[RD_ALGOS_MOST][NUM_PROTOS]; /* shared memory: operations that went through on rank 0 */
} plan_t;

static const rd_algo_t *algo_of(const plan_t *p)
{
    return rd_algo_find(algos[p->algo]);
}

static int may_refuse(rondo_result_t result)
{
    return result == RONDO_ERR_UNSUPPORTED || result == RONDO_ERR_INVALID_ARGUMENT;
}

static void run_case(test_rank_t *t, plan_t *p, rondo_comm_t comm, const do_case_t *c)
{
    char text[200];
    rondo_result_t result;
    do_call_t call;

    do_text(c, text, sizeof text);
    test_note(t, "%s by %s: %s", algos[p->algo], protos[p->proto], text);
    do_prepare_or_stop(t, &call, c);
    result = do_post(&call, comm);
    test_agree(t, (uint64_t)result, test_noted(t));
    if (result == RONDO_SUCCESS) {
        do_check(t, &call, test_noted(t));
        if (t->rank == 0 && c->what < DO_SHIFT)
            atomic_fetch_add(&p->served[p->algo][p->proto], 1);
    } else if (!may_refuse(result)) {
        test_stop(t, "%s: %s", rondo_result_string(result), rondo_last_error(comm));
    } else if (!strstr(rondo_last_error(comm), "RONDO_")) {
        test_fail(t, "the sentence must name what forces it: \"%s\"", rondo_last_error(comm));
    }
    do_release(&call);
}

static void walk(test_rank_t *t, plan_t *p, rondo_comm_t comm)
{
    static const size_t counts[] = {33, 1, 3001};
    static const rondo_type_t types[] = {RONDO_FLOAT32, RONDO_INT16, RONDO_FLOAT64_INT32};
    uint64_t random = (uint64_t)(p->algo * 10 + p->proto);
    int what, k;

    for (what = 0; what < DO_NUM; what++)
        for (k = 0; k < 3; k++) {
            do_case_t c = {.what = (do_what_t)what, .type = types[k], .count = counts[k]};

            c.op = k == 2 ? RONDO_MINLOC : k == 1 ? RONDO_MAX : RONDO_SUM;
            c.data = !do_reduces(c.what) ? REF_BYTES : k == 0 ? REF_ROUNDING : REF_EXACT;
            c.root = (int)test_below(&random, (unsigned)t->nranks);
            c.in_place = do_has_in_place(c.what) && test_below(&random, 2);
            c.skew = do_has_counts(c.what) ? (int)test_below(&random, 100) : 0;
            c.seed = test_random(&random) >> 32;
            run_case(t, p, comm, &c);
        }
}

static void body(test_rank_t *t, void *arg)
{
    plan_t *p = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    rondo_result_t result;

    config.device = RONDO_DEVICE_HOST;
    test_note(t, "create, %s by %s", algos[p->algo], protos[p->proto]);
    test_id(t, &id);
    result = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    test_agree(t, (uint64_t)result, "creation");
    if (may_refuse(result) && strstr(rondo_last_error(NULL), "RONDO_"))
        return; /* a combination that can never be is refused at once */
    if (!TEST_OK(t, NULL, result))
        return;
    walk(t, p, comm);
    test_note(t, "destroy");
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

static int run(plan_t *p, int nranks)
{
    test_kind_t kind = (p->algo + p->proto + nranks) % 2 ? TEST_THREADS : TEST_PROCESSES;
    int bad;

    setenv("RONDO_ALGO", algos[p->algo], 1);
    setenv("RONDO_PROTO", protos[p->proto], 1);
    unsetenv("RONDO_SLOTS");
    unsetenv("RONDO_SLOT_BYTES");
    unsetenv("RONDO_SLICE_BYTES");
    if (p->narrow) {
        setenv("RONDO_SLOTS", "1", 1);
        setenv("RONDO_SLOT_BYTES", "512", 1);
        setenv("RONDO_SLICE_BYTES", "192", 1);
    }
    bad = test_run(kind, nranks, 30, body, p);
    if (bad)
        printf("forced: WRONG: RONDO_ALGO=%s RONDO_PROTO=%s%s, %d %s\n", algos[p->algo], protos[p->proto],
               p->narrow ? " RONDO_SLOTS=1 RONDO_SLOT_BYTES=512 RONDO_SLICE_BYTES=192" : "", nranks,
               test_kind_name(kind));
    return bad;
}

static void algos_find(void)
{
    const rd_shape_t shape = {4, 1, NULL};
    const rd_sched_args_t args = {.shape = &shape};

    for (const rd_algo_t *const *algo = rd_algos; *algo; algo++)
        if ((*algo)->colls && !(*algo)->excluded(&args))
            algos[num_algos++] = (*algo)->name;
}

int main(void)
{
    static const int ranks[] = {2, 3, 4, 7};
    plan_t *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0, i, served;

    test_begin("forced", 170);
    algos_find();
    if (p == MAP_FAILED)
        return 1;
    for (p->algo = 0; p->algo < num_algos; p->algo++)
        for (p->proto = 0; p->proto < NUM_PROTOS; p->proto++)
            for (i = 0; i < (p->proto < BOARDS || algo_of(p)->board ? 4 : 1) && bad < 20; i++) {
                p->narrow = (p->proto + i) % 2;
                bad += run(p, ranks[i]);
            }
    for (p->algo = 0; p->algo < num_algos; p->algo++) {
        for (served = 0, p->proto = 0; p->proto < NUM_PROTOS; p->proto++)
            served += p->served[p->algo][p->proto];
        printf("forced: %s: %d ll, %d simple, %d cma, %d board-ll, %d board\n", algos[p->algo], p->served[p->algo][0],
               p->served[p->algo][1], p->served[p->algo][2], p->served[p->algo][3], p->served[p->algo][4]);
        if (served == 0 || (algo_of(p)->board && (!p->served[p->algo][3] || !p->served[p->algo][4]))) {
            printf("forced: FAILED: %s never served by what it can\n", algos[p->algo]);
            bad++;
        }
    }
    return bad != 0;
}
