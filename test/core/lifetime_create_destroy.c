/* A communicator's life: made and destroyed many times without leaving descriptors, threads or memory behind; split,
 * shrunk, finalized, aborted while a peer never comes; configs of older callers; names and timeouts.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

static void use(test_rank_t *t, rondo_comm_t comm)
{
    int rank = -1, size = -1, device = 0, i;
    int64_t in[33], out[33];

    TEST_OK(t, comm, rondo_comm_rank(comm, &rank));
    TEST_OK(t, comm, rondo_comm_size(comm, &size));
    TEST_OK(t, comm, rondo_comm_device(comm, &device));
    TEST_TRUE(t, device == -1 && rank >= 0 && rank < size);
    for (i = 0; i < 33; i++)
        in[i] = (int64_t)(rank + 1) * i;
    if (!TEST_OK(t, comm, rondo_allreduce(in, out, 33, RONDO_INT64, RONDO_SUM, comm, NULL)))
        test_stop(t, "cannot go on");
    for (i = 0; i < 33; i++)
        if (out[i] != (int64_t)size * (size + 1) / 2 * i) {
            test_fail(t, "element %d is %lld", i, (long long)out[i]);
            break;
        }
}

/* ---- nothing stays behind ---- */

#ifdef __SANITIZE_ADDRESS__
#define LEAK_KB 100000 /* it keeps what is freed */
#else
#define LEAK_KB 100 /* a communicator */
#endif

typedef struct {
    int descriptors, threads, mappings;
    long resident_kb;
} holdings_t;

