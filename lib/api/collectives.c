/* The operations' public entries: each refuses what is wrong with a sentence that names the argument, its value and
 * what is allowed, and passes the rest to core/submit.c. The contracts are in rondo.h. */
#include <stdbool.h>

#include "api/args.h"
#include "core/submit.h"

#define BAD RONDO_ERR_INVALID_ARGUMENT

static rondo_result_t check_count(rd_at_t at, const char *what, size_t count, size_t blocks, rondo_type_t type)
{
    size_t all;

    if (!__builtin_mul_overflow(count, blocks, &all) && all <= rd_args_most(type))
        return RONDO_SUCCESS;
    return rd_error(&at.comm->ctx, BAD, "%s: %s is %zu, more than memory can hold (a negative number?)", at.call, what,
                    count);
}

static rondo_result_t check_buffer(rd_at_t at, const char *what, const void *buffer, size_t bytes)
{
    if (buffer || bytes == 0)
        return RONDO_SUCCESS;
    return rd_error(&at.comm->ctx, BAD, "%s: %s is NULL, but %zu bytes are needed", at.call, what, bytes);
}

/* Refuses two ranges that overlap. `in_place`: the buffers overlap in the way that the call allows; `may`: the call
 * allows such a way. */
static rondo_result_t check_overlap(rd_at_t at, const void *send, size_t sendbytes, const void *recv, size_t recvbytes,
                                    bool may, bool in_place)
{
    uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv;

    if (!sendbytes || !recvbytes || s + sendbytes <= r || r + recvbytes <= s || in_place)
        return RONDO_SUCCESS;
    return rd_error(&at.comm->ctx, BAD, "%s: send (%zu bytes at %p) overlaps recv (%zu bytes at %p)%s", at.call,
                    sendbytes, send, recvbytes, recv,
                    may ? " in another way than in place" : ": this operation cannot run in place");
}

/* ---- the collectives: one row each, and one function that serves them all ---- */

/* What a buffer of this rank holds, in blocks of `count` elements. */
typedef enum { NOTHING, BLOCK, BLOCKS, BLOCK_AT_ROOT, BLOCKS_AT_ROOT } holds_t;

/* The ways in which the buffers may overlap; 0: they may not. */
enum { SAME = 1, SEND_IN_RECV = 2, RECV_IN_SEND = 4 }; /* the last two: as this rank's own block */

typedef struct form {
    const char *call;
    const char *count; /* what the argument is called */
    holds_t send, recv;
    int in_place;
    bool reduces, rooted; /* the call has an op, a root */
} form_t;

static const form_t forms[] = {
    [RD_ALLREDUCE] = {"rondo_allreduce", "count", BLOCK, BLOCK, SAME, .reduces = true},
    [RD_REDUCE] = {"rondo_reduce", "count", BLOCK, BLOCK_AT_ROOT, SAME, .reduces = true, .rooted = true},
    [RD_BROADCAST] = {"rondo_broadcast", "count", BLOCK_AT_ROOT, BLOCK, SAME, .rooted = true},
    [RD_ALLGATHER] = {"rondo_allgather", "sendcount", BLOCK, BLOCKS, SEND_IN_RECV},
    [RD_REDUCE_SCATTER] = {"rondo_reduce_scatter", "recvcount", BLOCKS, BLOCK, SAME | RECV_IN_SEND, .reduces = true},
    [RD_ALLTOALL] = {"rondo_alltoall", "count", BLOCKS, BLOCKS, 0},
    [RD_GATHER] = {"rondo_gather", "count", BLOCK, BLOCKS_AT_ROOT, SEND_IN_RECV, .rooted = true},
    [RD_SCATTER] = {"rondo_scatter", "count", BLOCKS_AT_ROOT, BLOCK, RECV_IN_SEND, .rooted = true},
    [RD_BARRIER] = {"rondo_barrier", "count", NOTHING, NOTHING, 0},
};

/* A call's arguments; 0 for those that it does not have. */
typedef struct args {
    const void *send;
    void *recv;
    size_t count;
    rondo_type_t type;
    rondo_op_t op;
    int root;
    rondo_stream_t stream;
} args_t;

static inline bool has_blocks(holds_t holds)
{
    return holds == BLOCKS || holds == BLOCKS_AT_ROOT;
}

/* Checks all arguments but the buffers. */
static rondo_result_t check_args(const form_t *form, rondo_comm_t comm, args_t a)
{
    const rd_at_t at = {form->call, comm};
    bool blocks = has_blocks(form->send) || has_blocks(form->recv);
    rondo_result_t result = rd_args_start(at, a.type, a.stream);

    if (result == RONDO_SUCCESS)
        result = check_count(at, form->count, a.count, blocks ? (size_t)comm->team.nranks : 1, a.type);
    if (result == RONDO_SUCCESS && form->rooted)
        result = rd_args_rank(at, "root", a.root);
    if (result == RONDO_SUCCESS && form->reduces)
        result = rd_args_op(at, a.op, a.type);
    return result;
}

static inline size_t bytes_of(holds_t holds, const struct rondo_comm *comm, int root, size_t block)
{
    if (holds == NOTHING || ((holds == BLOCK_AT_ROOT || holds == BLOCKS_AT_ROOT) && comm->team.rank != root))
        return 0;
    return has_blocks(holds) ? block * (size_t)comm->team.nranks : block;
}

static inline bool is_in_place(const form_t *form, const void *send, const void *recv, int rank, size_t block)
{
    uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv, own = (uintptr_t)rank * block;

    return (form->in_place & SAME && s == r) || (form->in_place & SEND_IN_RECV && s == r + own) ||
           (form->in_place & RECV_IN_SEND && r == s + own);
}

