/* See operation.h. Each operation is described by four answers: how long its buffers are on this rank, what lies in the
 * input, which call it is, and what the output must be; everything else (guards, shifts, in place, comparing) is
 * common.
 */
#define _GNU_SOURCE
#include "util/operation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/harness.h"

#define GUARD 192

static const struct {
    const char *name;
    int reduces, rooted, in_place, counts;
} infos[DO_NUM] = {
    [DO_ALLREDUCE] = {"allreduce", 1, 0, 1, 0},
    [DO_REDUCE] = {"reduce", 1, 1, 1, 0},
    [DO_REDUCE_SCATTER] = {"reduce_scatter", 1, 0, 1, 0},
    [DO_REDUCE_SCATTERV] = {"reduce_scatterv", 1, 0, 1, 1},
    [DO_BROADCAST] = {"broadcast", 0, 1, 1, 0},
    [DO_ALLGATHER] = {"allgather", 0, 0, 1, 0},
    [DO_ALLGATHERV] = {"allgatherv", 0, 0, 1, 1},
    [DO_GATHER] = {"gather", 0, 1, 1, 0},
    [DO_GATHERV] = {"gatherv", 0, 1, 1, 1},
    [DO_SCATTER] = {"scatter", 0, 1, 1, 0},
    [DO_SCATTERV] = {"scatterv", 0, 1, 1, 1},
    [DO_ALLTOALL] = {"alltoall", 0, 0, 0, 0},
    [DO_ALLTOALLV] = {"alltoallv", 0, 0, 0, 1},
    [DO_SHIFT] = {"shift", 0, 0, 0, 0},
    [DO_BARRIER] = {"barrier", 0, 0, 0, 0},
};

const char *do_name(do_what_t what)
{
    return infos[what].name;
}

int do_named(const char *name)
{
    int what = 0;

    while (what < DO_NUM && strcmp(infos[what].name, name) != 0)
        what++;
    return what;
}

int do_reduces(do_what_t what)
{
    return infos[what].reduces;
}

int do_rooted(do_what_t what)
{
    return infos[what].rooted;
}

int do_has_in_place(do_what_t what)
{
    return infos[what].in_place;
}

int do_has_counts(do_what_t what)
{
    return infos[what].counts;
}

void do_text(const do_case_t *c, char *text, size_t size)
{
    snprintf(text, size, "%s %s%s%s count %zu root %d%s shift %d,%d skew %d data %d seed %llu", do_name(c->what),
             ref_type_name(c->type), do_reduces(c->what) ? " " : "", do_reduces(c->what) ? ref_op_name(c->op) : "",
             c->count, c->root, c->in_place ? " in place" : "", c->send_shift, c->recv_shift, c->skew, (int)c->data,
             (unsigned long long)c->seed);
}

/* ---- who has how much, where ---- */

/* What rank `from` has for rank `to` in alltoallv; with from == to == r, rank r's count in the other v-operations. */
static size_t skewed(const do_case_t *c, int from, int to)
{
    uint64_t random = test_mix((uint64_t)c->skew * 1000003u + (uint64_t)from * 1009u + (uint64_t)to);

    if (c->skew == 0)
        return c->count;
    return random % 5 == 0 ? 0 : random % 5 == 1 ? c->count : (size_t)(random >> 8) % (c->count + 1);
}

/* Offsets of the blocks: packed, or with gaps and in descending order, as a user may. Returns the extent. */
static size_t lay_out(const do_case_t *c, const size_t *counts, size_t *displs, int n)
{
    size_t at = 0;
    int k;

    for (k = 0; k < n; k++) {
        int r = c->skew && c->skew % 2 == 0 ? n - 1 - k : k;

        displs[r] = at;
        at += counts[r] + (c->skew && c->skew % 2 == 0 ? 3 : 0);
    }
    return at;
}

static int packed(const do_case_t *c)
{
    return c->skew % 2 != 0;
}

static size_t sum_of(const size_t *counts, int n)
{
    size_t sum = 0;

    while (n-- > 0)
        sum += counts[n];
    return sum;
}

