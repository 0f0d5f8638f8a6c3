/* What a launch of one kernel is told, and how the window of a rank is laid out: shared by the kernels and by the host
 * code that fills it in. Plain C.
 *
 * Every rank has one *window*, which all peers of the node have mapped: in its device memory or, where GPUs do not
 * reach each other, in pinned host memory:
 *
 *   control    epochs, gates, counters (rd_kcontrol_t)
 *   list       what a long group's launch is to send and receive: written by this rank's kernels, read by them alone
 *   fifos      for each peer that sends to this rank: `fifos` queues of RD_KSLOTS slots of RD_KSLOT bytes. Those that
 *              would be its own are scratch for the host's side (exec/cuda/hier/hier_run.c)
 *   slices     for each channel, of rings and chains, RD_KSLICES places of plain data: for the rank before
 *   streams    RD_KPLACES places for each block that receives messages by slices: for whoever sends to this rank
 *   bank 0, 1  the inbox of collectives: taken in turns, pass by pass
 *
 * What a rank's kernels tell only each other (epochs, counters of this rank, the list) lies in `own`: the window too,
 * or, where that is host memory, device memory of the same layout.
 *
 * Banks are *at rest all ones*: whoever reads a word puts the ones back. So every protocol may use any place in them:
 * LL and LL128 flags are zero when there, a sentinel word is there when it is not all ones.
 *
 * An operation that all ranks take part in is an *epoch*. Each rank's kernels count epochs and passes by themselves, in
 * the control page; no argument holds a number, so a launch may be replayed by a graph. A writer touches bank b of a
 * peer only when the peer has begun an epoch after the last one that used bank b there (begun[peer] > used[b]): it
 * tells everybody at its own begin, after its stream has finished the epoch before. Within an epoch, pass k + 2 comes
 * to the bank of pass k: there the writer needs proof that the peer has cleaned it: the peer's part of pass k + 1 came
 * after it, behind a fence. An allreduce by ring may take both banks as one; it has proof from pass to pass, and counts
 * two passes at least (ring.cuh).
 *
 * What goes through fifos and by slices has nothing to do with epochs: each has its own counters at both ends, and what
 * lies in a fifo's slot bears its number.
 *
 * The places of a channel belong to the rank before for ever, which may fill them before the kernel that takes them has
 * begun (proto_simple.cuh). Those of streams belong to no peer: *nobody writes there before a kernel of the receiver,
 * the one that takes it, has promised a place for it*, and a kernel promises no more than it takes. So when it ends
 * nothing is promised, and the next one of this rank may divide the places anew. A promise says which place it is,
 * because the sender cannot know how many blocks receive here (p2p_slices.cuh). Rings and chains do not go so: to wait
 * for the receiver's kernel made a broadcast of 32 MB 7 us longer.
 */
#ifndef RD_KERNELS_WORK_H
#define RD_KERNELS_WORK_H

#include <stddef.h>
#include <stdint.h>

#define RD_KRANKS 16         /* ranks whose windows are mapped, at most: more go through proxies, see below */
#define RD_KFIFOS 512        /* fifos of a pair, at most */
#define RD_KSLOTS 16         /* slots of a fifo */
#define RD_KSLOT 1024u       /* bytes of a slot: a unit of LL or LL128 */
#define RD_KCHANNELS 64      /* blocks of a rank that receive slices, at most; each a channel of rings and chains */
#define RD_KSLICES 4         /* places of a channel */
#define RD_KPLACES 2         /* places of a block that receives messages, of RD_KSLICE bytes each */
#define RD_KSLICE 65536u     /* bytes that slices are multiples of: what a block moves at once, at most */
#define RD_KALIGN (2u << 20) /* fifos, slices and bank 0 begin at multiples of it; bank 1 lies behind bank 0 */
#define RD_KREGISTERED 64    /* buffers that are registered at a time, at most */
#define RD_KNEVER (1u << 30) /* so far ahead of an epoch that none comes there: see rd_control_fail */

