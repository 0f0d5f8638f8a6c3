/* The interposer: MPI's collectives, served by rondo where that is possible on all ranks alike, else handed on.
 *
 * The rule that everything here keeps: whether a call is served must come out alike on every rank, so it is decided by
 * what MPI makes equal everywhere (communicator, operation, root, bytes of the signature; for reductions type, operator
 * and count), and by what was agreed when the communicator was set up; never by a local look at a buffer or a type's
 * layout. The only exception is an argument that is wrong: that one goes to the MPI on this rank alone, which finds the
 * same error before it talks to anybody. */
#ifndef RD_MPI_INTERPOSE_H
#define RD_MPI_INTERPOSE_H

#include <link.h>
#include <rondo.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi/entries.h"

typedef enum {
    RD_MPI_BARRIER_CALL,
    RD_MPI_BCAST,
    RD_MPI_REDUCE,
    RD_MPI_ALLREDUCE,
    RD_MPI_REDUCE_SCATTER_BLOCK,
    RD_MPI_REDUCE_SCATTER,
    RD_MPI_SCAN,
    RD_MPI_EXSCAN,
    RD_MPI_GATHER,
    RD_MPI_GATHERV,
    RD_MPI_SCATTER,
    RD_MPI_SCATTERV,
    RD_MPI_ALLGATHER,
    RD_MPI_ALLGATHERV,
    RD_MPI_ALLTOALL,
    RD_MPI_ALLTOALLV,
    RD_MPI_NUM
} rd_mpi_what_t;

/* An operation has three calls: MPI_Bcast, MPI_Ibcast and MPI_Bcast_init. What is switched and counted for each of them
 * has a number, the kind: of the blocking ones that is the operation's. */
typedef enum { RD_MPI_BLOCKING, RD_MPI_NONBLOCKING, RD_MPI_PERSISTENT, RD_MPI_FORMS } rd_mpi_form_t;
#define RD_MPI_KINDS (RD_MPI_FORMS * RD_MPI_NUM)

/* A call's arguments, for all but the shortest ways. What a call does not have is 0. */
typedef struct rd_mpi_call {
    rd_mpi_what_t what;
    rd_mpi_form_t form;
    bool large; /* counts and displacements in the arrays are MPI_Count and MPI_Aint, else int */
    const void *send;
    void *recv;
    MPI_Count sendcount, recvcount; /* reductions and bcast: recvcount */
    const void *sendcounts, *sdispls, *recvcounts, *rdispls;
    MPI_Datatype sendtype, recvtype; /* reductions and bcast: recvtype */
    MPI_Op op;
    int root;
    MPI_Comm comm;
} rd_mpi_call_t;

static inline int rd_mpi_kind(const rd_mpi_call_t *call)
{
    return (int)call->form * RD_MPI_NUM + (int)call->what;
}

/* Why a call was handed on; also what a serving function returns, which else returns MPI_SUCCESS or an error. */
typedef enum {
    RD_MPI_SERVED,
    RD_MPI_OFF,      /* by RONDO_MPI_SERVE */
    RD_MPI_SIZE,     /* by the limits of RONDO_MPI_SERVE */
    RD_MPI_SLOWER,   /* by RONDO_MPI_TABLE: the MPI is quicker */
    RD_MPI_ALONE,    /* a communicator of one rank */
    RD_MPI_INTER,    /* an intercommunicator */
    RD_MPI_FOREIGN,  /* with ranks of another MPI_COMM_WORLD */
    RD_MPI_EARLY,    /* of the first calls on its communicator */
    RD_MPI_NOT_MADE, /* rondo's communicator could not be made */
    RD_MPI_OPERATOR, /* operator or type that rondo does not have, or not this long */
    RD_MPI_ARGUMENT, /* an argument is wrong, or may be */
    RD_MPI_COMPARED, /* to see what the MPI takes */
    RD_MPI_MANY,     /* persistent, beyond what rondo makes communicators for */
    RD_MPI_UNDRIVEN, /* nonblocking, and several threads may call the MPI, or its progress does not come by here */
    RD_MPI_REASONS
} rd_mpi_reason_t;

/* Which operations may go to the MPI because it is quicker. Reductions only by a table that was made before, for their
 * bits would depend on what the clock said. */
