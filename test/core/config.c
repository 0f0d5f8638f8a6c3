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
    static const struct {
        const char *says;
        size_t field; /* an int */
        int wrong[2];
    } all[] = {{"config->blocks is", offsetof(rondo_config_t, blocks), {-2, 1025}},
               {"config->cta_policy is", offsetof(rondo_config_t, cta_policy), {-2, 3}},
               {"config->traffic_class is", offsetof(rondo_config_t, traffic_class), {-2, 256}},
               {"config->blocks_least is", offsetof(rondo_config_t, blocks_least), {-2, 1025}},
               {"config->net_channels is", offsetof(rondo_config_t, net_channels), {-2, 9}},
               {"config->nan_check is", offsetof(rondo_config_t, nan_check), {-2, 3}}};
    char name[65];
    const char *names[] = {"", name};
    rondo_comm_t comm = NULL;

    (void)arg;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
        rondo_config_t config = RONDO_CONFIG_INIT;

        memcpy((char *)&config + all[i / 2].field, &all[i / 2].wrong[i % 2], sizeof(int));
        test_note(t, "a config that makes no sense, %zu", i);
        test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_create");
        test_sentence(t, all[i / 2].says);
    }
    for (int i = 0; i < 2; i++) {
        rondo_config_t config = RONDO_CONFIG_INIT;

        config.network = names[i];
        test_note(t, "a network that makes no sense, %d", i);
        test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_create");
        test_sentence(t, "config->network has");
    }
    rondo_config_t config = RONDO_CONFIG_INIT;
    config.blocks_least = 5;
    config.blocks = 4;
    test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_create");
    test_sentence(t, "config->blocks_least is 5, more than config->blocks, 4");
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
    config = (rondo_config_t)RONDO_CONFIG_INIT;
    config.blocks_least = 1 + t->rank;
    test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_USAGE, "rondo_comm_create");
    test_sentence(t, "ranks differ in RONDO_CUDA_BLOCKS_LEAST");
    config = (rondo_config_t)RONDO_CONFIG_INIT;
    config.net_channels = 1 + t->rank;
    test_result(t, NULL, make(t, &config, &comm), RONDO_ERR_INVALID_USAGE, "rondo_comm_create");
    test_sentence(t, "ranks differ in RONDO_PROXY_THREADS");
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
    if (!test_result(t, NULL, test_settled(comm, result), RONDO_SUCCESS, "rondo_comm_create over config.network"))
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
