/* The operations: each entry describes its operation, submit() checks it as far as possible before the group ends
 * (rondo checks the rest), and nc_op_run() passes it to rondo.
 */
#include <string.h>

#include "core/binding.h"
#include "nccl/selection.h"

int nc_type(ncclDataType_t type, rondo_type_t *to)
{
    static const rondo_type_t types[ncclNumTypes] = {
        [ncclInt8] = RONDO_INT8,
        [ncclUint8] = RONDO_UINT8,
        [ncclInt32] = RONDO_INT32,
        [ncclUint32] = RONDO_UINT32,
        [ncclInt64] = RONDO_INT64,
        [ncclUint64] = RONDO_UINT64,
        [ncclFloat16] = RONDO_FLOAT16,
        [ncclFloat32] = RONDO_FLOAT32,
        [ncclFloat64] = RONDO_FLOAT64,
        [ncclBfloat16] = RONDO_BFLOAT16,
        [ncclFloat8e4m3] = RONDO_FLOAT8_E4M3,
        [ncclFloat8e5m2] = RONDO_FLOAT8_E5M2,
    };

    if ((unsigned)type >= ncclNumTypes)
        return -1;
    *to = types[type];
    return 0;
}

/* Returns 0, or -1 if it is none of NCCL's own operators. */
static int builtin_op(ncclRedOp_t op, rondo_op_t *to)
{
    static const rondo_op_t ops[ncclNumOps] = {
        [ncclSum] = RONDO_SUM, [ncclProd] = RONDO_PROD, [ncclMax] = RONDO_MAX,
        [ncclMin] = RONDO_MIN, [ncclAvg] = RONDO_AVG,
    };

    if ((unsigned)op >= ncclNumOps)
        return -1;
    *to = ops[op];
    return 0;
}

/* The ranks that read `send` and write `recv`: none, the root, or all. */
typedef enum { NOBODY, ROOT, ALL } log_ctx_t;

static const struct {
    const char *call;
    int reduces, rooted; /* rooted: it has a root or a peer */
    log_ctx_t sends, receives;
} shapes[] = {
    [NC_ALLREDUCE] = {"ncclAllReduce", 1, 0, ALL, ALL},  [NC_REDUCE] = {"ncclReduce", 1, 1, ALL, ROOT},
    [NC_BROADCAST] = {"ncclBroadcast", 0, 1, ROOT, ALL}, [NC_REDUCE_SCATTER] = {"ncclReduceScatter", 1, 0, ALL, ALL},
    [NC_ALLGATHER] = {"ncclAllGather", 0, 0, ALL, ALL},  [NC_ALLTOALL] = {"ncclAlltoAll", 0, 0, ALL, ALL},
    [NC_GATHER] = {"ncclGather", 0, 1, ALL, ROOT},       [NC_SCATTER] = {"ncclScatter", 0, 1, ROOT, ALL},
    [NC_SEND] = {"ncclSend", 0, 1, ALL, NOBODY},         [NC_RECV] = {"ncclRecv", 0, 1, NOBODY, ALL},
};

static _Thread_local nc_said_t call_said;

void nc_call_config(nc_said_t said)
{
    call_said = said;
}

