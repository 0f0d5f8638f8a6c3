/* See tuned.h. */
#include "core/tuned.h"

#include "core/records.h"

/* Returns why a tuner is not asked for this communicator, or NULL. What is said here is the same on all ranks. */
static const char *unasked(const struct rondo_comm *comm)
{
    if (rd_comm_on_device(comm))
        return "between GPUs nothing tells ranks apart that choose differently";
    if (!comm->env.monitor)
        return "with RONDO_MONITOR=0 nothing tells ranks apart that choose differently";
    return NULL;
}

void rd_tuned_take(rondo_comm_t comm)
{
    const rd_tuner_t *tuner = comm->internal || comm->team.nranks < 2 ? NULL : rd_tuner_get();
    const char *why = tuner ? unasked(comm) : NULL;

    if (why && comm->team.rank == 0)
        rd_log(&comm->ctx, RD_LOG_INFO, "the tuner %s is not asked: %s", tuner->name, why);
    if (!tuner || why)
        return;
    comm->tuned.tuner = tuner;
    comm->team.tuner = tuner->name;
}

void rd_tuned_begin(rondo_comm_t comm)
{
    rd_tuned_t *t = &comm->tuned;

    if (!t->tuner)
        return;
    const rd_tuner_comm_t what = {.id = rd_comm_number(comm),
                                  .nranks = comm->team.nranks,
                                  .nnodes = comm->node.nnodes,
                                  .fewest = comm->node.fewest,
                                  .most = comm->node.most};
    t->asked = t->tuner->begin(&what, &t->context);
    if (t->asked && comm->team.rank == 0)
        rd_log(&comm->ctx, RD_LOG_INFO, "the tuner %s is asked for choices", t->tuner->name);
}

void rd_tuned_end(rondo_comm_t comm)
{
    if (comm->tuned.asked)
        comm->tuned.tuner->end(comm->tuned.context);
    comm->tuned.asked = false;
}
