/* One-sided operations when something goes wrong: a dead rank, one that has left, one that is late, an abort, a window
 * that is no more. Every wait ends, with a sentence that names the rank, and what was sent before arrives. Who is late
 * is found through ranks that wait for signals. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/binding.h"
#include "rma/ways.h"

#define BYTES 4096
#define LIMIT_MS 3000 /* a rank that waits and has no core for half of that is late */

typedef struct {
    way_t way;
    void (*run)(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, char *part);
    int64_t timeout_ms;
} case_t;

static rondo_result_t wait_for(rondo_comm_t comm, int peer)
{
    const rondo_wait_desc_t wait = {1, peer, 0, 0};

    return rondo_wait_signal(1, &wait, comm, NULL);
}

/* The other ranks of the test are told by its own means. */
static void sentence(test_rank_t *t, rondo_comm_t comm, const char *word)
{
    if (!strstr(rondo_last_error(comm), word))
        test_fail(t, "%s: no \"%s\" in: %s", test_noted(t), word, rondo_last_error(comm));
}

static void dies(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, char *part)
{
    (void)window;
    (void)part;
    if (t->rank == 1) {
        usleep(30000);
        raise(SIGKILL);
    }
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, wait_for(comm, 1));
    sentence(t, comm, "rank 1 (");
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, rondo_signal(0, 0, 0, 0, comm, NULL));
}

/* What rank 1 has put before it left is there, however late it is looked for; then there is nothing more. */
static void leaves(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, char *part)
{
    char bytes[BYTES];

    memset(bytes, 7, sizeof bytes);
    if (t->rank == 1) {
        TEST_OK(t, comm, rondo_put_signal(bytes, BYTES, RONDO_INT8, 0, window, 0, 0, 0, 0, comm, NULL));
        return;
    }
    if (t->rank)
        return;
    usleep(100000);
    TEST_OK(t, comm, wait_for(comm, 1));
    TEST_TRUE(t, memcmp(part, bytes, BYTES) == 0);
    TEST_GIVES(t, comm, RONDO_ERR_REMOTE, wait_for(comm, 1));
    sentence(t, comm, "rank 1 (");
}

/* Ranks 0 and 1 wait for signals, in a chain; rank 2 calls nothing. */
static void late(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, char *part)
{
    (void)window;
    (void)part;
    if (t->rank < 2) {
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, wait_for(comm, t->rank + 1));
        sentence(t, comm, "rank 2 (");
    }
    test_barrier(t);
}

static void *abort_later(void *comm)
{
    usleep(30000);
    rondo_comm_abort(comm);
    return NULL;
}

static void aborted(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, char *part)
{
    pthread_t thread;

    (void)window;
    (void)part;
    if (t->rank == 0 && pthread_create(&thread, NULL, abort_later, comm) != 0)
        test_stop(t, "no thread");
    TEST_GIVES(t, NULL, t->rank == 0 ? RONDO_ERR_ABORTED : RONDO_ERR_REMOTE, wait_for(comm, 2 - t->rank));
    if (t->rank == 0)
        pthread_join(thread, NULL);
}

/* Rank 0 looks at its window all the time, and hears of the abort, not that the window is none. */
static void aborted_while_busy(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, char *part)
{
    rondo_result_t result = RONDO_SUCCESS;
    pthread_t thread;
    char byte = 1;
    void *where;

    (void)part;
    if (t->rank) {
        TEST_GIVES(t, NULL, RONDO_ERR_REMOTE, wait_for(comm, 2 - t->rank));
        return;
    }
    if (pthread_create(&thread, NULL, abort_later, comm) != 0)
        test_stop(t, "no thread");
    while (result == RONDO_SUCCESS)
        if ((result = rondo_put(&byte, 1, RONDO_INT8, 0, window, 0, 0, 0, comm, NULL)) == RONDO_SUCCESS)
            result = rondo_window_buffer(comm, window, &where);
    TEST_GIVES(t, NULL, RONDO_ERR_ABORTED, result);
    pthread_join(thread, NULL);
}

