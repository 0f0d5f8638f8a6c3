/* User-defined operators. In NCCL an op may be destroyed as soon as the last call that names it has returned, also
 * while that call is only recorded in a group or runs in the background. So each call is counted as a user of the op,
 * and the last one frees it. A device scalar is read when the operation runs; on the host that is when rondo is called.
 */
#include <stdlib.h>

#include "nccl/shim.h"

typedef struct nc_user_op {
    struct nc_user_op *next;
    int number; /* the ncclRedOp_t; 0: the op has been destroyed, and only its users keep it */
    int users;
    bool orphan; /* its communicator has ended, and rondo's op with it; the last user frees it */
    rondo_type_t type;
    rondo_op_t op;      /* rondo's op */
    const void *scalar; /* not NULL: the device scalar of a host communicator; `op` is created for each run */
} nc_user_op_t;

static _Atomic unsigned last_number;

/* With nc_lock held. */
static nc_user_op_t *find(ncclComm_t comm, int number)
{
    nc_user_op_t *u = comm->ops;

    while (u && u->number != number)
        u = u->next;
    return u;
}

static void op_remove(ncclComm_t comm, nc_user_op_t *op)
{
    nc_user_op_t **u = &comm->ops;

    while (*u != op)
        u = &(*u)->next;
    *u = op->next;
    if (!op->scalar && comm->rondo)
        (void)rondo_op_destroy(op->op, comm->rondo);
    free(op);
}

struct nc_user_op *nc_user_op_get(ncclComm_t comm, ncclRedOp_t op)
{
    nc_user_op_t *u = NULL;

    pthread_mutex_lock(&nc_lock);
    if ((int)op >= ncclNumOps && (u = find(comm, (int)op)) != NULL)
        u->users++;
    pthread_mutex_unlock(&nc_lock);
    return u;
}

/* The communicator may have ended: a group that another thread has open still held a call on it. */
void nc_user_op_put(ncclComm_t comm, struct nc_user_op *op)
{
    pthread_mutex_lock(&nc_lock);
    if (--op->users == 0 && op->orphan)
        free(op);
    else if (op->users == 0 && op->number == 0)
        op_remove(comm, op);
    pthread_mutex_unlock(&nc_lock);
}

rondo_result_t nc_user_op_begin(ncclComm_t comm, struct nc_user_op *op, rondo_op_t *number)
{
    *number = op->op;
    return op->scalar ? rondo_op_create_premulsum(number, op->scalar, op->type, 0, comm->rondo) : RONDO_SUCCESS;
}

void nc_user_op_end(ncclComm_t comm, struct nc_user_op *op, rondo_op_t number)
{
    if (op->scalar)
        (void)rondo_op_destroy(number, comm->rondo);
}

void nc_user_op_free_all(ncclComm_t comm)
{
    pthread_mutex_lock(&nc_lock);
    while (comm->ops) { /* rondo's ops have ended with their communicator */
        nc_user_op_t *gone = comm->ops;
        comm->ops = gone->next;
        gone->orphan = true;
        if (gone->users == 0)
            free(gone);
    }
    pthread_mutex_unlock(&nc_lock);
}

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm)
{
    const char *call = "ncclRedOpCreatePreMulSum";
    ncclResult_t result = nc_comm_ready(comm, call);
    rondo_type_t type;
    nc_user_op_t *made;

    if (result != ncclSuccess)
        return result;
    if (!op || !scalar)
        return nc_error(comm, ncclInvalidArgument, "%s: %s is NULL", call, op ? "scalar" : "op");
    if (nc_type(datatype, &type) != 0)
        return nc_error(comm, ncclInvalidArgument, "%s: datatype is %d: 0 to %d", call, (int)datatype,
                        ncclNumTypes - 1);
    if (residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
        return nc_error(comm, ncclInvalidArgument, "%s: residence is %d: 0 (device) or 1 (host)", call, (int)residence);
    made = calloc(1, sizeof *made);
    if (!made)
        return nc_error(comm, ncclSystemError, "%s: no memory", call);
    made->type = type;
    if (residence == ncclScalarDevice && comm->device == RONDO_DEVICE_HOST)
        made->scalar = scalar;
    else if ((result = nc_result(
                  comm, comm->rondo,
                  rondo_op_create_premulsum(&made->op, scalar, type, residence == ncclScalarDevice, comm->rondo)))) {
        free(made);
        return result;
    }
    pthread_mutex_lock(&nc_lock);
    do /* numbers wrap around after 2^31 ops */
        made->number = ncclNumOps + (int)(atomic_fetch_add(&last_number, 1) % 0x70000000);
    while (find(comm, made->number));
    made->next = comm->ops;
    comm->ops = made;
    pthread_mutex_unlock(&nc_lock);
    *op = (ncclRedOp_t)made->number;
    return ncclSuccess;
}
NC_TWIN(RedOpCreatePreMulSum);

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    const char *call = "ncclRedOpDestroy";
    ncclResult_t result = nc_comm_valid(comm, call);
    nc_user_op_t *u;

    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&nc_lock);
    u = (int)op >= ncclNumOps ? find(comm, (int)op) : NULL;
    if (u) {
        u->number = 0;
        if (u->users == 0)
            op_remove(comm, u);
    }
    pthread_mutex_unlock(&nc_lock);
    if (u)
        return ncclSuccess;
    return nc_error(comm, ncclInvalidArgument, "%s: op is %d: not one that ncclRedOpCreatePreMulSum has made for comm",
                    call, (int)op);
}
NC_TWIN(RedOpDestroy);