enum { RD_MPI_CHOOSE_NONE, RD_MPI_CHOOSE_MOVES, RD_MPI_CHOOSE_ALL };
#define RD_MPI_CLASSES 64 /* of bytes, see table.c */

/* What was agreed for a communicator. Rank 0's environment counts. */
typedef struct rd_mpi_rules {
    uint64_t least[RD_MPI_KINDS], most[RD_MPI_KINDS]; /* bytes that are served; least > most: none */
    /* There may be more: those of `widest`, but for the classes in which the MPI is quicker; `open` are the ones that
     * are served until it is known. They follow from what was measured. See table.c. */
    uint64_t widest[RD_MPI_KINDS][2], mpis[RD_MPI_KINDS], open[RD_MPI_KINDS];
    uint64_t measured[RD_MPI_KINDS], quicker[RD_MPI_KINDS]; /* classes; those of them in which the MPI is quicker */
    int64_t choose;
    int64_t compare; /* every how manieth call is the MPI's; 0: none */
    int64_t reproducible;
} rd_mpi_rules_t;

/* rondo's communicator, which MPI communicators of equal groups share, or which one has for itself. */
typedef struct rd_mpi_core {
    struct rd_mpi_core *next;
    rondo_comm_t rondo;
    MPI_Group group;
    int users;
    bool exclusive; /* of one user, for nonblocking calls */
    bool looked;    /* in_flight.c: its first operation is not over */
    int64_t put;    /* when the last user let it go, counted in such events */
    int64_t id;     /* alike on its ranks, and on them different from that of others */
    rd_mpi_rules_t rules;
    /* Calls of which nobody knows who is quicker, by operation and class; of those whose bytes differ by rank, how many
     * there were, and this rank's bytes; what is to be measured at the end of this call. */
    uint8_t seen[RD_MPI_NUM][RD_MPI_CLASSES];
    uint64_t moves[RD_MPI_KINDS], moved[RD_MPI_KINDS], due_bytes;
    int due_kind;
    bool due;
} rd_mpi_core_t;

/* One that wants serves blocking calls, and at the next of those gets a communicator of rondo's for its nonblocking
 * ones, or measures who is quicker for these. */
typedef enum { RD_MPI_NEW, RD_MPI_AGREED, RD_MPI_SERVING, RD_MPI_WANTS, RD_MPI_REFUSED } rd_mpi_status_t;

/* What is known of an MPI communicator, its attribute. The memory is used again, but never given back: a thread may
 * look at `handle` while another one frees a communicator. */
typedef struct rd_mpi_comm {
    _Atomic uintptr_t handle; /* of the MPI's; 0: of none */
    struct rd_mpi_comm *next_free;
    MPI_Comm comm;
    rd_mpi_status_t status;
    rd_mpi_reason_t refused;
    int rank, nranks;
    int64_t calls, after;   /* calls before rondo's communicator; the one at which that is made */
    bool world, like_world; /* it is MPI_COMM_WORLD; it has the same ranks in the same order */
    bool shares_worlds;     /* the ranks agreed that one of rondo's serves all like it */
    rd_mpi_core_t *core;
    rondo_comm_t rondo;
    const rd_mpi_rules_t *rules;
    /* Nonblocking calls: their communicator of rondo's, NULL until there is one; why there never is; how many calls had
     * to do without. */
    rd_mpi_core_t *own;
    rd_mpi_reason_t own_refused;
    int64_t missed, own_after;
    int made;         /* how many of rondo's were made for it, for nonblocking and persistent calls */
    _Atomic int uses; /* by the MPI's communicator, until it is freed, and by what is in flight */
    bool duplicates;  /* MPI_Comm_idup was called on it; whether all ranks are at its end, nobody here can know */
    int64_t compared[RD_MPI_KINDS];
    size_t *lists; /* four lists of nranks counts or displacements */
    /* The last reduction's type and operator, both named, and what they are here. */
    MPI_Datatype last_type;
    MPI_Op last_op;
    rondo_type_t last_rondo_type;
    rondo_op_t last_rondo_op;
    size_t last_size;        /* 0: there was none */
    MPI_Datatype last_moved; /* the last broadcast's, named and dense */
    size_t last_moved_size;
    MPI_Datatype last_passed; /* the last nonblocking call's of which the MPI may be the quicker one, named */
    size_t last_passed_size;
} rd_mpi_comm_t;

