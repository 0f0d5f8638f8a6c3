/* Windows: how they are made and ended. What is exchanged goes over the bootstrap, as for a split.
 *
 *   all ranks     address, bytes, what the config says of signals
 *   each node     shared memory: for signals with the first window, and for what rondo allocates
 *   each rank     finds the way to every other rank's part (rma/rma.h)
 *   all ranks     has anything failed? are there parts that only messages reach?
 *   if so         a net communicator, once, that carries those of all windows */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/page.h"
#include "core/binding.h"
#include "core/cuda_windows.h"
#include "core/derive.h"
#include "core/rma_calls.h"
#include "core/submit.h"
#include "progress/signature.h"

typedef struct record {
    uint64_t address, bytes;
    int32_t allocates, contexts, signals;
    int32_t code;     /* what has failed on this rank */
    int32_t messages; /* some parts are reached by messages */
    int32_t unused;
} record_t;

/* What is made, until it belongs to the communicator. */
typedef struct making {
    rondo_comm_t comm;
    record_t *all;
    rd_rma_part_t *parts;
    bool *allocated;
    size_t *used; /* bytes that rondo allocates for each rank */
    rd_node_t memory;
    char *alone;
    size_t alone_bytes;
    rd_rma_t *rma; /* the communicator's first */
    rd_rma_window_t *window;
} making_t;

static record_t *mine(const making_t *m)
{
    return &m->all[m->comm->team.rank];
}

static int64_t limit_ms(void *comm)
{
    return rd_queue_limit(&((rondo_comm_t)comm)->queue);
}

/* Others may wait for something of this rank meanwhile, so waits make progress for it. A late rank is waited for as in
 * any other call. `all` NULL: a barrier. */
static rondo_result_t exchange(rondo_comm_t comm, void *all, size_t each)
{
    const bool reports = atomic_load_explicit(&comm->queue.reports, memory_order_relaxed); /* a limit fails nothing */
    const rd_boot_patience_t usual =
        rd_boot_patience(comm->boot, &(rd_boot_patience_t){.ms = reports ? 0 : limit_ms(comm),
                                                           .ms_now = limit_ms,
                                                           .of = comm,
                                                           .by = "RONDO_TIMEOUT_MS",
                                                           .stall_ms = comm->env.stall_ms});

    rd_comm_pause(comm);
    rondo_result_t result = all ? rd_boot_allgather(comm->boot, all, each) : rd_boot_barrier(comm->boot);
    rd_comm_resume(comm);
    (void)rd_boot_patience(comm->boot, &usual);
    if (result != RONDO_SUCCESS && rd_queue_news(&comm->queue, RD_QUEUE_NEWS_MS))
        return rd_health_check(&comm->health);
    return result;
}

/* RONDO_CHECK=1: do all ranks make, or end, a window? The others wait for a rank that cannot even ask. */
static rondo_result_t check(rondo_comm_t comm, const char *name)
{
    const rd_call_t call = {.desc = {.coll = RD_BARRIER}, .name = name};

    if (!comm->env.check || comm->team.nranks == 1)
        return RONDO_SUCCESS;
    return rd_call_spoiled(comm, rd_signature_exchange(&comm->queue, &call, 0, &comm->sequence));
}

/* Collective. Leaves `node` empty where no node has two ranks. `used`: the part of each rank's segment of `bytes` that
 * it touches; NULL: all. `less`: what needs less memory. Who lives is seen by the communicator's own descriptors, so
 * none are kept for it here. */
static rondo_result_t share(rondo_comm_t comm, size_t bytes, const size_t *used, const char *less, rd_node_t *node)
{
    const rd_team_t *team = &comm->team;

    *node = (rd_node_t){.fd = -1};
    if (comm->node.most == 1)
        return RONDO_SUCCESS;
    rd_fd_guard_begin();
    rd_comm_pause(comm);
    rondo_result_t result =
        rd_node_find(node, comm->boot, team->rank, team->nranks, &comm->env, -1, &comm->ctx, &comm->health.stop);
    if (result == RONDO_SUCCESS)
        result = rd_node_map_used(node, comm->boot, bytes, used, less, &comm->env, &comm->ctx, &comm->health.stop);
    rd_comm_resume(comm);
    rd_fd_guard_end();
    if (result == RONDO_SUCCESS)
        rd_node_close_pidfds(node);
    else
        rd_node_free(node);
    return result;
}

