/* Limits that hold for a while: rondo_timeout_next for one call, which is not the one before it again, for a group or a
 * request; rondo_timeout_extend until a call is over, also for what is under way; and a limit of the first call. What
 * has more time waits for a rank that comes three limits late, and what comes after it does not, nor does it without.
 * All that is rank 0's: rank 1 has no limit, because rank 0 may lack a core for longer than that. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/harness.h"
#include "util/text.h"

#define SHORT_MS 100
#define LONG_MS 60000

typedef enum { BLOCKING, GROUP, REQUEST, MESSAGE, NUM_FORMS } form_t;
typedef enum { NEXT_LONG, NEXT_NEVER, NEXT_SHORT, EXTENDED, EXTENDED_TWICE, EXTENDED_LATE, FIRST, NUM_WHATS } what_t;

static const char *const whats[NUM_WHATS] = {
    "next, longer", "next, never", "next, shorter", "extended", "extended twice", "extended when it waits", "first"};

typedef struct {
    what_t what;
    form_t form;
    int nodes;
} how_t;

static rondo_result_t post(test_rank_t *t, rondo_comm_t comm, form_t form, int *sum)
{
    static _Thread_local int one;

    one = 1;
    *sum = 2;
    if (form != MESSAGE)
        return rondo_allreduce(&one, sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    return t->rank ? rondo_send(&one, 1, RONDO_INT32, 0, comm, NULL) : rondo_recv(&one, 1, RONDO_INT32, 1, comm, NULL);
}

static rondo_result_t act(test_rank_t *t, rondo_comm_t comm, const how_t *how, int extend)
{
    rondo_request_t request = NULL;
    int sum;

    if (how->form == BLOCKING || how->form == MESSAGE)
        return post(t, comm, how->form, &sum);
    (void)rondo_group_start();
    rondo_result_t result = post(t, comm, how->form, &sum);
    if (how->form == GROUP)
        return rondo_group_end();
    result = result ? result : rondo_group_submit(&request);
    if (extend)
        TEST_OK(t, comm, rondo_timeout_extend(comm, LONG_MS));
    return result ? result : rondo_request_wait(&request);
}

/* Says it for the next call; where that is to fail, returns 1. */
static int say(test_rank_t *t, rondo_comm_t comm, what_t what)
{
    switch (what) {
    case NEXT_LONG:
        TEST_OK(t, comm, rondo_timeout_next(LONG_MS));
        return 0;
    case NEXT_NEVER:
        TEST_OK(t, comm, rondo_timeout_next(0));
        return 0;
    case NEXT_SHORT:
        TEST_OK(t, comm, rondo_timeout_set(comm, 0));
        TEST_OK(t, comm, rondo_timeout_next(LONG_MS));
        TEST_OK(t, comm, rondo_timeout_next(-1)); /* as if nothing had been said */
        TEST_OK(t, comm, rondo_timeout_next(SHORT_MS));
        return 1;
    case EXTENDED:
        TEST_OK(t, comm, rondo_timeout_extend(comm, LONG_MS));
        return 0;
    case EXTENDED_TWICE: /* neither of the two is enough */
        TEST_OK(t, comm, rondo_timeout_extend(comm, 2 * SHORT_MS));
        TEST_OK(t, comm, rondo_timeout_extend(comm, LONG_MS));
        return 0;
    default:
        return 0;
    }
}

static void body(test_rank_t *t, void *arg)
{
    const how_t *how = arg;
    const int64_t limit_ms = t->rank == 0 ? SHORT_MS : 0;
    rondo_comm_t comm = test_comm_on(t, how->nodes);
    int fails;

    if (!comm)
        return;
    test_note(t, "%s, form %d, %d nodes", whats[how->what], how->form, how->nodes);
    TEST_OK(t, comm, rondo_timeout_set(comm, how->what == FIRST ? limit_ms : 0));
    for (int i = 0; how->what != FIRST && i < 3; i++)
        TEST_OK(t, comm, act(t, comm, how, 0));
    TEST_OK(t, comm, rondo_timeout_set(comm, limit_ms));
    fails = t->rank == 0 ? say(t, comm, how->what) : 0;
    test_barrier(t);
    if (t->rank == 1)
        usleep(3 * SHORT_MS * 1000);
    if (t->rank == 0 && fails) {
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, act(t, comm, how, 0));
    } else if (t->rank == 0 || how->what != NEXT_SHORT) {
        TEST_OK(t, comm, act(t, comm, how, how->what == EXTENDED_LATE && t->rank == 0));
        if (how->what == EXTENDED_LATE) /* it holds for this one, too, which began later */
            TEST_OK(t, comm, act(t, comm, how, 0));
        test_barrier(t);
        if (t->rank == 0)
            TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, act(t, comm, how, 0));
    }
    if (t->rank == 0)
        TEST_TRUE(t, strstr(rondo_last_error(comm), "longer than 100 ms") != NULL);
    test_barrier(t);
    rondo_comm_abort(comm);
}

static void shorter(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    const how_t how = {FIRST, BLOCKING, 1};

    (void)arg;
    config.first_timeout_ms = SHORT_MS;
    rondo_comm_t comm = test_comm(t, &config);
    test_note(t, "first, shorter, by the config");
    if (t->rank == 0)
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, act(t, comm, &how, 0));
    test_barrier(t);
    rondo_comm_abort(comm);
}