/* What comes by message is checked again: rank 1 has taken its part back. */
static void closed(test_rank_t *t, rondo_comm_t comm, rondo_window_t window, char *part)
{
    char byte = 1;

    (void)part;
    if (t->rank == 1)
        TEST_OK(t, comm, rondo_window_close(comm, window));
    if (t->rank) /* and out of the barrier before, which is to succeed */
        TEST_OK(t, comm, rondo_signal(0, 0, 0, 0, comm, NULL));
    for (int r = 1; t->rank == 0 && r < t->nranks; r++)
        TEST_OK(t, comm, wait_for(comm, r));
    if (t->rank == 0)
        TEST_OK(t, comm, rondo_put(&byte, 1, RONDO_INT8, 1, window, 0, 0, 0, comm, NULL));
    TEST_GIVES(t, comm, RONDO_ERR_MISMATCH, t->rank == 0 ? rondo_flush(1, 0, comm, NULL) : wait_for(comm, 0));
    sentence(t, comm, "does not fit");
}

/* A late rank is waited for as in other calls, for as long as the caller says, and not as long as creations wait. */
static void window_end(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = way_comm(t, WAY_MAPPED, 1, 1);
    rondo_window_t windows[2] = {NULL, NULL};

    (void)arg;
    test_note(t, "a late rank at the end of a window");
    for (int w = 0; w < 2; w++)
        TEST_OK(t, comm, rondo_window_create(comm, NULL, BYTES, &windows[w], 0));
    TEST_OK(t, comm, rondo_window_destroy(comm, windows[0]));
    if (t->rank == 0) {
        TEST_OK(t, comm, rondo_timeout_next(100));
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, rondo_window_destroy(comm, windows[1]));
        sentence(t, comm, "RONDO_TIMEOUT_MS");
    }
    test_barrier(t);
    if (t->rank == 1)
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, rondo_window_destroy(comm, windows[1]));
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

static void body(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    void *part, *own;

    rondo_comm_t comm = way_comm(t, c->way, -1, -1);
    if (!comm)
        return;
    rondo_window_t window = way_window(t, comm, c->way, BYTES, &part, &own);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* nobody is in the other one when a rank dies or aborts */
    if (c->timeout_ms)
        TEST_OK(t, comm, rondo_timeout_set(comm, c->timeout_ms));
    test_note(t, "%s", way_name(c->way));
    c->run(t, comm, window, part);
    if ((c->run != aborted && c->run != aborted_while_busy) || t->rank)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    free(own);
}

static int part(int i)
{
    static const way_t ways[] = {WAY_MAPPED, WAY_CMA, WAY_MESSAGES, WAY_NODES};
    const way_t way = ways[i];
    const struct {
        const char *name;
        case_t c;
        unsigned victims;
    } cases[] = {{"dies", {way, dies, 0}, 1u << 1},
                 {"leaves", {way, leaves, 0}, 0},
                 {"late", {way, late, LIMIT_MS}, 0},
                 {"aborted", {way, aborted, 0}, 0},
                 {"aborted while busy", {way, aborted_while_busy, 0}, 0},
                 {"closed", {way, closed, 0}, 0}};
    int bad = 0;

    way_begin(way);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        test_director_t d = {.victims = cases[k].victims};
        if (cases[k].c.run == closed && way < WAY_MESSAGES)
            continue;
        printf("%s, %s\n", way_name(way), cases[k].name);
        bad += test_run_directed(&d, 3, 30, body, (void *)(uintptr_t)&cases[k].c);
    }
    return bad + (way == WAY_MAPPED ? test_run(TEST_PROCESSES, 2, 30, window_end, NULL) : 0);
}

int main(void)
{
    test_begin("faults", 200);
    setenv("RONDO_DEBUG", "error", 0);
    return test_at_once(4, part) != 0;
}
