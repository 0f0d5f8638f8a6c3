/* A program that traps invalid operations, division by zero and overflow, as Fortran codes do with -ffpe-trap, makes,
 * splits and shrinks communicators and reduces NaN by MIN and MAX: NaN comes out, no flag is raised, and the traps are
 * as they were. What is looked up in the record, which calculates with times, raises nothing at all, not even
 * "inexact": of calls, of who holds a communicator up, in dumps, and where a wait is too long. Ranks on one node, and
 * on two. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

#define TRAPS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)
#define MOST 300000

/* {1, NaN}: rank 1 has NaN, in every place. */
static void put(rondo_type_t type, void *at, size_t count, int nan)
{
    for (size_t i = 0; i < count; i++) {
        if (type == RONDO_FLOAT64)
            ((double *)at)[i] = nan ? (double)NAN : 1;
        else if (type == RONDO_FLOAT32)
            ((float *)at)[i] = nan ? NAN : 1;
        else if (type == RONDO_FLOAT16)
            ((uint16_t *)at)[i] = nan ? 0x7e00 : 0x3c00;
        else if (type == RONDO_BFLOAT16)
            ((uint16_t *)at)[i] = nan ? 0x7fc0 : 0x3f80;
        else
            ((uint8_t *)at)[i] = nan ? 0x7f : 0x38;
    }
}

static int is_nan(rondo_type_t type, const void *at, size_t i)
{
    if (type == RONDO_FLOAT64)
        return isnan(((const double *)at)[i]);
    if (type == RONDO_FLOAT32)
        return isnan(((const float *)at)[i]);
    if (type == RONDO_FLOAT16)
        return (((const uint16_t *)at)[i] & 0x7fff) > 0x7c00;
    if (type == RONDO_BFLOAT16)
        return (((const uint16_t *)at)[i] & 0x7fff) > 0x7f80;
    return (((const uint8_t *)at)[i] & 0x7f) > 0x7c;
}

static void reduce_all(test_rank_t *t, rondo_comm_t comm, void *in, void *out)
{
    static const size_t counts[] = {1, 7, 1000, 20000, MOST};
    for (rondo_type_t type = RONDO_FLOAT16; type <= RONDO_FLOAT8_E5M2; type++)
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++)
            for (int max = 0; max < 2; max++) {
                put(type, in, counts[k], t->rank == 1);
                test_note(t, "type %d, %zu elements", (int)type, counts[k]);
                TEST_OK(t, comm, rondo_allreduce(in, out, counts[k], type, max ? RONDO_MAX : RONDO_MIN, comm, NULL));
                TEST_TRUE(t, is_nan(type, out, 0) && is_nan(type, out, counts[k] - 1));
            }
}

/* Rank 0 asks, which takes 0.7 s, while the others wait for it: beyond RONDO_STALL_MS first, then beyond the limit. */
static void wait_long(test_rank_t *t, rondo_comm_t comm, rondo_result_t want)
{
    char text[512];

    if (t->rank == 0)
        TEST_OK(t, comm, rondo_explain(comm, text, sizeof text));
    TEST_GIVES(t, comm, want, rondo_barrier(comm, NULL));
}

static void look_up(test_rank_t *t, rondo_comm_t comm)
{
    rondo_work_info_t info = {.size = sizeof info};
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    rondo_work_t work;

    test_note(t, "looking up");
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_ALL_EXCEPT);
    wait_long(t, comm, RONDO_SUCCESS);
    TEST_OK(t, comm, rondo_work_last(comm, &work));
    TEST_OK(t, comm, rondo_work_query(work, &info));
    TEST_OK(t, comm, rondo_dump_fd(nowhere, RONDO_DUMP_JSON));
    TEST_OK(t, comm, rondo_timeout_set(comm, 300));
    wait_long(t, comm, RONDO_ERR_TIMEOUT);
    TEST_TRUE(t, fetestexcept(FE_ALL_EXCEPT) == 0);
    fedisableexcept(FE_ALL_EXCEPT);
    close(nowhere);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    char host[32], *in = malloc(8 * MOST), *out = malloc(8 * MOST);
    rondo_comm_t comm, part = NULL, less = NULL;
    snprintf(host, sizeof host, "node%d", t->rank % *(int *)arg);
    if (*(int *)arg > 1)
        setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    if (!in || !out)
        test_stop(t, "no memory");
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(TRAPS);
    comm = test_comm(t, &config);
    TEST_TRUE(t, fetestexcept(TRAPS) == 0);
    reduce_all(t, comm, in, out);
    TEST_TRUE(t, fetestexcept(TRAPS) == 0);
    if (TEST_OK(t, comm, rondo_comm_split(comm, 0, 0, &part, &config)))
        rondo_comm_destroy(part);
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &less, &config)))
        rondo_comm_destroy(less);
    TEST_TRUE(t, fetestexcept(TRAPS) == 0);
    TEST_TRUE(t, fegetexcept() == TRAPS);
    look_up(t, comm);
    rondo_comm_destroy(comm);
    free(in);
    free(out);
}

int main(void)
{
    int bad = 0;
    test_begin("traps", 240);
    setenv("RONDO_STALL_MS", "200", 1);
    for (int nodes = 1; nodes <= 2; nodes++)
        bad += test_run(TEST_PROCESSES, 3, 100, body, &nodes);
    return bad != 0;
}
