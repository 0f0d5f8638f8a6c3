/* A communicator is made room by room, and taken down again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "node/agree.h"
#include "core/comm.h"
#include "exec/cuda/cuda.h"
#include "core/op.h"
#include "core/transports.h"

#define SPIN 4000  /* polls before the first yield where every rank has a core */
#define MOMENTS 20 /* of a short exchange where two share one: some 200 ns */

#define FIRST_MARK 0x726f6e646f436f6du

uint64_t rd_comm_mark = FIRST_MARK;

static void fork_child(void)
{
    rd_comm_mark++;
}

static const rd_fork_handlers_t at_fork = {.child = fork_child};

int rd_comm_inherited(rondo_comm_t comm)
{
    uint64_t alive = atomic_load_explicit(&comm->alive, memory_order_relaxed);

    return alive >= FIRST_MARK && alive < rd_comm_mark;
}
static int has_left(void *arg, int rank)
{
    rondo_comm_t comm = arg;
    rd_control_t *control = comm->conns.controls[rank];

    return control && atomic_load_explicit(&control->left, memory_order_acquire);
}

static void end_transports(rondo_comm_t comm)
{
    for (rd_transport_t *t; (t = comm->transports);) {
        comm->transports = t->next;
        t->ops->destroy(t);
    }
    comm->net = NULL;
}

/* In reverse order of creation. */
void rd_comm_take_down(rondo_comm_t comm)
{
    rondo_result_t code = rd_comm_check(comm);

    rd_queue_flush(comm, code != RONDO_SUCCESS ? code : RONDO_ERR_ABORTED);
    rd_watch_remove(comm->watch);
    rd_queue_free(&comm->queue);
    rd_op_free_all(comm);
    rd_cuda_free(comm);
    rd_plan_put(comm->last.plan);
    rd_planner_free(comm->planner);
    end_transports(comm);
    rd_conns_free(&comm->conns);
    rd_node_free(&comm->node);
    rd_boot_destroy(comm->boot);
}
/* An older caller's config is shorter: what it lacks has its default. */
static rondo_result_t read_config(rondo_comm_t comm, const rondo_config_t *given)
{
    static _Atomic unsigned serial;
    rondo_config_t config = RONDO_CONFIG_INIT;

    if (given) {
        if (given->size < offsetof(rondo_config_t, device) + sizeof given->device)
            return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                            "config->size is %zu: initialise the config with RONDO_CONFIG_INIT", given->size);
        memcpy(&config, given, given->size < sizeof config ? given->size : sizeof config);
    }
    if (config.device < RONDO_DEVICE_AUTO)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "config->device is %d: RONDO_DEVICE_AUTO, RONDO_DEVICE_HOST or a device number", config.device);
    if (config.timeout_ms < -1)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "config->timeout_ms is %lld: 0 (never) or milliseconds",
                        (long long)config.timeout_ms);
    comm->timeout_ms = config.timeout_ms >= 0 ? config.timeout_ms : comm->env.timeout_ms;
    unsigned number = atomic_fetch_add(&serial, 1);
    if (config.name)
        snprintf(comm->who.name, sizeof comm->who.name, "%s", config.name);
    else
        snprintf(comm->who.name, sizeof comm->who.name, "comm%u", number);
    return rd_cuda_device(config.device, &comm->device);
}

static rondo_result_t add_transport(rondo_comm_t comm, const rd_transport_ops_t *ops, const rd_transport_args_t *args)
{
    rd_transport_t *t;
    rondo_result_t result = ops->post ? rd_conns_map(&comm->conns, &comm->node, &comm->who) : RONDO_SUCCESS;

    if (result != RONDO_SUCCESS || (result = ops->create(&t, args)))
        return result;
    t->next = comm->transports;
    comm->transports = t;
    if (!comm->net || rd_transport_polled(t))
        comm->net = t;
    return rd_conns_bind(&comm->conns, t, args);
}

/* Every transport within nodes adds to the connections there; between nodes there is one. A CUDA communicator's
 * carriers have that one. */
static rondo_result_t make_connections(rondo_comm_t comm, const rd_layout_t *layout)
{
    const rd_transport_args_t args = {comm->rank, comm->nranks, &comm->node, &comm->conns,
                                      &comm->env, comm->boot,   &comm->who,  &comm->stop};
    const rd_transport_ops_t *ops;
    rondo_result_t result = rd_conns_create(&comm->conns, layout, &comm->node, comm->nranks, &comm->who);

    for (int i = 0; (ops = rd_transport_at(i)) && result == RONDO_SUCCESS; i++) {
        if (ops->reach == RD_WITHIN_NODE)
            result = add_transport(comm, ops, &args);
    }
    if (result != RONDO_SUCCESS || comm->node.nnodes == 1 || comm->device >= 0)
        return result;
    result = rd_transport_choose(&ops, &args);
    return result == RONDO_SUCCESS ? add_transport(comm, ops, &args) : result;
}

/* One layout for all: every node is laid out for the fullest. A CUDA communicator's data takes other ways: its ranks
 * share memory for their controls alone. */
static void connection_layout(rd_layout_t *layout, rondo_comm_t comm)
{
    rd_env_t env = comm->env;

    if (comm->device >= 0) {
        env.slots = 1;
        env.slot_bytes = 4096;
    }
    rd_layout_init(layout, comm->node.most, comm->node.nnodes, &env);
    if (comm->device >= 0 && comm->env.check)
        layout->segment_bytes += rd_cuda_asked_bytes();
}