/* ---- handles.c: named types and operators ---- */

typedef struct rd_mpi_named {
    MPI_Datatype handle;
    int rondo;    /* rondo_type_t; -1: rondo has no such type */
    unsigned ops; /* bits of the operators that MPI allows */
    size_t size;
    bool dense; /* without holes */
} rd_mpi_named_t;

void rd_mpi_handles_start(void);                       /* behind rd_mpi_comms_start */
const rd_mpi_named_t *rd_mpi_named(MPI_Datatype type); /* NULL: it is derived, or none */
int rd_mpi_op(MPI_Op op);                              /* rondo_op_t, -1: builtin, but not rondo's, -2: the user's */
/* Can it be a type's handle, as far as a handle shows? What is none may not be asked for anything: the MPI would tell
 * an error handler of another communicator than the call's. */
bool rd_mpi_is_type(MPI_Datatype type);

/* ---- comms.c: what is attached to communicators ---- */

bool rd_mpi_comms_start(void);
void rd_mpi_comms_fill(rd_mpi_entries_t *entries); /* C's entries that free or duplicate communicators */
/* It is being duplicated behind a call (MPI_Comm_idup), from now on. Returns the error if the MPI has seen that the
 * handle is wrong. */
int rd_mpi_comm_duplicates(MPI_Comm comm);
/* A communicator of this process alone, whose errors are returned: for what is asked of the MPI and is not the user's
 * affair. It lasts as long as the MPI, for callbacks of MPI_Finalize may come here. */
extern MPI_Comm rd_mpi_private;
/* NULL: the MPI must see the call, or has seen that the handle is wrong (`error`). */
rd_mpi_comm_t *rd_mpi_comm_find(MPI_Comm comm, int *error);
/* A nonblocking call on it is over. */
void rd_mpi_comm_landed(rd_mpi_comm_t *c);

/* ---- device_buffers.c: buffers in a GPU's memory ---- */

/* The last library of the process when it was last looked at: if another one has come, CUDA may be among them. */
extern struct link_map *_Atomic rd_mpi_last_library;
bool rd_mpi_device_used(void);
/* The bytes from `at + low` on that a side of the call may touch, the host's memory in their place, and their pieces,
 * if what is received has gaps (device_spans.c). */
typedef struct rd_mpi_span {
    uintptr_t at;
    int64_t low, high;
    char *host;
    struct rd_mpi_piece *pieces;
    size_t num_pieces;
} rd_mpi_span_t;
typedef struct rd_mpi_on_host {
    rd_mpi_span_t send, recv;
} rd_mpi_on_host_t;
/* Puts memory of the host in place of a device's in `call`. Returns MPI_SUCCESS, or an error, which the handler has
 * seen. rd_mpi_device_return must follow: with MPI_SUCCESS it writes back what was received. */
int rd_mpi_device_bring(rd_mpi_comm_t *c, rd_mpi_call_t *call, rd_mpi_on_host_t *on_host);
int rd_mpi_device_return(rd_mpi_comm_t *c, rd_mpi_on_host_t *on_host, int result);
/* The same again for a persistent call, between the two: what the device has now, and with MPI_SUCCESS its way back. */
int rd_mpi_device_bring_again(rd_mpi_comm_t *c, const rd_mpi_on_host_t *on_host);
int rd_mpi_device_give(rd_mpi_comm_t *c, const rd_mpi_on_host_t *on_host, int result);
/* Runs the call so. */
int rd_mpi_device_run(rd_mpi_comm_t *c, const rd_mpi_call_t *call, int (*run)(rd_mpi_comm_t *, const rd_mpi_call_t *));

/* What was found before; NULL: nothing, or CUDA may have been loaded, so that pointers must be looked at. */
extern _Atomic(rd_mpi_comm_t *) rd_mpi_comm_cache[64];
static inline rd_mpi_comm_t *rd_mpi_comm_get(MPI_Comm comm)
{
    uintptr_t handle = (uintptr_t)comm;
    rd_mpi_comm_t *c =
        atomic_load_explicit(&rd_mpi_comm_cache[handle * UINT64_C(0x9e3779b97f4a7c15) >> 58], memory_order_acquire);

    if (__builtin_expect(atomic_load_explicit(&rd_mpi_last_library, memory_order_acquire)->l_next != NULL, 0))
        return NULL;
    return c && atomic_load_explicit(&c->handle, memory_order_relaxed) == handle ? c : NULL;
}

