/* The operations' public entries: each refuses what is wrong with a sentence that names the argument, what it was and
 * what is allowed, and hands the rest to core/submit.c. The contracts stand in rondo.h.
 */
#include <stdlib.h>
#include <string.h>

#include "api/args.h"
#include "core/submit.h"
#include "core/op.h"

#define BAD RONDO_ERR_INVALID_ARGUMENT

static rondo_result_t check_count(rd_at_t at, const char *what, size_t count, size_t blocks, rondo_type_t type)
{
    size_t all;

    if (!__builtin_mul_overflow(count, blocks, &all) && all <= rd_args_most(type))
        return RONDO_SUCCESS;
    return rd_error(&at.comm->who, BAD, "%s: %s is %zu, more than memory can hold (a negative number?)", at.call, what,
                    count);
}

static rondo_result_t check_buffer(rd_at_t at, const char *what, const void *buffer, size_t bytes)
{
    if (buffer || bytes == 0)
        return RONDO_SUCCESS;
    return rd_error(&at.comm->who, BAD, "%s: %s is NULL, but %zu bytes are needed", at.call, what, bytes);
}

/* Two ranges that overlap. `in_place`: the buffers lie in the way that the call allows; `may`: it has such a way. */
static rondo_result_t check_overlap(rd_at_t at, const void *send, size_t sendbytes, const void *recv, size_t recvbytes,
                                    int may, int in_place)
{
    uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv;

    if (!sendbytes || !recvbytes || s + sendbytes <= r || r + recvbytes <= s || in_place)
        return RONDO_SUCCESS;
    return rd_error(&at.comm->who, BAD, "%s: send (%zu bytes at %p) overlaps recv (%zu bytes at %p)%s", at.call,
                    sendbytes, send, recvbytes, recv,
                    may ? " in another way than in place" : ": this operation cannot run in place");
}

static rondo_result_t check_op(rd_at_t at, rondo_op_t op, rondo_type_t type)
{
    if (op >= RONDO_NUM_OPS)
        return rd_op_check(at.comm, op, type, at.call);
    if (op < 0)
        return rd_error(&at.comm->who, BAD, "%s: op is %d, operators are 0 to %d or made by this communicator", at.call,
                        op, RONDO_NUM_OPS - 1);
    if (rd_op_valid(op, type))
        return RONDO_SUCCESS;
    return rd_error(&at.comm->who, BAD, "%s: op %s makes no sense for type %s", at.call, rd_op_name(op),
                    rd_type_name(type));
}

static const void *block_of(const void *buffer, int rank, size_t bytes)
{
    return (const char *)buffer + (size_t)rank * bytes;
}

enum { BLOCKS = 1, REDUCES = 2, ROOTED = 4 }; /* the count is of a block for each rank; op is given; root is */

/* All but the buffers. `what`: what the count is called. */
static rondo_result_t check_ask(rd_at_t at, int has, const char *what, size_t count, rondo_type_t type, rondo_op_t op,
                                int root, rondo_stream_t stream)
{
    rondo_result_t result = rd_args_start(at, type, stream);

    if (result == RONDO_SUCCESS)
        result = check_count(at, what, count, has & BLOCKS ? (size_t)at.comm->nranks : 1, type);
    if (result == RONDO_SUCCESS && has & ROOTED)
        result = rd_args_rank(at, "root", root);
    if (result == RONDO_SUCCESS && has & REDUCES)
        result = check_op(at, op, type);
    return result == RONDO_SUCCESS ? result : rd_group_failed(result);
}

/* `again`: as the communicator's last call. The arguments stay in registers then: what is stored for a moment, and
 * loaded otherwise than it was stored, waits for the lines of the last message to leave the core. */
static inline rondo_result_t launch(int again, rondo_comm_t comm, rd_coll_t coll, rondo_type_t type, rondo_op_t op,
                                    int root, size_t count, const void *in, void *out, rondo_stream_t stream)
{
    if (again)
        return rd_call_repeat(comm, in, out);
    const rd_call_t call = {{coll, type, op, root, count, 0}, NULL, in, out, 0, NULL, 0, stream};
    return rd_call_collective(comm, &call);
}

rondo_result_t rondo_allreduce(const void *send, void *recv, size_t count, rondo_type_t type, rondo_op_t op,
                               rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_allreduce", comm};
    int again = rd_call_repeats(comm, RD_ALLREDUCE, type, op, 0, count, stream);
    rondo_result_t result =
        again ? RONDO_SUCCESS : check_ask(at, REDUCES, "count", count, type, op, 0, stream);

    if (result != RONDO_SUCCESS)
        return result;
    size_t bytes = count * rondo_type_size(type);
    if ((result = check_buffer(at, "send", send, bytes)) || (result = check_buffer(at, "recv", recv, bytes)) ||
        (result = check_overlap(at, send, bytes, recv, bytes, 1, send == recv)))
        return rd_group_failed(result);
    return launch(again, comm, RD_ALLREDUCE, type, op, 0, count, send, recv, stream);
}

