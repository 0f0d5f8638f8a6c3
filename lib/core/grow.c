/* Communicators with more ranks. The members compare what they were called with, and learn the id from those that have
 * it, over the communicator that they are in. Then they and the new ranks meet under that id, as in any creation: a
 * member keeps its number. Where the members do not come, one that has the id tells the new ranks why. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/derive.h"
#include "core/lifetime.h"
#include "core/submit.h"

/* What each member sends to the others. */
typedef struct {
    int32_t nranks, has_id;
    rd_concealed_id_t id;
} grow_t;

typedef struct {
    grow_t *all;
    rondo_unique_id_t id; /* of those that have it */
    rd_job_t *job;
} members_t;

static rondo_result_t differ(rondo_comm_t comm, int a, int b, const char *what)
{
    return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_grow: rank %d (%s) and rank %d (%s) %s", a,
                    rd_boot_whois(comm->boot, a), b, rd_boot_whois(comm->boot, b), what);
}

/* Takes the id of member r, which must be that of `holder`; -1: nobody had one so far. */
static rondo_result_t take(rondo_comm_t comm, members_t *m, int holder, int r)
{
    rondo_unique_id_t id;
    rondo_result_t result = rd_boot_reveal(comm->boot, &m->all[r].id, &id);

    if (result == RONDO_SUCCESS && holder >= 0 && sodium_memcmp(&id, &m->id, sizeof id) != 0)
        result = differ(comm, holder, r, "have different ids: one id brings members and new ranks together");
    if (result == RONDO_SUCCESS)
        m->id = id;
    explicit_bzero(&id, sizeof id);
    return result;
}

/* Every member finds the same. */
static rondo_result_t compare(rondo_comm_t comm, members_t *m)
{
    const grow_t *all = m->all;
    rondo_result_t result;
    int holder = -1;
    char what[96];

    for (int r = 0; r < comm->team.nranks; r++) {
        if (all[r].nranks != all[0].nranks) {
            snprintf(what, sizeof what, "call for %d and %d ranks: nranks must be equal", (int)all[0].nranks,
                     (int)all[r].nranks);
            return differ(comm, 0, r, what);
        }
        if (!all[r].has_id)
            continue;
        if ((result = take(comm, m, holder, r)))
            return result;
        holder = holder < 0 ? r : holder;
    }
    if (holder >= 0)
        return RONDO_SUCCESS;
    return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                    "rondo_comm_grow: no rank of the communicator has the id with which the new ranks come: give it to "
                    "one of them at least");
}

static rondo_result_t exchange(rondo_comm_t comm, void *arg)
{
    members_t *m = arg;

    if (m->job->has_id)
        rd_boot_conceal(comm->boot, &m->job->id, &m->all[comm->team.rank].id);
    rondo_result_t result = rd_boot_allgather(comm->boot, m->all, sizeof *m->all);

    return result == RONDO_SUCCESS ? compare(comm, m) : result;
}

/* The members will not come: who has the id tells the new ranks, once. An abort here is this rank's death for them. */
static void refuse(rondo_comm_t comm, rd_job_t *job, rondo_result_t result)
{
    int failed_rank = result == RONDO_ERR_INVALID_ARGUMENT ? -1 : atomic_load(&comm->health.stop.failed_rank);

    if (job->has_id)
        rd_boot_refuse(&job->id, comm->team.rank, job->nranks, &comm->env,
                       result == RONDO_ERR_ABORTED ? RONDO_ERR_REMOTE : result, failed_rank);
    job->has_id = false;
}

static void failed(rondo_comm_t comm, void *arg, rondo_result_t result)
{
    const members_t *m = arg;

    refuse(comm, m->job, result);
}

static rondo_result_t grow(rd_job_t *job)
{
    rondo_comm_t comm = job->used;
    members_t m = {.all = calloc((size_t)comm->team.nranks, sizeof *m.all), .job = job};
    const rd_exchange_t members = {"comm_grow", RD_MONITOR_GROW, exchange, &m, failed};
    rondo_result_t result;

    if (!m.all) {
        result = rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for a list of %d ranks", comm->team.nranks);
        result = rd_call_spoiled(comm, result);
        refuse(comm, job, result);
        return result;
    }
    m.all[comm->team.rank] = (grow_t){.nranks = job->nranks, .has_id = job->has_id};
    rd_comm_retain(comm);
    result = rd_derive_exchange(comm, &members);
    job->has_id = false; /* from here on the creation says what goes wrong */
    rd_job_used(job);
    if (result == RONDO_SUCCESS)
        result = rd_derive_made(
            comm, job->made, rd_comm_build(job->made, job->nranks, &m.id, comm->team.rank, &job->config, NULL, comm));
    rd_comm_release(comm);
    explicit_bzero(&m.id, sizeof m.id);
    free(m.all);
    return result;
}

static rondo_result_t check_member(rondo_comm_t comm, int nranks, int rank, const rondo_comm_t *newcomm)
{
    if (!newcomm)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_grow: newcomm is NULL");
    if (rank != -1)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_comm_grow: rank is %d, but a rank that has a communicator keeps its number: give -1; a "
                        "new rank's comm is NULL",
                        rank);
    if (nranks <= comm->team.nranks)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_comm_grow: nranks is %d: it counts all ranks of the new communicator, and %d are in "
                        "this one",
                        nranks, comm->team.nranks);
    return RONDO_SUCCESS;
}

static rondo_result_t join(rondo_comm_t *newcomm, int nranks, const rondo_unique_id_t *id, int rank,
                           const rondo_config_t *config)
{
    if (!newcomm || !id)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_grow: %s",
                        newcomm ? "id is NULL, and so is comm: a new rank comes with the id that a member has handed it"
                                : "newcomm is NULL");
    return rd_comm_join("rondo_comm_grow", newcomm, nranks, id, rank, config);
}

rondo_result_t rondo_comm_grow(rondo_comm_t comm, int nranks, const rondo_unique_id_t *id, int rank,
                               rondo_comm_t *newcomm, const rondo_config_t *config)
{
    if (!comm)
        return join(newcomm, nranks, id, rank, config);
    rd_job_t job = {.run = grow, .used = comm, .nranks = nranks, .has_id = id != NULL};
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_grow");

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, "rondo_comm_grow");
    if (result == RONDO_SUCCESS)
        result = check_member(comm, nranks, rank, newcomm);
    if (result != RONDO_SUCCESS)
        return result;
    if (id)
        job.id = *id;
    rd_comm_retain(comm);
    result = rd_derive_begin(&job, config, true, newcomm);
    if (result != RONDO_SUCCESS && result != RONDO_IN_PROGRESS && rd_health_check(&comm->health))
        refuse(comm, &job, result); /* it has failed before the members were asked */
    rd_job_wipe(&job);
    rd_comm_release(comm);
    return result;
}