/* What was found before, or rd_mpi_comm_find. */
static inline rd_mpi_comm_t *rd_mpi_comm_of(MPI_Comm comm, int *error)
{
    rd_mpi_comm_t *c = rd_mpi_comm_get(comm);

    *error = MPI_SUCCESS;
    return c ? c : rd_mpi_comm_find(comm, error);
}

/* ---- setup.c: agreement; which of rondo's communicators serves one ---- */

bool rd_mpi_setup_start(void);
void rd_mpi_setup_begin(void); /* collective, in MPI_Init */
/* Are sums of this communicator in the order of ranks, whoever serves them? The same on all ranks. */
bool rd_mpi_is_reproducible(const rd_mpi_comm_t *c);
/* May calls of that form be in the order of ranks where rondo does not serve them? The same on all ranks. */
bool rd_mpi_may_order(rd_mpi_form_t form);
/* Before a call. May make rondo's communicator; collective then. */
void rd_mpi_setup(rd_mpi_comm_t *c);
/* Counts a call for which there was none yet, which this rank made with the others. */
void rd_mpi_setup_count(rd_mpi_comm_t *c, rd_mpi_form_t form);
/* Has rondo's communicator for nonblocking calls made, or what is due on it measured, at the next call of rd_mpi_setup.
 */
void rd_mpi_want_own(rd_mpi_comm_t *c);
/* Collective. Returns one that nobody uses, or a new one if it may be made, for calls of that form, which do not block;
 * NULL: there is none, for *why. */
rd_mpi_core_t *rd_mpi_core_take(rd_mpi_comm_t *c, rd_mpi_form_t form, bool may_create, rd_mpi_reason_t *why);
void rd_mpi_core_put(rd_mpi_core_t *core);
/* In MPI_Finalize: ends those that nobody uses, or all. */
void rd_mpi_cores_end(bool also_used);
void rd_mpi_progress(void *unused); /* makes the MPI's */
bool rd_mpi_many_threads(void);     /* may several call the MPI at once? */

/* ---- creation.c ---- */

/* Collective. Returns one that has one user; NULL: one of the ranks has failed. */
rd_mpi_core_t *rd_mpi_core_create(rd_mpi_comm_t *c);
void rd_mpi_core_destroy(rd_mpi_core_t *core);

/* ---- rules.c: the switches ---- */

typedef struct rd_mpi_settings {
    rd_mpi_rules_t rules;
    bool off;
    int64_t after;
    bool log, report;
    const char *table; /* a file that remembers who is quicker; NULL: none */
} rd_mpi_settings_t;
extern rd_mpi_settings_t rd_mpi_settings; /* of this process */
void rd_mpi_settings_read(void);
extern const char *const rd_mpi_names[RD_MPI_KINDS];

/* For the short ways: is it certain that rondo serves it? */
bool rd_mpi_allowed_else(const rd_mpi_rules_t *rules, int kind, uint64_t bytes); /* table.c */
static inline bool rd_mpi_allowed(const rd_mpi_rules_t *r, int kind, uint64_t bytes)
{
    return (bytes >= r->least[kind] && bytes <= r->most[kind]) ||
           (r->measured[kind] && rd_mpi_allowed_else(r, kind, bytes));
}

/* ---- table.c, measure.c: which of the two is quicker ---- */

typedef struct rd_mpi_work rd_mpi_work_t;
typedef struct rd_mpi_timing {
    int kind, nranks;
    uint64_t bytes;
    double rondo_us, mpi_us;
} rd_mpi_timing_t;

bool rd_mpi_unequal(int kind); /* its bytes differ by rank */
/* Does rondo serve a call of `bytes` bytes? Returns MPI_SUCCESS, or the reason to hand it on. */
int rd_mpi_admit(rd_mpi_work_t *w, uint64_t bytes);
/* Counts a call that was admitted and begun. What it makes due is measured at its end, or for a nonblocking one at the
 * next blocking call. */
