/* The modules of a communicator: made in this order, taken down in the reverse one. */
#include "core/modules.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "core/completed.h"
#include "core/exchanges.h"
#include "core/footprint.h"
#include "core/health_ops.h"
#include "core/hooks.h"
#include "core/metrics.h"
#include "core/on_error.h"
#include "core/op.h"
#include "core/records.h"
#include "core/rma_calls.h"
#include "core/shown.h"
#include "core/transports.h"
#include "core/tuned.h"
#include "exec/cuda/cuda.h"
#include "exec/host/reduce.h"
#include "netplugin/coll_switch.h"
#include "node/agree.h"
#include "topo/topo_write.h"

#define SPIN 4000     /* polls before the first yield where every rank has a core */
#define SPIN_US 20    /* or as many microseconds, whichever is sooner */
#define SPIN_YIELD 20 /* polls of a short exchange where two ranks share a core: some 200 ns */

static rondo_result_t add_transport(rondo_comm_t comm, const rd_transport_ops_t *ops, const rd_transport_args_t *args)
{
    rd_transport_t *t;
    rondo_result_t result = ops->post ? rd_conns_map(&comm->conns, &comm->node, &comm->ctx) : RONDO_SUCCESS;

    if (result != RONDO_SUCCESS || (result = ops->create(&t, args)))
        return result;
    t->next = comm->transports;
    comm->transports = t;
    if (!comm->net || rd_transport_polled(t))
        comm->net = t;
    return rd_conns_bind(&comm->conns, t, args);
}

/* The network's own communicators go without, like those of the library. */
static rondo_result_t add_collnet(rondo_comm_t comm, const rd_transport_args_t *args)
{
    rd_collnet_t *made = NULL;
    rondo_result_t result =
        comm->internal ? RONDO_SUCCESS
                       : rd_collnet_create(&made, args, comm->net, &comm->health, comm->conns.layout.slot_bytes);

    if (!made)
        return result;
    comm->conns.collnet = made;
    made->transport.next = comm->transports;
    comm->transports = &made->transport;
    return result;
}

/* Every transport within nodes contributes to the connections there; between nodes there is only one. A CUDA
 * communicator leaves that one to its net communicators. */
static rondo_result_t make_connections(rondo_comm_t comm, const rd_layout_t *layout)
{
    const rd_transport_args_t args = {comm->team.rank, comm->team.nranks, &comm->node, &comm->conns,
                                      &comm->env,      comm->boot,        &comm->ctx,  &comm->health.stop};
    const rd_transport_ops_t *ops;
    rondo_result_t result = rd_conns_create(&comm->conns, layout, &comm->node, comm->team.nranks, &comm->ctx);

    for (int i = 0; (ops = rd_transport_at(i)) && result == RONDO_SUCCESS; i++) {
        if (ops->reach == RD_WITHIN_NODE)
            result = add_transport(comm, ops, &args);
    }
    if (result != RONDO_SUCCESS || comm->node.nnodes == 1 || comm->team.device >= 0)
        return result;
    rd_fd_noted_t noted;
    result = rd_transport_choose(&ops, &args);
    rd_fd_note(&noted);
    if (result == RONDO_SUCCESS)
        result = add_transport(comm, ops, &args);
    if (result == RONDO_SUCCESS)
        result = add_collnet(comm, &args);
    rd_fd_close_on_exec(&noted, false);
    return result;
}

/* Fills the team, which later modules receive. Waits are set after the agreement, `controls` with the connections. */
static void begin_team(rondo_comm_t comm)
{
    rd_team_t *team = &comm->team;

    team->node = &comm->node;
    team->env = &comm->env;
    team->boot = comm->boot;
    team->health = &comm->health;
    team->ctx = &comm->ctx;
    team->prices = &comm->prices;
    team->gpu = comm->gpu;
    rd_tuned_take(comm);
}

