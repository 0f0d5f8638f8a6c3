/* Communicators from communicators: split, shrink, and one process that holds all ranks. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "boot/agree_shrink.h"
#include "core/derive.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"
#include "core/lifetime.h"
#include "core/shrink.h"

/* What each rank sends to the others in a split. */
typedef struct {
    int32_t color, key, makes; /* `makes`: this rank has made the id, for its color */
    rd_concealed_id_t id;
} split_t;

static bool before(const split_t *all, int a, int b)
{
    return all[a].key != all[b].key ? all[a].key < all[b].key : a < b;
}

/* Finds the caller's rank among those of its color, their number, and the first of them. */
static void find_rank(const split_t *all, int nranks, int self, int *rank, int *size, int *first)
{
    *rank = *size = 0;
    *first = self;
    for (int r = 0; r < nranks; r++) {
        if (all[r].color != all[self].color)
            continue;
        ++*size;
        *rank += before(all, r, self);
        if (before(all, r, *first))
            *first = r;
    }
}

/* A split's two exchanges: colors and keys, then the ids that the first rank of each color has made. */
typedef struct {
    split_t *all;
    rondo_unique_id_t id;  /* of this rank's color */
    rondo_result_t usable; /* whether it is one: if not, `comm` has nothing to do with it, nor have other colors */
    int rank, size, first, served;
} parts_t;

static rondo_result_t exchange(rondo_comm_t comm, void *arg)
{
    parts_t *p = arg;
    split_t *mine = &p->all[comm->team.rank];
    rondo_result_t result = rd_boot_allgather(comm->boot, p->all, sizeof *p->all);

    if (result != RONDO_SUCCESS)
        return result;
    find_rank(p->all, comm->team.nranks, comm->team.rank, &p->rank, &p->size, &p->first);
    if (mine->color >= 0 && p->first == comm->team.rank) { /* if it fails, the id carries the error */
        p->served = rd_boot_id_create(&p->id, &comm->env) == RONDO_SUCCESS;
        rd_boot_conceal(comm->boot, &p->id, &mine->id);
    }
    result = rd_boot_allgather(comm->boot, p->all, sizeof *p->all);
    if (result == RONDO_SUCCESS && mine->color >= 0 && p->first != comm->team.rank)
        result = rd_boot_reveal(comm->boot, &p->all[p->first].id, &p->id);
    if (result == RONDO_SUCCESS && mine->color >= 0)
        p->usable = rd_boot_id_check(comm->boot, &p->id, p->first);
    return result;
}

static rondo_result_t split(rd_job_t *job)
{
    rondo_comm_t comm = job->used;
    parts_t p = {.all = calloc((size_t)comm->team.nranks, sizeof *p.all)};
    const rd_exchange_t parts = {"comm_split", RD_MONITOR_SPLIT, exchange, &p, NULL};

    if (!p.all)
        return rd_call_spoiled(
            comm, rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for a split of %d ranks", comm->team.nranks));
    p.all[comm->team.rank] = (split_t){.color = job->color, .key = job->key};
    rd_comm_retain(comm);
    rondo_result_t result = rd_derive_exchange(comm, &parts);
    if (result != RONDO_SUCCESS && p.served)
        rd_boot_cancel(&p.id, 1, 0, RONDO_ERR_ABORTED);
    rd_job_used(job);
    /* From here on nothing of `comm` is needed but its stop word: whoever aborts it does not wait for the new one. */
    if (result == RONDO_SUCCESS && job->color >= 0) {
        result = p.usable;
        if (result == RONDO_SUCCESS)
            result = rd_comm_build(job->made, p.size, &p.id, p.rank, &job->config, NULL, comm);
        result = rd_derive_made(comm, job->made, result);
    }
    rd_comm_release(comm);
    explicit_bzero(&p.id, sizeof p.id);
    free(p.all);
    return result;
}

rondo_result_t rondo_comm_split(rondo_comm_t comm, int color, int key, rondo_comm_t *newcomm,
                                const rondo_config_t *config)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_split");

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, "rondo_comm_split");
    if (result != RONDO_SUCCESS)
        return result;
    if (!newcomm)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_split: newcomm is NULL");
    rd_job_t job = {.run = split, .used = comm, .color = color, .key = key};
    return rd_derive_begin(&job, config, color >= 0, newcomm);
}

