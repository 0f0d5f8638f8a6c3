/* See args.h. */
#include "api/args.h"

#define BAD RONDO_ERR_INVALID_ARGUMENT

rondo_result_t rd_args_start(rd_at_t at, rondo_type_t type, rondo_stream_t stream)
{
    rondo_result_t result = rd_comm_valid(at.comm, at.call);

    if (result != RONDO_SUCCESS)
        return result;
    if ((unsigned)type >= RONDO_NUM_TYPES)
        return rd_error(&at.comm->who, BAD, "%s: type is %d, types are 0 to %d", at.call, (int)type,
                        RONDO_NUM_TYPES - 1);
    if (stream && !at.comm->cuda)
        return rd_error(&at.comm->who, BAD, "%s: stream is %p on a host communicator: pass NULL", at.call,
                        (void *)stream);
    return RONDO_SUCCESS;
}

rondo_result_t rd_args_rank(rd_at_t at, const char *what, int rank)
{
    if (rank >= 0 && rank < at.comm->nranks)
        return RONDO_SUCCESS;
    return rd_error(&at.comm->who, BAD, "%s: %s is %d, ranks are 0 to %d", at.call, what, rank, at.comm->nranks - 1);
}