/* Makes all ranks use the same prices, and know how many of them share a core. */
static rondo_result_t agree(rondo_comm_t comm, rd_agreed_t *agreed)
{
    rd_team_t *team = &comm->team;
    rd_prices_t own;
    int number;
    rondo_result_t result = rd_prices_find(&own, &number, comm->env.tune, &comm->ctx);

    if (result != RONDO_SUCCESS)
        return result;
    const rd_priced_t priced = {rd_prices_here(), comm->env.tune[0] ? rd_prices_hash(&own) : 0};
    result = rd_agree(agreed, team, &priced);
    if (result != RONDO_SUCCESS)
        return result;
    if (!*comm->env.tune && team->rank == 0 && !rd_prices_fit_here())
        rd_log_slow(&comm->ctx,
                    "there are no measured prices for this processor, and algorithms are chosen by those of a Xeon: "
                    "measure them by rondo-tune and name the file in RONDO_TUNE");
    comm->prices = priced.tuned ? own : *rd_prices_builtin(agreed->processor);
    team->spin = comm->env.spin >= 0 ? comm->env.spin : agreed->oversubscribed ? 0 : SPIN;
    team->spin_us = comm->env.spin >= 0 ? 0 : SPIN_US;
    team->cores_each = agreed->cores / agreed->sharing;
    team->spin_yield = comm->env.spin < 0 && agreed->sharing <= 2 * agreed->cores ? SPIN_YIELD : 0;
    return RONDO_SUCCESS;
}

/* To neighbours on other nodes, whose processes nothing else shows. */
static rondo_result_t make_lifelines(rondo_comm_t comm)
{
    const rd_node_t *node = &comm->node;
    int here = node->node_of[comm->team.rank];

    if (node->nnodes == 1)
        return RONDO_SUCCESS;
    bool *far = malloc((size_t)comm->team.nranks * sizeof *far);
    if (!far)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for a list of %d ranks", comm->team.nranks);
    for (int r = 0; r < comm->team.nranks; r++)
        far[r] = node->node_of[r] != here;
    rondo_result_t result = rd_boot_lifelines(comm->boot, far);
    free(far);
    return result;
}

/* Finds who shares a node, and the order in which rings and trees visit the ranks. */
static rondo_result_t find_nodes(rondo_comm_t comm, const rd_agreed_t *agreed, int record)
{
    int n = comm->team.nranks;
    rondo_result_t result =
        rd_node_find(&comm->node, comm->boot, comm->team.rank, n, &comm->env, record, &comm->ctx, &comm->health.stop);

    if (result == RONDO_SUCCESS)
        result = rd_node_locate(&comm->node, agreed->localities, n,
                                comm->team.device >= 0 || strcmp(comm->env.order, "rank") == 0, &comm->ctx);
    if (result == RONDO_SUCCESS && comm->node.order && comm->team.rank == 0)
        rd_log(&comm->ctx, RD_LOG_INFO, "rings and trees visit the ranks by NUMA node, not by number, rank %d first",
               comm->node.order[0]);
    return result;
}

static void stalled(rd_queue_t *queue, int status, int rank, const char *text)
{
    rd_metrics_stall(rd_comm_of(queue), status, rank);
    rd_hooks_post(RONDO_HOOK_STALLED, rd_comm_of(queue), RONDO_SUCCESS, text);
}

static void poll_device(void *arg)
{
    rondo_comm_t comm = arg;

    rd_cuda_health_poll(comm->cuda);
}

static rondo_result_t make_planner(rondo_comm_t comm, const rd_agreed_t *agreed)
{
    const rd_planner_args_t args = {comm->team.rank,
                                    comm->team.nranks,
                                    &comm->node,
                                    agreed->cores,
                                    agreed->sharing,
                                    &comm->conns,
                                    &comm->env,
                                    &comm->prices,
                                    &comm->ctx,
                                    rd_reducer_init,
                                    comm->tuned.tuner ? &comm->tuned : NULL};

    return rd_planner_create(&comm->planner, &args);
}

