/* A provider that wants the memory registered that is sent from (FI_MR_LOCAL), which is played by tcp's: a connection's
 * mirror is registered when the first message leaves it, and no other, also where all ranks exchange. Where it cannot
 * be, the call fails, and all others hear who has failed and why, also those who do not wait for that rank, before it
 * does anything more. */
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "ofi/ofi.h"
#include "util/harness.h"

#define RANKS 3
#define COUNT (1 << 17) /* elements: more than one slot holds */

rondo_result_t __real_rd_ofi_choose(rd_ofi_net_t *net, const rd_env_t *env, const char *address, const rd_node_t *node);
rondo_result_t __wrap_rd_ofi_choose(rd_ofi_net_t *net, const rd_env_t *env, const char *address, const rd_node_t *node);

rondo_result_t __wrap_rd_ofi_choose(rd_ofi_net_t *net, const rd_env_t *env, const char *address, const rd_node_t *node)
{
    rondo_result_t result = __real_rd_ofi_choose(net, env, address, node);
    if (result == RONDO_SUCCESS)
        net->info->domain_attr->mr_mode |= FI_MR_LOCAL;
    return result;
}

static size_t registered(const rd_ofi_net_t *net)
{
    size_t n = 0;
    for (size_t i = 0; i < net->npieces; i++)
        n += net->mirrors[i].mr != NULL;
    return n;
}

/* Rank 0 sends to rank 1. */
static rondo_result_t message(test_rank_t *t, rondo_comm_t comm)
{
    int *data = malloc(COUNT * sizeof *data);
    rondo_result_t result = RONDO_SUCCESS;
    if (!data)
        test_stop(t, "no memory");
    for (int i = 0; i < COUNT; i++)
        data[i] = t->rank == 0 ? i : -1;
    if (t->rank == 0)
        result = rondo_send(data, COUNT, RONDO_INT32, 1, comm, NULL);
    else if (t->rank == 1)
        result = rondo_recv(data, COUNT, RONDO_INT32, 0, comm, NULL);
    for (int i = 0; i < COUNT && t->rank == 1 && result == RONDO_SUCCESS; i++)
        if (data[i] != i)
            test_stop(t, "element %d is %d", i, data[i]);
    free(data);
    return result;
}

static void sum(test_rank_t *t, rondo_comm_t comm)
{
    int *data = malloc(COUNT * sizeof *data);
    if (!data)
        test_stop(t, "no memory");
    for (int i = 0; i < COUNT; i++)
        data[i] = i + t->rank;
    TEST_OK(t, comm, rondo_allreduce(data, data, COUNT, RONDO_INT32, RONDO_SUM, comm, NULL));
    for (int i = 0; i < COUNT; i++)
        if (data[i] != RANKS * i + RANKS * (RANKS - 1) / 2)
            test_stop(t, "element %d is %d", i, data[i]);
    free(data);
}

static void used(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm_on(t, RANKS);
    const rd_ofi_net_t *net = rd_ofi_of(comm->net);

    (void)arg;
    test_note(t, "what is registered");
    TEST_TRUE(t, net->regs && net->npieces >= 2 * (RANKS - 1) && registered(net) == 0);
    TEST_OK(t, comm, message(t, comm));
    TEST_TRUE(t, registered(net) == (t->rank == 0));
    sum(t, comm);
    TEST_TRUE(t, registered(net) > 0 && registered(net) <= net->npieces / 2);
    TEST_OK(t, comm, rondo_comm_destroy(comm));
}

static int no_memory(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key,
                     uint64_t flags, struct fid_mr **mr, void *context)
{
    (void)fid, (void)buf, (void)len, (void)access, (void)offset, (void)key, (void)flags, (void)mr, (void)context;
    return -FI_ENOMEM;
}

/* The last rank waits for rank 1, which sends it nothing. */
static rondo_result_t wait_for_other(test_rank_t *t, rondo_comm_t comm)
{
    return t->rank == RANKS - 1 ? rondo_recv(&(int){0}, 1, RONDO_INT32, 1, comm, NULL) : message(t, comm);
}

static void refused(test_rank_t *t, void *arg)
{
    const int nodes = *(const int *)arg;
    rondo_comm_t comm = test_comm_on(t, nodes);
    rd_ofi_net_t *net = rd_ofi_of(comm->net);
    struct fi_ops_mr *before = net->domain->mr, instead = *before;

    test_note(t, "a registration that is refused, on %d nodes", nodes);
    instead.reg = no_memory;
    if (t->rank == 0)
        net->domain->mr = &instead;
    test_barrier(t); /* nobody is still in the creation, */
    TEST_GIVES(t, comm, t->rank ? RONDO_ERR_REMOTE : RONDO_ERR_SYSTEM, wait_for_other(t, comm));
    const char *said = rondo_last_error(comm);
    if (!strstr(said, "cannot register") || (t->rank != 0 && strncmp(said, "rank 0 (", 8) != 0))
        test_fail(t, "rank %d says: %s", t->rank, said);
    net->domain->mr = before;
    test_barrier(t); /* and nobody leaves before all know */
    TEST_OK(t, NULL, rondo_comm_abort(comm));
}

int main(void)
{
    test_begin("ofi/registered", 120);
    setenv("RONDO_TRANSPORT", "ofi", 1);
    if (!test_has_network()) {
        puts("there is no libfabric");
        return TEST_SKIPPED;
    }
    int bad = test_run(TEST_PROCESSES, RANKS, 40, used, NULL);
    for (int nodes = 2; nodes <= RANKS; nodes++)
        bad += test_run(TEST_PROCESSES, RANKS, 40, refused, &nodes);
    return bad != 0;
}