static int count_lines(const char *path)
{
    FILE *file = fopen(path, "r");
    int c, lines = 0;

    while (file && (c = fgetc(file)) != EOF)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

static holdings_t holdings(void)
{
    holdings_t h = {test_count_entries("/proc/self/fd"), test_count_entries("/proc/self/task"),
                    count_lines("/proc/self/maps"), 0};
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0, all = 0;

    if (file && fscanf(file, "%ld %ld", &all, &pages) == 2)
        h.resident_kb = pages * (sysconf(_SC_PAGESIZE) / 1024);
    if (file)
        fclose(file);
    return h;
}

/* What is let go in the background may take a moment. */
static holdings_t holdings_after(const holdings_t *before)
{
    holdings_t now = holdings();
    int tries;

    for (tries = 0; tries < 200 && (now.descriptors > before->descriptors || now.threads > before->threads); tries++) {
        usleep(10000);
        now = holdings();
    }
    return now;
}

static void make_and_destroy(test_rank_t *t, void *arg)
{
    holdings_t before = {0, 0, 0, 0}, after;
    int i, times = *(int *)arg;

    for (i = 0; i < times; i++) {
        rondo_comm_t comm;

        if (i == 4) { /* by now everything that is kept for good has been made */
            test_barrier(t);
            before = holdings();
            test_barrier(t);
        }
        comm = test_comm(t, NULL);
        use(t, comm);
        if (i % 3 == 1)
            TEST_OK(t, comm, rondo_comm_finalize(comm));
        if (i % 4 == 3) /* nobody may still be inside the operation that an abort would end */
            test_barrier(t);
        TEST_OK(t, NULL, i % 4 == 3 ? rondo_comm_abort(comm) : rondo_comm_destroy(comm));
        test_barrier(t);
    }
    test_note(t, "after %d communicators", times);
    after = holdings_after(&before);
    test_barrier(t);
    if (after.descriptors > before.descriptors || after.threads > before.threads)
        test_fail(t, "%d descriptors and %d threads became %d and %d", before.descriptors, before.threads,
                  after.descriptors, after.threads);
    /* The allocator may map another piece now and then: a leak would be one or more a communicator. */
    if (after.mappings > before.mappings + times / 2 || after.resident_kb > before.resident_kb + LEAK_KB * times)
        test_fail(t, "%d mappings, %ld KB became %d and %ld", before.mappings, before.resident_kb, after.mappings,
                  after.resident_kb);
}

/* ---- as many as the issue of long-lived programs wants */

#define SETTLED 100 /* communicators after which nothing more is kept for good: the structs of the last few stay */

/* Bytes that malloc has given out; where the C library does not tell, 0. */
static size_t given_out(void)
{
#if defined(__GLIBC_PREREQ) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
#endif
#endif
    return 0;
}

static void many(test_rank_t *t, void *arg)
{
    int times = *(const int *)arg, i, in = 1, out;
    holdings_t before = {0, 0, 0, 0}, after;
    size_t bytes = 0;

    for (i = 0; i < times; i++) {
        rondo_comm_t comm;

        if (i == SETTLED) {
            test_barrier(t);
            before = holdings();
            bytes = given_out();
            test_barrier(t);
        }
        comm = test_comm(t, NULL);
        TEST_OK(t, comm, rondo_allreduce(&in, &out, 1, RONDO_INT32, RONDO_MIN, comm, NULL));
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
    test_barrier(t);
    after = holdings_after(&before);
    test_barrier(t);
    /* What the last one lets go in the background may still be held; a leak would be malloc's smallest piece of each,
     * which is 32 bytes. */
    if (after.descriptors > before.descriptors || after.threads > before.threads || after.mappings > before.mappings ||
        given_out() > bytes + 8 * (size_t)i)
        test_fail(t, "after %d: %d descriptors, %d threads, %d mappings, %zu bytes became %d, %d, %d, %zu", i,
                  before.descriptors, before.threads, before.mappings, bytes, after.descriptors, after.threads,
                  after.mappings, given_out());
    if (t->rank == 0)
        printf("lifecycle: %d communicators made and destroyed, %zu bytes before and %zu after\n", i, bytes,
               given_out());
}

/* Several at once, destroyed in another order than they were made in. */
static void several(test_rank_t *t, void *arg)
{
    rondo_comm_t comm[6];
    int i;

    (void)arg;
    for (i = 0; i < 6; i++)
        comm[i] = test_comm(t, NULL);
    for (i = 0; i < 6; i++)
        use(t, comm[5 - i]);
    for (i = 0; i < 6; i++) {
        test_note(t, "destroy number %d", i);
        TEST_OK(t, NULL, rondo_comm_destroy(comm[(i * 5 + t->rank) % 6]));
    }
}

/* ---- split ---- */

static void split(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL), half = (rondo_comm_t)(void *)&comm, again = NULL;
    int rank = -1, size = -1, color = t->rank == t->nranks - 1 && t->nranks > 2 ? -1 : t->rank % 2;

    (void)arg;
    test_note(t, "split, color %d", color);
    TEST_OK(t, comm, rondo_comm_split(comm, color, -t->rank, &half, NULL));
    if (color < 0) {
        TEST_TRUE(t, half == NULL);
    } else {
        int members = 0, before = 0, r;

        for (r = 0; r < t->nranks; r++) {
            int in = r % 2 == color && !(r == t->nranks - 1 && t->nranks > 2);

            members += in;
            before += in && r > t->rank; /* keys descend with the rank */
        }
        TEST_OK(t, half, rondo_comm_rank(half, &rank));
        TEST_OK(t, half, rondo_comm_size(half, &size));
        if (rank != before || size != members)
            test_fail(t, "rank %d of %d after the split, should be %d of %d", rank, size, before, members);
        use(t, half);
        test_note(t, "a split of the split");
        if (TEST_OK(t, half, rondo_comm_split(half, 7, 0, &again, NULL))) {
            use(t, again);
            TEST_OK(t, NULL, rondo_comm_destroy(again));
        }
    }
    test_note(t, "the parent after the split");
    use(t, comm);
    /* The parent may go first. */
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (color >= 0) {
        use(t, half);
        TEST_OK(t, NULL, rondo_comm_destroy(half));
    }
}

/* ---- shrink ---- */

/* The last rank and, of five or more, also rank 0 leave; the others go on without them, twice. */
static void shrink(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL), small = NULL;
    int excluded[2] = {t->nranks - 1, 0}, nexcluded = t->nranks >= 5 ? 2 : 1, size = 0;

    (void)arg;
    use(t, comm);
    if (t->rank == excluded[0] || (nexcluded == 2 && t->rank == 0)) {
        test_note(t, "excluded, destroys");
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
        return;
    }
    test_note(t, "shrink");
    if (!TEST_OK(t, comm, rondo_comm_shrink(comm, excluded, nexcluded, &small, NULL)))
        test_stop(t, "cannot go on");
    TEST_OK(t, small, rondo_comm_size(small, &size));
    TEST_TRUE(t, size == t->nranks - nexcluded);
    use(t, small);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    use(t, small);
    TEST_OK(t, NULL, rondo_comm_destroy(small));
}