/* Extents in elements, and the tables. */
static void find_extents(do_call_t *call, size_t *send, size_t *recv)
{
    const do_case_t *c = &call->c;
    int n = call->nranks, at_root = call->rank == c->root, r;
    size_t all = c->count * (size_t)n, extent;

    for (r = 0; r < n; r++) {
        int alltoallv = c->what == DO_ALLTOALLV;

        call->counts[r] = alltoallv ? skewed(c, call->rank, r) : skewed(c, r, r);
        call->counts2[r] = alltoallv ? skewed(c, r, call->rank) : call->counts[r];
    }
    extent = lay_out(c, call->counts, call->displs, n);
    *send = *recv = c->count;
    switch (c->what) {
    case DO_REDUCE:
        *recv = at_root ? c->count : 0;
        break;
    case DO_REDUCE_SCATTER:
    case DO_ALLTOALL:
        *send = all;
        *recv = c->what == DO_ALLTOALL ? all : c->count;
        break;
    case DO_REDUCE_SCATTERV:
        *send = sum_of(call->counts, n);
        *recv = call->counts[call->rank];
        break;
    case DO_BROADCAST:
        *send = at_root ? c->count : 0;
        break;
    case DO_ALLGATHER:
        *recv = all;
        break;
    case DO_GATHER:
        *recv = at_root ? all : 0;
        break;
    case DO_ALLGATHERV:
    case DO_GATHERV:
        *send = call->counts[call->rank];
        *recv = c->what == DO_ALLGATHERV || at_root ? extent : 0;
        break;
    case DO_SCATTER:
        *send = at_root ? all : 0;
        break;
    case DO_SCATTERV:
        *send = at_root ? extent : 0;
        *recv = call->counts[call->rank];
        break;
    case DO_ALLTOALLV:
        *send = extent;
        *recv = lay_out(c, call->counts2, call->displs2, n);
        break;
    case DO_BARRIER:
        *send = *recv = 0;
        break;
    default:
        break;
    }
}

/* In place on this rank? Rooted operations are so at the root alone. */
static int here_in_place(const do_call_t *call)
{
    const do_case_t *c = &call->c;

    return c->in_place && (!do_rooted(c->what) || c->what == DO_BROADCAST || call->rank == c->root);
}

/* Where, in place, the shorter buffer lies within the longer one, in elements. */
static size_t in_place_offset(const do_call_t *call)
{
    const do_case_t *c = &call->c;

    switch (c->what) {
    case DO_ALLGATHER:
    case DO_GATHER:
    case DO_SCATTER:
        return c->count * (size_t)call->rank;
    case DO_ALLGATHERV:
    case DO_GATHERV:
    case DO_SCATTERV:
        return call->displs[call->rank];
    default:
        return 0;
    }
}

/* ---- input ---- */

static void input_of(const do_call_t *call, ref_input_t *in)
{
    in->type = call->c.type;
    in->op = call->c.op;
    in->data = do_reduces(call->c.what) ? call->c.data : REF_BYTES;
    in->seed = call->c.seed;
    in->nranks = call->nranks;
}

static void fill_send(do_call_t *call)
{
    const do_case_t *c = &call->c;
    size_t size = ref_size(c->type);
    ref_input_t in;

    input_of(call, &in);
    if (c->what == DO_BROADCAST && call->rank != c->root)
        return; /* in place: the output's old content is nobody's input */
    ref_fill(&in, call->rank, 0, call->send_bytes / size, call->send);
}

/* ---- what a move must leave behind ---- */

static void expect_block(do_call_t *call, size_t to, int from, size_t first, size_t count)
{
    size_t size = ref_size(call->c.type);
    ref_input_t in;

    input_of(call, &in);
    ref_fill(&in, from, first, count, call->expected + (call->recv - call->recv_block) + to * size);
}

static size_t displacement(const do_case_t *c, int from, int to, int n)
{
    size_t counts[TEST_MAX_RANKS], displs[TEST_MAX_RANKS];
    int r;

    for (r = 0; r < n; r++)
        counts[r] = skewed(c, from, r);
    lay_out(c, counts, displs, n);
    return displs[to];
}