/* A buffer of every rank, registered together: where this rank has each mapped, and how long each is. */
typedef struct rd_kregistered {
    uint64_t base[RD_KRANKS]; /* 0: it is not mapped */
    uint64_t bytes[RD_KRANKS];
} rd_kregistered_t;

/* A channel's counters, modulo 2^32, at both of its ends: each word has one writer. */
typedef struct rd_kchannel {
    uint32_t sent, received; /* slices, by this rank: to the next one, from the one before */
    uint32_t pad[30];
    uint32_t landed; /* by the rank before: slices that lie here */
    uint32_t pad2[31];
    uint32_t taken; /* by the next rank: slices that it has taken */
    uint32_t pad3[31];
} rd_kchannel_t;

#define RD_KPROMISED (RD_KCHANNELS * RD_KPLACES) /* slices of a pair that are promised at a time, at most */

/* What a pair has sent by slices in messages, modulo 2^32, at both ends: each word has one writer. Word s %
 * RD_KPROMISED speaks of slice s: the block that promises a slice has had the one before in the same word. */
typedef struct rd_kstream {
    uint32_t sent, received;     /* slices, by this rank: to the peer, from it */
    uint32_t sending, receiving; /* blocks of the running grid that have finished with it; the last one counts up */
    uint32_t pad[28];
    uint32_t landed[RD_KPROMISED];   /* by the peer: s + 1, slice s lies here */
    uint32_t promised[RD_KPROMISED]; /* by the peer: where slice s may lie there, see RD_KPROMISE */
} rd_kstream_t;

/* The number of a place, and above it how often the word has been used. */
#define RD_KPROMISE(s, place) (((s) / RD_KPROMISED + 1) * RD_KPROMISED + (place))

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
    rd_kchannel_t channel[RD_KCHANNELS];
    rd_kstream_t stream[RD_KRANKS]; /* of each peer */
    rd_kregistered_t registered[RD_KREGISTERED];
} rd_kcontrol_t;

/* Words in pinned host memory that kernels and host share; one for each communicator and rank. */
typedef struct rd_khost {
    uint32_t abort;      /* by the host, nonzero: leave every wait and end */
    uint32_t timeout_ms; /* by the host: a wait that lasts longer ends the kernel; 0: none does */
    uint32_t failed;     /* by a kernel that left without having finished: RD_KFAILED_... */
    uint32_t late;       /* with RD_KFAILED_TIMEOUT and others, set before it: the peer that was waited for */
    uint32_t slow;       /* by a kernel that has waited for RD_KSLOW_MS, again and again: for whom, plus one */
} rd_khost_t;

#define RD_KSLOW_MS 100
#define RD_KFAILED_ABORT 1u
#define RD_KFAILED_TIMEOUT 2u
#define RD_KFAILED_POST 3u    /* a peer's post names what there is not */
#define RD_KFAILED_DIFFERS 4u /* `late` has come to a meeting with another mark; set before it, as with TIMEOUT */
#define RD_KFAILED_LEFT 5u    /* `late` has left an operation before this rank had read its buffer; the same */

/* The same in every launch of a communicator. Offsets are in bytes from the window's base. */
typedef struct rd_kcomm {
    char *window[RD_KRANKS]; /* each rank's, as mapped here */
    char *own;               /* begins with a control page: this rank's part of it */
    rd_khost_t *host;        /* as the device sees it */
    int32_t rank, nranks;
    uint32_t fifos;         /* of a pair */
    uint32_t spread;        /* fifos that a message is spread over, at most */
    uint32_t fifo_offset;   /* / RD_KALIGN; sender s's fifos begin at fifo_offset + s * fifos * RD_KSLOTS * RD_KSLOT */
    uint32_t slice_offset;  /* / RD_KALIGN; channel c's places begin at c * RD_KSLICES * slice_bytes */
    uint32_t slice_bytes;   /* of a place: a multiple of RD_KSLICE */
    uint32_t stream_offset; /* / RD_KALIGN; block b's places begin at b * RD_KPLACES * RD_KSLICE */
    uint32_t slice_least;   /* bytes of a slice of a message, at least: see rd_kslice */
    uint32_t bank_offset;   /* / RD_KALIGN */
    uint32_t bank_bytes;    /* of one bank: a multiple of 128 */
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
    uint32_t slices; /* of all of them, where they go by slices */
} rd_kpair_t;

