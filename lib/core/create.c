/* How a communicator is made, module by module, and taken down again. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/fork.h"
#include "base/fpenv.h"
#include "node/agree.h"
#include "core/lifetime.h"
#include "exec/cuda/cuda.h"
#include "exec/host/reduce.h"
#include "core/completed.h"
#include "core/exchanges.h"
#include "core/footprint.h"
#include "core/hooks.h"
#include "core/on_error.h"
#include "core/op.h"
#include "core/ras_tcp.h"
#include "core/records.h"
#include "core/rma_calls.h"
#include "core/living.h"
#include "core/shown.h"
#include "core/metrics.h"
#include "core/status_lines.h"
#include "core/transports.h"
#include "core/triggers.h"
#include "core/tuned.h"
#include "netplugin/coll_switch.h"
#include "topo/topo_write.h"

#define SPIN 4000     /* polls before the first yield where every rank has a core */
#define SPIN_US 20    /* or as many microseconds, whichever is sooner */
#define SPIN_YIELD 20 /* polls of a short exchange where two ranks share a core: some 200 ns */

#define FIRST_MARK 0x726f6e646f436f6du

uint64_t rd_comm_mark = FIRST_MARK;

/* Guards the stop word of a communicator that is being made: an abort sets it while an attempt may be beginning. */
static pthread_mutex_t making_lock = PTHREAD_MUTEX_INITIALIZER;

/* Threads of the parent may have held the locks. */
static void fork_child(void)
{
    rd_comm_mark++;
    pthread_mutex_init(&making_lock, NULL);
    rd_explain_forget();
    rd_living_forget();
    rd_ras_tcp_forget();
}

static const rd_fork_handlers_t at_fork = {.prepare = rd_living_lock, .parent = rd_living_unlock, .child = fork_child};

bool rd_comm_not_own(rondo_comm_t comm)
{
    const uint64_t states = RD_COMM_MAKING | RD_COMM_BUSY | RD_COMM_SUSPENDED;
    uint64_t alive = atomic_load_explicit(&comm->alive, memory_order_relaxed) & ~states;
    return alive >= FIRST_MARK && alive < rd_comm_mark;
}

/* ---- the functions of the communicator's health ---- */

static void tell_node(void *arg, const rd_failure_t *failure)
{
    rondo_comm_t comm = arg;

    rd_conns_notify(&comm->conns, comm->team.rank, failure);
}

static void tell_others(void *arg, const rd_failure_t *failure)
{
    rondo_comm_t comm = arg;

    rd_boot_pass_on(comm->boot, failure);
}

static const char *whois(void *arg, int rank)
{
    rondo_comm_t comm = arg;

    return rd_boot_whois(comm->boot, rank);
}

static bool cause(void *arg, int rank, rd_failure_t *failure)
{
    rondo_comm_t comm = arg;
    int by = rd_conns_cause(&comm->conns, rank, failure);
    char said[RD_ERROR_BYTES];

    if (by >= 0 && by == rank) {
        memcpy(said, failure->text, sizeof said);
        snprintf(failure->text, sizeof failure->text, "rank %d (%s): %.*s", rank, whois(arg, rank),
                 RD_ERROR_BYTES - 100, said);
    }
    return by >= 0;
}

static int first(void *arg, const rd_failure_t *own, rd_failure_t *failure)
{
    rondo_comm_t comm = arg;

    return rd_conns_first(&comm->conns, comm->team.rank, own, failure);
}

static const rd_health_ops_t health_ops = {tell_node, tell_others, whois, cause, first};

static bool has_left(void *arg, int rank)
{
    rondo_comm_t comm = arg;
    rd_control_t *control = comm->conns.controls[rank];

    return control && atomic_load_explicit(&control->left, memory_order_acquire);
}

static bool has_failed(void *arg, int rank)
{
    rondo_comm_t comm = arg;
    rd_control_t *control = comm->conns.controls[rank];

    return control && atomic_load_explicit(&control->failed, memory_order_acquire);
}

static void hear(void *arg)
{
    rondo_comm_t comm = arg;

    rd_health_poll(&comm->health);
}

