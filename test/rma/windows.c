/* One-sided operations move the right bytes to the right place, whatever way they go: puts and gets of many lengths and
 * offsets between all pairs, signals with them, several windows, parts of different lengths, groups; and what is wrong
 * is refused before it is sent. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rma/ways.h"

#define BYTES ((size_t)1 << 21)
#define SIGNALS 5

static const size_t lengths[] = {0, 1, 8, 100, 256, 257, 4096, 5000, 70000, 1200000};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

static char value(int from, int to, int k, size_t i)
{
    return (char)(test_mix((uint64_t)from * 977 + (uint64_t)to * 31 + (uint64_t)k) + i * 7);
}

static void fill(char *at, size_t bytes, int from, int to, int k)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = value(from, to, k, i);
}

static void same(test_rank_t *t, const char *at, size_t bytes, int from, int to, int k, const char *what)
{
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != value(from, to, k, i)) {
            test_fail(t, "%s: %s of %zu bytes from %d to %d: byte %zu is wrong", test_noted(t), what, bytes, from, to,
                      i);
            return;
        }
}

/* Every rank puts to its successor, which waits, and gets the same back from it. */
static void ring(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, char *part, char *buffer)
{
    int n = t->nranks, to = (t->rank + 1) % n, from = (t->rank + n - 1) % n;

    for (int k = 0; k < LENGTHS; k++) {
        size_t bytes = lengths[k], offset = (size_t)k * 37;
        const rondo_wait_desc_t came = {1, from, k % SIGNALS, 0}, read = {1, to, SIGNALS - 1 - k % SIGNALS, 0};

        test_note(t, "%zu bytes", bytes);
        fill(buffer, bytes, t->rank, to, k);
        TEST_OK(t, comm,
                rondo_put_signal(buffer, bytes, RONDO_INT8, to, window, offset, k % SIGNALS, 0, 0, comm, NULL));
        memset(buffer, 0, bytes); /* it is the caller's again */
        TEST_OK(t, comm, rondo_wait_signal(1, &came, comm, NULL));
        same(t, part + offset, bytes, from, t->rank, k, "put");
        TEST_OK(t, comm, rondo_flush(to, 0, comm, NULL));
        TEST_OK(t, comm, rondo_get(buffer, bytes, RONDO_INT8, to, window, offset, 0, 0, comm, NULL));
        same(t, buffer, bytes, t->rank, to, k, "get");
        TEST_OK(t, comm, rondo_signal(from, read.signal, 0, 0, comm, NULL));
        TEST_OK(t, comm, rondo_wait_signal(1, &read, comm, NULL));
    }
}

/* All to all, in a group, with a wait behind the puts; the bytes of each rank at an offset of its own. */
static void all_to_all(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, const char *part, char *buffer)
{
    size_t each = BYTES / 2 / (size_t)t->nranks;
    rondo_wait_desc_t *waits = calloc((size_t)t->nranks, sizeof *waits);
    int32_t one = 1, sum = 0;

    test_note(t, "all to all in a group");
    TEST_OK(t, comm, rondo_group_start());
    for (int r = 0; r < t->nranks; r++) {
        waits[r] = (rondo_wait_desc_t){1, r, 2, 0};
        fill(buffer + (size_t)r * each, each, t->rank, r, 50);
        TEST_OK(t, comm,
                rondo_put_signal(buffer + (size_t)r * each, each, RONDO_INT8, r, window, (size_t)t->rank * each, 2, 0,
                                 0, comm, NULL));
    }
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_wait_signal(t->nranks, waits, comm, NULL));
    memset(waits, 0, (size_t)t->nranks * sizeof *waits); /* they were copied */
    TEST_OK(t, comm, rondo_group_end());
    for (int r = 0; r < t->nranks; r++)
        same(t, part + (size_t)r * each, each, r, t->rank, 50, "grouped put");
    TEST_TRUE(t, sum == t->nranks);
    free(waits);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
}

/* A submitted group waits for a signal that another rank sends later, and puts behind it. The signal goes in the other
 * context, because a call in this one would wait for the group. */
