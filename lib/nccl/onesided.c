/* One-sided operations. The arguments are rondo's in another order of words, and rondo
 * checks them; a window is rondo's behind NCCL's handle. On a device that is the registration's, of buffers that the
 * ranks have mapped.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl/later.h"
#include "nccl/shim.h"

rondo_result_t nc_onesided_run(const nc_op_t *op)
{
    rondo_comm_t comm = op->comm->rondo;

    if (op->what == NC_PUT_SIGNAL)
        return rondo_put_signal(op->send, op->count, op->type, op->root, op->window, op->offset, op->signal,
                                op->context, op->flags, comm, op->stream);
    if (op->what == NC_SIGNAL)
        return rondo_signal(op->root, op->signal, op->context, op->flags, comm, op->stream);
    return rondo_wait_signal(op->nwaits, op->waits, comm, op->stream);
}

static ncclResult_t record_put(nc_op_t *op, ncclDataType_t datatype, ncclWindow_t peerWin)
{
    const char *call = "ncclPutSignal";
    ncclResult_t result = nc_comm_ready(op->comm, call);

    if (result != ncclSuccess)
        return result;
    if (nc_type(datatype, &op->type) != 0)
        return nc_error(op->comm, ncclInvalidArgument, "%s: datatype is %d: 0 to %d", call, (int)datatype,
                        ncclNumTypes - 1);
    op->window = nc_window_of(op->comm, peerWin);
    if (!op->window)
        return nc_error(op->comm, ncclInvalidArgument,
                        "%s: peerWin is not from ncclCommWindowRegister of this communicator, with "
                        "NCCL_WIN_COLL_SYMMETRIC%s",
                        call,
                        op->comm->device == RONDO_DEVICE_HOST
                            ? ""
                            : ", or the ranks have not mapped it: they must be processes of one node whose GPUs reach "
                              "each other, and its memory ncclMemAlloc's or cudaMalloc's");
    return nc_group_op(op);
}

ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                            ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
                            ncclComm_t comm, cudaStream_t stream)
{
    nc_op_t op = {.what = NC_PUT_SIGNAL,
                  .send = localbuff,
                  .count = count,
                  .root = peer,
                  .comm = comm,
                  .stream = stream,
                  .offset = peerWinOffset,
                  .signal = sigIdx,
                  .context = ctx,
                  .flags = flags};

    return nc_group_check(record_put(&op, datatype, peerWin));
}
NC_TWIN(PutSignal);

ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t result = nc_comm_ready(comm, "ncclSignal");
    nc_op_t op = {.what = NC_SIGNAL,
                  .root = peer,
                  .comm = comm,
                  .stream = stream,
                  .signal = sigIdx,
                  .context = ctx,
                  .flags = flags};

    return nc_group_check(result == ncclSuccess ? nc_group_op(&op) : result);
}
NC_TWIN(Signal);

static ncclResult_t record_wait(int nDesc, const ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm,
                                cudaStream_t stream)
{
    const char *call = "ncclWaitSignal";
    ncclResult_t result = nc_comm_ready(comm, call);
    nc_op_t op = {.what = NC_WAIT_SIGNAL, .comm = comm, .stream = stream, .nwaits = nDesc};

    if (result != ncclSuccess)
        return result;
    if (nDesc < 1 || !signalDescs)
        return nc_error(comm, ncclInvalidArgument, "%s: %s", call,
                        signalDescs ? "nDesc is less than 1" : "signalDescs is NULL");
    op.waits = malloc((size_t)nDesc * sizeof *op.waits);
    if (!op.waits)
        return nc_error(comm, ncclSystemError, "%s: no memory", call);
    for (int i = 0; i < nDesc; i++)
        op.waits[i] =
            (rondo_wait_desc_t){signalDescs[i].opCnt, signalDescs[i].peer, signalDescs[i].sigIdx, signalDescs[i].ctx};
    return nc_group_op(&op);
}

ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream)
{
    return nc_group_check(record_wait(nDesc, signalDescs, comm, stream));
}
NC_TWIN(WaitSignal);