/* Lists the ranks that a shrink keeps, in ascending order. Returns their number. */
static int survivors(rondo_comm_t comm, const int *excluded, int nexcluded, int *members)
{
    int n = 0;

    for (int r = 0; r < comm->team.nranks; r++) {
        int out = 0;
        for (int i = 0; i < nexcluded; i++)
            out |= excluded[i] == r;
        if (!out)
            members[n++] = r;
    }
    return n;
}

static rondo_result_t check_excluded(rondo_comm_t comm, const int *excluded, int nexcluded)
{
    if (nexcluded < 0 || (nexcluded > 0 && !excluded))
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_shrink: %s",
                        nexcluded < 0 ? "nexcluded is negative, and not RONDO_SURVIVORS" : "excluded is NULL");
    for (int i = 0; i < nexcluded; i++) {
        if (excluded[i] < 0 || excluded[i] >= comm->team.nranks)
            return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                            "rondo_comm_shrink: excluded[%d] is %d, ranks are 0 to %d", i, excluded[i],
                            comm->team.nranks - 1);
        if (excluded[i] == comm->team.rank)
            return rd_error(&comm->ctx, RONDO_ERR_INVALID_USAGE,
                            "rondo_comm_shrink: rank %d excludes itself: only the ranks that stay call it",
                            comm->team.rank);
    }
    return RONDO_SUCCESS;
}

/* Derives the id under which the survivors meet, from a communicator that may have failed, but has not been ended. It
 * follows from the list alone, however often each of them has tried: some may have failed where others did not.
 * Liveness of the old communicator observes them while they meet. */
static rondo_result_t derive_id(rondo_comm_t comm, const int *members, int n, rondo_unique_id_t *id,
                                rd_meeting_t *meeting)
{
    rondo_result_t result = rd_comm_enter(comm);

    if (!rd_comm_gone(comm))
        result = rd_boot_id_derive(comm->boot, members, n, 0, id);
    if (!rd_comm_gone(comm))
        rd_monitor_shrinks(&comm->seat, rd_clock_ms());
    if (!rd_comm_gone(comm) && result == RONDO_SUCCESS)
        rd_liveness_meeting(comm->liveness, meeting, members, n);
    return rd_comm_leave(comm, result);
}

/* The modules of `comm` are not needed while the new communicator is made, so a thread that aborts it does not wait for
 * that. */
static rondo_result_t make_smaller(rd_job_t *job)
{
    rondo_comm_t comm = job->used;
    rd_meeting_t meeting = {0};
    rondo_unique_id_t id;
    rondo_result_t result;
    int rank = 0;

    while (job->members[rank] != comm->team.rank)
        rank++;
    rd_comm_retain(comm);
    result = derive_id(comm, job->members, job->nmembers, &id, &meeting);
    if (result == RONDO_SUCCESS) {
        result = rd_comm_build(job->made, job->nmembers, &id, rank, &job->config, &meeting, NULL);
        rd_derive_met(comm, job->made, result);
    }
    rd_liveness_meeting_end(&meeting);
    explicit_bzero(&id, sizeof id);
    rd_comm_shrunk(comm);
    if (result != RONDO_SUCCESS && atomic_load(&comm->closed)) /* what the others say is but the consequence */
        result = rd_agree_shrink_aborted(&comm->ctx);
    rd_comm_release(comm);
    return result;
}

rondo_result_t rondo_comm_shrink(rondo_comm_t comm, const int *excluded, int nexcluded, rondo_comm_t *newcomm,
                                 const rondo_config_t *config)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_shrink");
    rd_job_t job = {.run = rd_comm_shrink_survivors, .used = comm};

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, "rondo_comm_shrink");
    if (result != RONDO_SUCCESS)
        return result;
    if (comm->survived)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_USAGE,
                        "rondo_comm_shrink: this communicator has been shrunk to its survivors before: shrink the one "
                        "that came of it");
    if (!newcomm)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_shrink: newcomm is NULL");
    if (nexcluded == RONDO_SURVIVORS)
        return rd_derive_begin(&job, config, true, newcomm);
    if ((result = check_excluded(comm, excluded, nexcluded)))
        return result;
    job.run = make_smaller;
    job.members = malloc((size_t)comm->team.nranks * sizeof *job.members);
    if (!job.members)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for a list of %d ranks", comm->team.nranks);
    job.nmembers = survivors(comm, excluded, nexcluded, job.members);
    return rd_derive_begin(&job, config, true, newcomm);
}

