/* The ways in which a rank's part of a window is reached: every test of one-sided operations walks over them. */
#ifndef TEST_RMA_WAYS_H
#define TEST_RMA_WAYS_H

#include "util/harness.h"

typedef enum { WAY_MAPPED, WAY_THREADS, WAY_CMA, WAY_MESSAGES, WAY_NODES, WAYS } way_t;

static inline const char *way_name(way_t way)
{
    static const char *const names[WAYS] = {"mapped", "threads", "cma", "messages", "nodes"};

    return names[way];
}

static inline test_kind_t way_kind(way_t way)
{
    return way == WAY_THREADS ? TEST_THREADS : TEST_PROCESSES;
}

/* Set up before ranks run. */
static inline void way_begin(way_t way)
{
    if (way == WAY_MESSAGES)
        setenv("RONDO_CMA", "0", 1);
    else
        unsetenv("RONDO_CMA");
}

/* Collective: a communicator; with WAY_NODES on two nodes. NULL: UCX is not built in. */
static inline rondo_comm_t way_comm(test_rank_t *t, way_t way, int signals, int contexts)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    rondo_result_t result;

    if (way == WAY_NODES)
        setenv("RONDO_HOSTID", t->rank % 2 ? "odd" : "even", 1);
    config.device = RONDO_DEVICE_HOST;
    config.signals = signals;
    config.contexts = contexts;
    test_id(t, &id);
    result = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    if (result == RONDO_ERR_UNSUPPORTED && way == WAY_NODES)
        return NULL;
    if (result != RONDO_SUCCESS)
        test_stop(t, "no communicator: %s", rondo_last_error(NULL));
    return comm;
}

/* Collective: a window that is reached this way, and where this rank's part lies. `buffer` is the caller's to free if
 * it is not NULL. */
static inline rondo_window_t way_window(test_rank_t *t, rondo_comm_t comm, way_t way, size_t bytes, void **at,
                                        void **buffer)
{
    rondo_window_t window = NULL;

    *buffer = NULL;
    if (way != WAY_MAPPED && (*buffer = calloc(1, bytes + 64)) == NULL)
        test_stop(t, "no memory");
    if (!TEST_OK(t, comm, rondo_window_create(comm, *buffer, bytes, &window, 0)) ||
        !TEST_OK(t, comm, rondo_window_buffer(comm, window, at)))
        test_stop(t, "no window");
    return window;
}

#endif