/* Ranks that have shrunk a communicator another number of times, by other lists, join each other all the same. */
static void shrink_unevenly(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL), small = NULL;
    int excluded[2] = {0, 2}, times;

    (void)arg;
    for (times = 0; times < 2 && t->rank == 1; times++) {
        test_note(t, "shrink to itself");
        if (!TEST_OK(t, comm, rondo_comm_shrink(comm, excluded, 2, &small, NULL)))
            test_stop(t, "cannot go on");
        use(t, small);
        TEST_OK(t, NULL, rondo_comm_destroy(small));
    }
    for (times = 0; times < 2 && t->rank != 2; times++) {
        test_note(t, "shrink to two");
        if (!TEST_OK(t, comm, rondo_comm_shrink(comm, excluded + 1, 1, &small, NULL)))
            test_stop(t, "cannot go on");
        use(t, small);
        TEST_OK(t, NULL, rondo_comm_destroy(small));
    }
    test_barrier(t);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* By the same list, again and again, and all of them are kept. */
static void shrink_often(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL), small[20] = {NULL};
    int last = t->nranks - 1, n = sizeof small / sizeof *small;

    (void)arg;
    for (int i = 0; i < n && t->rank != last; i++) {
        test_note(t, "shrink to the same ranks");
        if (!TEST_OK(t, comm, rondo_comm_shrink(comm, &last, 1, &small[i], NULL)))
            test_stop(t, "cannot go on");
    }
    for (int i = 0; i < n && t->rank != last; i++) {
        use(t, small[i]);
        TEST_OK(t, NULL, rondo_comm_destroy(small[i]));
    }
    test_barrier(t);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* ---- configs, names, timeouts ---- */

static void configs(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    char name[] = "weather";

    (void)arg;
    config.device = RONDO_DEVICE_HOST;
    config.name = name;
    comm = test_comm(t, &config);
    memset(name, 'x', sizeof name - 1); /* it was copied */
    use(t, comm);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));

    test_note(t, "a config of an older caller");
    config.size = offsetof(rondo_config_t, blocking);
    config.name = (const char *)1; /* beyond the size: must not be read */
    config.timeout_ms = -12345;
    comm = test_comm(t, &config);
    use(t, comm);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));

    test_note(t, "configs that are wrong");
    config = (rondo_config_t)RONDO_CONFIG_INIT;
    memset(&id, 0, sizeof id);
    comm = NULL;
    config.size = 0;
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create(&comm, 1, &id, 0, &config));
    TEST_TRUE(t, strstr(rondo_last_error(NULL), "size") != NULL);
    config.size = sizeof config;
    config.device = -3;
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create(&comm, 1, &id, 0, &config));
    TEST_TRUE(t, strstr(rondo_last_error(NULL), "device") != NULL);
    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = -2;
    TEST_GIVES(t, NULL, RONDO_ERR_INVALID_ARGUMENT, rondo_comm_create(&comm, 1, &id, 0, &config));
    TEST_TRUE(t, strstr(rondo_last_error(NULL), "timeout_ms") != NULL);
    TEST_TRUE(t, comm == NULL);
}

/* The last rank stays away for longer than the timeout: the others name it, also those who wait for one that waits. Of
 * another node nobody knows who waits: there it may be the next in the chain that is named. */