/* Inlined with a known row, and with arguments that stay in registers if the call repeats the communicator's last one:
 * data that is stored for a moment, and loaded with another width than it was stored, waits for the lines of the last
 * message to leave the core. */
__attribute__((always_inline)) static inline rondo_result_t collective(rd_coll_t coll, rondo_comm_t comm, args_t a)
{
    const form_t *form = &forms[coll];
    const rd_at_t at = {form->call, comm};
    int again = rd_call_repeats(comm, coll, a.type, a.op, a.root, a.count, a.stream);
    rondo_result_t result = again ? RONDO_SUCCESS : check_args(form, comm, a);

    if (result != RONDO_SUCCESS)
        return rd_call_refused(result);
    size_t block = a.count * rd_type_size(a.type);
    size_t sends = bytes_of(form->send, comm, a.root, block), recvs = bytes_of(form->recv, comm, a.root, block);
    bool in_place = is_in_place(form, a.send, a.recv, comm->team.rank, block);
    if ((result = check_buffer(at, "send", a.send, sends)) || (result = check_buffer(at, "recv", a.recv, recvs)) ||
        (result = check_overlap(at, a.send, sends, a.recv, recvs, form->in_place != 0, in_place)))
        return rd_call_refused(result);
    /* The output overlaps the input for another rank, which is still to be read. */
    size_t bounce = form->in_place == (SAME | RECV_IN_SEND) && a.send == a.recv && comm->team.rank ? block : 0;
    if (again && !bounce)
        return rd_call_repeat(comm, a.send, a.recv);
    rd_call_t call = {.desc = {.coll = coll, .type = a.type, .op = a.op, .root = a.root, .count = a.count},
                      .in = a.send,
                      .out = a.recv,
                      .bounce = bounce,
                      .stream = a.stream};
    return rd_call_collective(rd_caller(), comm, &call);
}

rondo_result_t rondo_allreduce(const void *send, void *recv, size_t count, rondo_type_t type, rondo_op_t op,
                               rondo_comm_t comm, rondo_stream_t stream)
{
    return collective(RD_ALLREDUCE, comm, (args_t){send, recv, count, type, op, 0, stream});
}

rondo_result_t rondo_reduce(const void *send, void *recv, size_t count, rondo_type_t type, rondo_op_t op, int root,
                            rondo_comm_t comm, rondo_stream_t stream)
{
    return collective(RD_REDUCE, comm, (args_t){send, recv, count, type, op, root, stream});
}

rondo_result_t rondo_broadcast(const void *send, void *recv, size_t count, rondo_type_t type, int root,
                               rondo_comm_t comm, rondo_stream_t stream)
{
    return collective(RD_BROADCAST, comm, (args_t){send, recv, count, type, 0, root, stream});
}

rondo_result_t rondo_allgather(const void *send, void *recv, size_t sendcount, rondo_type_t type, rondo_comm_t comm,
                               rondo_stream_t stream)
{
    return collective(RD_ALLGATHER, comm, (args_t){send, recv, sendcount, type, 0, 0, stream});
}

rondo_result_t rondo_reduce_scatter(const void *send, void *recv, size_t recvcount, rondo_type_t type, rondo_op_t op,
                                    rondo_comm_t comm, rondo_stream_t stream)
{
    return collective(RD_REDUCE_SCATTER, comm, (args_t){send, recv, recvcount, type, op, 0, stream});
}

rondo_result_t rondo_alltoall(const void *send, void *recv, size_t count, rondo_type_t type, rondo_comm_t comm,
                              rondo_stream_t stream)
{
    return collective(RD_ALLTOALL, comm, (args_t){send, recv, count, type, 0, 0, stream});
}

rondo_result_t rondo_gather(const void *send, void *recv, size_t count, rondo_type_t type, int root, rondo_comm_t comm,
                            rondo_stream_t stream)
{
    return collective(RD_GATHER, comm, (args_t){send, recv, count, type, 0, root, stream});
}

rondo_result_t rondo_scatter(const void *send, void *recv, size_t count, rondo_type_t type, int root, rondo_comm_t comm,
                             rondo_stream_t stream)
{
    return collective(RD_SCATTER, comm, (args_t){send, recv, count, type, 0, root, stream});
}

rondo_result_t rondo_barrier(rondo_comm_t comm, rondo_stream_t stream)
{
    return collective(RD_BARRIER, comm, (args_t){NULL, NULL, 1, RONDO_UINT8, 0, 0, stream});
}

/* ---- messages ---- */

static rondo_result_t message(rd_at_t at, int send, void *buffer, size_t count, rondo_type_t type, int peer,
                              rondo_stream_t stream)
{
    const rd_caller_t *caller = rd_caller(); /* before the checks ask for it under a condition */
    rondo_result_t result = rd_args_start(at, type, stream);

    if (result == RONDO_SUCCESS)
        result = check_count(at, "count", count, 1, type);
    if (result != RONDO_SUCCESS)
        return rd_message_refused(result);
    size_t bytes = count * rd_type_size(type);
    if ((result = rd_args_rank(at, "peer", peer)) || (result = check_buffer(at, "buffer", buffer, bytes)))
        return rd_message_refused(result);
    rd_message_t what = {.buffer = buffer, .bytes = bytes, .send = send, .peer = peer, .stream = stream, .type = type};
    return rd_call_message(caller, at.comm, &what);
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