static rondo_result_t run(const nc_op_t *op)
{
    rondo_comm_t comm = op->comm->rondo;
    rondo_op_t number = op->op;
    rondo_result_t result;

    if (op->what >= NC_PUT_SIGNAL)
        return nc_onesided_run(op);
    if (op->user_op && (result = nc_user_op_begin(op->comm, op->user_op, &number)))
        return result;
    switch (op->what) {
    case NC_ALLREDUCE:
        result = rondo_allreduce(op->send, op->recv, op->count, op->type, number, comm, op->stream);
        break;
    case NC_REDUCE:
        result = rondo_reduce(op->send, op->recv, op->count, op->type, number, op->root, comm, op->stream);
        break;
    case NC_BROADCAST:
        result = rondo_broadcast(op->send, op->recv, op->count, op->type, op->root, comm, op->stream);
        break;
    case NC_REDUCE_SCATTER:
        result = rondo_reduce_scatter(op->send, op->recv, op->count, op->type, number, comm, op->stream);
        break;
    case NC_ALLGATHER:
        result = rondo_allgather(op->send, op->recv, op->count, op->type, comm, op->stream);
        break;
    case NC_ALLTOALL:
        result = rondo_alltoall(op->send, op->recv, op->count, op->type, comm, op->stream);
        break;
    case NC_GATHER:
        result = rondo_gather(op->send, op->recv, op->count, op->type, op->root, comm, op->stream);
        break;
    case NC_SCATTER:
        result = rondo_scatter(op->send, op->recv, op->count, op->type, op->root, comm, op->stream);
        break;
    case NC_SEND:
        result = rondo_send(op->send, op->count, op->type, op->root, comm, op->stream);
        break;
    default:
        result = rondo_recv(op->recv, op->count, op->type, op->root, comm, op->stream);
        break;
    }
    if (op->user_op)
        nc_user_op_end(op->comm, op->user_op, number);
    return result;
}

/* A program that calls rondo_tag itself keeps its tag, as long as it does not use NCCL's. */
rondo_result_t nc_op_run(const nc_op_t *op)
{
    const nc_said_t *said = &op->said;

    if (said->tag)
        (void)rondo_tag(said->tag);
    if (said->selection)
        nc_selection_begin(said->selection);
    if (said->has_budgets)
        (void)rondo_resources_next(said->blocks, said->cta_policy);
    if (said->event)
        (void)rondo_launch_event_next(said->event);
    rondo_result_t result = run(op);
    if (said->event) /* a call that was refused has not taken them */
        (void)rondo_launch_event_next(NULL);
    if (said->has_budgets)
        (void)rondo_resources_next(-1, -1);
    if (said->selection)
        nc_selection_end();
    if (said->tag)
        (void)rondo_tag(0);
    return result;
}

static bool needs(log_ctx_t ctx, const nc_op_t *op)
{
    return op->count > 0 && (ctx == ALL || (ctx == ROOT && op->root == op->comm->rank));
}

static ncclResult_t check(const nc_op_t *op, const char *call)
{
    if (shapes[op->what].rooted && (op->root < 0 || op->root >= op->comm->nranks))
        return nc_error(op->comm, ncclInvalidArgument, "%s: %s is %d: ranks are 0 to %d", call,
                        op->what == NC_SEND || op->what == NC_RECV ? "peer" : "root", op->root, op->comm->nranks - 1);
    if (needs(shapes[op->what].sends, op) && !op->send)
        return nc_error(op->comm, ncclInvalidArgument, "%s: sendbuff is NULL", call);
    if (needs(shapes[op->what].receives, op) && !op->recv)
        return nc_error(op->comm, ncclInvalidArgument, "%s: recvbuff is NULL", call);
    return ncclSuccess;
}

/* Where it is asked for, pointers are checked at the call, also in a group, and memory of another GPU is refused. */
static ncclResult_t check_pointers(const nc_op_t *op, const char *call)
{
    rondo_comm_t rondo = op->comm->rondo;
    rondo_result_t result = RONDO_SUCCESS;

    if (needs(shapes[op->what].sends, op))
        result = rondo_buffer_check(rondo, call, "sendbuff", op->send);
    if (result == RONDO_SUCCESS && needs(shapes[op->what].receives, op))
        result = rondo_buffer_check(rondo, call, "recvbuff", op->recv);
    return nc_result(op->comm, NULL, result);
}

/* In NCCL's words, because scripts read these lines. */
static void log_call(const nc_op_t *op, ncclDataType_t type, ncclRedOp_t redop)
{
    nc_log(NC_SUBSYS_COLL,
           "%s: opCount %llx sendbuff %p recvbuff %p count %zu datatype %d op %d root %d comm %p [nranks=%d] stream %p",
           shapes[op->what].call + strlen("nccl"), (unsigned long long)atomic_fetch_add(&op->comm->calls, 1), op->send,
           op->recv, op->count, (int)type, (int)redop, op->root, (void *)op->comm, op->comm->nranks, op->stream);
}

