/* Communicators for tests (harness.h): on host memory unless a test says otherwise, on one node or on several that
 * ranks play, and what a test asks of one. What they go by is the harness's alone: ids, notes and failures. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

void test_sentence(test_rank_t *t, const char *word)
{
    if (!strstr(rondo_last_error(NULL), word))
        test_fail(t, "the sentence must have \"%s\": %s", word, rondo_last_error(NULL));
}

bool test_came_late(rondo_result_t result, const char *sentence)
{
    return (result == RONDO_ERR_REMOTE && strstr(sentence, "the message there says why")) ||
           (result == RONDO_ERR_INVALID_USAGE && strstr(sentence, "as its message says"));
}

rondo_result_t test_settled(rondo_comm_t comm, rondo_result_t result)
{
    while (result == RONDO_IN_PROGRESS && rondo_comm_get_error(comm, &result) == RONDO_SUCCESS &&
           result == RONDO_IN_PROGRESS)
        usleep(200);
    return result;
}

rondo_config_t test_host_config(void)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = RONDO_DEVICE_HOST;
    return config;
}

void test_play_node(const test_rank_t *t, int nodes)
{
    char host[32];

    snprintf(host, sizeof host, "node%d", t->rank % nodes);
    if (nodes > 1 && t->kind == TEST_PROCESSES)
        setenv("RONDO_HOSTID", host, 1);
}

rondo_comm_t test_comm_gives(test_rank_t *t, rondo_result_t want, const char *word)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;

    test_id(t, &id);
    test_result(t, NULL, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config), want, "rondo_comm_create");
    if (!comm && want != RONDO_SUCCESS)
        test_sentence(t, word);
    return comm;
}

rondo_comm_t test_comm_on(test_rank_t *t, int nodes)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL;
    rondo_unique_id_t id;
    rondo_result_t result;

    if (nodes > 1) {
        char host[16];
        snprintf(host, sizeof host, "node%d", t->rank % nodes);
        setenv("RONDO_HOSTID", host, 1);
    }
    test_id(t, &id);
    result = rondo_comm_create(&comm, t->nranks, &id, t->rank, &config);
    if (nodes > 1 && result == RONDO_ERR_UNSUPPORTED)
        return NULL;
    if (!test_result(t, NULL, result, RONDO_SUCCESS, "rondo_comm_create"))
        test_stop(t, "cannot go on");
    return comm;
}

static void look_for_network(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, 2);

    (void)arg;
    if (comm)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    else
        test_fail(t, "there is no network");
}

bool test_has_network(void)
{
    return test_run(TEST_PROCESSES, 2, 40, look_for_network, NULL) == 0;
}

unsigned test_group(rondo_comm_t comm, int rank)
{
    int32_t all[TEST_MAX_RANKS], mine = rank;
    unsigned group = 0;
    int size = 0;
    if (rondo_comm_size(comm, &size) != RONDO_SUCCESS ||
        rondo_allgather(&mine, all, 1, RONDO_INT32, comm, NULL) != RONDO_SUCCESS)
        return 0;
    for (int i = 0; i < size; i++)
        group |= 1u << all[i];
    return group;
}
