/* ncclAlltoAll with sendbuff == recvbuff, which NCCL accepts and rondo does not. The data to be sent is first copied
 * into a bounce buffer, by a message to the rank itself, so that the copy is ordered with the communicator's other
 * operations, whatever streams they name. A bounce buffer serves one operation of a batch. The next batch uses it
 * again, because its operations run after those of this one. Buffers are kept until the communicator ends, because
 * graphs may hold their addresses.
 */
#include <stdlib.h>

#include "core/binding.h"
#include "nccl/shim.h"

struct nc_bounce {
    struct nc_bounce *next;
    void *buffer;
    size_t bytes;
    int taken;
};

static struct nc_bounce *find(ncclComm_t comm, size_t bytes)
{
    struct nc_bounce *a = comm->asides;

    while (a && (a->taken || a->bytes < bytes))
        a = a->next;
    return a;
}

static rondo_result_t make(ncclComm_t comm, size_t bytes, struct nc_bounce **made)
{
    struct nc_bounce *a = calloc(1, sizeof *a);
    rondo_result_t result = a ? rondo_scratch_alloc(&a->buffer, &bytes, comm->rondo) : RONDO_ERR_NO_MEMORY;

    if (result != RONDO_SUCCESS) {
        free(a);
        return result;
    }
    a->bytes = bytes;
    a->next = comm->asides;
    comm->asides = *made = a;
    return RONDO_SUCCESS;
}

/* How long a buffer of an alltoall in place is; 0 for anything else. rondo itself refuses one that is too long. */
static size_t bytes_in_place(const nc_op_t *op)
{
    const size_t elements = op->count * (size_t)op->comm->nranks;
    size_t bytes;

    return op->what != NC_ALLTOALL || op->send != op->recv ||
                   __builtin_mul_overflow(elements, rondo_type_size(op->type), &bytes)
               ? 0
               : bytes;
}

rondo_result_t nc_bounce_copy(nc_op_t *op)
{
    const size_t elements = op->count * (size_t)op->comm->nranks, bytes = bytes_in_place(op);
    rondo_result_t result, ended;

    if (bytes == 0)
        return RONDO_SUCCESS;
    if (!(op->bounce = find(op->comm, bytes)) && (result = make(op->comm, bytes, &op->bounce)) != RONDO_SUCCESS)
        return result;
    op->bounce->taken = 1;
    (void)rondo_group_start();
    result = rondo_send(op->send, elements, op->type, op->comm->rank, op->comm->rondo, op->stream);
    if (result == RONDO_SUCCESS)
        result = rondo_recv(op->bounce->buffer, elements, op->type, op->comm->rank, op->comm->rondo, op->stream);
    ended = rondo_group_end();
    op->send = op->bounce->buffer;
    return result == RONDO_SUCCESS ? ended : result;
}

void nc_bounce_simulate(nc_op_t *op)
{
    op->send = (const char *)op->send + bytes_in_place(op);
}

void nc_bounce_release(const nc_op_t *op)
{
    if (op->bounce)
        op->bounce->taken = 0;
}

void nc_bounce_free_all(ncclComm_t comm)
{
    while (comm->asides) {
        struct nc_bounce *a = comm->asides;
        comm->asides = a->next;
        if (comm->rondo)
            rondo_scratch_free(a->buffer, a->bytes, comm->rondo);
        free(a);
    }
}