rondo_result_t rondo_reduce(const void *send, void *recv, size_t count, rondo_type_t type, rondo_op_t op, int root,
                            rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_reduce", comm};
    int again = rd_call_repeats(comm, RD_REDUCE, type, op, root, count, stream);
    rondo_result_t result =
        again ? RONDO_SUCCESS : check_ask(at, REDUCES | ROOTED, "count", count, type, op, root, stream);

    if (result != RONDO_SUCCESS)
        return result;
    size_t bytes = count * rondo_type_size(type), kept = comm->rank == root ? bytes : 0;
    if ((result = check_buffer(at, "send", send, bytes)) || (result = check_buffer(at, "recv", recv, kept)) ||
        (result = check_overlap(at, send, bytes, recv, kept, 1, send == recv)))
        return rd_group_failed(result);
    return launch(again, comm, RD_REDUCE, type, op, root, count, send, recv, stream);
}

rondo_result_t rondo_broadcast(const void *send, void *recv, size_t count, rondo_type_t type, int root,
                               rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_broadcast", comm};
    int again = rd_call_repeats(comm, RD_BROADCAST, type, 0, root, count, stream);
    rondo_result_t result =
        again ? RONDO_SUCCESS : check_ask(at, ROOTED, "count", count, type, 0, root, stream);

    if (result != RONDO_SUCCESS)
        return result;
    size_t bytes = count * rondo_type_size(type), held = comm->rank == root ? bytes : 0;
    if ((result = check_buffer(at, "send", send, held)) || (result = check_buffer(at, "recv", recv, bytes)) ||
        (result = check_overlap(at, send, held, recv, bytes, 1, send == recv)))
        return rd_group_failed(result);
    return launch(again, comm, RD_BROADCAST, type, 0, root, count, send, recv, stream);
}

rondo_result_t rondo_allgather(const void *send, void *recv, size_t sendcount, rondo_type_t type, rondo_comm_t comm,
                               rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_allgather", comm};
    int again = rd_call_repeats(comm, RD_ALLGATHER, type, 0, 0, sendcount, stream);
    rondo_result_t result =
        again ? RONDO_SUCCESS : check_ask(at, BLOCKS, "sendcount", sendcount, type, 0, 0, stream);

    if (result != RONDO_SUCCESS)
        return result;
    size_t bytes = sendcount * rondo_type_size(type), all = bytes * (size_t)comm->nranks;
    if ((result = check_buffer(at, "send", send, bytes)) || (result = check_buffer(at, "recv", recv, bytes)) ||
        (result = check_overlap(at, send, bytes, recv, all, 1, send == block_of(recv, comm->rank, bytes))))
        return rd_group_failed(result);
    return launch(again, comm, RD_ALLGATHER, type, 0, 0, sendcount, send, recv, stream);
}

rondo_result_t rondo_reduce_scatter(const void *send, void *recv, size_t recvcount, rondo_type_t type, rondo_op_t op,
                                    rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_reduce_scatter", comm};
    int again = rd_call_repeats(comm, RD_REDUCE_SCATTER, type, op, 0, recvcount, stream);
    rondo_result_t result =
        again ? RONDO_SUCCESS : check_ask(at, BLOCKS | REDUCES, "recvcount", recvcount, type, op, 0, stream);

    if (result != RONDO_SUCCESS)
        return result;
    size_t bytes = recvcount * rondo_type_size(type), all = bytes * (size_t)comm->nranks;
    int in_place = recv == send || recv == block_of(send, comm->rank, bytes);
    if ((result = check_buffer(at, "send", send, bytes)) || (result = check_buffer(at, "recv", recv, bytes)) ||
        (result = check_overlap(at, send, all, recv, bytes, 1, in_place)))
        return rd_group_failed(result);
    if (send != recv || comm->rank == 0)
        return launch(again, comm, RD_REDUCE_SCATTER, type, op, 0, recvcount, send, recv, stream);
    const rd_call_t made = {
        {RD_REDUCE_SCATTER, type, op, 0, recvcount, 0}, NULL, send, recv, bytes, NULL, 0, stream};
    return rd_call_collective(comm, &made);
}