void rd_mpi_table_count(const rd_mpi_work_t *w);
/* Puts into `rules` what this process knows for `nranks` ranks. */
void rd_mpi_table_begin(rd_mpi_rules_t *rules, int nranks);
/* Puts into `rules` what was measured; `remember`: also for later communicators, and into the file. */
void rd_mpi_table_add(rd_mpi_rules_t *rules, const rd_mpi_timing_t *timing, bool remember);
/* Is it known that the MPI serves this nonblocking call? Then nothing need be prepared to find that out. */
bool rd_mpi_is_the_mpis(rd_mpi_comm_t *c, const rd_mpi_call_t *call);
/* 0 for 0 bytes, k for 2^(k-1) to 2^k - 1: of calls whose bytes are alike on all ranks */
static inline int rd_mpi_class_of(uint64_t bytes)
{
    int class = bytes ? 64 - __builtin_clzll(bytes) : 0;

    return class < RD_MPI_CLASSES ? class : RD_MPI_CLASSES - 1;
}
static inline bool rd_mpi_is_widest(const rd_mpi_rules_t *rules, int kind, uint64_t bytes)
{
    return bytes >= rules->widest[kind][0] && bytes <= rules->widest[kind][1];
}
/* Measures what is due on that core of the communicator's. Collective. */
void rd_mpi_measure(rd_mpi_comm_t *c, rd_mpi_core_t *core);

/* ---- layout.c: types in memory ---- */

typedef struct rd_mpi_layout {
    size_t size;
    MPI_Aint extent, true_lb; /* of dense ones: extent == size */
    bool dense;
} rd_mpi_layout_t;

/* false: the type cannot be used, and the MPI shall say so. */
bool rd_mpi_layout(MPI_Datatype type, rd_mpi_layout_t *layout);
/* Returns the combiner that a type was made by, MPI_UNDEFINED if the MPI does not say it. `*of` is what it is a
 * duplicate of, or a row of, and must be closed; of others it is MPI_DATATYPE_NULL. */
int rd_mpi_type_open(MPI_Datatype type, MPI_Datatype *of);
void rd_mpi_type_close(MPI_Datatype of);

/* `count` elements at `user` as bytes one behind the other: in place if the type is dense, else in memory of its own.
 */
typedef struct rd_mpi_bytes {
    char *at;
    size_t bytes;
    char *owned;
    void *user;
    MPI_Count count;
    MPI_Datatype type;
    rd_mpi_layout_t layout;
} rd_mpi_bytes_t;

/* Prepare what is sent (packed) and what is received into; they return MPI_SUCCESS or an error, which the error
 * handler has seen, and then hold nothing. rd_mpi_received unpacks; rd_mpi_bytes_free must follow. */
int rd_mpi_sent(rd_mpi_comm_t *c, rd_mpi_bytes_t *b, const void *user, MPI_Count count, MPI_Datatype type,
                const rd_mpi_layout_t *layout);
int rd_mpi_receiving(rd_mpi_comm_t *c, rd_mpi_bytes_t *b, void *user, MPI_Count count, MPI_Datatype type,
                     const rd_mpi_layout_t *layout);
int rd_mpi_received(rd_mpi_comm_t *c, rd_mpi_bytes_t *b);
void rd_mpi_bytes_free(rd_mpi_bytes_t *b);
/* The same between given memory; their errors have been seen by the handler, too. */
int rd_mpi_pack(rd_mpi_comm_t *c, const void *user, MPI_Count count, MPI_Datatype type, const rd_mpi_layout_t *layout,
                char *to);
int rd_mpi_unpack(rd_mpi_comm_t *c, const char *from, void *user, MPI_Count count, MPI_Datatype type,
                  const rd_mpi_layout_t *layout);

/* The blocks of all ranks in one buffer, for calls whose blocks have different lengths. */
typedef struct rd_mpi_side {
    rd_mpi_layout_t layout;
    MPI_Datatype type;
    char *user;
    const void *counts, *displs;
    bool large;
    char *at, *owned;          /* where the blocks lie, or are packed one behind the other */
    size_t *lengths, *offsets; /* in bytes */
    size_t bytes;
} rd_mpi_side_t;

/* ---- the calls ---- */

/* A call that rondo serves, from its beginning to its end. To begin it prepares memory and calls rondo: outside of a
 * group the operation is over then, inside it is recorded. At the end what was packed is unpacked, or reduced. */
