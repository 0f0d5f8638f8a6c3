/* collnet: the switches between the nodes add. Each node makes its sum, one rank of it sends that to the switch, and
 * what comes back is the result. Before and after that a direct exchange inside each node, as in hier.c:
 *
 *     allreduce, 2 nodes of 3 ranks:      0     1     2     |     3     4     5
 *
 *       bring    parts to their rails      a ◀── a ◀── a    |  the same        (shared memory)
 *       up       along each rail           a ──────▶ switch | ◀────── b        (network)
 *       down                               s ◀────── switch | ──────▶ s
 *       spread   parts to all ranks        s ──▶ s ──▶ s    |  the same        (shared memory)
 *
 *     collnet_chain      one rail: the first rank of each node is its head, and has the whole vector
 *     collnet_direct     as many rails as possible: every local rank is the head of a part
 *
 * On the network there are two hops, whatever the number of nodes, and N bytes leave each node and come to it, half of
 * what a ring takes. Going up and coming down are two lanes, so that one slice goes up while the one before comes down.
 * A rank that waits for the switch waits for the head on the node behind its own (transport/switch.h).
 *
 * The order of the sum is the switch's. It serves a type and an operator if it says so itself, on all ranks.
 */
#include "sched/algo/algos.h"
#include "sched/algo/hier_work.h"
#include "sched/shape.h"

/* ---- between the nodes: of `nranks` ranks, one a node */

static rd_steps_t *rail_emit(const rd_sched_args_t *args)
{
    rd_steps_t *s = rd_steps_create(1);

    if (!s)
        return NULL;
    rd_steps_lane(s, 0);
    rd_step_send(s, rd_in(0), 0, rd_switch_of(args->shape));
    rd_steps_lane(s, 1);
    rd_step_recv(s, rd_out(0), 0, rd_switch_of(args->shape));
    return s;
}

static int rail_work(const rd_count_t *c, rd_work_t *w)
{
    w->chunks = 1;
    w->hops = 2;
    w->again = w->fill = 1;
    w->messages = 2;
    rd_work_alike(w, c->n, 1, 2, 0);
    w->leave = 1;
    w->link = 1;
    return 0;
}

static const rd_algo_t rail = {.name = "switch", .emit = rail_emit, .work = rail_work, .near = RD_PEERS_NEIGHBOURS};

/* ---- the whole */

static const char *chain_excluded(const rd_sched_args_t *args)
{
    if (args->shape->nnodes < 2)
        return "needs more than one node";
    return args->shape->node ? NULL : "needs to know the node of each rank";
}

static const char *direct_excluded(const rd_sched_args_t *args)
{
    const char *why = chain_excluded(args);
    int least, most;

    if (why)
        return why;
    if (rd_nodes_sizes(args->shape, &least, &most) != 0)
        return "needs to know the node of each rank";
    return least < 2 ? "needs several ranks on every node" : NULL;
}

static rd_steps_t *chain_emit(const rd_sched_args_t *args)
{
    return rd_hier_emit(args, &rail, 1, 1);
}

static rd_steps_t *direct_emit(const rd_sched_args_t *args)
{
    return rd_hier_emit(args, &rail, 0, 1);
}

/* Where each node has one rank there is nothing inside the nodes. */
static int work_on(const rd_count_t *c, int rails, rd_work_t *w)
{
    rd_count_t count = *c;

    count.param = rails;
    if (c->coll != RD_ALLREDUCE || c->nnodes < 2)
        return -1;
    return c->local < 2 ? rail_work(&count, w) : rd_hier_work(&count, &rail, 0, w);
}

static int chain_work(const rd_count_t *c, rd_work_t *w)
{
    return work_on(c, 1, w);
}

static int direct_work(const rd_count_t *c, rd_work_t *w)
{
    return work_on(c, 0, w);
}

const rd_algo_t rd_algo_collnet_direct = {.name = "collnet_direct",
                                          .colls = 1u << RD_ALLREDUCE,
                                          .excluded = direct_excluded,
                                          .emit = direct_emit,
                                          .work = direct_work,
                                          .near = RD_PEERS_COUNTED,
                                          .switched = true,
                                          .nccl = "CollNetDirect"};
const rd_algo_t rd_algo_collnet_chain = {.name = "collnet_chain",
                                         .colls = 1u << RD_ALLREDUCE,
                                         .excluded = chain_excluded,
                                         .emit = chain_emit,
                                         .work = chain_work,
                                         .near = RD_PEERS_COUNTED,
                                         .switched = true,
                                         .nccl = "CollNetChain"};
