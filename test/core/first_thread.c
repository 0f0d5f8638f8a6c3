/* Processes whose first thread has ended while another one goes on, as POSIX allows: to the kernel such a process has
 * no memory under its number. Ranks of one node, some of them so, from before the creation on or from behind it,
 * exchange all lengths, gather, and reach each other's windows: nobody is called dead, and the data are right. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rma/ways.h"
#include "util/harness.h"

#define RANKS 3
#define MOST ((size_t)1 << 20) /* elements of a rank */

typedef struct {
    unsigned who; /* bits of the ranks whose first thread ends */
    bool before;  /* the creation */
} job_t;

typedef struct {
    test_rank_t *t;
    const job_t *job;
    rondo_comm_t comm; /* NULL: to be made */
} work_t;

static void calls(test_rank_t *t, rondo_comm_t comm, int64_t *in, int64_t *out, size_t n)
{
    test_note(t, "calls with %zu elements", n);
    for (size_t i = 0; i < n; i++)
        in[i] = t->rank + 1;
    TEST_OK(t, comm, rondo_allreduce(in, out, n, RONDO_INT64, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, out[0] == 6 && out[n - 1] == 6);
    TEST_OK(t, comm, rondo_allgather(in, out, n, RONDO_INT64, comm, NULL));
    TEST_TRUE(t, out[0] == 1 && out[n] == 2 && out[RANKS * n - 1] == 3);
    memset(out, 0, RANKS * n * sizeof *out);
    TEST_OK(t, comm, rondo_gather(in, out, n, RONDO_INT64, 0, comm, NULL));
    TEST_TRUE(t, t->rank != 0 || (out[0] == 1 && out[n] == 2 && out[RANKS * n - 1] == 3));
}

static void windows(test_rank_t *t, rondo_comm_t comm)
{
    void *at, *buffer;
    int64_t mine = t->rank + 1, got = 0;
    int next = (t->rank + 1) % RANKS, before = (t->rank + RANKS - 1) % RANKS;

    test_note(t, "a window");
    rondo_window_t window = way_window(t, comm, WAY_CMA, 64, &at, &buffer);
    TEST_OK(t, comm, rondo_put(&mine, 1, RONDO_INT64, next, window, 0, 0, 0, comm, NULL));
    TEST_OK(t, comm, rondo_flush(next, 0, comm, NULL));
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_TRUE(t, *(int64_t *)at == before + 1);
    TEST_OK(t, comm, rondo_get(&got, 1, RONDO_INT64, next, window, 0, 0, 0, comm, NULL));
    TEST_TRUE(t, got == mine);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    TEST_OK(t, comm, rondo_window_destroy(comm, window));
    free(buffer);
}

static void *work(void *arg)
{
    static const size_t counts[] = {1, 1000, 10000, MOST};
    work_t *w = arg;
    test_rank_t *t = w->t;
    int64_t *in = malloc(MOST * sizeof *in), *out = malloc(RANKS * MOST * sizeof *out);

    if (!in || !out)
        test_stop(t, "no memory");
    if (!w->comm)
        w->comm = test_comm(t, NULL);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        calls(t, w->comm, in, out, counts[i]);
    windows(t, w->comm);
    test_note(t, "destroy");
    TEST_OK(t, w->comm, rondo_comm_destroy(w->comm));
    free(in);
    free(out);
    return NULL;
}

static void *work_alone(void *arg)
{
    char path[64], state = 0;
    const char *name_end = NULL;
    char text[256] = "";

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    for (int i = 0; i < 5000 && state != 'Z'; i++) { /* until the first thread has ended */
        FILE *f = fopen(path, "re");
        state = f && fgets(text, sizeof text, f) && (name_end = strrchr(text, ')')) ? name_end[2] : 0;
        if (f)
            fclose(f);
        usleep(1000);
    }
    if (state != 'Z')
        test_fail(((work_t *)arg)->t, "the first thread has not ended");
    work(arg);
    exit(0);
}

static void body(test_rank_t *t, void *arg)
{
    static work_t w; /* outlives this thread */
    static test_rank_t own;
    pthread_t thread;

    own = *t;
    w = (work_t){&own, arg, NULL};
    if (!w.job->before)
        w.comm = test_comm(&own, NULL);
    if (!(w.job->who >> t->rank & 1)) {
        (void)work(&w);
        return;
    }
    if (pthread_create(&thread, NULL, work_alone, &w) != 0)
        test_stop(t, "no thread");
    pthread_exit(NULL);
}

int main(void)
{
    static const job_t jobs[] = {{7, true}, {7, false}, {1, false}, {2, false}, {4, true}};
    int bad = 0;

    test_begin("first_thread", 120);
    setenv("RONDO_CMA_MIN", "4096", 1);
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        bad += test_run(TEST_PROCESSES, RANKS, 60, body, (void *)&jobs[i]) != 0;
    return bad != 0;
}