struct rd_mpi_work {
    rd_mpi_comm_t *c;
    const rd_mpi_call_t *call;
    rondo_comm_t rondo; /* where it runs; NULL: see rd_mpi_begin_sorted */
    /* Where rondo is NULL: the MPI's communicator, and for what does not block the requests that are begun on it. */
    MPI_Comm comm;
    MPI_Request *parts;
    int num_parts;
    size_t *lists;     /* four of them, each of one word for each rank */
    uint64_t bytes;    /* what is counted for it */
    uint64_t admitted; /* what rd_mpi_admit was asked for */
    /* What there is to free, and of the two that are received into to unpack. */
    rd_mpi_bytes_t in, out;
    rd_mpi_side_t from, to;
    int but; /* a block of `to` that stays as it is; -1: none */
    struct {
        char *blocks, *to; /* what was collected, and where the result belongs */
        size_t stride, count;
        int last; /* the last block that counts; -1: there is no result here */
    } sorted;
};

#define RD_MPI_HAND_ON(reason) (-(int)(reason))

/* Does this rank's part of the call have something to send, to receive: does MPI look at those arguments here? */
bool rd_mpi_sends(const rd_mpi_comm_t *c, const rd_mpi_call_t *call);
bool rd_mpi_receives(const rd_mpi_comm_t *c, const rd_mpi_call_t *call);

/* Calls that are neither timed nor compared may go straight to rondo the next time, if nothing is to be made or
 * measured then. */
static inline bool rd_mpi_short_ways(const rd_mpi_comm_t *c)
{
    return c->status == RD_MPI_SERVING && !rd_mpi_settings.report && !c->rules->compare;
}

/* Begin a call. They return MPI_SUCCESS, a reason to hand it on, or an error, which the handler has seen. */
int rd_mpi_begin(rd_mpi_work_t *w); /* any call; the following ones those of a kind */
int rd_mpi_begin_reduction(rd_mpi_work_t *w);
int rd_mpi_begin_blocks(rd_mpi_work_t *w);
int rd_mpi_begin_lists(rd_mpi_work_t *w);
/* Reductions in the order of ranks, of dense elements. Where rondo serves nothing (`rondo` is NULL) the MPI moves them.
 * A long one is handed on, unless it must be in that order. */
int rd_mpi_begin_sorted(rd_mpi_work_t *w, size_t size, bool must);
/* Can the MPI, whose counts are ints, move what a call that does not block collects? The same on all ranks. */
bool rd_mpi_may_collect(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, size_t size);
/* For a blocking reduction that rondo does not serve for that reason: does it in the order of ranks all the same, if
 * its bits depend on that and were asked for to be reproducible. Returns MPI_SUCCESS, an error, which the handler has
 * seen, or the reason to hand it on. */
int rd_mpi_order(rd_mpi_comm_t *c, const rd_mpi_call_t *call, rd_mpi_reason_t reason);
/* Is a reduction that rondo does not serve for that reason to be done so? Then `*size` becomes an element's bytes. */
bool rd_mpi_is_ordered(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, rd_mpi_reason_t reason, size_t *size);

/* Ends what has been begun, and is over if `result` is MPI_SUCCESS; returns that, or another error. */
int rd_mpi_end(rd_mpi_work_t *w, int result);
int rd_mpi_end_lists(const rd_mpi_work_t *w);
int rd_mpi_end_sorted(const rd_mpi_work_t *w);

/* May rondo run it, as far as the communicator and the arguments say? RD_MPI_SERVED, or why not. Sets the communicator
 * up when its time has come. */
rd_mpi_reason_t rd_mpi_judge(rd_mpi_comm_t *c, const rd_mpi_call_t *call);
/* Is this one the MPI's, because it is compared? */
static inline bool rd_mpi_is_compared(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    return c->rules->compare && (c->compared[rd_mpi_kind(call)] + 1) % c->rules->compare == 0;
}

/* Count a call, which all ranks do at the same ones: when this rank has taken part in it. One that was refused here for
 * an argument may be made again, and rightly, where the others make it once. */
