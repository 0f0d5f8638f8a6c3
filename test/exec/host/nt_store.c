/* How slots are written changes no byte: every operation by slots, over odd lengths and types, with
 * RONDO_NT_STORE=always and adapt, is right, and gives on every rank the sums that RONDO_NT_STORE=never gives.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/harness.h"
#include "util/operation.h"

static const char *const ways[] = {"never", "always", "adapt"};
static const char *const algos[] = {"ring", "direct", "twoshot", "tree"};
#define CASES_MOST 512

typedef struct {
    const char *way;
    _Atomic uint64_t hash[3][CASES_MOST]; /* shared memory: rank 0's sums, by way and case */
} plan_t;

/* The same calls go again and again, so that a way that tries things out has tried them. */
static void run_case(test_rank_t *t, rondo_comm_t comm, const do_case_t *c, _Atomic uint64_t *hash)
{
    char text[200];
    rondo_result_t result;
    do_call_t call;

    do_text(c, text, sizeof text);
    test_note(t, "%s", text);
    do_prepare_or_stop(t, &call, c);
    for (int i = 0; i < 3; i++) {
        if (i)
            do_refill(&call);
        result = do_post(&call, comm);
        test_agree(t, (uint64_t)result, text);
        if (result == RONDO_ERR_UNSUPPORTED)
            break; /* the algorithm does not do it */
        if (!TEST_OK(t, comm, result))
            break;
        do_check(t, &call, text);
        if (t->rank == 0)
            *hash = do_hash(&call) + 1;
    }
    do_release(&call);
}

static void body(test_rank_t *t, void *arg)
{
    static const struct {
        rondo_type_t type;
        rondo_op_t op;
        ref_data_t data;
        size_t count;
    } kinds[] = {{RONDO_FLOAT32, RONDO_SUM, REF_ROUNDING, 30011},
                 {RONDO_INT8, RONDO_MAX, REF_EXACT, 70001},
                 {RONDO_FLOAT64_INT32, RONDO_MINLOC, REF_EXACT, 2049},
                 {RONDO_FLOAT16, RONDO_AVG, REF_EXACT, 8192}};
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    plan_t *p = arg;
    uint64_t random = 7;
    int way = p->way == ways[0] ? 0 : p->way == ways[1] ? 1 : 2;

    config.device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    if (!TEST_OK(t, NULL, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config)))
        return;
    for (int what = 0, k = 0; what < DO_BARRIER; what++) {
        for (int i = 0; i < 4; i++, k++) {
            do_case_t c = {.what = (do_what_t)what, .type = kinds[i].type, .op = kinds[i].op, .count = kinds[i].count};

            c.data = do_reduces(c.what) ? kinds[i].data : REF_BYTES;
            c.root = (int)test_below(&random, (unsigned)t->nranks);
            c.in_place = do_has_in_place(c.what) && test_below(&random, 2);
            c.send_shift = c.recv_shift = i == 1 ? 1 : 0;
            c.skew = do_has_counts(c.what) ? (int)test_below(&random, 100) : 0;
            c.seed = test_random(&random) >> 32;
            run_case(t, comm, &c, &p->hash[way][k]);
        }
    }
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* The sums of all ways, of one algorithm. */
static int compare(const plan_t *p, const char *algo, int *sums)
{
    int bad = 0;

    for (int k = 0; k < CASES_MOST; k++) {
        *sums += p->hash[0][k] > 1;
        for (int way = 1; way < 3; way++) {
            if (p->hash[way][k] == p->hash[0][k])
                continue;
            printf("nt_store: FAILED: %s, case %d: RONDO_NT_STORE=%s has another result than never\n", algo, k,
                   ways[way]);
            bad++;
        }
    }
    return bad;
}

int main(void)
{
    plan_t *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0, sums = 0;

    test_begin("nt_store", 170);
    if (p == MAP_FAILED)
        return 1;
    setenv("RONDO_PROTO", "simple", 1);
    setenv("RONDO_SLICE_BYTES", "12352", 1); /* no power of two */
    for (size_t a = 0; a < sizeof algos / sizeof algos[0] && bad < 20; a++) {
        setenv("RONDO_ALGO", algos[a], 1);
        for (int k = 0; k < 3 * CASES_MOST; k++)
            p->hash[k / CASES_MOST][k % CASES_MOST] = 0;
        for (int way = 0; way < 3; way++) {
            p->way = ways[way];
            setenv("RONDO_NT_STORE", ways[way], 1);
            bad += test_run(a % 2 ? TEST_THREADS : TEST_PROCESSES, 2 + (int)a % 3, 30, body, p);
        }
        bad += compare(p, algos[a], &sums);
    }
    printf("nt_store: %d sums compared\n", sums);
    return bad != 0 || sums == 0;
}
