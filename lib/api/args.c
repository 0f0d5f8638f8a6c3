/* See args.h. */
#include "api/args.h"

#include "core/op.h"

#define BAD RONDO_ERR_INVALID_ARGUMENT

rondo_result_t rd_args_start_slow(rd_at_t at, rondo_type_t type, rondo_stream_t stream)
{
    rondo_result_t result = rd_comm_valid(at.comm, at.call);

    if (result != RONDO_SUCCESS)
        return result;
    if ((unsigned)type >= RONDO_NUM_TYPES)
        return rd_error(&at.comm->ctx, BAD, "%s: type is %d, types are 0 to %d", at.call, (int)type,
                        RONDO_NUM_TYPES - 1);
    if (stream && !rd_comm_on_device(at.comm))
        return rd_error(&at.comm->ctx, BAD, "%s: stream is %p on a host communicator: pass NULL", at.call,
                        (void *)stream);
    return RONDO_SUCCESS;
}

rondo_result_t rd_args_rank_slow(rd_at_t at, const char *what, int rank)
{
    return rd_error(&at.comm->ctx, BAD, "%s: %s is %d, ranks are 0 to %d", at.call, what, rank,
                    at.comm->team.nranks - 1);
}

rondo_result_t rd_args_op(rd_at_t at, rondo_op_t op, rondo_type_t type)
{
    if (op >= RONDO_NUM_OPS)
        return rd_op_check(at.comm, op, type, at.call);
    if (op < 0)
        return rd_error(&at.comm->ctx, BAD, "%s: op is %d, operators are 0 to %d or made by this communicator", at.call,
                        op, RONDO_NUM_OPS - 1);
    if (rd_op_valid(op, type))
        return RONDO_SUCCESS;
    return rd_error(&at.comm->ctx, BAD, "%s: op %s makes no sense for type %s", at.call, rd_op_name(op),
                    rd_type_name(type));
}