/* One rank's creation on a thread of its own: creation is collective, so all must run at once. */
typedef struct {
    pthread_t thread;
    rondo_comm_t comm;
    const rondo_unique_id_t *id;
    rondo_config_t config;
    int rank, nranks, started;
    rondo_result_t result;
    char error[sizeof((rd_log_ctx_t *)0)->error]; /* that thread's sentence */
} maker_t;

static void *make_one(void *arg)
{
    maker_t *m = arg;

    m->result = rd_comm_make(&m->comm, m->nranks, m->id, m->rank, &m->config, NULL, 0, NULL);
    memcpy(m->error, rd_thread_error(), sizeof m->error);
    return NULL;
}

static rondo_result_t make_all(maker_t *makers, int n)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (int r = 0; r < n && result == RONDO_SUCCESS; r++) {
        makers[r].started = rd_thread_start(&makers[r].thread, make_one, &makers[r]) == 0;
        if (!makers[r].started)
            result = rd_error(NULL, RONDO_ERR_SYSTEM, "rondo_comm_create_all: no thread for rank %d of %d", r, n);
    }
    if (result != RONDO_SUCCESS)
        rd_boot_cancel(makers[0].id, 1, 0, result);
    for (int r = 0; r < n; r++) {
        if (makers[r].started)
            pthread_join(makers[r].thread, NULL);
        if (makers[r].started && makers[r].result != RONDO_SUCCESS && result == RONDO_SUCCESS) {
            result = makers[r].result;
            rd_thread_error_set(makers[r].error);
        }
    }
    return result;
}

/* blocking = 0: every rank is made on a thread of its own in any case. */
static rondo_result_t begin_all(maker_t *makers, int n)
{
    for (int r = 0; r < n; r++) {
        rondo_result_t result = rondo_comm_create(&makers[r].comm, n, makers[r].id, r, &makers[r].config);
        if (result == RONDO_IN_PROGRESS)
            continue;
        rd_boot_cancel(makers[r].id, 1, r, result);
        while (r-- > 0)
            rondo_comm_abort(makers[r].comm);
        return result;
    }
    return RONDO_IN_PROGRESS;
}

static rondo_result_t create_all(rondo_comm_t *comms, int ndevices, const int *devices, const rondo_config_t *config,
                                 const rondo_unique_id_t *id)
{
    rondo_result_t result = RONDO_SUCCESS;
    maker_t *makers = calloc((size_t)ndevices, sizeof *makers);

    if (!makers) {
        rd_boot_cancel(id, 1, 0, RONDO_ERR_ABORTED);
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for %d communicators", ndevices);
    }
    for (int r = 0; r < ndevices; r++) {
        makers[r] = (maker_t){.id = id, .config = rd_config_of(config), .rank = r, .nranks = ndevices};
        if (devices)
            makers[r].config.device = devices[r];
        if (makers[r].config.device == RONDO_DEVICE_AUTO) /* the caller's device: these threads have none yet */
            result = rd_cuda_device(RONDO_DEVICE_AUTO, &makers[r].config.device);
        if (result == RONDO_SUCCESS) /* before any of them waits for this one */
            result = rd_comm_check(&makers[r].config);
        if (result != RONDO_SUCCESS) {
            rd_boot_cancel(id, 1, r, result);
            free(makers);
            return result;
        }
    }
    bool waits = makers[0].config.blocking;
    result = waits ? make_all(makers, ndevices) : begin_all(makers, ndevices);
    const bool made = result == (waits ? RONDO_SUCCESS : RONDO_IN_PROGRESS);
    for (int r = 0; r < ndevices; r++) {
        if (made)
            comms[r] = makers[r].comm;
        else if (waits && makers[r].comm)
            rondo_comm_abort(makers[r].comm);
    }
    free(makers);
    return result;
}

rondo_result_t rondo_comm_create_all(rondo_comm_t *comms, int ndevices, const int *devices,
                                     const rondo_config_t *config)
{
    const char *call = "rondo_comm_create_all";
    rondo_unique_id_t id;
    rondo_result_t result = rd_group_refuse(NULL, call);

    if (result != RONDO_SUCCESS)
        return result;
    if (!comms || ndevices < 1)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: %s", call,
                        comms ? "ndevices must be at least 1" : "comms is NULL");
    if ((result = rondo_unique_id_create(&id)))
        return result;
    result = create_all(comms, ndevices, devices, config, &id);
    explicit_bzero(&id, sizeof id);
    return result;
}