/* A mismatch is found by every rank itself, and comes with a sentence. */
static void tell(void *arg)
{
    rondo_comm_t comm = arg;
    rd_failure_t failure;
    rondo_result_t code = rd_stop_read(&comm->health.stop, &failure);

    if (code == RONDO_SUCCESS || code == RONDO_ERR_MISMATCH || failure.failed_rank < 0)
        return;
    failure.said = code;
    tell_node(comm, &failure);
}

static void answer(void *arg, const rd_boot_question_t *question)
{
    rd_comm_answer(arg, question);
}

static void lose_patience(void *arg, const rd_boot_claim_t *claim)
{
    rondo_comm_t comm = arg;
    rd_failure_t failure = {
        .code = RONDO_ERR_TIMEOUT, .said = RONDO_ERR_TIMEOUT, .failed_rank = claim->late, .reporter = claim->from + 1};

    memcpy(failure.text, claim->text, sizeof failure.text);
    rd_health_heard(&comm->health, &failure);
}

static const rd_liveness_ops_t liveness_ops = {has_left, has_failed, hear, tell, answer, lose_patience};

static void end_transports(rondo_comm_t comm)
{
    for (rd_transport_t *t; (t = comm->transports);) {
        comm->transports = t->next;
        t->ops->destroy(t);
    }
    comm->net = NULL;
}

static void poll_device(void *arg)
{
    rondo_comm_t comm = arg;

    rd_cuda_health_poll(comm->cuda);
}

/* Takes all modules down, in reverse order of creation, including any that were never made. The struct stays. */
static void take_down(rondo_comm_t comm)
{
    rondo_result_t code = rd_health_check(&comm->health);
    fenv_t program; /* UCX computes, too */

    rd_fpenv_begin(&program);
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
    rd_fpenv_end(&program);
}

void rd_comm_end_modules(rondo_comm_t comm)
{
    const bool leaves = !comm->cuda || rd_cuda_close(comm->cuda);

    rd_comm_rma_leave(comm);
    if (rd_health_check(&comm->health) != RONDO_SUCCESS)
        rd_comm_cancel(comm);
    if (leaves)
        atomic_store_explicit(&comm->conns.self->left, 1, memory_order_release);
    rd_boot_farewell(comm->boot, RONDO_SUCCESS, -1);
    take_down(comm);
}

static rondo_result_t read_config(rondo_comm_t comm, const rondo_config_t *given)
{
    static _Atomic unsigned serial;
    rondo_config_t config;
    rondo_result_t result = rd_comm_config(&config, given);

    if (result != RONDO_SUCCESS)
        return result;
    comm->blocking = config.blocking;
    comm->team.timeout_ms = config.timeout_ms >= 0 ? config.timeout_ms : comm->env.timeout_ms;
    comm->first_timeout_ms = config.first_timeout_ms >= 0 ? config.first_timeout_ms : comm->env.timeout_first_ms;
    rd_config_over(&comm->env, &config);
    comm->on_error = rd_on_error(&config, &comm->env);
    comm->contexts = config.contexts > 0 ? config.contexts : 1;
    comm->signals = config.signals > 0 ? config.signals : RD_RMA_SIGNALS;
    unsigned number = atomic_fetch_add(&serial, 1);
    if (config.name)
        snprintf(comm->ctx.name, sizeof comm->ctx.name, "%s", config.name);
    else
        snprintf(comm->ctx.name, sizeof comm->ctx.name, "comm%u", number);
    return rd_cuda_device(config.device, &comm->team.device);
}

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

