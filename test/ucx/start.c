/* A network that UCX cannot start on some rank, or on which it would end another one: no communicator is made, and
 * every rank says why and what to look at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define RANKS 3

typedef struct {
    const char *name, *value; /* of a variable that asks for what this host has not */
    unsigned ranks;           /* a bit for each that has it set */
    const char *word;         /* that all say; NULL: those have no UCX that starts, and the others say so */
    const char *cause;        /* that those say then */
} trial_t;

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    char host[16];

    snprintf(host, sizeof host, "host%d", t->rank > 0); /* ranks 1 and 2 share a node */
    setenv("RONDO_HOSTID", host, 1);
    if (trial->ranks >> t->rank & 1)
        setenv(trial->name, trial->value, 1);
    int own = trial->ranks >> t->rank & 1;
    const char *word = trial->word ? trial->word : own ? trial->cause : "no working UCX";
    rondo_result_t wanted = trial->word ? RONDO_ERR_INVALID_USAGE : own ? RONDO_ERR_SYSTEM : RONDO_ERR_REMOTE;
    (void)test_comm_gives(t, wanted, word);
}

/* What is set for the UCX of an MPI with InfiniBand does not hinder rondo over tcp. */
static void others_settings(test_rank_t *t, void *arg)
{
    int one = 1, sum = 0;
    char host[16];

    (void)arg;
    snprintf(host, sizeof host, "host%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    setenv("UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1", 1);
    setenv("UCX_TLS", "rc,self", 1);
    rondo_comm_t comm = test_comm(t, NULL);
    test_result(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL), RONDO_SUCCESS,
                "allreduce");
    if (sum != t->nranks)
        test_fail(t, "the sum is %d, not %d", sum, t->nranks);
    rondo_comm_destroy(comm);
}

int main(void)
{
    trial_t trials[] = {{"RONDO_UCX_TLS", "nonsense", 7, NULL, "a device for RONDO_UCX_TLS=nonsense"},
                        {"RONDO_UCX_TLS", "nonsense", 2, NULL, "UCX cannot start"},
                        {"RONDO_UCX_NET_DEVICES", "nodevice", 7, NULL, "RONDO_UCX_NET_DEVICES=nodevice names devices"},
                        {"RONDO_NET", "nodevice", 7, NULL, "RONDO_NET=nodevice names devices"},
                        {"RONDO_UCX_NET_DEVICES", "nodevice", 1, NULL, "UCX cannot start"},
                        {"RONDO_UCX_TCP_RX_SEG_SIZE", "64k", 4, "takes 65536 at most", NULL},
                        {"RONDO_UCX_TCP_TX_SEG_SIZE", "1mb", 1, "sends segments of 1048576 bytes", NULL}};
    int bad = 0;

    test_begin("net_start", 60);
    setenv("RONDO_IFACE", "lo", 1);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        int wrong = test_run(TEST_PROCESSES, RANKS, 30, body, &trials[i]);
        printf("net_start: %s=%s, ranks %x: %s\n", trials[i].name, trials[i].value, trials[i].ranks,
               wrong ? "WRONG" : "right");
        bad += wrong;
    }
    bad += test_run(TEST_PROCESSES, RANKS, 30, others_settings, NULL) != 0;
    return bad != 0;
}
