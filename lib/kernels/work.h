/* What a launch of one kernel is told, and how the window of a rank is laid out: shared by the kernels and by the host
 * code that fills it in. Plain C.
 *
 * Every rank has one *window*, which all peers of the node have mapped: in its device memory or, where GPUs do not reach
 * each other, in pinned host memory:
 *
 *   control    epochs, gates, counters (rd_kcontrol_t)
 *   list       what a long group's launch is to send and receive: written by this rank's kernels, read by them alone
 *   fifos      for each peer that sends to this rank: `fifos` queues of RD_KSLOTS slots of RD_KSLOT bytes
 *   bank 0, 1  the inbox of collectives: taken in turns, pass by pass
 *
 * What a rank's kernels tell only each other (epochs, counters of this rank, the list) lies in `own`: the window too, or,
 * where that is host memory, device memory of the same layout.
 *
 * Banks are *at rest all ones*: whoever reads a word puts the ones back. So every protocol may use any place in them: LL
 * and LL128 flags are zero when there, a sentinel word is there when it is not all ones.
 *
 * An operation that all ranks take part in is an *epoch*. Each rank's kernels count epochs and passes by themselves, in
 * the control page; no argument holds a number, so a launch may be replayed by a graph. A writer touches bank b of a
 * peer only when the peer has begun an epoch after the last one that used bank b there (begun[peer] > used[b]): it
 * tells everybody at its own begin, after its stream has finished the epoch before. Within an epoch, pass k + 2 comes
 * to the bank of pass k: there the writer needs proof that the peer has cleaned it: the peer's part of pass k + 1 came
 * after it, behind a fence.
 *
 * What goes through fifos has nothing to do with epochs: each fifo has its own counters at both ends, and what lies in a
 * slot bears its number.
 */
#ifndef RD_KWORK_H
#define RD_KWORK_H

#include <stdint.h>

#define RD_KRANKS 16         /* ranks of a communicator on GPUs of one node, at most */
#define RD_KFIFOS 512        /* fifos of a pair, at most */
#define RD_KSLOTS 16         /* slots of a fifo */
#define RD_KSLOT 1024u       /* bytes of a slot: a unit of LL or LL128 */
#define RD_KALIGN (2u << 20) /* fifos and bank 0 begin at multiples of it; bank 1 lies behind bank 0 */
#define RD_KREGISTERED 64    /* buffers that are registered at a time, at most */
#define RD_KNEVER (1u << 30) /* so far ahead of an epoch that none comes there: see rd_control_fail */

/* A buffer of every rank, registered together: where this rank has each mapped, and how long each is. */
typedef struct rd_kregistered {
    uint64_t base[RD_KRANKS]; /* 0: it is not mapped */
    uint64_t bytes[RD_KRANKS];
} rd_kregistered_t;

typedef struct rd_kcontrol {
    uint32_t epoch;   /* finished by this rank */
    uint32_t passes;  /* made in all epochs: bank of the next pass = passes & 1 */
    uint32_t used[2]; /* the last epoch that used a bank */
    uint32_t leaving; /* blocks of the running grid that have finished; the last one advances the above */
    uint32_t pad[27];
    uint32_t begun[RD_KRANKS]; /* by peers: the epoch that each has begun */
    uint32_t pad2[16];
    /* Fifo counters, in slots, modulo 2^32, [peer * RD_KFIFOS + fifo]. */
    uint32_t sent[RD_KRANKS * RD_KFIFOS];     /* by this rank, into the peer's window */
    uint32_t received[RD_KRANKS * RD_KFIFOS]; /* by this rank, out of its own */
    uint32_t taken[RD_KRANKS * RD_KFIFOS];    /* by peers: slots that the peer has taken */
    uint32_t landed[RD_KRANKS * RD_KFIFOS];   /* by peers: what a fifo's sender has put elsewhere than into its slots */
    uint32_t post[RD_KRANKS * RD_KFIFOS][4];  /* by peers that receive: where to put it, see fifo.cuh */
    rd_kregistered_t registered[RD_KREGISTERED];
} rd_kcontrol_t;

/* Words in pinned host memory that kernels and host share; one for each communicator and rank. */
typedef struct rd_khost {
    uint32_t abort;      /* by the host, nonzero: leave every wait and end */
    uint32_t timeout_ms; /* by the host: a wait that lasts longer ends the kernel; 0: none does */
    uint32_t failed;     /* by a kernel that left without having finished: RD_KFAILED_... */
    uint32_t late;       /* with RD_KFAILED_TIMEOUT, set before it: the peer that was waited for */
    uint32_t slow;       /* by a kernel that has waited for RD_KSLOW_MS, again and again: for whom, plus one */
} rd_khost_t;

#define RD_KSLOW_MS 100
#define RD_KFAILED_ABORT 1u
#define RD_KFAILED_TIMEOUT 2u
#define RD_KFAILED_POST 3u /* a peer's post names what there is not */

