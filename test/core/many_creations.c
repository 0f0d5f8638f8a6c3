/* 256 communicators that one thread of each rank makes at once, with blocking = 0: all come to be and work; one that is
 * aborted in the middle, and one whose ranks do not agree, leave the others alone, and say so, when the threads that
 * made them have ended. Threads and descriptors are counted while they are made, and none is left in the end.
 *
 *   many_creations [COMMUNICATORS]   prints how long it takes, too */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/harness.h"

#define MOST 1024
#define ABORTED 100 /* the number of that one, of 256 */
#define FAILING 33

static int many = 256;

typedef struct {
    int threads, files;
} used_t;

static used_t used(void)
{
    return (used_t){test_count_entries("/proc/self/task"), test_count_entries("/proc/self/fd")};
}

static void most_of(used_t *most)
{
    const used_t now = used();

    most->threads = now.threads > most->threads ? now.threads : most->threads;
    most->files = now.files > most->files ? now.files : most->files;
}

static void rest(void)
{
    const struct timespec time = {0, 2000000};

    nanosleep(&time, NULL);
}

static bool spoiled(int i, bool spoils)
{
    return spoils && (i == many * ABORTED / 256 || i == many * FAILING / 256);
}

/* Begins all; the one that fails has a rank too many on rank 0. */
static void begin(test_rank_t *t, rondo_comm_t *comms, const rondo_unique_id_t *ids, bool spoils)
{
    rondo_config_t config = test_host_config();

    config.blocking = 0;
    for (int i = 0; i < many; i++) {
        int ranks = t->nranks + (spoils && i == many * FAILING / 256 && t->rank == 0);
        rondo_result_t result = rondo_comm_create(&comms[i], ranks, &ids[i], t->rank, &config);
        if (result != RONDO_IN_PROGRESS)
            test_stop(t, "communicator %d: %s: %s", i, rondo_result_string(result), rondo_last_error(NULL));
    }
}

/* Until none is under way any more. */
static void settle(test_rank_t *t, rondo_comm_t *comms, rondo_result_t *results, used_t *most)
{
    int left = many;

    for (int i = 0; i < many; i++)
        results[i] = RONDO_IN_PROGRESS;
    while (left) {
        most_of(most);
        rest();
        for (int i = 0; i < many; i++) {
            if (results[i] != RONDO_IN_PROGRESS)
                continue;
            if (comms[i])
                TEST_OK(t, comms[i], rondo_comm_get_error(comms[i], &results[i]));
            else
                results[i] = RONDO_ERR_ABORTED;
            left -= results[i] != RONDO_IN_PROGRESS;
        }
    }
}

static void use(test_rank_t *t, rondo_comm_t *comms, const rondo_result_t *results, bool spoils)
{
    for (int i = 0; i < many; i++) {
        int one = i + t->rank, sum = 0;

        if (spoiled(i, spoils)) {
            TEST_TRUE(t, results[i] != RONDO_SUCCESS);
            if (comms[i])
                TEST_TRUE(t, strlen(rondo_last_error(comms[i])) > 0);
            continue;
        }
        if (!TEST_OK(t, comms[i], results[i]))
            continue;
        TEST_OK(t, comms[i], rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comms[i], NULL));
        TEST_TRUE(t, sum == t->nranks * i + t->nranks * (t->nranks - 1) / 2);
    }
}

static void round_of(test_rank_t *t, bool spoils)
{
    static rondo_unique_id_t ids[MOST];
    static rondo_comm_t comms[MOST];
    static rondo_result_t results[MOST];
    used_t most = {0, 0}, before = used();

    test_note(t, "%d at once%s", many, spoils ? ", two of which are spoiled" : "");
    for (int i = 0; i < many; i++)
        test_id(t, &ids[i]);
    test_barrier(t);
    int64_t from = test_clock_us();
    begin(t, comms, ids, spoils);
    if (spoils) { /* on all ranks: those of which one has not come yet would wait for it */
        TEST_OK(t, NULL, rondo_comm_abort(comms[many * ABORTED / 256]));
        comms[many * ABORTED / 256] = NULL;
    }
    settle(t, comms, results, &most);
    if (t->rank == 0)
        printf("%d ranks, %d communicators%s: %.2f s, at most %d threads and %d descriptors\n", t->nranks, many,
               spoils ? ", two spoiled" : "", (double)(test_clock_us() - from) * 1e-6, most.threads, most.files),
            fflush(stdout);
    test_barrier(t);
    use(t, comms, results, spoils);
    test_barrier(t);
    for (int i = 0; i < many; i++)
        if (comms[i])
            TEST_OK(t, NULL, results[i] == RONDO_SUCCESS ? rondo_comm_destroy(comms[i]) : rondo_comm_abort(comms[i]));
    for (int i = 0; i < 3000 && (used().threads > before.threads + 2 || used().files > before.files + 8); i++)
        rest();
    TEST_TRUE(t, used().threads <= before.threads + 2 && used().files <= before.files + 8);
    test_barrier(t);
}

static void body(test_rank_t *t, void *arg)
{
    (void)arg;
    round_of(t, false);
    round_of(t, true);
}

int main(int argc, char **argv)
{
    int bad = 0;

    test_begin("many_creations", 240);
    if (argc > 1)
        many = atoi(argv[1]);
    many = many < 4 ? 4 : many > MOST ? MOST : many;
    setenv("RONDO_CREATE_TIMEOUT_MS", "30000", 0);
    for (int ranks = 2; ranks <= 4; ranks += 2)
        bad |= test_run(TEST_PROCESSES, ranks, 120, body, NULL) != 0;
    return bad;
}