/* What a refused call was given is not another one's: rank 1 comes later than that. */
static void dropped(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL);
    int word = 0;

    (void)arg;
    for (int form = 0; form < 5; form++) {
        test_note(t, "a refused call, form %d", form);
        TEST_OK(t, comm, rondo_timeout_next(t->rank ? -1 : SHORT_MS));
        TEST_TRUE(t, form != 0 || rondo_allreduce(NULL, &word, 1, RONDO_INT32, RONDO_SUM, comm, NULL) ==
                                      RONDO_ERR_INVALID_ARGUMENT);
        TEST_TRUE(t, form != 1 || rondo_send(&word, 1, RONDO_INT32, 2, comm, NULL) == RONDO_ERR_INVALID_ARGUMENT);
        TEST_TRUE(t, form != 2 || rondo_signal(2, 0, 0, 0, comm, NULL) == RONDO_ERR_INVALID_ARGUMENT);
        TEST_TRUE(t, form != 3 || rondo_window_create(comm, NULL, 8, NULL, 0) == RONDO_ERR_INVALID_ARGUMENT);
        TEST_TRUE(t, form != 4 || rondo_window_destroy(comm, NULL) == RONDO_ERR_INVALID_ARGUMENT);
        test_barrier(t);
        if (t->rank == 1)
            usleep(3 * SHORT_MS * 1000);
        TEST_OK(t, comm, rondo_barrier(comm, NULL));
    }
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

#define WINDOW_MS 3000

static rondo_comm_t waits; /* of rank 0 */
static _Atomic int *extended;

static void *extend(void *arg)
{
    test_rank_t *t = arg;
    rondo_status_t status = {.size = sizeof status};

    do
        TEST_OK(t, waits, rondo_comm_status(waits, &status));
    while (strncmp(status.call, "window", 6) != 0);
    TEST_OK(t, waits, rondo_timeout_extend(waits, LONG_MS));
    atomic_store(extended, 1);
    return NULL;
}

/* A window's exchange is under way when it gets more time; rank 1 comes when what it had is over. */
static void window(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = waits = test_comm(t, NULL);
    rondo_window_t made;
    pthread_t thread;

    (void)arg;
    test_note(t, "extended when a window waits");
    TEST_OK(t, comm, rondo_timeout_set(comm, t->rank ? 0 : WINDOW_MS));
    if (t->rank == 0 && pthread_create(&thread, NULL, extend, t) != 0)
        test_stop(t, "no thread");
    while (t->rank == 1 && !atomic_load(extended))
        usleep(1000);
    if (t->rank == 1)
        usleep((WINDOW_MS + 100) * 1000);
    TEST_OK(t, comm, rondo_window_create(comm, NULL, 8, &made, 0));
    if (t->rank == 0)
        pthread_join(thread, NULL);
    test_barrier(t); /* an abort ends what others are still in */
    rondo_comm_abort(comm);
}

/* The config's stall_ms is that of the log's line, which goes to a file of this test. */
static void stalls(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    const how_t how = {FIRST, BLOCKING, 1};
    char line[1024] = "";

    config.stall_ms = 200;
    config.timeout_ms = 800;
    rondo_comm_t comm = test_comm(t, &config);
    test_note(t, "stall_ms of the config");
    if (t->rank == 0)
        TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, act(t, comm, &how, 0));
    test_barrier(t);
    if (t->rank == 0) {
        text_read(arg, line, sizeof line);
        TEST_TRUE(t, strstr(line, "a call waits for 0.2 s: ") != NULL);
    }
    rondo_comm_abort(comm);
}

static int all(form_t form, int nodes)
{
    int bad = 0;

    for (int what = 0; what < NUM_WHATS; what++) {
        how_t how = {(what_t)what, form, nodes};
        if ((what == EXTENDED_LATE && form != REQUEST) || (nodes > 1 && what != EXTENDED_LATE && what != NEXT_LONG) ||
            (form == MESSAGE && what == EXTENDED_TWICE))
            continue;
        setenv("RONDO_TIMEOUT_FIRST_MS", what == FIRST ? "0" : "-1", 1);
        bad |= test_run(form == GROUP ? TEST_THREADS : TEST_PROCESSES, 2, 30, body, &how) != 0;
    }
    return bad;
}

int main(void)
{
    char file[] = "/tmp/rondo-timeout_once-XXXXXX";
    int bad = 0, fd = mkstemp(file);

    test_begin("timeout_once", 90);
    for (int form = 0; form < NUM_FORMS; form++)
        bad |= all((form_t)form, 1);
    bad |= all(REQUEST, 2);
    unsetenv("RONDO_TIMEOUT_FIRST_MS");
    bad |= test_run(TEST_PROCESSES, 2, 30, dropped, NULL) != 0;
    bad |= test_run(TEST_PROCESSES, 2, 30, shorter, NULL) != 0;
    extended = mmap(NULL, sizeof *extended, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bad |= extended == MAP_FAILED || test_run(TEST_PROCESSES, 2, 30, window, NULL) != 0;
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", file, 1);
    bad |= test_run(TEST_PROCESSES, 2, 30, stalls, file) != 0;
    close(fd);
    unlink(file);
    return bad;
}
