/* A communicator in the records of its node's processes: see records.h. */
#include "core/records.h"

#include <stdlib.h>
#include <string.h>

#include "monitor/held.h"
#include "monitor/process.h"

int rd_comm_record(rondo_comm_t comm)
{
    comm->recorded = !comm->internal && rd_record_join(&comm->env, &comm->ctx);
    return comm->recorded ? rd_record_fd() : -1;
}

void rd_comm_hold_records(rondo_comm_t comm)
{
    comm->held = comm->node.brought;
    comm->nheld = comm->node.nlocal;
    comm->node.brought = NULL;
    for (int m = 0; m < comm->nheld; m++)
        comm->held[m] = rd_held_take(comm->held[m]);
}

void rd_comm_drop_records(rondo_comm_t comm)
{
    for (int m = 0; m < comm->nheld; m++)
        rd_held_drop(comm->held[m]);
    free(comm->held);
    comm->held = NULL;
    comm->nheld = 0;
    if (comm->recorded)
        rd_record_leave();
    comm->recorded = false;
}

/* The number of the communicator is derived from its secret, which it does not tell. */
void rd_comm_take_seat(rondo_comm_t comm)
{
    const rd_node_t *node = &comm->node;
    rd_monitor_comm_args_t args = {.name = comm->ctx.name,
                                   .rank = comm->team.rank,
                                   .size = comm->team.nranks,
                                   .nodes = node->nnodes,
                                   .node = node->node_of[comm->team.rank],
                                   .locals = node->nlocal,
                                   .device = comm->team.device >= 0 ? comm->team.device : -1};
    unsigned char key[32];

    if (!comm->recorded)
        return;
    rd_boot_key(comm->boot, "monitor", key);
    memcpy(&args.id, key, sizeof args.id);
    rd_seat_take(&comm->seat, &args);
}