#define RD_KPAIRS (2 * RD_KRANKS)

/* The messages of a launch lie in its arguments, or, if they are more than so many, in the window's list. There they
 * are put, a part at a time, by launches of kind WRITE before it: whoever keeps a launch's arguments, as a graph does,
 * keeps all there is. */
#define RD_KMESSAGES_HERE 96
#define RD_KWRITTEN 1920             /* bytes that a launch of WRITE carries */
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
    uint64_t gap;      /* REDUCE_SCATTER: bytes between a block of the input and the next; the others: 0 */
    uint64_t scale[2]; /* bits of the scalar: see `scaled` */
    const void
        *device_scale; /* or where one element of `type` lies in device memory that is the scalar; NULL: `scale` */
    int32_t root;
    uint32_t coll;     /* rd_coll_t */
    uint32_t type, op; /* rondo_type_t, rondo_op_t: for the kernels that decide at run time */
    uint32_t scaled;   /* each contribution is scaled as it is loaded: rd_kscaled_t */
    uint32_t passes;   /* at least one */
    uint32_t units;    /* of a pass, of each chunk: see launch.h */
    uint32_t slice;    /* SIMPLE: bytes of a unit */
} rd_kreduce_t;

/* A program of lib/sched as a kernel reads it: it travels in the arguments, so there is nothing to fetch and nothing to
 * free, and a graph keeps what it was captured with. A program's lanes are *tracks* here, because a warp has lanes. */
#define RD_KTRACKS 4 /* of a program, at most */
#define RD_KCONNS 16 /* connections each way, at most */
#define RD_KENDS 8   /* sources, and destinations, of a step: as lib/sched has it */
#define RD_KSTEPS 96 /* of a program, repeats written out, at most */

typedef enum { RD_KEND_IN, RD_KEND_OUT, RD_KEND_SCRATCH, RD_KEND_CONN, RD_KEND_NONE = 7 } rd_kend_t;
#define RD_KEND(where, index) ((uint8_t)((where) << 5 | (index)))
#define RD_KEND_WHERE(end) ((uint32_t)(end) >> 5)
#define RD_KEND_INDEX(end) ((end)&31u)

typedef struct rd_kstep {
    uint8_t sources, destinations;
    uint8_t local;    /* the one source that is the user's input or output, or RD_KEND_NONE */
    uint8_t finishes; /* where there are sums: what it makes is a whole one */
    uint8_t from[RD_KENDS], to[RD_KENDS];
} rd_kstep_t;

typedef struct rd_ktrack {
    uint8_t first, count; /* its steps */
} rd_ktrack_t;

typedef struct rd_kconn {
    uint8_t peer;
    uint8_t channel; /* its unit u goes through fifo channel * units + u */
    uint8_t track;   /* the one that uses it */
} rd_kconn_t;

typedef struct rd_kprogram {
    uint8_t chunks, places, tracks, sends, receives;
    rd_kconn_t to[RD_KCONNS], from[RD_KCONNS];
    rd_ktrack_t track[RD_KTRACKS];
    rd_kstep_t step[RD_KSTEPS];
} rd_kprogram_t;

typedef struct rd_kprogrammed {
    rd_kreduce_t reduce; /* as for every collective */
    rd_kprogram_t program;
} rd_kprogrammed_t;

typedef struct rd_kmessages {
    uint32_t listed;        /* the messages lie in the window's list; 0: `here` */
    uint32_t registered;    /* so many numbers of registered buffers may be in use; 0: nothing is posted */
    uint32_t posted;        /* messages of so many bytes are, then */
    uint32_t npairs, warps; /* by lines; warps of a pair: the most fifos that any of its messages has */
    rd_kpair_t pair[RD_KPAIRS];
    uint32_t sends, receives;    /* by slices: so many of `stream` send, and those behind them receive */
    uint32_t senders, receivers; /* blocks of each; receivers: a power of two, so that a word of rd_kstream_t has one */
    rd_kpair_t stream[RD_KPAIRS];
    rd_kmessage_t here[RD_KMESSAGES_HERE];
    rd_kmessage_t from_self, to_self; /* one copy within the rank: by the warps that serve no pair */
} rd_kmessages_t;

