/* The list of a communicator's own operators. Numbers are those of the process, and go round: a program that makes an
 * op for each call comes to the first one again after some 2^31, and until then a destroyed op is distinguished from a
 * new one. */
#include "core/op.h"

#include <stdlib.h>
#include <string.h>

#include "core/lifetime.h"
#include "exec/host/reduce.h"

struct rd_user_op {
    struct rd_user_op *next;
    rondo_op_t number;
    rondo_type_t type;
    rd_reducer_t reducer;
    rd_op_scalar_t scalar;
};

#define NUMBERS 0x70000000u /* how many there are, from RONDO_NUM_OPS on, all of them positive */

static _Atomic unsigned made_so_far;

const rd_reducer_t *rd_op_reducer(rondo_comm_t comm, rondo_op_t op, rondo_type_t type, const char *call)
{
    for (struct rd_user_op *u = comm->user_ops; u; u = u->next) {
        if (u->number != op)
            continue;
        if (u->type == type)
            return &u->reducer;
        rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: op %d was made for %s, the call's type is %s", call, op,
                 rd_type_name(u->type), rd_type_name(type));
        return NULL;
    }
    rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
             "%s: op %d is neither one of RONDO_SUM .. RONDO_MAXLOC (0 to %d) nor an op of this communicator", call, op,
             RONDO_NUM_OPS - 1);
    return NULL;
}

rondo_result_t rd_op_check(rondo_comm_t comm, rondo_op_t op, rondo_type_t type, const char *call)
{
    rondo_result_t result = rd_comm_enter(comm);

    if (!rd_comm_gone(comm))
        result = rd_op_reducer(comm, op, type, call) ? RONDO_SUCCESS : RONDO_ERR_INVALID_ARGUMENT;
    return rd_comm_leave(comm, result);
}

const rd_op_scalar_t *rd_op_scalar(rondo_comm_t comm, rondo_op_t op)
{
    for (const struct rd_user_op *u = comm->user_ops; u; u = u->next) {
        if (u->number == op)
            return &u->scalar;
    }
    return NULL;
}

static bool has_number(rondo_comm_t comm, rondo_op_t number)
{
    const struct rd_user_op *u = comm->user_ops;

    while (u && u->number != number)
        u = u->next;
    return u != NULL;
}

/* The caller has entered the communicator. */
static rondo_op_t new_number(rondo_comm_t comm)
{
    rondo_op_t number;

    do
        number = RONDO_NUM_OPS + (rondo_op_t)(atomic_fetch_add(&made_so_far, 1) % NUMBERS);
    while (has_number(comm, number));
    return number;
}

static bool scales(rondo_type_t type)
{
    return type != RONDO_BOOL && rd_op_valid(RONDO_SUM, type);
}

rondo_result_t rondo_op_create_premulsum(rondo_op_t *op, const void *scalar, rondo_type_t type, int scalar_on_device,
                                         rondo_comm_t comm)
{
    const char *call = "rondo_op_create_premulsum";
    rondo_result_t result = rd_comm_valid(comm, call);
    struct rd_user_op *made;

    if (result != RONDO_SUCCESS)
        return result;
    if (!op || !scalar)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: %s is NULL", call, op ? "scalar" : "op");
    if (!rd_type_name(type) || !scales(type))
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: type %d cannot be scaled and summed", call,
                        (int)type);
    if (scalar_on_device && !rd_comm_on_device(comm))
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "%s: scalar_on_device is 1 on a host communicator, where there is no device memory: pass 0",
                        call);
    made = calloc(1, sizeof *made);
    if (!made)
        return rd_error(&comm->ctx, RONDO_ERR_NO_MEMORY, "no memory for an op");
    made->type = type;
    if (scalar_on_device) {
        made->scalar.device = scalar;
    } else {
        memcpy(made->scalar.here, scalar, rondo_type_size(type));
        rd_reducer_init_premulsum(&made->reducer, type, scalar, -1);
    }
    result = rd_comm_enter(comm);
    if (result != RONDO_SUCCESS) {
        free(made);
        return rd_comm_leave(comm, result);
    }
    made->number = new_number(comm);
    made->next = comm->user_ops;
    comm->user_ops = made;
    *op = made->number;
    return rd_comm_leave(comm, RONDO_SUCCESS);
}

/* Returns false if the op does not belong to this communicator. */
static bool remove_op(rondo_comm_t comm, rondo_op_t op)
{
    for (struct rd_user_op **u = &comm->user_ops; *u; u = &(*u)->next) {
        if ((*u)->number == op) {
            struct rd_user_op *gone = *u;
            *u = gone->next;
            free(gone);
            return true;
        }
    }
    return false;
}

rondo_result_t rondo_op_destroy(rondo_op_t op, rondo_comm_t comm)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_op_destroy");

    if (result != RONDO_SUCCESS)
        return result;
    rd_comm_enter(comm); /* also if the communicator has failed */
    if (!rd_comm_gone(comm) && !remove_op(comm, op))
        result = rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT,
                          "rondo_op_destroy: op %d is not an op of this communicator", op);
    return rd_comm_leave(comm, result);
}

void rd_op_free_all(rondo_comm_t comm)
{
    while (comm->user_ops) {
        struct rd_user_op *gone = comm->user_ops;
        comm->user_ops = gone->next;
        free(gone);
    }
}