/* Refuses, on all ranks alike, what they do not have alike. */
static rondo_result_t compare(const making_t *m)
{
    const rondo_comm_t comm = m->comm;

    for (int r = 0; r < comm->team.nranks; r++) {
        const record_t *its = &m->all[r];
        if (its->contexts != comm->contexts || its->signals != comm->signals)
            return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                            "rondo_window_create: rank %d (%s) has %d signals in %d contexts, this rank %d in %d: "
                            "config.signals and config.contexts must be alike on all ranks",
                            r, rd_health_whois(&comm->health, r), its->signals, its->contexts, comm->signals,
                            comm->contexts);
    }
    return RONDO_SUCCESS;
}

/* The first window of the communicator: memory for signals. */
static rondo_result_t begin(making_t *m)
{
    rondo_comm_t comm = m->comm;
    const rd_team_t *team = &comm->team;
    rd_node_t memory;
    rondo_result_t result = share(comm, rd_rma_counters_bytes(team->nranks, comm->contexts, comm->signals), NULL,
                                  "a communicator with fewer config.signals or config.contexts", &memory);

    if (result == RONDO_SUCCESS &&
        (result = rd_rma_create(&m->rma, team, &comm->conns, &comm->queue, &memory, comm->contexts, comm->signals))) {
        rd_node_free(&memory);
        result = rd_call_spoiled(comm, result); /* this rank alone has failed, and the others go on to exchange */
    }
    return result;
}

/* Memory for those ranks that have brought none. */
static rondo_result_t allocate(making_t *m)
{
    rondo_comm_t comm = m->comm;
    size_t most = 0;
    bool any = false;

    for (int r = 0; r < comm->team.nranks; r++) {
        size_t bytes = m->all[r].allocates ? m->all[r].bytes : 0;
        m->allocated[r] = m->all[r].allocates;
        m->used[r] = bytes;
        any |= m->allocated[r];
        most = bytes > most ? bytes : most;
    }
    if (!any)
        return RONDO_SUCCESS;
    if (most > SIZE_MAX / 2 / (size_t)comm->node.most - RD_PAGE)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY,
                        "rondo_window_create: %zu bytes for each rank of a node of %d "
                        "are more than there can be",
                        most, comm->node.most);
    most = most ? rd_round_up(most, RD_PAGE) : RD_PAGE;
    rondo_result_t result = share(comm, most, m->used, "a shorter window, or fewer of them at a time,", &m->memory);
    if (result == RONDO_ERR_INVALID_ARGUMENT) /* longer than a node's memory can be */
        result = RONDO_ERR_NO_MEMORY;
    if (result != RONDO_SUCCESS || !mine(m)->allocates)
        return result;
    if (m->memory.base) {
        mine(m)->address = (uintptr_t)m->memory.base + (size_t)m->memory.self * m->memory.segment_bytes;
        return RONDO_SUCCESS;
    }
    const size_t own = mine(m)->bytes ? rd_round_up(mine(m)->bytes, RD_PAGE) : RD_PAGE;
    m->alone = mmap(NULL, own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->alone == MAP_FAILED) {
        m->alone = NULL;
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "rondo_window_create: no memory for %zu bytes", own);
    }
    m->alone_bytes = own;
    mine(m)->address = (uintptr_t)m->alone;
    return RONDO_SUCCESS;
}

/* Collective: the net communicator that carries messages. */
static rondo_result_t make_net(rondo_comm_t comm)
{
    const rd_team_t *team = &comm->team;
    rd_concealed_id_t *ids = calloc((size_t)team->nranks, sizeof *ids);
    rondo_unique_id_t id;
    const bool serves = team->rank == 0;
    rondo_result_t result = RONDO_SUCCESS;

    if (!ids)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for the ids of %d ranks", team->nranks);
    if (serves && (result = rd_boot_id_create(&id, &comm->env))) {
        free(ids); /* the others, which wait in the exchange, hear from this rank why */
        return result;
    }
    if (serves)
        rd_boot_conceal(comm->boot, &id, &ids[0]);
    result = exchange(comm, ids, sizeof *ids);
    if (result != RONDO_SUCCESS && serves)
        rd_boot_cancel(&id, 1, 0, RONDO_ERR_ABORTED);
    if (result == RONDO_SUCCESS)
        result = rd_boot_reveal(comm->boot, &ids[0], &id);
    if (result == RONDO_SUCCESS) {
        rd_comm_pause(comm);
        result = rd_comm_net_ops.make(team, "rma", &id, team->rank, team->nranks, &comm->rma_net);
        rd_comm_resume(comm);
    }
    explicit_bzero(&id, sizeof id);
    free(ids);
    if (result != RONDO_SUCCESS)
        return result;
    const rd_rma_net_t net = {comm->rma_net, &rd_comm_of(comm->rma_net)->conns};
    result = rd_rma_serve(comm->rma, &net);
    if (result == RONDO_SUCCESS && !rd_outstanding_listed(&comm->queue.outstanding))
        rd_outstanding_list(&comm->queue.outstanding);
    return result;
}