/* Makes the modules after the bootstrap, each of which uses those before it. */
static rondo_result_t make_rooms(rondo_comm_t comm)
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
    const rd_planner_args_t args = {comm->team.rank,
                                    comm->team.nranks,
                                    &comm->node,
                                    agreed.cores,
                                    agreed.sharing,
                                    &comm->conns,
                                    &comm->env,
                                    &comm->prices,
                                    &comm->ctx,
                                    rd_reducer_init,
                                    comm->tuned.tuner ? &comm->tuned : NULL};
    rd_tuned_begin(comm);
    if ((result = make_lifelines(comm)) ||
        (result = comm->team.device >= 0 ? rd_cuda_create(&comm->cuda, &comm->team, &rd_comm_net_ops)
                                         : rd_planner_create(&comm->planner, &args)) ||
        (result = rd_queue_create(&comm->queue, &comm->team, comm->planner, &comm->conns, comm->net)))
        return result;
    rd_comm_take_seat(comm); /* liveness answers by it, perhaps a question that has come already */
    rd_exchanges_watch(comm);
    if ((result = rd_liveness_add(&comm->liveness, comm->boot, &comm->node, &comm->ctx, &comm->health.stop,
                                  &liveness_ops, comm)))
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
        rd_log(&comm->ctx, RD_LOG_INFO,
               "rondo %d.%d.%d: %d ranks on %d nodes, %s, %s, %d cores, %u slots of %zu bytes, waits %s",
               RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH, comm->team.nranks, comm->node.nnodes,
               comm->cuda ? "CUDA" : "host memory", rd_transport_version(comm->net->ops), agreed.cores, layout.slots,
               layout.slot_bytes, comm->team.spin ? "spin" : "yield");
    return RONDO_SUCCESS;
}

/* Makes the bootstrap. When all ranks have come they detect each other's death themselves, so neither the liveness nor
 * the stop word of the parent communicator is needed any more, unless the parent makes the communicator for itself. */
static rondo_result_t rendezvous(rondo_comm_t comm, const rondo_unique_id_t *id, rd_meeting_t *meeting,
                                 rondo_comm_t parent)
{
    rondo_result_t result;

    comm->health.stop.parent = parent ? &parent->health.stop : NULL;
    if (parent && comm->internal)
        rd_stop_heir(&parent->health.stop, &comm->health.stop, &comm->ctx);
    if (meeting)
        rd_liveness_meeting_begin(meeting, &comm->ctx, &comm->health.stop);
    result = rd_boot_create_by(&comm->boot, id, comm->roots > 1 ? comm->roots : 1, comm->team.rank, comm->team.nranks,
                               &comm->env, &comm->ctx, &comm->health.stop);
    if (meeting)
        rd_liveness_meeting_end(meeting);
    if (!comm->internal)
        comm->health.stop.parent = NULL;
    return result == RONDO_SUCCESS ? rd_health_check(&comm->health) : result;
}

/* The others learn this rank's reason if it failed first, else that another one failed, before they see it end. */
static void say_why(rondo_comm_t made, rondo_result_t result)
{
    rd_stop_t *stop = &made->health.stop;
    rd_failure_t failure = {.said = result,
                            .failed_rank = result != RONDO_ERR_REMOTE    ? made->team.rank
                                           : rd_stop_get(stop) == result ? atomic_load(&stop->failed_rank)
                                                                         : -1};

    snprintf(failure.text, sizeof failure.text, "the communicator cannot be made: %s", rd_thread_error());
    /* First: who hears of it by the bootstrap tells its node, and has no sentence to tell. */
    if (failure.failed_rank >= 0 && result != RONDO_ERR_MISMATCH)
        rd_conns_notify(&made->conns, made->team.rank, &failure);
    rd_boot_pass_on(made->boot, &failure);
}

static void stop_abandoned(rondo_comm_t comm)
{
    if (atomic_load(&comm->abandoned))
        rd_stop_set(&comm->health.stop, &comm->ctx, RONDO_ERR_ABORTED, comm->team.rank,
                    "rank %d called rondo_comm_abort while the communicator was being made", comm->team.rank);
}

void rd_comm_abandon(rondo_comm_t comm)
{
    pthread_mutex_lock(&making_lock);
    atomic_store(&comm->abandoned, 1);
    stop_abandoned(comm);
    pthread_mutex_unlock(&making_lock);
}