typedef struct rd_kwrite {
    uint32_t offset, bytes; /* where in `own`; multiples of 8 */
    uint64_t data[RD_KWRITTEN / 8];
} rd_kwrite_t;

/* Where ranks meet before and after copies: see barrier.cuh. */
typedef struct rd_kbarrier {
    uint32_t mark[8]; /* what all ranks must have come for */
    uint32_t behind;  /* this rank has read peers' buffers since it met them last: they must still be in it */
} rd_kbarrier_t;

/* ---- between nodes, or among many: data staged through pinned memory ----
 *
 * A *lane* is a ring of slots in pinned memory that kernels and a proxy of the process pass to and fro. Who has filled
 * a slot, or wants it filled, raises a trigger; the proxy does its part and counts up `done`. Kernels count a lane's
 * triggers in device memory, so that a launch may be replayed; the number is part of a trigger, so none needs to be
 * cleared.
 *
 * What is long is shared among *proxy channels*, each a proxy with connections and lanes of its own: lane 0 for
 * collectives, and lane 1 + p for pair p (a peer and a direction) of the messages of whatever launch is running. So
 * however many ranks there are, lanes are few; a launch has no more pairs, and what is left goes with the next one. A
 * collective is cut in rounds, a message in pieces, and proxy channel c has round or piece c, c + proxy channels, and
 * so on: in the kernel a team of blocks works with each proxy channel, and no team waits for another.
 */

#define RD_KINLINE 2048u     /* bytes of what goes by flagged lines, at most: see inline.cuh */
#define RD_KINLINE_LEAP 512u /* from a line of a thread to its other one: a warp's lines */
#define RD_KPROXY_CHANNELS 8
#define RD_KPROXY_LANES (1 + RD_KPAIRS)
#define RD_KLANES (RD_KPROXY_CHANNELS * RD_KPROXY_LANES) /* proxy channel c's begin at c * RD_KPROXY_LANES */
#define RD_KLANE_SLOTS 4                                 /* of a lane, at most; a power of two */

/* 16 bytes, which may tear: each half says for itself that it is there. */
typedef struct rd_ktrigger {
    uint32_t what;   /* collectives: the task; messages: bytes */
    uint32_t number; /* of the trigger in its lane, from 1 on, modulo 2^31; highest bit: valid */
    uint32_t round;  /* collectives: which one; messages: RD_KMESSAGE_... and RD_KMESSAGE_PAIR */
    uint32_t again;  /* the number */
} rd_ktrigger_t;

#define RD_KVALID 0x80000000u
#define RD_KPROXY 0xffffu /* as the peer that is waited for */
#define RD_KMESSAGE_CAPTURED 1u
#define RD_KMESSAGE_LONG 2u /* it has pieces for other proxy channels too */
#define RD_KMESSAGE_GDR 4u  /* past the slots: this one says where as many messages lie as the trigger says */
#define RD_KMESSAGE_PAIR(peer, send) ((uint32_t)(peer) << 4 | ((send) ? 8u : 0u))
#define RD_KMESSAGE_PEER(round) ((round) >> 4)
#define RD_KMESSAGE_SEND(round) ((round) >> 3 & 1u)

/* In the bytes of a message between nodes: it is the network's to carry, straight from and to the buffer; and the host
 * can reach the buffer. Such messages of a pair that follow one another share a trigger, of proxy channel 0's. */
#define RD_KGDR (UINT64_C(1) << 63)
#define RD_KGDR_HOST (UINT64_C(1) << 62)
#define RD_KGDR_RUN 8u /* of a trigger, at most: as many rd_kmessage_t fit into the smallest slot */