rondo_result_t rondo_alltoall(const void *send, void *recv, size_t count, rondo_type_t type, rondo_comm_t comm,
                              rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_alltoall", comm};
    int again = rd_call_repeats(comm, RD_ALLTOALL, type, 0, 0, count, stream);
    rondo_result_t result =
        again ? RONDO_SUCCESS : check_ask(at, BLOCKS, "count", count, type, 0, 0, stream);

    if (result != RONDO_SUCCESS)
        return result;
    size_t all = count * rondo_type_size(type) * (size_t)comm->nranks;
    if ((result = check_buffer(at, "send", send, all)) || (result = check_buffer(at, "recv", recv, all)) ||
        (result = check_overlap(at, send, all, recv, all, 0, 0)))
        return rd_group_failed(result);
    return launch(again, comm, RD_ALLTOALL, type, 0, 0, count, send, recv, stream);
}

/* gather and scatter: one block at every rank, all blocks at the root. */
static inline rondo_result_t rooted(rd_at_t at, rd_coll_t coll, const void *send, void *recv, size_t count,
                                    rondo_type_t type, int root, rondo_stream_t stream)
{
    rondo_comm_t comm = at.comm;
    int again = rd_call_repeats(comm, coll, type, 0, root, count, stream), gathers = coll == RD_GATHER;
    rondo_result_t result =
        again ? RONDO_SUCCESS : check_ask(at, BLOCKS | ROOTED, "count", count, type, 0, root, stream);

    if (result != RONDO_SUCCESS)
        return result;
    size_t bytes = count * rondo_type_size(type), all = comm->rank == root ? bytes * (size_t)comm->nranks : 0;
    if ((result = check_buffer(at, "send", send, gathers ? bytes : all)) ||
        (result = check_buffer(at, "recv", recv, gathers ? all : bytes)))
        return rd_group_failed(result);
    int in_place = gathers ? send == block_of(recv, root, bytes) : recv == block_of(send, root, bytes);
    if (all && (result = check_overlap(at, send, gathers ? bytes : all, recv, gathers ? all : bytes, 1, in_place)))
        return rd_group_failed(result);
    return launch(again, comm, coll, type, 0, root, count, send, recv, stream);
}

rondo_result_t rondo_gather(const void *send, void *recv, size_t count, rondo_type_t type, int root, rondo_comm_t comm,
                            rondo_stream_t stream)
{
    return rooted((rd_at_t){"rondo_gather", comm}, RD_GATHER, send, recv, count, type, root, stream);
}

rondo_result_t rondo_scatter(const void *send, void *recv, size_t count, rondo_type_t type, int root, rondo_comm_t comm,
                             rondo_stream_t stream)
{
    return rooted((rd_at_t){"rondo_scatter", comm}, RD_SCATTER, send, recv, count, type, root, stream);
}

static rondo_result_t message(rd_at_t at, int send, void *buffer, size_t count, rondo_type_t type, int peer,
                              rondo_stream_t stream)
{
    rondo_result_t result = rd_args_start(at, type, stream);

    if (result == RONDO_SUCCESS)
        result = check_count(at, "count", count, 1, type);
    if (result != RONDO_SUCCESS)
        return rd_group_failed(result);
    size_t bytes = count * rondo_type_size(type);
    if ((result = rd_args_rank(at, "peer", peer)) || (result = check_buffer(at, "buffer", buffer, bytes)))
        return rd_group_failed(result);
    return rd_call_message(at.comm, send, buffer, bytes, peer, stream);
}

rondo_result_t rondo_send(const void *buffer, size_t count, rondo_type_t type, int peer, rondo_comm_t comm,
                          rondo_stream_t stream)
{
    return message((rd_at_t){"rondo_send", comm}, 1, (void *)(uintptr_t)buffer, count, type, peer, stream);
}

rondo_result_t rondo_recv(void *buffer, size_t count, rondo_type_t type, int peer, rondo_comm_t comm,
                          rondo_stream_t stream)
{
    return message((rd_at_t){"rondo_recv", comm}, 0, buffer, count, type, peer, stream);
}

rondo_result_t rondo_barrier(rondo_comm_t comm, rondo_stream_t stream)
{
    const rd_at_t at = {"rondo_barrier", comm};
    int again = rd_call_repeats(comm, RD_BARRIER, RONDO_UINT8, 0, 0, 1, stream);
    rondo_result_t result = again ? RONDO_SUCCESS : check_ask(at, 0, "count", 1, RONDO_UINT8, 0, 0, stream);

    return result == RONDO_SUCCESS ? launch(again, comm, RD_BARRIER, RONDO_UINT8, 0, 0, 1, NULL, NULL, stream) : result;
}