static void timeout(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    int32_t in[1000] = {0}, out[1000], late = t->nranks - 1;
    int chain = *(int *)arg, apart = t->kind == TEST_PROCESSES && getenv("RONDO_TEST_HOSTS");
    rondo_result_t result;
    rondo_comm_t comm;
    char word[32];

    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = 1000;
    comm = test_comm(t, &config);
    use(t, comm);
    test_barrier(t);
    if (t->rank == late) {
        test_note(t, "stays away");
        test_barrier(t);
    } else {
        test_note(t, "waits for the late rank%s", chain ? " at the end of a chain" : "");
        result = chain ? rondo_recv(out, 1000, RONDO_INT32, t->rank + 1, comm, NULL)
                       : rondo_allreduce(in, out, 1000, RONDO_INT32, RONDO_SUM, comm, NULL);
        snprintf(word, sizeof word, apart ? "rank " : "rank %d (", late);
        if (test_result(t, comm, result, RONDO_ERR_TIMEOUT, "the call") && !strstr(rondo_last_error(comm), word))
            test_fail(t, "the sentence must name %s: \"%s\"", word, rondo_last_error(comm));
        test_barrier(t);
    }
    test_note(t, "destroy");
    rondo_comm_destroy(comm);
}

/* ---- abort ---- */

typedef struct {
    rondo_comm_t comm;
    rondo_result_t result;
    int64_t took_us;
} aborter_t;

static void *abort_soon(void *arg)
{
    aborter_t *a = arg;
    int64_t began;

    usleep(50000);
    began = test_clock_us();
    a->result = rondo_comm_abort(a->comm);
    a->took_us = test_clock_us() - began;
    return NULL;
}

