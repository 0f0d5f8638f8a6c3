/* The survivors' communicator: a roll call says who they are (boot/agree_shrink.h), they make it, and the roll call
 * says whether it is everybody's. The old communicator is entered for the roll call alone: an abort from another thread
 * does not wait while the new one is made, and is seen after it. */
#include "core/shrink.h"

#include <string.h>

#include "boot/agree_shrink.h"
#include "core/lifetime.h"

/* Enters for the roll call. That the communicator has failed is why it is made, but it must not have been ended. */
static rondo_result_t enter(rondo_comm_t comm)
{
    rd_comm_enter(comm);
    if (rd_comm_gone(comm))
        return rd_error(&comm->who, RONDO_ERR_ABORTED,
                        "rondo_comm_shrink: another thread has aborted the communicator");
    return RONDO_SUCCESS;
}

static rondo_result_t begin(rondo_comm_t comm, rd_roll_t **roll)
{
    rd_comm_leave(comm, rd_comm_enter(comm)); /* the others are told, and what was posted is taken back */
    rondo_result_t result = enter(comm);

    if (result == RONDO_SUCCESS && comm->survived)
        result =
            rd_error(&comm->who, RONDO_ERR_INVALID_USAGE,
                     "rondo_comm_shrink: this communicator has been shrunk to its survivors before: shrink the one "
                     "that came of it");
    if (result == RONDO_SUCCESS)
        result = rd_roll_begin(roll, comm->boot, comm->rounds, &comm->closed);
    rd_comm_leave(comm, RONDO_SUCCESS);
    return result;
}

/* The id under which the ranks of the list meet. Rounds are far from the numbers of shrinks that have a list. */
static rondo_result_t meet(rondo_comm_t comm, rd_roll_t *roll, rondo_unique_id_t *id)
{
    comm->rounds = roll->mine.round;
    rondo_result_t result =
        rd_boot_id_derive(comm->boot, roll->members, roll->nmembers, (uint64_t)1 << 32 | (uint32_t)comm->rounds, id);
    if (result == RONDO_SUCCESS)
        rd_roll_attend(roll);
    return result;
}

static rondo_result_t next(rondo_comm_t comm, rd_roll_t *roll, rondo_result_t made, rd_roll_verdict_t *verdict,
                           rondo_unique_id_t *id)
{
    rondo_result_t result = enter(comm);

    if (result == RONDO_SUCCESS)
        result = rd_roll_next(roll, made, verdict);
    if (result == RONDO_SUCCESS && *verdict == RD_ROLL_LIST)
        result = meet(comm, roll, id);
    if (result == RONDO_SUCCESS && *verdict == RD_ROLL_KEEP) {
        rd_roll_keep(roll);
        comm->survived = 1;
    }
    rd_comm_leave(comm, RONDO_SUCCESS);
    return result;
}

static int place(const rd_roll_t *roll)
{
    int rank = 0;

    while (roll->members[rank] != roll->rank)
        rank++;
    return rank;
}

rondo_result_t rd_comm_survive(rondo_comm_t comm, rondo_comm_t *newcomm, const rondo_config_t *config)
{
    rd_roll_t *roll = NULL;
    rd_roll_verdict_t verdict = RD_ROLL_LIST;
    rondo_unique_id_t id;
    rondo_comm_t made = NULL;
    rondo_result_t how = RONDO_SUCCESS, result;

    rd_comm_hold(comm); /* another thread may abort it meanwhile */
    result = begin(comm, &roll);
    while (result == RONDO_SUCCESS) {
        result = next(comm, roll, how, &verdict, &id);
        if (result == RONDO_SUCCESS && verdict == RD_ROLL_KEEP)
            break;
        if (made)
            rondo_comm_abort(made);
        made = NULL;
        if (result == RONDO_SUCCESS)
            how = rd_comm_make(&made, roll->nmembers, &id, place(roll), config, NULL);
    }
    rd_roll_end(roll);
    rd_comm_drop(comm);
    if (result == RONDO_SUCCESS)
        *newcomm = made;
    return result;
}