typedef struct rd_klane { /* in pinned memory */
    rd_ktrigger_t trigger[RD_KLANE_SLOTS];
    uint32_t done; /* triggers that the proxy has done; by it alone, on a line of its own */
    uint32_t over; /* of the very first lane: after a failure no proxy, nor the network, touches a buffer any more */
    uint32_t pad[30];
} rd_klane_t;

typedef struct rd_klane_state {       /* in device memory */
    uint32_t raised;                  /* triggers, ever */
    uint32_t seen;                    /* and those that kernels have seen done: the last launch may have left before */
    uint32_t leaving;                 /* blocks of the running grid that have finished with the lane */
    uint32_t arrived[RD_KLANE_SLOTS]; /* blocks that have done their part of a slot */
    uint32_t failed;                  /* lane 0: a kernel has left without having finished: none sends anything more */
} rd_klane_state_t;

/* The same in every launch of a communicator that goes through proxies. */
typedef struct rd_kproxy {
    rd_klane_t *lanes;       /* RD_KLANES, as the device sees them */
    rd_klane_state_t *state; /* RD_KLANES */
    char *area;     /* pinned: the slots of each proxy channel. Its lanes share them: launches follow one another */
    char *inlined;  /* pinned: 4 * RD_KINLINE for each of the first lane's slots */
    uint32_t slots; /* of a lane, a power of two */
    uint32_t slot;  /* collectives: bytes; a slot is one for the input and one for the output behind it */
    uint32_t message_slot; /* messages: bytes; pair p's of a proxy channel begin at p * slots * message_slot */
    uint32_t least;        /* bytes of a round or piece, see rd_kpiece */
    uint32_t channels;     /* of the communicator */
    uint32_t teams;        /* of this launch: proxy channels 0 to teams - 1 have something to do */
    uint32_t captured;     /* messages: this launch belongs to a graph */
} rd_kproxy_t;

/* Where a part of a collective lies in the user's buffer. */
typedef struct rd_kpart {
    uint64_t offset, bytes;
} rd_kpart_t;

/* The parts of one side. In a round each gives its next `each` bytes, and they lie in the slot without gaps. Where all
 * are equally long and far apart, `part` is the first of them; else they are in the launch's table. */
typedef struct rd_kside {
    uint32_t n;
    uint32_t tabled; /* from this row on, plus one; 0: they are alike */
    rd_kpart_t part;
    uint64_t stride; /* from one to the next, then */
} rd_kside_t;

typedef struct rd_kproxied {
    rd_kproxy_t proxy;
    rd_kreduce_t reduce; /* buffers, type, and how contributions are scaled */
    rd_kside_t in, out;
    uint64_t each;   /* bytes, a multiple of 16 */
    uint32_t rounds; /* at least one */
    uint32_t task;
    uint32_t copied;  /* a broadcast's root: the input, one part, goes to the output as it is read */
    uint32_t inlined; /* one round, by flagged lines and one block */
    uint32_t listed;  /* the table lies at the beginning of `own`, by launches of WRITE; 0: here */
    rd_kpart_t here[2 * RD_KRANKS];
} rd_kproxied_t;

typedef struct rd_kproxied_messages {
    rd_kmessages_t messages; /* MIXED: those within the node; PROXIED_MESSAGES: `here` alone */
    rd_kproxy_t proxy;
    uint32_t npairs; /* with ranks of other nodes: their messages are the first in messages.here */
    rd_kpair_t pair[RD_KPAIRS];
} rd_kproxied_messages_t;

typedef struct rd_kwork {
    rd_kcomm_t comm;
    union {
        rd_kreduce_t reduce;
        rd_kprogrammed_t programmed;
        rd_kmessages_t messages;
        rd_kwrite_t write;
        rd_kbarrier_t barrier;
        rd_kproxied_t proxied;
        rd_kproxied_messages_t proxied_messages;
    };
} rd_kwork_t; /* at most 4 KB: a kernel's arguments */

/* As much of it as most kernels want: to launch one of 3 KB takes 0.25 us more of the host's time. */
typedef struct rd_kwork_reduce {
    rd_kcomm_t comm;
    rd_kreduce_t reduce;
} rd_kwork_reduce_t;