static void expect_moves(do_call_t *call)
{
    const do_case_t *c = &call->c;
    int n = call->nranks, me = call->rank, at_root = me == c->root, r;

    switch (c->what) {
    case DO_BROADCAST:
        expect_block(call, 0, c->root, 0, c->count);
        break;
    case DO_ALLGATHER:
    case DO_GATHER:
        for (r = 0; r < n && (c->what == DO_ALLGATHER || at_root); r++)
            expect_block(call, (size_t)r * c->count, r, 0, c->count);
        break;
    case DO_ALLGATHERV:
    case DO_GATHERV:
        for (r = 0; r < n && (c->what == DO_ALLGATHERV || at_root); r++)
            expect_block(call, call->displs[r], r, 0, call->counts[r]);
        break;
    case DO_SCATTER:
        expect_block(call, 0, c->root, (size_t)me * c->count, c->count);
        break;
    case DO_SCATTERV:
        expect_block(call, 0, c->root, call->displs[me], call->counts[me]);
        break;
    case DO_ALLTOALL:
        for (r = 0; r < n; r++)
            expect_block(call, (size_t)r * c->count, r, (size_t)me * c->count, c->count);
        break;
    case DO_ALLTOALLV:
        for (r = 0; r < n; r++)
            expect_block(call, call->displs2[r], r, displacement(c, r, me, n), call->counts2[r]);
        break;
    case DO_SHIFT:
        expect_block(call, 0, ((me - c->root) % n + n) % n, 0, c->count);
        break;
    default:
        break;
    }
}

/* ---- buffers ---- */

size_t do_block_bytes(size_t bytes)
{
    return bytes + 2 * GUARD + 64;
}

static char *new_block(size_t bytes)
{
    void *block = NULL;

    return posix_memalign(&block, 64, (do_block_bytes(bytes) + 63) / 64 * 64) == 0 ? block : NULL;
}

void do_refill(do_call_t *call)
{
    memset(call->recv_block, 0xa5, do_block_bytes(call->recv_bytes));
    if (call->send_block != call->recv_block)
        memset(call->send_block, 0x5a, do_block_bytes(call->send_bytes));
    fill_send(call);
}

static int prepare_buffers(do_call_t *call, size_t send, size_t recv)
{
    const do_case_t *c = &call->c;
    size_t size = ref_size(c->type), offset = in_place_offset(call) * size;
    int receives_more;

    call->send_bytes = send * size;
    call->recv_bytes = recv * size;
    if (!here_in_place(call)) {
        call->send_block = new_block(call->send_bytes);
        call->recv_block = new_block(call->recv_bytes);
        call->send = call->send_block + GUARD + c->send_shift;
        call->recv = call->recv_block + GUARD + c->recv_shift;
        return call->send_block && call->recv_block ? 0 : -1;
    }
    /* One block, as long as the longer of the two; recv_bytes becomes its length for the comparison. */
    receives_more = recv >= send;
    call->recv_block = call->send_block = new_block(receives_more ? call->recv_bytes : call->send_bytes);
    call->recv = call->send = call->recv_block + GUARD + c->recv_shift;
    if (receives_more)
        call->send += offset;
    else
        call->recv += offset;
    return call->recv_block ? 0 : -1;
}

/* In place where the input is longer than the output, the rest of the input is the library's to use or to leave. */
static int input_is_spent(const do_call_t *call)
{
    return call->send_block == call->recv_block && call->send_bytes > call->recv_bytes && do_reduces(call->c.what);
}

static int keep_images(do_call_t *call)
{
    size_t bytes = call->send_bytes > call->recv_bytes && call->send_block == call->recv_block ? call->send_bytes
                                                                                               : call->recv_bytes;

    call->expected = malloc(do_block_bytes(bytes));
    call->sent = malloc(do_block_bytes(call->send_bytes));
    if (!call->expected || !call->sent)
        return -1;
    memcpy(call->expected, call->recv_block, do_block_bytes(bytes));
    memcpy(call->sent, call->send_block, do_block_bytes(call->send_bytes));
    expect_moves(call);
    return 0;
}