void rd_mpi_has_begun(const rd_mpi_work_t *w);
/* The same for a call that is handed on: before it, and behind it with its result, which is returned (refused.c). */
typedef struct rd_mpi_watch {
    const rd_mpi_call_t *call;
    rd_mpi_reason_t reason;
    MPI_Errhandler users; /* of the communicator, for the time of the call; MPI_ERRHANDLER_NULL: it has kept its own */
} rd_mpi_watch_t;
rd_mpi_watch_t rd_mpi_watch(const rd_mpi_call_t *call, rd_mpi_reason_t reason);
int rd_mpi_passed(rd_mpi_watch_t *w, int result);

/* Has rondo run it. Returns a reason to hand it on, MPI_SUCCESS, or an error, which the handler has seen. */
int rd_mpi_serve(rd_mpi_comm_t *c, const rd_mpi_call_t *call);
/* From a call to its end: finds out what serves it, and if nothing does, hands it on. */
int rd_mpi_run(const rd_mpi_call_t *call);
bool rd_mpi_reduces(rd_mpi_what_t what);
/* The named type that a type reduces as; itself, if there is none. */
MPI_Datatype rd_mpi_reduced_type(MPI_Datatype type);
void rd_mpi_arguments_start(void);                                        /* arguments.c */
bool rd_mpi_plausible(const rd_mpi_comm_t *c, const rd_mpi_call_t *call); /* nothing is wrong with it */
int rd_mpi_pass(const rd_mpi_call_t *call, MPI_Request *request); /* to who comes behind; NULL: a blocking one */
extern rd_mpi_entries_t rd_mpi_next;

/* A failure after the call has begun: through the error handler of the communicator, once. Returns its code. */
int rd_mpi_failed(rd_mpi_comm_t *c, rondo_result_t result);
int rd_mpi_raise(rd_mpi_comm_t *c, int class);
static inline int rd_mpi_result(rd_mpi_comm_t *c, rondo_result_t result)
{
    return __builtin_expect(result == RONDO_SUCCESS, 1) ? MPI_SUCCESS : rd_mpi_failed(c, result);
}

static inline int64_t rd_mpi_list_at(const void *list, bool large, int i)
{
    return large ? ((const int64_t *)list)[i] : ((const int *)list)[i];
}

/* ---- in_flight.c: what was started and is not over ---- */

typedef struct rd_mpi_flight {
    struct rd_mpi_flight *next;
    rd_mpi_core_t *core;
    rondo_request_t request;
    bool arrived;                               /* rondo's operation is over, */
    rondo_result_t result;                      /* with this result */
    void (*land)(struct rd_mpi_flight *flight); /* called then, in a thread that is in a call of the MPI */
} rd_mpi_flight_t;

bool rd_mpi_flights_start(void); /* before the first one; false: nobody can make the progress here */
/* Has Open MPI call whenever it makes progress, which flights and stand-ins need; false: that cannot be had. */
bool rd_mpi_progress_start(void);
/* In MPI_Finalize. What nobody has waited for goes on to its end, for other ranks may need it. */
void rd_mpi_flights_end(void);
/* Between the two, rondo's communicators for nonblocking calls are this thread's. */
void rd_mpi_flights_enter(void);
void rd_mpi_flights_leave(void);
/* An error that this thread meets there is raised when it has left: true if it is kept until then. */
bool rd_mpi_flights_keep_error(MPI_Comm comm, int code);
/* Follows what was submitted in between. `may_be_over`: returns false if it has arrived already, and is not followed.
 */
bool rd_mpi_flights_add(rd_mpi_flight_t *flight, bool may_be_over);
bool rd_mpi_flights_any(void);
/* Makes rondo's progress, and lands what has arrived. */
void rd_mpi_flights_turn(void);
/* The MPI's progress is made from inside of rondo: it must not come back here. Returns what to set it to afterwards. */
bool rd_mpi_flights_hold(bool hold);

/* ---- operation.c: an operation that goes on behind its call ---- */