/* The same in every launch of a communicator. Offsets are in bytes from the window's base. */
typedef struct rd_kcomm {
    char *window[RD_KRANKS]; /* each rank's, as mapped here */
    char *own;               /* begins with a control page: this rank's part of it */
    rd_khost_t *host;        /* as the device sees it */
    int32_t rank, nranks;
    uint32_t fifos;       /* of a pair */
    uint32_t spread;      /* fifos that a message is spread over, at most */
    uint32_t fifo_offset; /* / RD_KALIGN; sender s's fifos begin at fifo_offset + s * fifos * RD_KSLOTS * RD_KSLOT */
    uint32_t bank_offset; /* / RD_KALIGN */
    uint32_t bank_bytes;  /* of one bank: a multiple of 128 */
} rd_kcomm_t;

/* One message of a group, or one block of a collective that moves data. */
typedef struct rd_kmessage {
    void *buffer;   /* send: read; receive: written */
    uint64_t bytes; /* 0: nothing is exchanged */
} rd_kmessage_t;

/* What one (peer, direction) has to do, in order: messages first..first + count - 1. */
typedef struct rd_kpair {
    uint16_t peer, send; /* send: 1, receive: 0 */
    uint32_t first, count;
} rd_kpair_t;

#define RD_KPAIRS (2 * RD_KRANKS)

/* The messages of a launch lie in its arguments, or, if they are more than so many, in the window's list. There they are
 * put, a part at a time, by launches of kind WRITE before it: whoever keeps a launch's arguments, as a graph does, keeps
 * all there is. */
#define RD_KMESSAGES_HERE 96
#define RD_KWRITTEN 1920 /* bytes that a launch of WRITE carries */
#define RD_KLIST_OFFSET (512u << 10) /* from the window's base */
#define RD_KLIST_MOST ((RD_KALIGN - RD_KLIST_OFFSET) / 16)

typedef enum {
    RD_KSCALE_NONE,
    RD_KSCALE_REAL,   /* times a real number: a float for float32, the narrower ones and complex64, else a double */
    RD_KSCALE_ELEMENT /* times an element of the type: integers, complex, bool */
} rd_kscaled_t;

typedef struct rd_kreduce {
    const void *in;
    void *out;
    uint64_t count;    /* elements: of the whole (allreduce, reduce, broadcast), or of one block */
    uint64_t scale[2]; /* bits of the scalar: see `scaled` */
    const void
        *device_scale; /* or where one element of `type` lies in device memory that is the scalar; NULL: `scale` */
    int32_t root;
    uint32_t coll;     /* rd_coll_t */
    uint32_t type, op; /* rondo_type_t, rondo_op_t: for the kernels that decide at run time */
    uint32_t scaled;   /* each contribution is scaled as it is loaded: rd_kscaled_t */
    uint32_t passes;   /* at least one */
    uint32_t units;    /* of a pass, of each chunk: see launch.h */
} rd_kreduce_t;

typedef struct rd_kmessages {
    uint32_t listed;        /* the messages lie in the window's list; 0: `here` */
    uint32_t registered;    /* so many numbers of registered buffers may be in use; 0: nothing is posted */
    uint32_t posted;        /* messages of so many bytes are, then */
    uint32_t npairs, warps; /* warps of a pair: the most fifos that any of its messages has */
    rd_kpair_t pair[RD_KPAIRS];
    rd_kmessage_t here[RD_KMESSAGES_HERE];
    rd_kmessage_t from_self, to_self; /* one copy within the rank: by the warps that serve no pair */
} rd_kmessages_t;

typedef struct rd_kwrite {
    uint32_t offset, bytes; /* where in `own`; multiples of 8 */
    uint64_t data[RD_KWRITTEN / 8];
} rd_kwrite_t;

typedef struct rd_kwork {
    rd_kcomm_t comm;
    union {
        rd_kreduce_t reduce;
        rd_kmessages_t messages;
        rd_kwrite_t write;
    };
} rd_kwork_t; /* at most 4 KB: a kernel's arguments */

#ifdef __cplusplus
static_assert(sizeof(rd_kcontrol_t) <= RD_KLIST_OFFSET && sizeof(rd_kmessage_t) == 16, "the list lies behind control");
static_assert(sizeof(rd_kwork_t) <= 4096, "arguments");
#endif

/* What host and kernels compute alike. */
#ifdef __CUDACC__
#define RD_KBOTH static __host__ __device__ inline
#else
#define RD_KBOTH static inline
#endif

/* Fifos that a message is spread over, of `fifos` that a pair has; `piece`: what travels together. */
RD_KBOTH uint32_t rd_kspread(uint64_t bytes, uint32_t piece, uint32_t fifos)
{
    uint64_t pieces = (bytes + piece - 1) / piece;

    return pieces < fifos ? (uint32_t)pieces : fifos;
}

/* Of a whole that is cut in n chunks: bytes from one to the next, so that all begin on 16. */
RD_KBOTH uint64_t rd_kchunk(uint64_t bytes, uint32_t n)
{
    return (bytes + n * 16 - 1) / (n * 16) * 16;
}

#endif
