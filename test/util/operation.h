/* One operation of rondo as data: what to call with which arguments, the buffers it needs, and what must lie in them
 * afterwards. Every rank derives the same operation from the same numbers; op_matrix walks through all of them,
 * random_programs and the trials draw them.
 */
#ifndef TEST_OPERATION_H
#define TEST_OPERATION_H

#include "util/harness.h"
#include "util/reference.h"

typedef enum {
    DO_ALLREDUCE,
    DO_REDUCE,
    DO_REDUCE_SCATTER,
    DO_REDUCE_SCATTERV,
    DO_BROADCAST,
    DO_ALLGATHER,
    DO_ALLGATHERV,
    DO_GATHER,
    DO_GATHERV,
    DO_SCATTER,
    DO_SCATTERV,
    DO_ALLTOALL,
    DO_ALLTOALLV,
    DO_SHIFT, /* a group: send to rank + root, receive from rank - root */
    DO_BARRIER,
    DO_NUM
} do_what_t;

typedef struct do_case {
    do_what_t what;
    rondo_type_t type;
    rondo_op_t op;   /* where the operation reduces */
    ref_data_t data; /* likewise; what only moves has random bytes */
    size_t count;
    int root; /* DO_SHIFT: the distance */
    int in_place;
    int send_shift, recv_shift; /* bytes by which the buffers are off a 64-byte boundary */
    int skew; /* v-operations: 0 equal counts; else a seed of unequal ones, packed if odd, gaps if even */
    uint64_t seed;
} do_case_t;

/* The case bound to one rank. Buffers lie between guards; the whole of them is compared afterwards. */
typedef struct do_call {
    do_case_t c;
    int rank, nranks;
    char *send_block, *recv_block; /* with guards; equal in place */
    size_t send_bytes, recv_bytes; /* of the buffers proper */
    char *send, *recv;             /* what the call gets */
    char *expected;                /* image of recv_block after a move; NULL where values are reduced */
    char *sent;                    /* image of send_block, which must not change */
    size_t *counts, *displs, *counts2, *displs2;
} do_call_t;

const char *do_name(do_what_t what);
int do_named(const char *name); /* DO_NUM: there is none */
int do_reduces(do_what_t what);
int do_rooted(do_what_t what);
int do_has_in_place(do_what_t what);
int do_has_counts(do_what_t what);
/* "allreduce float32 sum count 17 in place shift 1,0 seed 5" */
void do_text(const do_case_t *c, char *text, size_t size);

/* Allocates and fills. 0, or -1 without memory. */
int do_prepare(do_call_t *call, const do_case_t *c, int rank, int nranks);
rondo_result_t do_post(do_call_t *call, rondo_comm_t comm);
/* The same with buffers elsewhere, on a stream: `send` and `recv` stand for call->send and call->recv. */
rondo_result_t do_post_at(const do_call_t *call, const void *send, void *recv, rondo_comm_t comm,
                          rondo_stream_t stream);
size_t do_block_bytes(size_t bytes); /* of a block with its guards */
/* 0 when right; else -1 and a sentence. `values`: also compare with the reference (else only guards and moves). */
int do_verify(const do_call_t *call, int values, char *text, size_t size);
/* For results that must be the same on every rank (0: this operation has none). */
uint64_t do_hash(const do_call_t *call);
/* The same for a rank of a test, which stops without memory, or fails if the result is wrong or another one elsewhere:
 * all ranks call do_check, with the same text. */
void do_prepare_or_stop(test_rank_t *t, do_call_t *call, const do_case_t *c);
void do_check(test_rank_t *t, const do_call_t *call, const char *text);
/* Fills the buffers once more, for another run of the same call. */
void do_refill(do_call_t *call);
void do_release(do_call_t *call);

#endif