typedef struct rd_mpi_operation {
    rd_mpi_flight_t flight; /* the first, so that the operation is found from there */
    rd_mpi_comm_t *c;
    /* What was asked for, with types, arrays and operators that stay; and what is done, on memory of the host. */
    rd_mpi_call_t asked, call;
    rd_mpi_work_t work;
    rd_mpi_on_host_t on_host;
    MPI_Datatype kept[2]; /* that describe what is sent and received; MPI_DATATYPE_NULL: the user's do */
    bool keeps;           /* the user's operator and its type, in `asked` */
    int result;
    int unsaid;                               /* stand_in.c: an error that no handler has seen yet */
    void (*done)(struct rd_mpi_operation *o); /* called at the end, with the result there */
    MPI_Request request;                      /* the user's */
    bool landed;                              /* nonblocking.c: `done` was called */
    bool ordered;                             /* stand_in.c: a reduction in the order of ranks, */
    size_t size;                              /* whose elements have this many bytes */
    struct rd_mpi_operation *next;            /* persistent.c */
    int tag;
    bool active, freed;
    size_t words[]; /* the work's lists, and copies of the call's */
} rd_mpi_operation_t;

/* `again`: it will be started more than once. Returns NULL if there is no memory. `core` serves it, NULL: the MPI does,
 * see stand_in.c, or that is not known yet. */
rd_mpi_operation_t *rd_mpi_operation_create(rd_mpi_comm_t *c, rd_mpi_core_t *core, const rd_mpi_call_t *call,
                                            bool again);
/* Begins it. Returns MPI_SUCCESS, or a reason to hand it on or an error, and then nothing has begun. If `over` is not
 * NULL, it may be over already: then `over` is set, rd_mpi_operation_end must follow, and `done` is not called. */
int rd_mpi_operation_submit(rd_mpi_operation_t *o, bool *over);
int rd_mpi_operation_end(rd_mpi_operation_t *o);         /* returns the result */
void rd_mpi_operation_drop_types(rd_mpi_operation_t *o); /* nothing looks at what is kept any more */
void rd_mpi_operation_free(rd_mpi_operation_t *o);

/* ---- revoked.c: MPIs that go on after failures (ULFM) ---- */

/* Is this MPI asked to do so? Then communicators share nothing: one that is revoked must leave others as they are. And
 * nonblocking and persistent calls are the MPI's, for the error of a generalised request is none of its communicator's.
 */
bool rd_mpi_is_tolerant(void);
/* The class of an error that came from another rank. */
int rd_mpi_class_of_failure(rd_mpi_comm_t *c);
void rd_mpi_revoke_fill(rd_mpi_entries_t *entries); /* C's entry that revokes communicators */

/* ---- nonblocking.c, persistent.c ---- */

/* They return a reason to hand it on, MPI_SUCCESS, or an error, which the handler has seen. */
int rd_mpi_start(const rd_mpi_call_t *call, MPI_Request *request);
int rd_mpi_init(const rd_mpi_call_t *call, MPI_Request *request);
/* For what is measured: a request of rondo's in any case, which may not be served (negative), and all that is done with
 * it and with one of the MPI's. */
int rd_mpi_start_own(rd_mpi_comm_t *c, const rd_mpi_call_t *call, MPI_Request *request);
int rd_mpi_init_own(rd_mpi_comm_t *c, const rd_mpi_call_t *call, MPI_Request *request);
int rd_mpi_start_and_wait(MPI_Request *request);
void rd_mpi_request_free(MPI_Request *request);
/* Fills in C's entries of what is done with persistent requests. */
void rd_mpi_persistent_fill(rd_mpi_entries_t *entries);
void rd_mpi_persistent_end(void); /* in MPI_Finalize */

/* ---- report.c ---- */

typedef struct rd_mpi_tally {
    uint64_t served, bytes, handed_on[RD_MPI_REASONS];
    double served_s, handed_s, compared_s; /* seconds, only for RONDO_MPI_REPORT */
} rd_mpi_tally_t;
extern rd_mpi_tally_t rd_mpi_tallies[RD_MPI_KINDS];
void rd_mpi_report_start(void);
void rd_mpi_say_handed_on(int kind, rd_mpi_reason_t reason);
/* Counts a call that was handed on, and with RONDO_MPI_LOG says why, once for each operation and reason. */
static inline void rd_mpi_handed_on(int kind, rd_mpi_reason_t reason)
{
    rd_mpi_tallies[kind].handed_on[reason]++;
    if (rd_mpi_settings.log)
        rd_mpi_say_handed_on(kind, reason);
}
double rd_mpi_clock(void);
static inline void rd_mpi_count_served(int kind, uint64_t bytes)
{
    rd_mpi_tallies[kind].served++;
    rd_mpi_tallies[kind].bytes += bytes;
}

#endif
