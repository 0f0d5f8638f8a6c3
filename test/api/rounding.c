/* A thread that rounds upwards, or takes subnormal numbers for zero, as codes that are built with -ffast-math do and
 * torch.set_flush_denormal: on one rank, on some, on all. Each reduction gives the bits that it gives without, on every
 * rank, and the thread's choice is as it was. Every floating type, by every operation, of hard numbers; ranks on one
 * node, and on two. A number as argument is the seed. */
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "util/harness.h"

#define RANKS 3
#define MOST 20000

typedef struct {
    unsigned who; /* bits of the ranks that have a choice of their own */
    int nodes;
    uint64_t seed;
} job_t;

static const struct {
    rondo_type_t type;
    size_t bytes;
} types[] = {{RONDO_FLOAT16, 2}, {RONDO_BFLOAT16, 2},    {RONDO_FLOAT32, 4},
             {RONDO_FLOAT64, 8}, {RONDO_FLOAT8_E4M3, 1}, {RONDO_FLOAT8_E5M2, 1}};
static const rondo_op_t ops[] = {RONDO_SUM, RONDO_PROD, RONDO_MIN, RONDO_MAX, RONDO_AVG};

/* Half of the numbers are subnormal, or so small that sums of them are. Infinity and NaN are not drawn: the exponent's
 * upper bit is not set. */
static void fill(unsigned char *at, size_t count, size_t bytes, uint64_t *random)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = test_random(random) & ~(UINT64_C(0x40) << (8 * bytes - 8));
        if (bits & 1)
            bits &= (UINT64_C(1) << (bytes == 1 ? 2 : 8 * bytes - (bytes == 8 ? 11 : 8))) - 1;
        memcpy(at + i * bytes, &bits, bytes);
    }
}

static void choose(int own)
{
    fesetround(own ? FE_UPWARD : FE_TONEAREST);
#if defined(__x86_64__)
    _mm_setcsr(own ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040u);
#endif
}

static int is_chosen(void)
{
#if defined(__x86_64__)
    if ((_mm_getcsr() & 0x8040) != 0x8040)
        return 0;
#endif
    return fegetround() == FE_UPWARD;
}

static void body(test_rank_t *t, void *arg)
{
    static const size_t counts[] = {1, 37, 2000, MOST};
    static unsigned char in[MOST * 8], out[MOST * 8], own[MOST * 8];
    const job_t *job = arg;
    uint64_t random = job->seed + (uint64_t)t->rank * 1000;
    int chooses = job->who >> t->rank & 1;

    rondo_comm_t comm = test_comm_on(t, job->nodes);
    if (!comm)
        return;
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                size_t bytes = counts[c] * types[k].bytes;
                test_note(t, "type %d, operation %d, %zu elements", (int)types[k].type, (int)ops[o], counts[c]);
                fill(in, counts[c], types[k].bytes, &random);
                TEST_OK(t, comm, rondo_allreduce(in, out, counts[c], types[k].type, ops[o], comm, NULL));
                choose(chooses);
                TEST_OK(t, comm, rondo_allreduce(in, own, counts[c], types[k].type, ops[o], comm, NULL));
                if (chooses && !is_chosen())
                    test_fail(t, "the thread's choice is not as it was");
                choose(0);
                if (memcmp(out, own, bytes) != 0)
                    test_fail(t, "other bits than without");
            }
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    job_t jobs[] = {{2, 1, 0}, {6, 1, 0}, {7, 1, 0}, {2, 2, 0}};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int bad = 0;

    test_begin("rounding", 120);
    printf("rounding: seed %llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        jobs[i].seed = seed + i;
        bad += test_run(TEST_PROCESSES, RANKS, 60, body, &jobs[i]) != 0;
    }
    return bad != 0;
}