/* Tells the others how it went here, and whether messages are needed. Returns RONDO_SUCCESS if it went well on all. */
static rondo_result_t conclude(making_t *m, rondo_result_t result, bool *messages)
{
    rondo_comm_t comm = m->comm;
    const rd_rma_t *rma = m->rma ? m->rma : comm->rma;

    mine(m)->code = (int32_t)result;
    mine(m)->messages = m->window && rd_rma_window_needs_messages(rma, m->window);
    rondo_result_t exchanged = exchange(comm, m->all, sizeof *m->all);
    if (exchanged != RONDO_SUCCESS)
        return exchanged;
    *messages = false;
    for (int r = 0; r < comm->team.nranks; r++) {
        *messages |= m->all[r].messages;
        if (m->all[r].code != RONDO_SUCCESS && result == RONDO_SUCCESS)
            result =
                rd_error(&comm->ctx, (rondo_result_t)m->all[r].code,
                         "rondo_window_create: rank %d (%s) could not make its part: %s; its own error says more", r,
                         rd_health_whois(&comm->health, r), rondo_result_string((rondo_result_t)m->all[r].code));
    }
    return result;
}

static rondo_result_t make(making_t *m)
{
    rondo_comm_t comm = m->comm;
    bool messages = false;
    rondo_result_t result = exchange(comm, m->all, sizeof *m->all);

    if (result != RONDO_SUCCESS || (result = compare(m)))
        return result;
    if (!comm->rma)
        result = begin(m);
    if (result == RONDO_SUCCESS)
        result = allocate(m);
    if (result != RONDO_SUCCESS && rd_health_check(&comm->health) != RONDO_SUCCESS)
        return result;
    for (int r = 0; r < comm->team.nranks; r++) {
        m->parts[r].address = m->all[r].address;
        m->parts[r].bytes = m->all[r].bytes;
    }
    if (result == RONDO_SUCCESS) {
        m->window = rd_rma_window_make(m->rma ? m->rma : comm->rma, comm->windows, &m->memory, m->allocated, m->parts);
        if (!m->window)
            result = rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "rondo_window_create: no memory");
    }
    if ((result = conclude(m, result, &messages)))
        return result;
    if (m->rma) {
        comm->rma = m->rma;
        comm->queue.side = &m->rma->side;
        m->rma = NULL;
    }
    if (messages && !comm->rma_net)
        result = rd_derive_cause(comm, make_net(comm));
    if (result == RONDO_SUCCESS) /* no exchange may have waited since another thread aborted the communicator */
        result = rd_health_check(&comm->health);
    if (result != RONDO_SUCCESS) /* others may have it, and use it */
        result =
            rd_health_fail(&comm->health, result, comm->team.rank, "the messages of a window: %s", rd_thread_error());
    return result;
}

/* Frees what does not belong to the communicator. One that has failed keeps what serves its first window until its end:
 * others may have that window already, and say there what they copy in it. */
static void drop(making_t *m)
{
    rd_rma_t *rma = m->rma ? m->rma : m->comm->rma;

    if (m->rma && rd_health_check(&m->comm->health) != RONDO_SUCCESS) {
        m->comm->rma = m->rma;
        m->rma = NULL;
    }

    if (m->window)
        rd_rma_window_free(rma, m->window); /* with its parts and its memory */
    else {
        rd_node_free(&m->memory);
        free(m->parts);
    }
    if (m->alone)
        munmap(m->alone, m->alone_bytes);
    rd_rma_free(m->rma);
}

