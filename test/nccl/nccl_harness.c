/* See nccl_harness.h. */
#define _GNU_SOURCE
#include "nccl/nccl_harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void nccl_begin(void)
{
    setenv("RONDO_NCCL_HOST", "1", 1);
    if (!getenv("NCCL_DEBUG") && getenv("RONDO_DEBUG") && strcmp(getenv("RONDO_DEBUG"), "none") == 0)
        setenv("NCCL_DEBUG", "NONE", 1);
}

int nccl_result(test_rank_t *t, ncclResult_t got, ncclResult_t want, const char *text)
{
    if (got == want)
        return 1;
    test_fail(t, "%s: %s (%d), wanted %s (%d): %s", text, ncclGetErrorString(got), (int)got, ncclGetErrorString(want),
              (int)want, ncclGetLastError(NULL));
    return 0;
}

/* The ids are the same bytes. */
ncclUniqueId nccl_id(test_rank_t *t)
{
    rondo_unique_id_t from;
    ncclUniqueId id;

    test_id(t, &from);
    memcpy(&id, &from, sizeof id);
    return id;
}

ncclComm_t nccl_comm(test_rank_t *t)
{
    ncclComm_t comm = NULL;

    if (!NCCL_OK(t, ncclCommInitRank(&comm, t->nranks, nccl_id(t), t->rank)))
        test_stop(t, "no communicator");
    return comm;
}

int nccl_type(rondo_type_t type)
{
    static const int types[RONDO_NUM_TYPES] = {
        [RONDO_INT8] = 1 + ncclInt8,
        [RONDO_UINT8] = 1 + ncclUint8,
        [RONDO_INT32] = 1 + ncclInt32,
        [RONDO_UINT32] = 1 + ncclUint32,
        [RONDO_INT64] = 1 + ncclInt64,
        [RONDO_UINT64] = 1 + ncclUint64,
        [RONDO_FLOAT16] = 1 + ncclFloat16,
        [RONDO_FLOAT32] = 1 + ncclFloat32,
        [RONDO_FLOAT64] = 1 + ncclFloat64,
        [RONDO_BFLOAT16] = 1 + ncclBfloat16,
        [RONDO_FLOAT8_E4M3] = 1 + ncclFloat8e4m3,
        [RONDO_FLOAT8_E5M2] = 1 + ncclFloat8e5m2,
    };

    return types[type] - 1;
}

int nccl_op(rondo_op_t op)
{
    static const int ops[RONDO_NUM_OPS] = {
        [RONDO_SUM] = 1 + ncclSum, [RONDO_PROD] = 1 + ncclProd, [RONDO_MIN] = 1 + ncclMin,
        [RONDO_MAX] = 1 + ncclMax, [RONDO_AVG] = 1 + ncclAvg,
    };

    return ops[op] - 1;
}

int nccl_posts(do_what_t what)
{
    return !do_has_counts(what) && what != DO_BARRIER;
}

static ncclResult_t shift(do_call_t *call, ncclComm_t comm, ncclDataType_t type, cudaStream_t stream)
{
    int n = call->nranks, distance = call->c.root;
    ncclResult_t sent, received, ended;

    ncclGroupStart();
    received = ncclRecv(call->recv, call->c.count, type, (call->rank + n - distance) % n, comm, stream);
    sent = ncclSend(call->send, call->c.count, type, (call->rank + distance) % n, comm, stream);
    ended = ncclGroupEnd();
    return sent ? sent : received ? received : ended;
}

ncclResult_t nccl_post(do_call_t *call, ncclComm_t comm, cudaStream_t stream)
{
    const do_case_t *c = &call->c;
    const int at_root = call->rank == c->root;
    ncclDataType_t type = (ncclDataType_t)nccl_type(c->type);
    ncclRedOp_t op = (ncclRedOp_t)nccl_op(c->op);

    switch (c->what) {
    case DO_ALLREDUCE:
        return ncclAllReduce(call->send, call->recv, c->count, type, op, comm, stream);
    case DO_REDUCE:
        return ncclReduce(call->send, at_root ? call->recv : NULL, c->count, type, op, c->root, comm, stream);
    case DO_REDUCE_SCATTER:
        return ncclReduceScatter(call->send, call->recv, c->count, type, op, comm, stream);
    case DO_BROADCAST:
        if (c->in_place) /* the older call is this one */
            return ncclBcast(call->recv, c->count, type, c->root, comm, stream);
        return ncclBroadcast(at_root ? call->send : NULL, call->recv, c->count, type, c->root, comm, stream);
    case DO_ALLGATHER:
        return ncclAllGather(call->send, call->recv, c->count, type, comm, stream);
    case DO_GATHER:
        return ncclGather(call->send, at_root ? call->recv : NULL, c->count, type, c->root, comm, stream);
    case DO_SCATTER:
        return ncclScatter(at_root ? call->send : NULL, call->recv, c->count, type, c->root, comm, stream);
    case DO_ALLTOALL:
        return ncclAlltoAll(call->send, call->recv, c->count, type, comm, stream);
    default:
        return shift(call, comm, type, stream);
    }
}

static int placed(int from, int to, int round, int i)
{
    return ((from * 16 + to) * 8 + round) * NCCL_PLACE + i;
}

void nccl_place(const test_rank_t *t, int *x, int round)
{
    for (int r = 0; r < t->nranks; r++)
        for (int i = 0; i < NCCL_PLACE; i++)
            x[r * NCCL_PLACE + i] = placed(t->rank, r, round, i);
}

void nccl_placed(test_rank_t *t, const int *x, int round)
{
    for (int r = 0; r < t->nranks; r++)
        for (int i = 0; i < NCCL_PLACE; i++)
            if (x[r * NCCL_PLACE + i] != placed(r, t->rank, round, i))
                test_stop(t, "all-to-all in place, round %d: int %d from rank %d is %d, should be %d", round, i, r,
                          x[r * NCCL_PLACE + i], placed(r, t->rank, round, i));
}

ncclResult_t nccl_settled(ncclComm_t comm, ncclResult_t result)
{
    while (result == ncclInProgress) {
        usleep(20);
        if (ncclCommGetAsyncError(comm, &result) != ncclSuccess)
            return ncclInternalError;
    }
    return result;
}