static void submitted(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, const char *part)
{
    int n = t->nranks, to = (t->rank + 1) % n, from = (t->rank + n - 1) % n, done = 1;
    const rondo_wait_desc_t go[] = {{0, from, 0, 0}, {1, from, 0, 1}}, came = {1, from, 1, 0};
    rondo_request_t request = NULL;
    char byte = (char)(t->rank + 40);

    test_note(t, "a submitted group");
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_wait_signal(2, go, comm, NULL));
    TEST_OK(t, comm, rondo_put_signal(&byte, 1, RONDO_INT8, to, window, 77, 1, 0, 0, comm, NULL));
    TEST_OK(t, comm, rondo_group_submit(&request));
    TEST_OK(t, comm, rondo_request_test(&request, &done));
    TEST_TRUE(t, !done);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_TRUE(t, part[77] != from + 40); /* the put is behind the wait */
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_OK(t, comm, rondo_signal(to, 0, 1, 0, comm, NULL));
    TEST_OK(t, comm, rondo_wait_signal(1, &came, comm, NULL)); /* behind the group */
    TEST_OK(t, comm, rondo_request_test(&request, &done));
    TEST_OK(t, comm, rondo_request_wait(&request));
    TEST_TRUE(t, part[77] == from + 40);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
}

/* The first rank's group waits for the last one, which is later than the first one's call to destroy the window, and
 * then puts into it. When the last one's call is over, too, the byte has come, although nobody has waited for the
 * group. */
static void destroyed(test_rank_t *t, rondo_comm_t comm)
{
    const int last = t->nranks - 1;
    const rondo_wait_desc_t go = {1, last, 0, 1};
    char *part = calloc(1, 4096), byte = 11;
    rondo_request_t request = NULL;
    rondo_window_t window = NULL;

    test_note(t, "a window that a group still uses");
    TEST_OK(t, comm, rondo_window_create(comm, part, part ? 4096 : 0, &window, 0));
    if (t->rank == 0) {
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_wait_signal(1, &go, comm, NULL));
        TEST_OK(t, comm, rondo_put(&byte, 1, RONDO_INT8, last, window, 5, 1, 0, comm, NULL));
        TEST_OK(t, comm, rondo_group_submit(&request));
    }
    test_barrier(t);
    if (t->rank == last) {
        usleep(20000); /* for the first one to come first, which is likely, and makes no difference */
        TEST_OK(t, comm, rondo_signal(0, 0, 1, 0, comm, NULL));
    }
    TEST_OK(t, comm, rondo_window_destroy(comm, window));
    TEST_TRUE(t, t->rank != last || part[5] == 11);
    test_barrier(t);
    TEST_OK(t, comm, rondo_request_wait(&request));
    free(part);
}