static rondo_result_t create(rondo_comm_t comm, void *buffer, size_t bytes, rondo_window_t *window)
{
    size_t n = (size_t)comm->team.nranks;
    making_t m = {.comm = comm,
                  .all = calloc(n, sizeof *m.all),
                  .parts = calloc(n, sizeof *m.parts),
                  .allocated = calloc(n, sizeof *m.allocated),
                  .used = calloc(n, sizeof *m.used),
                  .memory = {.fd = -1}};
    rondo_result_t result;

    if (!m.all || !m.parts || !m.allocated || !m.used) {
        result =
            rd_call_spoiled(comm, rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for a window of %zu ranks", n));
    } else {
        *mine(&m) = (record_t){.address = (uintptr_t)buffer,
                               .bytes = bytes,
                               .allocates = !buffer,
                               .contexts = comm->contexts,
                               .signals = comm->signals};
        result = make(&m);
    }
    if (result == RONDO_SUCCESS) {
        m.window->alone = m.alone;
        m.window->alone_bytes = m.alone_bytes;
        rd_rma_window_open(comm->rma, m.window);
        *window = m.window;
    } else {
        drop(&m);
    }
    free(m.allocated);
    free(m.used);
    free(m.all);
    return result;
}

rondo_result_t rd_comm_window_create(rondo_comm_t comm, void *buffer, size_t bytes, rondo_window_t *window)
{
    rondo_result_t result = rd_comm_enter(comm);
    uint64_t entry = 0;
    bool entered = result == RONDO_SUCCESS;

    if (entered)
        entry = rd_call_begin_other(comm, RD_MONITOR_WINDOW, "window_create");
    rd_call_limit(rd_caller(), comm);
    comm->windows++;
    if (result == RONDO_SUCCESS)
        result = check(comm, "window_create");
    if (result == RONDO_SUCCESS)
        result = create(comm, buffer, bytes, window);
    if (entered)
        rd_call_end_other(comm, entry, result);
    rd_limit_own_end(&comm->queue.limit);
    return rd_comm_leave(comm, result);
}

bool rd_comm_has_window(rondo_comm_t comm, rondo_window_t window)
{
    return window && comm->rma && rd_rma_has(comm->rma, window);
}

rondo_result_t rd_window_refused(rondo_comm_t comm, rondo_window_t window, const char *call)
{
    return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: window is %s", call,
                    window ? "not one of this communicator, or has been destroyed" : "NULL");
}

rondo_result_t rd_comm_window_buffer(rondo_comm_t comm, rondo_window_t window, void **buffer)
{
    const char *call = "rondo_window_buffer";
    rondo_result_t result = rd_comm_query(comm, call);

    if (result != RONDO_SUCCESS)
        return result;
    if (rd_comm_has_window(comm, window))
        *buffer = (void *)(uintptr_t)window->parts[comm->team.rank].address;
    else
        result = rd_window_refused(comm, window, call);
    rd_comm_query_leave(comm);
    return result;
}

/* Nobody uses the window any more when all ranks have had their puts flushed and have said so. Those of submitted
 * groups may wait in any context; what they have sent is in front of the flush. A communicator that is gone has taken
 * it along. */
rondo_result_t rd_comm_window_destroy(rondo_comm_t comm, rondo_window_t window)
{
    rondo_result_t result = rd_comm_enter(comm);
    uint64_t entry = 0;
    bool entered = result == RONDO_SUCCESS;

    if (rd_comm_gone(comm))
        return rd_comm_leave(comm, result);
    if (!rd_comm_has_window(comm, window))
        return rd_comm_leave(comm, rd_limit_drop(rd_window_refused(comm, window, "rondo_window_destroy")));
    rd_rma_op_t flush = {.rma = comm->rma, .kind = RD_RMA_FLUSH, .peer = RONDO_PEER_ALL};

    if (entered)
        entry = rd_call_begin_other(comm, RD_MONITOR_WINDOW, "window_destroy");
    rd_call_limit(rd_caller(), comm);
    if (result == RONDO_SUCCESS)
        result = check(comm, "window_destroy");
    if (result == RONDO_SUCCESS)
        result = rd_rma_window_rest(comm->rma, window);
    if (result == RONDO_SUCCESS)
        result = rd_rma_run(comm->rma, &flush);
    if (result == RONDO_SUCCESS)
        result = exchange(comm, NULL, 0);
    if (entered)
        rd_call_end_other(comm, entry, result);
    rd_limit_own_end(&comm->queue.limit);
    rd_rma_window_free(comm->rma, window);
    return rd_comm_leave(comm, result);
}

rondo_result_t rondo_window_close(rondo_comm_t comm, rondo_window_t window)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_window_close");

    if (result == RONDO_SUCCESS && rd_comm_on_device(comm))
        return rd_comm_cuda_window_close(comm, window);
    if (result == RONDO_SUCCESS)
        result = rd_comm_enter(comm);
    else
        return result;
    if (result == RONDO_SUCCESS && rd_comm_has_window(comm, window))
        window->parts[comm->team.rank].bytes = 0;
    return rd_comm_leave(comm, result);
}

void rd_comm_rma_leave(rondo_comm_t comm)
{
    rondo_result_t code = rd_health_check(&comm->health);

    if (!comm->rma_net)
        return;
    if (code == RONDO_SUCCESS)
        rd_comm_net_ops.leave(comm->rma_net);
    else
        rd_health_follow(comm->rma_net->health, code, atomic_load(&comm->health.stop.failed_rank), &comm->health.stop,
                         "");
}

void rd_comm_rma_end(rondo_comm_t comm)
{
    comm->queue.side = NULL;
    rd_rma_free(comm->rma);
    comm->rma = NULL;
    if (comm->rma_net)
        rd_comm_net_ops.end(comm->rma_net);
    comm->rma_net = NULL;
}