typedef struct rd_kwork_proxied {
    rd_kcomm_t comm;
    rd_kproxied_t proxied;
} rd_kwork_proxied_t;

#ifdef __cplusplus
static_assert(RD_KPROMISED == 128, "the number of a place, and what is left of a word");
static_assert(sizeof(rd_kcontrol_t) <= RD_KLIST_OFFSET && sizeof(rd_kmessage_t) == 16, "the list lies behind control");
static_assert(sizeof(rd_kwork_t) <= 4096, "arguments");
static_assert(offsetof(rd_kwork_t, reduce) == offsetof(rd_kwork_reduce_t, reduce), "the same beginning");
static_assert(offsetof(rd_kwork_t, proxied) == offsetof(rd_kwork_proxied_t, proxied), "the same beginning");
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

/* Bytes of a slice of a message. Movers carry 15 16th of a place at once (p2p_slices.cuh). Shorter ones, in favour of
 * equal parts for all the blocks that there may be, and of a few slices for each; but not below
 * `least`. */
RD_KBOTH uint32_t rd_kslice(uint64_t bytes, uint32_t least)
{
    uint64_t row = (uint64_t)(RD_KSLICE / 16 * 15) * RD_KCHANNELS, rows = (bytes + row - 1) / row;
    uint64_t count = (rows < RD_KSLICES ? RD_KSLICES : rows) * RD_KCHANNELS, slice = (bytes + count - 1) / count;

    return slice < least ? least : (uint32_t)((slice + 127) / 128 * 128);
}

RD_KBOTH uint32_t rd_kslices(uint64_t bytes, uint32_t slice)
{
    return (uint32_t)((bytes + slice - 1) / slice);
}

#define RD_KFEW 4         /* proxy channels that share what is short */
#define RD_KSHORT 4       /* of which each has a quarter of `least` at least, */
#define RD_KTO_EACH 4096u /* and so much for each rank that gets its own: a message */

/* Bytes of a round or a piece of what has `bytes` in so many parts, each for another rank: so many that each of the
 * proxy channels has two, as long as they are not short, nor longer than a slot. What is too short for that goes by few
 * proxy channels, as many bytes each. `least` and `slot` are multiples of 64. */
RD_KBOTH uint32_t rd_kpiece(uint64_t bytes, uint32_t parts, uint32_t channels, uint32_t least, uint32_t slot)
{
    uint64_t piece = (bytes / (2 * channels) + 63) / 64 * 64, shortest = (uint64_t)parts * RD_KTO_EACH;
    uint32_t few = channels < RD_KFEW ? channels : RD_KFEW;
    uint64_t share = ((bytes + few - 1) / few + 63) / 64 * 64;

    if (shortest < least / RD_KSHORT)
        shortest = least / RD_KSHORT / 64 * 64;
    if (share < least && shortest < least)
        least = (uint32_t)(share < shortest ? shortest : share);
    return piece < least ? least : piece < slot ? (uint32_t)piece : slot;
}

/* Of a pair's `left` messages, how many go by GDR before one that does not, and share a trigger. */
RD_KBOTH uint32_t rd_kgdr_run(const rd_kmessage_t *messages, uint32_t left)
{
    uint32_t n = 0;

    while (n < left && n < RD_KGDR_RUN && messages[n].bytes & RD_KGDR)
        n++;
    return n;
}

/* Where the first line of 16 bytes at p is, p a multiple of 16. */
RD_KBOTH uint64_t rd_kinline_line(uint64_t p)
{
    return 2 * p - p % RD_KINLINE_LEAP;
}

/* Rounds or pieces that a proxy channel has of n. */
RD_KBOTH uint32_t rd_kproxy_part(uint32_t n, uint32_t channels, uint32_t channel)
{
    return n <= channel ? 0 : (n - channel + channels - 1) / channels;
}

/* Of a whole that is cut in n chunks: bytes from one to the next, so that all begin on 16. */
RD_KBOTH uint64_t rd_kchunk(uint64_t bytes, uint32_t n)
{
    return (bytes + n * 16 - 1) / (n * 16) * 16;
}

#endif