static void log_made(rondo_comm_t comm, const rd_agreed_t *agreed, const rd_layout_t *layout)
{
    rd_log(&comm->ctx, RD_LOG_INFO,
           "rondo %d.%d.%d: %d ranks on %d nodes, %s, %s, %d cores, %u slots of %zu bytes, waits %s",
           RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH, comm->team.nranks, comm->node.nnodes,
           comm->cuda ? "CUDA" : "host memory", rd_transport_version(comm->net->ops), agreed->cores, layout->slots,
           layout->slot_bytes, comm->team.spin ? "spin" : "yield");
}

rondo_result_t rd_modules_make(rondo_comm_t comm)
{
    rd_layout_t layout;
    rd_agreed_t agreed;
    rondo_result_t result;
    int record = rd_comm_record(comm);

    begin_team(comm);
    if ((result = agree(comm, &agreed)))
        return result;
    result = find_nodes(comm, &agreed, record);
    free(agreed.localities);
    if (result != RONDO_SUCCESS)
        return result;
    rd_comm_hold_records(comm);
    rd_topo_dump(&comm->env, comm->internal ? -1 : comm->team.rank, &comm->ctx);
    rd_footprint_layout(&layout, comm->node.most, comm->node.nnodes, comm->team.device >= 0, &comm->env);
    if ((result = rd_node_map(&comm->node, comm->boot, layout.segment_bytes, NULL, &comm->env, &comm->ctx,
                              &comm->health.stop)) ||
        (result = make_connections(comm, &layout)))
        return result;
    comm->health.notice = &comm->conns.self->notice;
    comm->team.controls = comm->conns.controls;
    comm->team.seat = &comm->seat;
    rd_tuned_begin(comm);
    if ((result = make_lifelines(comm)) ||
        (result = comm->team.device >= 0 ? rd_cuda_create(&comm->cuda, &comm->team, &rd_comm_net_ops)
                                         : make_planner(comm, &agreed)) ||
        (result = rd_queue_create(&comm->queue, &comm->team, comm->planner, &comm->conns, comm->net)))
        return result;
    rd_comm_take_seat(comm); /* liveness answers by it, perhaps a question that has come already */
    rd_exchanges_watch(comm);
    if ((result = rd_liveness_add(&comm->liveness, comm->boot, &comm->node, &comm->ctx, &comm->health.stop,
                                  &rd_comm_liveness_ops, comm)))
        return result;
    comm->queue.on_stall = stalled;
    rd_on_error_set(comm, comm->on_error);
    if (!comm->internal)
        rd_limit_init(&comm->queue.limit, comm->first_timeout_ms);
    rd_shown_begin(comm);
    rd_completed_begin(comm);
    if (comm->cuda && comm->team.nranks > 1)
        rd_liveness_poll(comm->liveness, poll_device);
    if (comm->team.rank == 0)
        log_made(comm, &agreed, &layout);
    return RONDO_SUCCESS;
}

static void end_transports(rondo_comm_t comm)
{
    for (rd_transport_t *t; (t = comm->transports);) {
        comm->transports = t->next;
        t->ops->destroy(t);
    }
    comm->net = NULL;
}

void rd_modules_end(rondo_comm_t comm)
{
    rondo_result_t code = rd_health_check(&comm->health);

    rd_queue_flush(&comm->queue, code != RONDO_SUCCESS ? code : RONDO_ERR_ABORTED);
    rd_liveness_remove(comm->liveness);
    rd_shown_end(comm);
    rd_seat_leave(&comm->seat);
    rd_comm_rma_end(comm);
    rd_queue_free(&comm->queue);
    rd_op_free_all(comm);
    rd_cuda_free(comm->cuda, &comm->node);
    comm->cuda = NULL;
    rd_plan_put(comm->last.plan);
    rd_planner_free(comm->planner);
    rd_tuned_end(comm);
    end_transports(comm);
    rd_conns_free(&comm->conns);
    rd_node_free(&comm->node);
    rd_boot_destroy(comm->boot);
    rd_comm_drop_records(comm);
}