/* Sets everything to zero that an earlier attempt may have left. */
static void begin(rondo_comm_t comm, int nranks, int rank)
{
    pthread_mutex_lock(&making_lock);
    memset(&comm->ctx, 0, sizeof *comm - offsetof(struct rondo_comm, ctx));
    comm->team.rank = comm->ctx.rank = rank;
    comm->team.nranks = comm->ctx.nranks = nranks;
    comm->conns.self = &comm->conns.own;
    rd_seat_init(&comm->seat);
    rd_health_begin(&comm->health, &comm->ctx, &comm->conns.own.notice, &health_ops, comm);
    stop_abandoned(comm);
    pthread_mutex_unlock(&making_lock);
}

rondo_result_t rd_comm_allocate(rondo_comm_t *comm, const rd_env_t *env)
{
    rondo_comm_t made = aligned_alloc(RD_LINE, (sizeof *made + RD_LINE - 1) / RD_LINE * RD_LINE);
    rondo_result_t result;

    if (!made)
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a communicator");
    rd_fork_register(RD_FORK_COMM, &at_fork);
    memset(made, 0, sizeof *made);
    if (env)
        made->env = *env;
    made->internal = env != NULL;
    if ((!env && (result = rd_env_read(&made->env))) || (result = rd_transport_check(&made->env, NULL))) {
        free(made);
        return result;
    }
    begin(made, 1, 0);
    atomic_store(&made->references, 1);
    atomic_store(&made->background, RONDO_IN_PROGRESS);
    atomic_store(&made->alive, rd_comm_mark | RD_COMM_MAKING);
    *comm = made;
    return RONDO_SUCCESS;
}

/* Whoever aborts the parent waits for this thread, so it is told of that to the end. */
static rondo_result_t make_modules(rondo_comm_t made, const rondo_unique_id_t *id, rd_meeting_t *meeting,
                                   rondo_comm_t parent)
{
    rondo_result_t result = rendezvous(made, id, meeting, parent);

    if (result == RONDO_SUCCESS)
        result = make_rooms(made);
    if (parent && made->internal) {
        rd_stop_heir(&parent->health.stop, NULL, NULL);
        made->health.stop.parent = NULL;
    }
    return result == RONDO_SUCCESS ? rd_health_check(&made->health) : result;
}

/* Other libraries open descriptors here, too. */
rondo_result_t rd_comm_build(rondo_comm_t made, int nranks, const rondo_unique_id_t *id, int rank,
                             const rondo_config_t *config, rd_meeting_t *meeting, rondo_comm_t parent)
{
    rondo_result_t result;
    fenv_t program;

    rd_fpenv_begin(&program);
    rd_fd_guard_begin();
    begin(made, nranks, rank);
    if ((result = read_config(made, config)) || (result = make_modules(made, id, meeting, parent))) {
        if (result == rd_health_check(&made->health)) /* another thread found the failure */
            rd_error_again(&made->ctx, made->health.stop.text);
        char why[RD_ERROR_BYTES]; /* taking down may log what the others say of this rank */
        snprintf(why, sizeof why, "%s", rd_thread_error());
        rd_conns_failed(&made->conns); /* its program may end in order for that */
        if (made->boot)
            say_why(made, result);
        rd_stop_known(&made->health.stop, result, rank, why); /* the network must not take this for an orderly end */
        take_down(made);
        rd_thread_error_set(why);
    }
    rd_fd_guard_end();
    rd_fpenv_end(&program);
    return result;
}

void rd_comm_fail_aborted(rondo_comm_t comm)
{
    rd_health_fail(&comm->health, RONDO_ERR_ABORTED, comm->team.rank, "rank %d called rondo_comm_abort",
                   comm->team.rank);
}

void rd_comm_unbuild(rondo_comm_t comm)
{
    rd_comm_fail_aborted(comm);
    rd_comm_end_modules(comm);
}

void rd_comm_publish(rondo_comm_t comm)
{
    rd_living_add(comm);
    comm->published = !comm->internal;
    rd_hooks_post(RONDO_HOOK_COMM_MADE, comm, RONDO_SUCCESS, "");
    rd_triggers_join(comm);
    rd_status_lines_join(comm);
    rd_metrics_join(comm);
    rd_ras_tcp_join(comm);
    atomic_store(&comm->alive, rd_comm_mark);
    atomic_store(&comm->background, RONDO_SUCCESS);
}
