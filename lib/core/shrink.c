/* The survivors' communicator: an agreement determines the survivors (boot/agree_shrink.h), they make the communicator,
 * and the agreement determines whether all of them have it. The old communicator is entered only for the agreement: an
 * abort from another thread does not wait while the new one is made, and is noticed after that. */
#include "core/shrink.h"

#include "boot/agree_shrink.h"
#include "core/lifetime.h"

/* Enters the communicator for the agreement. It may have failed, which is the reason for the agreement, but it must not
 * have been ended. */
static rondo_result_t enter(rondo_comm_t comm)
{
    rd_comm_enter(comm);
    if (rd_comm_gone(comm))
        return rd_agree_shrink_aborted(&comm->ctx);
    return RONDO_SUCCESS;
}

static bool died(void *arg, int rank)
{
    rondo_comm_t comm = arg;

    return rd_liveness_died(comm->liveness, rank);
}

static rondo_result_t begin(rondo_comm_t comm, rd_agree_shrink_t **agreement)
{
    rd_comm_leave(comm, rd_comm_enter(comm)); /* the others are notified, and what was posted is taken back */
    const rd_agree_shrink_ops_t ops = {&comm->env, &comm->closed, died, comm};
    rondo_result_t result = enter(comm);

    if (result == RONDO_SUCCESS)
        rd_monitor_shrinks(&comm->seat, rd_clock_ms());
    if (result == RONDO_SUCCESS)
        result = rd_agree_shrink_begin(agreement, comm->boot, comm->rounds, &ops);
    rd_comm_leave(comm, RONDO_SUCCESS);
    return result;
}

/* Derives the id under which the ranks of the list meet. The epochs of rounds are far from those of shrinks with a
 * list. */
static rondo_result_t rendezvous(rondo_comm_t comm, rd_agree_shrink_t *agreement, rondo_unique_id_t *id)
{
    comm->rounds = agreement->mine.round;
    rondo_result_t result = rd_boot_id_derive(comm->boot, agreement->members, agreement->nmembers,
                                              (uint64_t)1 << 32 | (uint32_t)comm->rounds, id);
    if (result == RONDO_SUCCESS)
        rd_agree_shrink_attend(agreement);
    return result;
}

/* *how is how the communicator of the last list was made, and then how its ranks can meet. */
static rondo_result_t next(rondo_comm_t comm, rd_agree_shrink_t *agreement, rondo_result_t *how,
                           rd_agree_shrink_verdict_t *verdict, rondo_unique_id_t *id)
{
    rondo_result_t result = enter(comm);

    if (result == RONDO_SUCCESS)
        result = rd_agree_shrink_next(agreement, *how, verdict);
    if (result == RONDO_SUCCESS && *verdict == RD_AGREE_SHRINK_LIST)
        *how = rendezvous(comm, agreement, id);
    if (result == RONDO_SUCCESS && *verdict == RD_AGREE_SHRINK_KEEP) {
        rd_agree_shrink_keep(agreement);
        comm->survived = 1;
    }
    rd_comm_leave(comm, RONDO_SUCCESS);
    return result;
}

static int new_rank(const rd_agree_shrink_t *agreement)
{
    int rank = 0;

    while (agreement->members[rank] != agreement->rank)
        rank++;
    return rank;
}

/* Another thread may be ending the communicator, and its record with it. */
void rd_comm_shrunk(rondo_comm_t comm)
{
    if (!rd_comm_query_enter(comm))
        return;
    rd_monitor_shrinks(&comm->seat, 0);
    rd_comm_query_leave(comm);
}

rondo_result_t rd_comm_shrink_survivors(rd_job_t *job)
{
    rd_agree_shrink_t *agreement = NULL;
    rd_agree_shrink_verdict_t verdict = RD_AGREE_SHRINK_LIST;
    rondo_comm_t comm = job->used;
    rondo_unique_id_t id;
    rondo_result_t how = RONDO_SUCCESS, result;
    bool built = false;

    rd_comm_retain(comm); /* another thread may abort it meanwhile */
    result = begin(comm, &agreement);
    while (result == RONDO_SUCCESS) {
        result = next(comm, agreement, &how, &verdict, &id);
        if (result == RONDO_SUCCESS && verdict == RD_AGREE_SHRINK_KEEP)
            break;
        if (built)
            rd_comm_unbuild(job->made);
        built = false;
        if (result == RONDO_SUCCESS && how == RONDO_SUCCESS) {
            how = rd_comm_build(job->made, agreement->nmembers, &id, new_rank(agreement), &job->config, NULL, NULL);
            built = how == RONDO_SUCCESS;
        }
    }
    rd_agree_shrink_end(agreement);
    rd_comm_shrunk(comm);
    rd_comm_release(comm);
    explicit_bzero(&id, sizeof id);
    return result;
}