/* The same with a group's requests outstanding. */
static void abort_requests(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);
    rondo_request_t request = NULL;
    rondo_result_t result = RONDO_SUCCESS;
    float in[5000] = {0}, out[5000];
    int done = 0, k;

    (void)arg;
    use(t, comm);
    test_barrier(t);
    if (t->rank > 0) {
        test_note(t, "submits, asks, aborts");
        TEST_OK(t, comm, rondo_group_start());
        TEST_OK(t, comm, rondo_allreduce(in, out, 5000, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
        TEST_OK(t, comm, rondo_recv(in, 100, RONDO_FLOAT32, 0, comm, NULL));
        TEST_OK(t, comm, rondo_group_submit(&request));
        for (k = 0; k < 100 && result == RONDO_SUCCESS; k++)
            result = rondo_request_test(&request, &done);
        TEST_TRUE(t, !done && result == RONDO_SUCCESS);
        test_barrier(t); /* the others' aborts must not come before */
        TEST_OK(t, NULL, rondo_comm_abort(comm));
        if (request) {
            result = rondo_request_wait(&request);
            if (result != RONDO_ERR_ABORTED && result != RONDO_ERR_REMOTE)
                test_fail(t, "the request gave %s after the abort", rondo_result_string(result));
        }
        TEST_TRUE(t, request == NULL);
        test_barrier(t);
        return;
    }
    test_note(t, "never comes");
    test_barrier(t);
    test_barrier(t);
    rondo_comm_destroy(comm);
}

/* A peer never comes; another thread aborts; the call returns, and nothing is left. */
static void abort_waiting(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);
    aborter_t a = {comm, RONDO_ERR_INTERNAL, 0};
    rondo_result_t result;
    pthread_t thread;
    float in[5000] = {0}, out[5000];

    (void)arg;
    use(t, comm);
    test_barrier(t);
    if (t->rank == 0) {
        test_note(t, "never comes");
        test_barrier(t);
        rondo_comm_destroy(comm);
        return;
    }
    test_note(t, "waits, to be aborted");
    if (pthread_create(&thread, NULL, abort_soon, &a) != 0)
        test_stop(t, "cannot start a thread");
    /* The other ranks abort too: what they tell may come first. */
    result = rondo_allreduce(in, out, 5000, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    if (result != RONDO_ERR_ABORTED && result != RONDO_ERR_REMOTE)
        test_fail(t, "the waiting call gave %s", rondo_result_string(result));
    pthread_join(thread, NULL);
    if (a.result != RONDO_SUCCESS || a.took_us > 10000000)
        test_fail(t, "rondo_comm_abort gave %s after %lld us", rondo_result_string(a.result), (long long)a.took_us);
    test_barrier(t);
}

/* ---- what is said ---- */

/* Standard error goes into a pipe while the rank makes a mistake: the line must name the communicator, and the same
 * sentence must be had from rondo_last_error. */
static void says(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    char line[2048] = "";
    int ends[2], kept = dup(2), got;
    rondo_comm_t comm;

    (void)arg;
    setenv("RONDO_DEBUG", "warn", 1);
    config.device = RONDO_DEVICE_HOST;
    config.name = "weather";
    comm = test_comm(t, &config);
    if (kept < 0 || pipe(ends) != 0)
        test_stop(t, "no pipe");
    dup2(ends[1], 2);
    TEST_GIVES(t, comm, RONDO_ERR_INVALID_ARGUMENT, rondo_broadcast(line, line, 1, RONDO_INT8, 77, comm, NULL));
    dup2(kept, 2);
    close(ends[1]);
    got = (int)read(ends[0], line, sizeof line - 1);
    close(ends[0]);
    close(kept);
    if (got <= 0 || !strstr(line, "weather") || !strstr(line, rondo_last_error(comm)) ||
        !strstr(rondo_last_error(comm), "77"))
        test_fail(t, "said \"%s\" and kept \"%s\"", line, rondo_last_error(comm));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* A process that ends without destroying its communicator must not crash or hang anybody. */
static void forgetful(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);

    (void)arg;
    use(t, comm);
    test_barrier(t);
}

static int run(const char *what, test_kind_t kind, int nranks, test_body_fn body, void *arg)
{
    int bad = test_run(kind, nranks, 40, body, arg);

    if (bad)
        printf("lifecycle: WRONG: %s, %d %s\n", what, nranks, test_kind_name(kind));
    return bad;
}

/* For given_out: what a thread keeps of freed memory counts as given out with glibc, and grows for thousands of
 * communicators where UCX is in use. So the program begins again without that. */
static void keep_nothing(char **argv)
{
    if (getenv("GLIBC_TUNABLES"))
        return;
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
    execv("/proc/self/exe", argv);
}

/* lifecycle --times N: N communicators made and destroyed, however long it takes, and nothing else. */
static int main_many(int times)
{
    test_begin("lifecycle", 0);
    return test_run(TEST_PROCESSES, 2, 3600, many, &times) != 0;
}

int main(int argc, char **argv)
{
    int shm = test_count_files(), bad = 0, kind, n, yes = 1, no = 0;
    bool apart = getenv("RONDO_TEST_HOSTS") != NULL;
    int most = apart ? 1000 : 2000; /* between hosts each takes longer; --times for more */
    int times = apart ? 48 : 24;    /* and UCX's memory grows by 3 MB until there were some 40 of them */

    keep_nothing(argv);
    if (argc == 3 && strcmp(argv[1], "--times") == 0)
        return main_many(atoi(argv[2]));
    test_begin("lifecycle", 480);
    bad += test_run(TEST_PROCESSES, 2, 300, many, &most);
    for (kind = TEST_PROCESSES; kind <= TEST_THREADS && !bad; kind++) {
        test_kind_t k = (test_kind_t)kind;

        for (n = 1; n <= 4; n += n == 1 ? 1 : 2)
            bad += run("make and destroy", k, n, make_and_destroy, &times);
        bad += run("several", k, 3, several, NULL);
        for (n = 1; n <= 7; n += 2)
            bad += run("split", k, n, split, NULL);
        for (n = 2; n <= 6; n += 2)
            bad += run("shrink", k, n, shrink, NULL);
        bad += run("shrink unevenly", k, 3, shrink_unevenly, NULL);
        bad += run("shrink often", k, 5, shrink_often, NULL);
        bad += run("configs", k, 2, configs, NULL);
        for (n = 2; n <= 4; n += 2) {
            bad += run("timeout", k, n, timeout, &no);
            bad += run("timeout in a chain", k, n, timeout, &yes);
            bad += run("abort", k, n, abort_waiting, NULL);
            bad += run("abort with requests", k, n, abort_requests, NULL);
        }
        bad += run("forgetful", k, 3, forgetful, NULL);
        if (k == TEST_PROCESSES)
            bad += run("what is said", k, 2, says, NULL);
    }
    if (test_count_files() > shm) {
        printf("lifecycle: FAILED: files were left in /dev/shm\n");
        bad++;
    }
    return bad != 0;
}