int do_prepare(do_call_t *call, const do_case_t *c, int rank, int nranks)
{
    size_t send, recv;

    memset(call, 0, sizeof *call);
    call->c = *c;
    call->rank = rank;
    call->nranks = nranks;
    call->counts = calloc(4 * (size_t)nranks, sizeof *call->counts);
    if (!call->counts)
        return -1;
    call->displs = call->counts + nranks;
    call->counts2 = call->displs + nranks;
    call->displs2 = call->counts2 + nranks;
    find_extents(call, &send, &recv);
    if (prepare_buffers(call, send, recv) != 0) {
        do_release(call);
        return -1;
    }
    if (call->send_block == call->recv_block && call->send_bytes > call->recv_bytes)
        memset(call->recv_block, 0xa5, do_block_bytes(call->send_bytes));
    do_refill(call);
    if (keep_images(call) != 0) {
        do_release(call);
        return -1;
    }
    return 0;
}

void do_release(do_call_t *call)
{
    free(call->sent);
    free(call->expected);
    if (call->send_block != call->recv_block)
        free(call->send_block);
    free(call->recv_block);
    free(call->counts);
    memset(call, 0, sizeof *call);
}

/* ---- the call ---- */

static rondo_result_t post_shift(const do_call_t *call, const void *send, void *recv, rondo_comm_t comm,
                                 rondo_stream_t stream)
{
    const do_case_t *c = &call->c;
    int n = call->nranks, to = (call->rank + c->root) % n, from = ((call->rank - c->root) % n + n) % n;
    rondo_result_t result = rondo_group_start(), end;

    if (result != RONDO_SUCCESS)
        return result;
    result = rondo_send(send, c->count, c->type, to, comm, stream);
    if (result == RONDO_SUCCESS)
        result = rondo_recv(recv, c->count, c->type, from, comm, stream);
    end = rondo_group_end();
    return result != RONDO_SUCCESS ? result : end;
}

/* What a rooted operation does not use on this rank is passed as NULL. */
rondo_result_t do_post_at(const do_call_t *call, const void *send, void *recv, rondo_comm_t comm, rondo_stream_t stream)
{
    const do_case_t *c = &call->c;
    int at_root = call->rank == c->root;
    void *root_recv = at_root ? recv : NULL;
    const void *root_send = at_root ? send : NULL;
    const size_t *displs = packed(c) ? NULL : call->displs;

    switch (c->what) {
    case DO_ALLREDUCE:
        return rondo_allreduce(send, recv, c->count, c->type, c->op, comm, stream);
    case DO_REDUCE:
        return rondo_reduce(send, root_recv, c->count, c->type, c->op, c->root, comm, stream);
    case DO_REDUCE_SCATTER:
        return rondo_reduce_scatter(send, recv, c->count, c->type, c->op, comm, stream);
    case DO_REDUCE_SCATTERV:
        return rondo_reduce_scatterv(send, recv, call->counts, c->type, c->op, comm, stream);
    case DO_BROADCAST:
        return rondo_broadcast(c->in_place ? recv : root_send, recv, c->count, c->type, c->root, comm, stream);
    case DO_ALLGATHER:
        return rondo_allgather(send, recv, c->count, c->type, comm, stream);
    case DO_ALLGATHERV:
        return rondo_allgatherv(send, call->counts[call->rank], recv, call->counts, displs, c->type, comm, stream);
    case DO_GATHER:
        return rondo_gather(send, root_recv, c->count, c->type, c->root, comm, stream);
    case DO_GATHERV:
        return rondo_gatherv(send, call->counts[call->rank], root_recv, at_root ? call->counts : NULL,
                             at_root ? displs : NULL, c->type, c->root, comm, stream);
    case DO_SCATTER:
        return rondo_scatter(root_send, recv, c->count, c->type, c->root, comm, stream);
    case DO_SCATTERV:
        return rondo_scatterv(root_send, at_root ? call->counts : NULL, at_root ? displs : NULL, recv,
                              call->counts[call->rank], c->type, c->root, comm, stream);
    case DO_ALLTOALL:
        return rondo_alltoall(send, recv, c->count, c->type, comm, stream);
    case DO_ALLTOALLV:
        return rondo_alltoallv(send, call->counts, displs, recv, call->counts2, packed(c) ? NULL : call->displs2,
                               c->type, comm, stream);
    case DO_SHIFT:
        return post_shift(call, send, recv, comm, stream);
    default:
        return rondo_barrier(comm, stream);
    }
}