/* The rooms behind the bootstrap, each on the one before. */
static rondo_result_t make_rooms(rondo_comm_t comm)
{
    rd_layout_t layout;
    rd_agreed_t agreed;
    rondo_result_t result;

    if ((result = rd_agree(&agreed, comm->boot, comm->rank, comm->nranks, comm->device, &comm->env, &comm->who)))
        return result;
    comm->prices = agreed.prices;
    comm->spin = comm->env.spin >= 0 ? comm->env.spin : agreed.crowded ? 0 : SPIN;
    comm->cores_each = agreed.cores / agreed.sharing;
    comm->moments = comm->env.spin < 0 && agreed.sharing <= 2 * agreed.cores ? MOMENTS : 0;
    if ((result = rd_node_find(&comm->node, comm->boot, comm->rank, comm->nranks, &comm->env, &comm->who, &comm->stop)))
        return result;
    connection_layout(&layout, comm);
    if ((result = rd_node_map(&comm->node, comm->boot, layout.segment_bytes, &comm->env, &comm->who, &comm->stop)) ||
        (result = make_connections(comm, &layout)))
        return result;
    const rd_planner_args_t args = {comm->rank,   comm->nranks, &comm->node,   agreed.cores, agreed.sharing,
                                    &comm->conns, &comm->env,   &comm->prices, &comm->who};
    if ((result = comm->device >= 0 ? rd_cuda_create(comm) : rd_planner_create(&comm->planner, &args)) ||
        (result = rd_queue_create(&comm->queue, comm)) ||
        (result = rd_watch_add(&comm->watch, comm->boot, &comm->node, &comm->who, &comm->stop, has_left, comm)))
        return result;
    if (comm->cuda && comm->nranks > 1)
        rd_watch_look(comm->watch, rd_cuda_look);
    if (comm->rank == 0)
        rd_log(&comm->who, RD_LOG_INFO,
               "rondo %d.%d.%d: %d ranks on %d nodes, %s, %s, %d cores, %u slots of %zu bytes, waits %s",
               RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH, comm->nranks, comm->node.nnodes,
               comm->cuda ? "CUDA" : "host memory", rd_transport_version(comm->net->ops), agreed.cores, layout.slots,
               layout.slot_bytes, comm->spin ? "spin" : "yield");
    return RONDO_SUCCESS;
}

/* The bootstrap. When all have come they see each other's death for themselves: a watch elsewhere is no longer asked.
 */
static rondo_result_t meet(rondo_comm_t comm, const rondo_unique_id_t *id, rd_meeting_t *meeting)
{
    rondo_result_t result;

    if (meeting)
        rd_watch_meeting_begin(meeting, &comm->who, &comm->stop);
    result = rd_boot_create(&comm->boot, id, comm->rank, comm->nranks, &comm->env, &comm->who, &comm->stop);
    if (meeting)
        rd_watch_meeting_end(meeting);
    return result == RONDO_SUCCESS ? rd_comm_check(comm) : result;
}

/* `env` NULL: as the environment says. */
static rondo_result_t make(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                           const rondo_config_t *config, const rd_env_t *env, rd_meeting_t *meeting)
{
    rondo_comm_t made = aligned_alloc(RD_LINE, (sizeof *made + RD_LINE - 1) / RD_LINE * RD_LINE);
    rondo_result_t result;

    if (!made) {
        rd_boot_give_up(id, RONDO_ERR_NO_MEMORY);
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a communicator");
    }
    rd_fork_register(RD_FORK_COMM, &at_fork);
    memset(made, 0, sizeof *made);
    made->rank = made->who.rank = rank;
    made->nranks = made->who.nranks = nranks;
    made->conns.self = &made->conns.own;
    atomic_store(&made->references, 1);
    atomic_store(&made->stop.culprit, -1);
    if (env)
        made->env = *env;
    if ((!env && (result = rd_env_read(&made->env))) || (result = rd_transport_check(&made->env, NULL)) ||
        (result = read_config(made, config)) || (result = meet(made, id, meeting)) || (result = make_rooms(made))) {
        if (result == rd_comm_check(made)) /* found by another thread */
            rd_error_again(&made->who, made->stop.text);
        if (made->boot)
            rd_boot_farewell(made->boot, result, rank);
        rd_comm_take_down(made);
        rd_comm_drop(made);
        return result;
    }
    atomic_store(&made->alive, rd_comm_mark);
    *comm = made;
    return RONDO_SUCCESS;
}

rondo_result_t rd_comm_make(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                            const rondo_config_t *config, rd_meeting_t *meeting)
{
    return make(comm, nranks, id, rank, config, NULL, meeting);
}

rondo_result_t rd_comm_make_carrier(rondo_comm_t *carrier, rondo_comm_t comm, const char *what,
                                    const rondo_unique_id_t *id, int rank, int nranks)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rd_env_t env = comm->env;
    char name[sizeof comm->who.name + sizeof "/check"];

    env.algo[0] = env.proto[0] = '\0'; /* they name kernels */
    snprintf(name, sizeof name, "%s/%.5s", comm->who.name, what);
    config.name = name;
    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = comm->timeout_ms;
    return make(carrier, nranks, id, rank, &config, &env, NULL);
}