static ncclResult_t record(nc_op_t op, ncclDataType_t type, ncclRedOp_t redop, cudaStream_t stream)
{
    const char *call = shapes[op.what].call;
    ncclResult_t result = nc_comm_ready(op.comm, call);

    if (result != ncclSuccess)
        return result;
    if (nc_type(type, &op.type) != 0)
        return nc_error(op.comm, ncclInvalidArgument, "%s: datatype is %d: 0 to %d", call, (int)type, ncclNumTypes - 1);
    if ((result = check(&op, call)) || (nc_settings_checks_pointers() && (result = check_pointers(&op, call))))
        return result;
    if (shapes[op.what].reduces && builtin_op(redop, &op.op) != 0) {
        op.user_op = nc_user_op_get(op.comm, redop);
        if (!op.user_op)
            return nc_error(op.comm, ncclInvalidArgument,
                            "%s: op is %d: neither 0 to %d nor made for this communicator by ncclRedOpCreatePreMulSum",
                            call, (int)redop, ncclNumOps - 1);
    }
    op.said = call_said;
    op.stream = op.comm->device == RONDO_DEVICE_HOST ? NULL : stream;
    if (nc_log_shows(NC_SUBSYS_COLL))
        log_call(&op, type, redop);
    return nc_group_op(&op);
}

static ncclResult_t submit(nc_op_t op, ncclDataType_t type, ncclRedOp_t redop, cudaStream_t stream)
{
    return nc_group_check(record(op, type, redop, stream));
}

ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream)
{
    return submit((nc_op_t){.what = NC_ALLREDUCE, .send = sendbuff, .recv = recvbuff, .count = count, .comm = comm},
                  datatype, op, stream);
}
NC_TWIN(AllReduce);

ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                         int root, ncclComm_t comm, cudaStream_t stream)
{
    return submit(
        (nc_op_t){.what = NC_REDUCE, .send = sendbuff, .recv = recvbuff, .count = count, .root = root, .comm = comm},
        datatype, op, stream);
}
NC_TWIN(Reduce);

ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                            ncclComm_t comm, cudaStream_t stream)
{
    return submit(
        (nc_op_t){.what = NC_BROADCAST, .send = sendbuff, .recv = recvbuff, .count = count, .root = root, .comm = comm},
        datatype, ncclSum, stream);
}
NC_TWIN(Broadcast);

ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    return pncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}
NC_TWIN(Bcast);

ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return submit(
        (nc_op_t){.what = NC_REDUCE_SCATTER, .send = sendbuff, .recv = recvbuff, .count = recvcount, .comm = comm},
        datatype, op, stream);
}
NC_TWIN(ReduceScatter);

ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream)
{
    return submit((nc_op_t){.what = NC_ALLGATHER, .send = sendbuff, .recv = recvbuff, .count = sendcount, .comm = comm},
                  datatype, ncclSum, stream);
}
NC_TWIN(AllGather);

ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                           cudaStream_t stream)
{
    return submit((nc_op_t){.what = NC_ALLTOALL, .send = sendbuff, .recv = recvbuff, .count = count, .comm = comm},
                  datatype, ncclSum, stream);
}
NC_TWIN(AlltoAll);

ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    return submit(
        (nc_op_t){.what = NC_GATHER, .send = sendbuff, .recv = recvbuff, .count = count, .root = root, .comm = comm},
        datatype, ncclSum, stream);
}
NC_TWIN(Gather);

ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                          ncclComm_t comm, cudaStream_t stream)
{
    return submit(
        (nc_op_t){.what = NC_SCATTER, .send = sendbuff, .recv = recvbuff, .count = count, .root = root, .comm = comm},
        datatype, ncclSum, stream);
}
NC_TWIN(Scatter);

ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream)
{
    return submit((nc_op_t){.what = NC_SEND, .send = sendbuff, .count = count, .root = peer, .comm = comm}, datatype,
                  ncclSum, stream);
}
NC_TWIN(Send);

ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream)
{
    return submit((nc_op_t){.what = NC_RECV, .recv = recvbuff, .count = count, .root = peer, .comm = comm}, datatype,
                  ncclSum, stream);
}
NC_TWIN(Recv);
