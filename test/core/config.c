/* What a config says of multiprocessors, of the network and of its traffic class comes before the variables: what makes
 * no sense is refused on its rank alone, and ranks that differ make no communicator. It is read within the call, also
 * where the creation goes on behind the caller. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define RANKS 2

static rondo_result_t make(test_rank_t *t, rondo_config_t *config, rondo_comm_t *comm)
{
    rondo_unique_id_t id;

    config->device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    return rondo_comm_create(comm, t->nranks, &id, t->rank, config);
}

static void refused(test_rank_t *t, void *arg)
{
    static const int blocks[] = {-2, 1025}, policies[] = {-2, 3}, classes[] = {-2, 256};
    static const char *const says[] = {"config->blocks is", "config->network has", "config->cta_policy is",
                                       "config->traffic_class is"};
    char name[65];
    const char *names[] = {"", name};
    rondo_comm_t comm = NULL;

    (void)arg;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 8; i++) {
        rondo_config_t config = RONDO_CONFIG_INIT;

        if (i < 2)
            config.blocks = blocks[i];
        else if (i < 4)
            config.network = names[i - 2];
        else if (i < 6)
            config.cta_policy = policies[i - 4];
        else
            config.traffic_class = classes[i - 6];
        test_note(t, "a config that makes no sense, %d", i);
        test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_create");
        test_sentence(t, says[i / 2]);
    }
}

static void differ(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL;

    (void)arg;
    config.blocks = 4 + t->rank;
    test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_USAGE, "rondo_comm_create");
    test_sentence(t, "ranks differ in RONDO_CUDA_BLOCKS");
    config = (rondo_config_t)RONDO_CONFIG_INIT;
    config.cta_policy = t->rank;
    test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_USAGE, "rondo_comm_create");
    test_sentence(t, "ranks differ in RONDO_CTA_POLICY");
    config = (rondo_config_t)RONDO_CONFIG_INIT;
    config.traffic_class = t->rank;
    test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_USAGE, "rondo_comm_create");
    test_sentence(t, "ranks differ in RONDO_TRAFFIC_CLASS");
}

/* UCX takes a class, with and without a transport that has one; an older caller's config has no such field. */
static void class(test_rank_t *t, void *arg)
{
    const char *const networks[] = {"tcp", "tcp,self"};
    char host[16];

    (void)arg;
    snprintf(host, sizeof host, "host%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    for (int i = 0; i < 3; i++) {
        rondo_config_t config = RONDO_CONFIG_INIT;
        rondo_comm_t comm = NULL;
        int one = 1, sum = 0;

        config.network = networks[i % 2];
        config.traffic_class = i < 2 ? 96 : 4711;
        config.size = i < 2 ? sizeof config : offsetof(rondo_config_t, traffic_class);
        test_note(t, "a traffic class over %s, %d", config.network, i);
        if (!test_result(t, NULL, make(t, &config, &comm), RONDO_SUCCESS, "rondo_comm_create"))
            test_stop(t, "no communicator");
        test_result(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL), RONDO_SUCCESS,
                    "allreduce");
        TEST_TRUE(t, sum == t->nranks);
        rondo_comm_destroy(comm);
    }
}

/* Two nodes whose variable names a network that is not there. An older caller's config has no such field. */
static void network(test_rank_t *t, void *arg)
{
    const int blocking = *(const int *)arg;
    rondo_config_t config = RONDO_CONFIG_INIT;
    char name[] = "tcp", host[16];
    int one = 1, sum = 0;
    rondo_comm_t comm = NULL;

    snprintf(host, sizeof host, "host%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_UCX_TLS", "nonsense", 1);
    config.network = name;
    config.blocking = blocking;
    rondo_result_t result = make(t, &config, &comm);
    memset(name, 'x', sizeof name - 1);
    while (result == RONDO_IN_PROGRESS && rondo_comm_get_error(comm, &result) == RONDO_SUCCESS)
        ;
    if (!test_result(t, NULL, result, RONDO_SUCCESS, "rondo_comm_create over config.network"))
        test_stop(t, "no communicator");
    test_result(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL), RONDO_SUCCESS,
                "allreduce");
    if (sum != t->nranks)
        test_fail(t, "the sum is %d, not %d", sum, t->nranks);
    rondo_comm_destroy(comm);

    config.size = offsetof(rondo_config_t, network);
    test_note(t, "an older caller's config");
    test_result(t, NULL, make(t, &config, &comm), blocking ? RONDO_ERR_SYSTEM : RONDO_IN_PROGRESS,
                "rondo_comm_create over RONDO_UCX_TLS");
    if (!blocking)
        rondo_comm_abort(comm);
}

int main(void)
{
    int blocking[] = {1, 0}, bad = 0;

    test_begin("core/config", 60);
    setenv("RONDO_IFACE", "lo", 1);
    setenv("RONDO_DEBUG", "none", 0);
    bad += test_run(TEST_PROCESSES, 1, 30, refused, NULL);
    bad += test_run(TEST_PROCESSES, RANKS, 30, differ, NULL);
    for (int i = 0; i < 2; i++)
        bad += test_run(TEST_PROCESSES, RANKS, 30, network, &blocking[i]);
    bad += test_run(TEST_PROCESSES, RANKS, 30, class, NULL);
    return bad != 0;
}