static void refused(test_rank_t *t, rondo_comm_t comm, rondo_window_t window)
{
    rondo_wait_desc_t wrong = {1, 0, SIGNALS, 0};
    rondo_window_t none = NULL;
    char byte = 0;

    test_note(t, "what is wrong");
#define REFUSED(word, call)                                                                                            \
    do {                                                                                                               \
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, call);                                                         \
        test_sentence(t, word);                                                                                        \
    } while (0)
    REFUSED("leave the part", rondo_put(&byte, 1, RONDO_INT8, 0, window, BYTES, 0, 0, comm, NULL));
    REFUSED("leave the part", rondo_put(&byte, 2, RONDO_INT64, 0, window, BYTES - 15, 0, 0, comm, NULL));
    REFUSED("leave the part", rondo_get(&byte, 1, RONDO_INT8, 0, window, SIZE_MAX, 0, 0, comm, NULL));
    REFUSED("count", rondo_get(&byte, SIZE_MAX / 4, RONDO_INT64, 0, window, 0, 0, 0, comm, NULL));
    REFUSED("buffer", rondo_put(NULL, 1, RONDO_INT8, 0, window, 0, 0, 0, comm, NULL));
    REFUSED("peer", rondo_put(&byte, 1, RONDO_INT8, t->nranks, window, 0, 0, 0, comm, NULL));
    REFUSED("peer", rondo_signal(RONDO_PEER_ALL, 0, 0, 0, comm, NULL));
    REFUSED("signal", rondo_signal(0, SIGNALS, 0, 0, comm, NULL));
    REFUSED("signal", rondo_put_signal(&byte, 1, RONDO_INT8, 0, window, 0, -1, 0, 0, comm, NULL));
    REFUSED("context", rondo_flush(0, 2, comm, NULL));
    REFUSED("flags", rondo_signal(0, 0, 0, 1, comm, NULL));
    REFUSED("window", rondo_put(&byte, 1, RONDO_INT8, 0, NULL, 0, 0, 0, comm, NULL));
    REFUSED("window", rondo_put(&byte, 1, RONDO_INT8, 0, (rondo_window_t)(void *)&byte, 0, 0, 0, comm, NULL));
    REFUSED("signal", rondo_wait_signal(1, &wrong, comm, NULL));
    wrong = (rondo_wait_desc_t){-1, 0, 0, 0};
    REFUSED("count", rondo_wait_signal(1, &wrong, comm, NULL));
    REFUSED("nwaits", rondo_wait_signal(-1, &wrong, comm, NULL));
    REFUSED("stream", rondo_fence(0, 0, comm, (rondo_stream_t)(void *)&byte));
    REFUSED("flags", rondo_window_create(comm, NULL, 8, &none, 1));
    REFUSED("bytes", rondo_window_create(comm, NULL, SIZE_MAX, &none, 0));
    TEST_OK(t, comm, rondo_group_start());
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_window_create(comm, NULL, 8, &none, 0));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_signal(0, SIGNALS, 0, 0, comm, NULL));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_group_end());
}

/* Whether the kernel grants a process more memory than there is: it does where it grants everything. */
static bool grants_all(void)
{
    FILE *f = fopen("/proc/sys/vm/overcommit_memory", "re");
    const int mode = f ? fgetc(f) : '0';

    if (f)
        fclose(f);
    return mode == '1';
}

/* What fails on all ranks alike leaves the communicator as it was. */
static void too_much(test_rank_t *t, rondo_comm_t comm)
{
    rondo_window_t none = NULL;

    test_note(t, "windows larger than memory");
    if (t->nranks > 1 || !grants_all()) {
        TEST_GIVES(t, comm, RONDO_ERR_NO_MEMORY, rondo_window_create(comm, NULL, (size_t)1 << 40, &none, 0));
        TEST_TRUE(t, !strstr(rondo_last_error(comm), "RONDO_SLOT")); /* smaller slots would not help */
        TEST_GIVES(t, comm, RONDO_ERR_NO_MEMORY, rondo_window_create(comm, NULL, (size_t)1 << 46, &none, 0));
    }
    TEST_GIVES(t, comm, RONDO_ERR_NO_MEMORY, rondo_window_create(comm, NULL, SIZE_MAX / 4, &none, 0));
    TEST_TRUE(t, none == NULL);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
}