rondo_result_t do_post(do_call_t *call, rondo_comm_t comm)
{
    return do_post_at(call, call->send, call->recv, comm, NULL);
}

/* ---- the result ---- */

static int same(const char *is, const char *should, size_t bytes, size_t from, const char *what, char *text,
                size_t size)
{
    size_t i;

    if (bytes == 0 || memcmp(is, should, bytes) == 0)
        return 1;
    for (i = 0; is[i] == should[i];)
        i++;
    snprintf(text, size, "%s: byte %lld of the buffer is 0x%02x, should be 0x%02x", what,
             (long long)i - (long long)from, (unsigned char)is[i], (unsigned char)should[i]);
    return 0;
}

static int verify_reduced(const do_call_t *call, int values, char *text, size_t size)
{
    const do_case_t *c = &call->c;
    size_t before = (size_t)(call->recv - call->recv_block), first = 0, count = call->recv_bytes / ref_size(c->type);
    size_t spent = input_is_spent(call) ? call->send_bytes : call->recv_bytes;
    size_t end = before + spent, whole = do_block_bytes(spent);
    long long wrong;
    ref_input_t in;
    char detail[128];

    if (!same(call->recv_block, call->expected, before, before, "before the output", text, size) ||
        !same(call->recv_block + end, call->expected + end, whole - end, 0, "behind the output", text, size))
        return -1;
    if (!values)
        return 0;
    if (c->what == DO_REDUCE_SCATTER)
        first = c->count * (size_t)call->rank;
    if (c->what == DO_REDUCE_SCATTERV)
        first = sum_of(call->counts, call->rank);
    input_of(call, &in);
    wrong = ref_check(&in, first, count, call->recv, detail, sizeof detail);
    if (wrong < 0)
        return 0;
    snprintf(text, size, "element %lld of %zu %s", wrong, count, detail);
    return -1;
}

int do_verify(const do_call_t *call, int values, char *text, size_t size)
{
    size_t before = (size_t)(call->recv - call->recv_block);

    if (call->send_block != call->recv_block &&
        !same(call->send_block, call->sent, do_block_bytes(call->send_bytes), (size_t)(call->send - call->send_block),
              "the input was written", text, size))
        return -1;
    if (do_reduces(call->c.what))
        return verify_reduced(call, values, text, size);
    if (call->send_block == call->recv_block && call->send_bytes > call->recv_bytes) /* scatter, in place at the root */
        return same(call->recv_block, call->sent, do_block_bytes(call->send_bytes), before, "output", text, size) ? 0
                                                                                                                  : -1;
    return same(call->recv_block, call->expected, do_block_bytes(call->recv_bytes), before, "output", text, size) ? 0
                                                                                                                  : -1;
}

uint64_t do_hash(const do_call_t *call)
{
    if (call->c.what != DO_ALLREDUCE)
        return 0;
    return ref_hash(call->c.type, call->recv, call->c.count);
}

/* ---- for a rank of a test ---- */

void do_prepare_or_stop(test_rank_t *t, do_call_t *call, const do_case_t *c)
{
    if (do_prepare(call, c, t->rank, t->nranks) != 0)
        test_stop(t, "no memory");
}

void do_check(test_rank_t *t, const do_call_t *call, const char *text)
{
    char wrong[256];

    if (do_verify(call, 1, wrong, sizeof wrong) != 0)
        test_fail(t, "%s", wrong);
    if (do_hash(call))
        test_agree(t, do_hash(call), text);
}