/* More than a node can map is refused on all ranks alike, although one of them is alone on its node. */
static void uneven(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = way_comm(t, WAY_NODES, 1, 1);
    rondo_window_t none = NULL;

    (void)arg;
    if (!comm)
        return;
    test_note(t, "more than a node can map");
    TEST_GIVES(t, comm, RONDO_ERR_NO_MEMORY, rondo_window_create(comm, NULL, (size_t)1 << 46, &none, 0));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

/* Ranks whose configs differ are told at their first window, all of them. */
static void unlike(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = way_comm(t, WAY_MAPPED, t->rank == 1 ? 3 : 4, 1);
    rondo_window_t none = NULL;

    (void)arg;
    test_note(t, "configs that differ");
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_window_create(comm, NULL, 64, &none, 0));
    test_sentence(t, "config.signals");
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

/* An abort ends what carries a window's messages also while a group is open, where the program may end nothing. */
static void grouped_abort(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = way_comm(t, WAY_MESSAGES, 1, 1);
    void *part, *own;

    (void)arg;
    test_note(t, "an abort inside a group");
    (void)way_window(t, comm, WAY_MESSAGES, 64, &part, &own);
    test_barrier(t);
    TEST_OK(t, NULL, rondo_group_start());
    TEST_OK(t, NULL, rondo_comm_abort(comm));
    TEST_TRUE(t, !strstr(rondo_last_error(NULL), "inside a group"));
    TEST_OK(t, NULL, rondo_group_end());
    free(own);
}

/* The least of several counts: the liveness thread opens files for a moment. */
static int descriptors(void)
{
    int least = test_count_entries("/proc/self/fd");

    for (int i = 0; i < 5; i++) {
        int now = test_count_entries("/proc/self/fd");
        least = now < least ? now : least;
        usleep(1000);
    }
    return least;
}

static void body(test_rank_t *t, void *arg)
{
    way_t way = *(way_t *)arg;
    rondo_comm_t comm = way_comm(t, way, SIGNALS, 2);
    void *part, *own, *second_part, *second_own;
    char *buffer = malloc(BYTES);

    if (!comm || !buffer) {
        free(buffer);
        return;
    }
    test_note(t, "%s", way_name(way));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_USAGE, rondo_signal(0, 0, 0, 0, comm, NULL));
    rondo_window_t window = way_window(t, comm, way, BYTES, &part, &own);
    ring(t, comm, window, part, buffer);
    /* A second window, whose parts have different lengths; it takes one descriptor, however many ranks there are. */
    int files = descriptors();
    rondo_window_t second = way_window(t, comm, WAY_MAPPED, 64 * (size_t)(t->rank + 1), &second_part, &second_own);
    int more = descriptors() - files;
    if (way == WAY_MAPPED && more > 1)
        test_fail(t, "a window took %d descriptors", more);
    int last = t->nranks - 1;
    for (int r = 0; r < t->nranks; r++) {
        char byte = (char)(t->rank + 1);
        TEST_OK(t, comm, rondo_put(&byte, 1, RONDO_INT8, r, second, (size_t)t->rank, 0, 0, comm, NULL));
    }
    if (last > 0)
        TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT,
                   rondo_put(buffer, 1, RONDO_INT8, 0, second, 64, 0, 0, comm, NULL));
    TEST_OK(t, comm, rondo_put(buffer, 0, RONDO_INT8, last, second, 64 * (size_t)t->nranks, 0, 0, comm, NULL));
    TEST_OK(t, comm, rondo_flush(RONDO_PEER_ALL, 0, comm, NULL));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    for (int r = 0; r < t->nranks; r++)
        TEST_TRUE(t, ((char *)second_part)[r] == r + 1);
    all_to_all(t, comm, window, part, buffer);
    submitted(t, comm, window, part);
    if (t->nranks > 1)
        destroyed(t, comm);
    refused(t, comm, window);
    too_much(t, comm);
    TEST_OK(t, comm, rondo_window_destroy(comm, second));
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_put(buffer, 1, RONDO_INT8, 0, second, 0, 0, 0, comm, NULL));
    TEST_OK(t, comm, rondo_window_destroy(comm, window));
    window = way_window(t, comm, WAY_MAPPED, 4096, &part, &second_own);
    TEST_OK(t, comm, rondo_comm_destroy(comm)); /* with a window left */
    free(own);
    free(buffer);
}

int main(void)
{
    int bad = 0;

    test_begin("windows", 200);
    for (way_t way = 0; way < WAYS; way++)
        for (int n = 1; n <= 4; n += way == WAY_CMA ? 1 : 3) {
            way_begin(way);
            printf("%s, %d ranks\n", way_name(way), n);
            bad += test_run(way_kind(way), n, 60, body, &way);
        }
    way_begin(WAY_MESSAGES);
    bad += test_run(TEST_PROCESSES, 2, 30, grouped_abort, NULL);
    way_begin(WAY_MAPPED);
    bad += test_run(TEST_PROCESSES, 3, 30, unlike, NULL);
    bad += test_run(TEST_PROCESSES, 3, 30, uneven, NULL);
    return bad != 0;
}
