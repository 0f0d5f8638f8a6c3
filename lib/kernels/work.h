/* The arguments of a kernel's launch, and the layout of a rank's window. The kernels and the host code that fills them
 * in share this header; it is plain C.
 *
 * Every rank has one *window*, which all peers of the node have mapped. It lies in the rank's device memory or, where
 * GPUs do not reach each other, in pinned host memory:
 *
 *   control    epochs, gates, counters (rd_kcontrol_t)
 *   list       the messages of a long group's launch: this rank's kernels write them, and they alone read them
 *   fifos      for each peer that sends to this rank, `fifos` queues of RD_KSLOTS slots of RD_KSLOT bytes. The fifos
 *              from this rank to itself are scratch memory for the host's side (exec/cuda/hier/hier_run.c)
 *   slices     for each channel of rings and chains, RD_KSLICES slots of plain data, which the rank before fills
 *   streams    RD_KSLICE_SLOTS slots for each block that receives messages by slices, which any sender may fill
 *   bank 0, 1  the inbox of collectives: passes use the two banks in turns
 *
 * State that only this rank's kernels read and write (epochs, counters of this rank, the list) lies in `own`. That is
 * the window too or, where the window is host memory, device memory of the same layout.
 *
 * Banks are *at rest all ones*: the reader of a word puts the ones back. So every protocol may use any part of them:
 * the flag of LL and LL128 is zero when the data has arrived, and a sentinel word has arrived when it is not all ones.
 *
 * An operation that all ranks take part in is an *epoch*. Each rank's kernels count epochs and passes by themselves, in
 * the control page; no argument holds a number, so a graph may replay a launch. A writer touches bank b of a peer only
 * when the peer has begun an epoch after the last one that used bank b there (begun[peer] > used[b]). A rank announces
 * an epoch to all peers when it begins it, which is after its stream has finished the epoch before. Within an epoch,
 * pass k + 2 uses the bank of pass k, and the writer needs proof that the peer has cleaned it: the peer's part of pass
 * k + 1, which came after the cleaning, behind a fence. An allreduce by ring may take both banks as one; it has proof
 * from pass to pass, and counts two passes at least (ring.cuh).
 *
 * A *short* operation takes cells, of which a bank has RD_KCELLS: one for each of its passes, which all go on at once.
 * Each pass is an epoch of its own. Pass p takes cell p / 2 of bank p mod 2, and the same cell again 2 * RD_KCELLS
 * passes later. So a launch may carry many short operations, and send all their data before any has arrived
 * (fused.cuh). What is in a cell, and when it may be written, does not depend on how many operations a launch has: a
 * rank may launch one by one what its peers launch together. `used` names the last epoch that was not of a short
 * operation: the pass that took the cell before is older by 2 * RD_KCELLS epochs at least, or there was an epoch that
 * was not short between the two.
 *
 * Fifos and slices do not depend on epochs: each has its own counters at both ends, and the data in a fifo's slot
 * bears its number.
 *
 * The slots of a channel belong to the rank before for ever, and it may fill them before the kernel that takes the
 * data has begun (proto_simple.cuh). The slots of streams belong to no peer: *a sender writes there only after the
 * receiver's kernel, the one that takes the slice, has promised a slot for it*, and a kernel promises no more than it
 * takes. So no promise is open when a kernel ends, and this rank's next kernel may divide the slots anew. A promise
 * names the slot, because the sender cannot know how many blocks receive here (p2p_slices.cuh). Rings and chains make
 * no promises: waiting for the receiver's kernel made a broadcast of 32 MB 7 us longer.
 */
#ifndef RD_KERNELS_WORK_H
#define RD_KERNELS_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/host_words.h"
#include "kernels/signals.h"

#define RD_KFIFOS 512        /* fifos of a pair, at most */
#define RD_KSLOTS 16         /* slots of a fifo */
#define RD_KSLOT 1024u       /* bytes of a slot: a tile of LL or LL128 */
#define RD_KCHANNELS 64      /* blocks of a rank that receive slices, at most; each a channel of rings and chains */
#define RD_KSLICES 4         /* slots of a channel */
#define RD_KSLICE_SLOTS 4    /* slots of a block that receives messages, of RD_KSLICE bytes each */
#define RD_KSLICE 65536u     /* bytes that slices are multiples of: what a block moves at once, at most */
#define RD_KCELLS 64         /* cells of a bank; a power of two */
#define RD_KALIGN (2u << 20) /* fifos, slices and bank 0 begin at multiples of it; bank 1 lies behind bank 0 */
#define RD_KREGISTERED 64    /* buffers that are registered at a time, at most */
#define RD_KNEVER (1u << 30) /* so far ahead of an epoch that no other one comes there: see rd_control_fail */

/* Buffers that the ranks have registered together, one of each: where this rank has each mapped, and its length. */
typedef struct rd_kregistered {
    uint64_t base[RD_KRANKS]; /* 0: not mapped */
    uint64_t bytes[RD_KRANKS];
} rd_kregistered_t;

/* A channel's counters, modulo 2^32. Both ends have them, and each word has one writer. */
typedef struct rd_kchannel {
    uint32_t sent, received; /* slices that this rank has sent to the next one and received from the one before */
    uint32_t pad[30];
    uint32_t landed; /* written by the rank before: slices that it has stored here */
    uint32_t pad2[31];
    uint32_t taken; /* written by the next rank: slices that it has taken */
    uint32_t pad3[31];
} rd_kchannel_t;

#define RD_KPROMISED (RD_KCHANNELS * RD_KSLICE_SLOTS) /* slices of a pair that are promised at a time, at most */

/* A pair's counters for messages by slices, modulo 2^32. Both ends have them, and each word has one writer. Word s %
 * RD_KPROMISED describes slice s: the block that promises a slice has received the one before in the same word. */
typedef struct rd_kstream {
    uint32_t sent, received;     /* slices that this rank has sent to the peer and received from it */
    uint32_t sending, receiving; /* blocks of the running grid that have finished; the last one advances the above */
    uint32_t pad[28];
    uint32_t landed[RD_KPROMISED];   /* written by the peer: s + 1 when slice s lies here */
    uint32_t promised[RD_KPROMISED]; /* written by the peer: the slot for slice s in its window, see RD_KPROMISE */
} rd_kstream_t;

/* The number of a slot in the low bits, and above it how often the word has been used. */
#define RD_KPROMISE(s, slot) (((s) / RD_KPROMISED + 1) * RD_KPROMISED + (slot))

typedef struct rd_kcontrol {
    uint32_t epoch;   /* the last one that this rank has finished */
    uint32_t passes;  /* of all epochs together: the bank of the next pass is passes & 1 */
    uint32_t used[2]; /* the last epoch that used a bank as a whole; or a later one, 2 * RD_KCELLS behind `epoch` */
    uint32_t leaving; /* blocks of the running grid that have finished; the last one advances the above */
    uint32_t pad[27];
    uint32_t begun[RD_KRANKS]; /* written by peers: the epoch that each has begun */
    uint32_t pad2[16];
    uint32_t call; /* rd_kcomm_t's, of the kernel that this rank has begun last: peers that wait for long read it */
    uint32_t pad3[31];
    /* Fifo counters, in slots, modulo 2^32, [peer * RD_KFIFOS + fifo]. */
    uint32_t sent[RD_KRANKS * RD_KFIFOS];     /* this rank has sent them, into the peer's window */
    uint32_t received[RD_KRANKS * RD_KFIFOS]; /* this rank has taken them, out of its own window */
    uint32_t taken[RD_KRANKS * RD_KFIFOS];    /* written by peers: slots that the peer has taken */
    uint32_t landed[RD_KRANKS * RD_KFIFOS];   /* written by peers: shares that went to a registered buffer, no slot */
    uint32_t post[RD_KRANKS * RD_KFIFOS][4];  /* written by receiving peers: the destination of a share, see fifo.cuh */
    rd_kchannel_t channel[RD_KCHANNELS];
    rd_kstream_t stream[RD_KRANKS]; /* of each peer */
    rd_kregistered_t registered[RD_KREGISTERED];
    rd_ksignals_t signals;
} rd_kcontrol_t;

/* The same in every launch of a communicator. Offsets are in bytes from the window's base. */
typedef struct rd_kcomm {
    char *window[RD_KRANKS]; /* the window of each rank, as mapped here */
    char *own;               /* begins with a control page, of which this rank's own words are in use */
    rd_khost_t *host;        /* the device's address of it */
    int32_t rank, nranks;
    uint32_t fifos;         /* number of fifos of a pair */
    uint16_t spread;        /* most fifos that a message is spread over */
    uint16_t lets_in;       /* of a launch: the next kernel of the stream may begin beside this one (gpu_let_in) */
    uint32_t fifo_offset;   /* / RD_KALIGN; sender s's fifos begin at fifo_offset + s * fifos * RD_KSLOTS * RD_KSLOT */
    uint32_t slice_offset;  /* / RD_KALIGN; channel c's slots begin at c * RD_KSLICES * slice_bytes */
    uint32_t slice_bytes;   /* of a slot: a multiple of RD_KSLICE */
    uint32_t stream_offset; /* / RD_KALIGN; block b's slots begin at b * RD_KSLICE_SLOTS * RD_KSLICE */
    uint32_t slice_least;   /* least bytes of a slice of a message: see rd_kslice */
    uint32_t bank_offset;   /* / RD_KALIGN */
    uint32_t bank_bytes;    /* of one bank: a multiple of 128 */
    uint32_t call;          /* which call the launch belongs to, see RD_KCALL */
} rd_kcomm_t;

/* The number of a collective, modulo 2^30; whether its kernel has an epoch; and whether it was captured: then the
 * number is that of the capture, and all replays have it. 0: the launch is no collective, or has no number. */
#define RD_KCALL_BITS 30
#define RD_KCALL(number, epoch, captured)                                                                              \
    (((uint32_t)(number)&0x3fffffffu) | ((epoch) ? 0x40000000u : 0) | ((captured) ? 0x80000000u : 0))
#define RD_KCALL_EPOCH(call) ((call) >> 30 & 1)
#define RD_KCALL_CAPTURED(call) ((call) >> 31)

/* One message of a group, or one block of a collective that moves data. */
typedef struct rd_kmessage {
    void *buffer;   /* a send reads it, a receive writes it */
    uint64_t bytes; /* 0: nothing is exchanged */
} rd_kmessage_t;

/* The messages of one (peer, direction), in order: first..first + count - 1. */
typedef struct rd_kpair {
    uint16_t peer, send; /* send: 1, receive: 0 */
    uint32_t first, count;
    uint32_t slices; /* of all these messages together, if they are sent by slices */
} rd_kpair_t;

#define RD_KPAIRS (2 * RD_KRANKS)

/* The messages of a launch lie in its arguments or, if there are more than RD_KMESSAGES_HERE, in the window's list.
 * Launches of kernel WRITE before it fill in the list, a part each: so a graph, which keeps the arguments of launches,
 * keeps all messages too. */
#define RD_KMESSAGES_HERE 96
#define RD_KWRITTEN 1920             /* bytes that a launch of WRITE carries */
#define RD_KLIST_OFFSET (512u << 10) /* from the window's base */
#define RD_KLIST_MOST ((RD_KALIGN - RD_KLIST_OFFSET) / 16)

typedef enum {
    RD_KSCALE_NONE,
    RD_KSCALE_REAL,   /* by a real number: a float for float32, narrower types and complex64, else a double */
    RD_KSCALE_ELEMENT /* by an element of the type: integers, complex, bool */
} rd_kscaled_t;

/* Kept short: with four bytes more an 8-byte reduce from a graph took 0.1 us longer (doc/notebook/gpu.md). */
typedef struct rd_kreduce {
    const void *in;
    void *out;
    uint64_t count; /* elements of the whole (allreduce, reduce, broadcast) or of one block */
    uint64_t gap; /* REDUCE_SCATTER: bytes, of `type`, between a block of the input and the next; other operations: 0 */
    uint64_t scale[2];        /* bits of the scalar: see `scaled` */
    const void *device_scale; /* the scalar is this element in device memory; NULL: the scalar is `scale` */
    int32_t root;
    uint16_t coll; /* rd_coll_t */
    /* Not 0: the buffers, and the scalar in device memory, are of this narrow floating type. `type` is float32 then:
     * contributions are widened as they are scaled, and the result is rounded as it is stored (arith_wide.cuh). */
    uint16_t narrow;
    uint32_t type, op; /* rondo_type_t, rondo_op_t: for the kernels that decide at run time */
    uint32_t scaled;   /* how each contribution is scaled when it is loaded: rd_kscaled_t */
    uint32_t passes;   /* at least one; of a short operation: the tiles of each chunk in all passes together */
    uint32_t tiles;    /* tiles of each chunk in a pass: see launch.h */
    uint32_t slice;    /* SIMPLE: bytes of a tile; ONESHOT, TWOSHOT: RD_KCELLED if it is short, else 0 */
} rd_kreduce_t;

/* A short operation: the bytes of a cell, a multiple of 128, and how many tiles it has, 1 << shift; below 128 * 31. */
#define RD_KCELLED(cell, shift) ((cell) | (31u - (shift)))
#define RD_KCELL(slice) ((slice) & ~127u)
#define RD_KCELL_SHIFT(slice) (~(slice)&31u)

/* Short operations of one launch. */
#define RD_KFUSED 80 /* at most */

/* How an operation's tiles are served: the protocol, and rd_karith_t, or RD_KN_NUMBERS if its data are only moved. */
#define RD_KKIND(proto, number) ((proto) << 4 | (number))
#define RD_KTWOSHOT 64u  /* a flag in `kind`: in two hops */
#define RD_KCHAINED 255u /* most passes of an operation by chain in a launch of several */

#define RD_KPOINTED 4u /* a flag in `scaled`: scale[0] is the address of the scalar in device memory */

typedef struct rd_kshort {
    const void *in; /* these as in rd_kreduce_t */
    void *out;
    uint64_t scale[2];
    uint32_t count;
    uint32_t tile : 24, pass : 8; /* its first tile and pass among those of the launch; by chain: how many it has */
    uint8_t kind, coll, type, op, narrow, scaled, root;
    uint8_t shift; /* a cell has 1 << shift tiles */
} rd_kshort_t;

/* Operations by cells are the first in `op`; those by chain the last, in reverse order. */
typedef struct rd_kfused {
    uint32_t count;  /* operations by cells */
    uint32_t tiles;  /* of all of them */
    uint32_t passes; /* likewise: at most 2 * RD_KCELLS */
    uint32_t cell;   /* bytes */
    uint32_t chains; /* operations by chain */
    uint32_t fifos;  /* that these use: the most tiles that any of them has */
    uint32_t share;  /* warps of a fifo; a power of two, RD_KSHARE at most */
    uint32_t blocks; /* the last blocks of the launch, which serve the chains */
    rd_kshort_t op[RD_KFUSED];
} rd_kfused_t;

#define RD_KSHARE (RD_KSLOTS / 2)

/* A program of lib/sched in the form that a kernel reads. It is part of the arguments: the kernel need not fetch it,
 * nobody has to free it, and a graph keeps the one that it was captured with. A program's lanes are called *tracks*
 * here, because a warp has lanes. */
#define RD_KTRACKS 4 /* most tracks of a program */
#define RD_KCONNS 16 /* most connections each way */
#define RD_KENDS 8   /* most sources, and most destinations, of a step: the same number as in lib/sched */
#define RD_KSTEPS 96 /* most steps of a program, with repeats written out */

typedef enum { RD_KEND_IN, RD_KEND_OUT, RD_KEND_SCRATCH, RD_KEND_CONN, RD_KEND_NONE = 7 } rd_kend_t;
#define RD_KEND(where, index) ((uint8_t)((where) << 5 | (index)))
#define RD_KEND_WHERE(end) ((uint32_t)(end) >> 5)
#define RD_KEND_INDEX(end) ((end)&31u)

typedef struct rd_kstep {
    uint8_t sources, destinations;
    uint8_t local;    /* the one source that is the user's input or output, or RD_KEND_NONE */
    uint8_t finishes; /* in an operation that reduces: the sum that this step makes is complete */
    uint8_t from[RD_KENDS], to[RD_KENDS];
} rd_kstep_t;

typedef struct rd_ktrack {
    uint8_t first, count; /* its steps */
} rd_ktrack_t;

typedef struct rd_kconn {
    uint8_t peer;
    uint8_t channel; /* its tile u goes through fifo channel * tiles + u */
    uint8_t track;   /* the track that uses it */
} rd_kconn_t;

typedef struct rd_kprogram {
    uint8_t chunks, scratch, tracks, sends, receives;
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
    uint32_t registered;    /* numbers of registered buffers that may be in use; 0: no buffer is posted */
    uint32_t posted;        /* else receivers post the destination of messages of at least this many bytes */
    uint32_t npairs, warps; /* of messages by lines; warps of a pair: the most fifos that any of its messages has */
    rd_kpair_t pair[RD_KPAIRS];
    uint32_t sends, receives;    /* by slices: the number of sending pairs in `stream`, and of receiving ones behind */
    uint32_t senders, receivers; /* blocks of a pair; receivers: a power of two, so a word of rd_kstream_t has one */
    rd_kpair_t stream[RD_KPAIRS];
    rd_kmessage_t here[RD_KMESSAGES_HERE];
    rd_kmessage_t from_self, to_self; /* one copy within the rank, which the warps that serve no pair make */
} rd_kmessages_t;

typedef struct rd_kwrite {
    uint32_t offset, bytes; /* where it lies in `own`; multiples of 8 */
    uint64_t data[RD_KWRITTEN / 8];
} rd_kwrite_t;

/* The barrier before and after copies: see barrier.cuh. */
typedef struct rd_kbarrier {
    uint32_t mark[8]; /* describes the operation: it must be the same on all ranks */
    uint32_t behind;  /* this rank has read peers' buffers since the last barrier: they must not have left since */
} rd_kbarrier_t;

/* ---- the proxy path, between nodes or among many ranks: data goes through pinned memory ----
 *
 * A *lane* is a ring of slots in pinned memory that kernels and a proxy of the process pass to and fro. A kernel that
 * has filled a slot, or wants it filled, raises a trigger; the proxy does its part and counts up `done`. Kernels count
 * a lane's triggers in device memory, so that a launch may be replayed; the number is part of a trigger, so no trigger
 * needs to be cleared.
 *
 * Long data is shared among *proxy channels*. Each has a proxy with connections and lanes of its own: lane 0 for
 * collectives, and lane 1 + p for pair p (a peer and a direction) of the messages of the running launch. So lanes are
 * few, however many ranks there are; a launch has at most RD_KPAIRS pairs, and the next launch takes the rest. A
 * collective is cut in rounds, a message in pieces. With n proxy channels, proxy channel c carries rounds or pieces c,
 * c + n, c + 2n and so on. In the kernel a team of blocks works with each proxy channel, and no team waits for another.
 */

#define RD_KINLINE 2048u     /* most bytes that are sent inline, by flagged lines: see inline.cuh */
#define RD_KINLINE_LEAP 512u /* bytes from a thread's first line to its second: the first lines of a warp */
#define RD_KPROXY_CHANNELS 8
#define RD_KPROXY_LANES (1 + RD_KPAIRS)
#define RD_KLANES (RD_KPROXY_CHANNELS * RD_KPROXY_LANES) /* proxy channel c's begin at c * RD_KPROXY_LANES */
#define RD_KLANE_SLOTS 4                                 /* most slots of a lane; a power of two */

/* 16 bytes. A read may be torn, so each half shows by its own number that it has arrived. */
typedef struct rd_ktrigger {
    uint32_t what;   /* collectives: the task; messages: bytes */
    uint32_t number; /* of the trigger in its lane, from 1 on, modulo 2^31; highest bit: valid */
    uint32_t round;  /* collectives: the round; messages: RD_KMESSAGE_... and RD_KMESSAGE_PAIR */
    uint32_t again;  /* the number again */
} rd_ktrigger_t;

#define RD_KVALID 0x80000000u
#define RD_KPROXY 0xffffu /* stands for the proxy as the peer of a wait */
#define RD_KMESSAGE_CAPTURED 1u
#define RD_KMESSAGE_LONG 2u         /* the message has pieces for other proxy channels too */
#define RD_KMESSAGE_GDR 4u          /* by GDR: the slot holds where the messages lie, and `what` is their number */
#define RD_KMESSAGE_EACH (1u << 30) /* by GDR: the messages name their peers themselves */
#define RD_KMESSAGE_RAIL (1u << 31) /* these are nodes of a rail */
#define RD_KMESSAGE_PAIR(peer, send) ((uint32_t)(peer) << 4 | ((send) ? 8u : 0u))
#define RD_KMESSAGE_PEER(round) ((round) >> 4)
#define RD_KMESSAGE_SEND(round) ((round) >> 3 & 1u)

/* Flags in the bytes of a message between nodes. RD_KGDR: the network reads or writes the buffer itself.
 * RD_KGDR_HOST: the host can reach the buffer. GDR messages of a pair that follow one another share a trigger, and
 * proxy channel 0 has them all. */
#define RD_KGDR (UINT64_C(1) << 63)
#define RD_KGDR_HOST (UINT64_C(1) << 62)
#define RD_KGDR_PEER 46 /* with RD_KMESSAGE_EACH the peer begins at this bit */
#define RD_KGDR_PEERS 0x7fffu
#define RD_KGDR_RUN 8u /* most messages of a trigger: as many rd_kmessage_t fit into the smallest slot */

typedef struct rd_klane { /* in pinned memory */
    rd_ktrigger_t trigger[RD_KLANE_SLOTS];
    uint32_t done; /* triggers that the proxy has done; the proxy alone writes it, on a line of its own */
    uint32_t over; /* very first lane: after a failure, neither a proxy nor the network touches a buffer any more */
    uint32_t pad[30];
} rd_klane_t;

typedef struct rd_klane_state {       /* in device memory */
    uint32_t raised;                  /* triggers raised so far */
    uint32_t seen;                    /* triggers that kernels have seen done: a launch may end before the last are */
    uint32_t leaving;                 /* blocks of the running grid that have finished with the lane */
    uint32_t arrived[RD_KLANE_SLOTS]; /* blocks that have done their part of a slot */
    uint32_t failed;                  /* lane 0: a kernel left without having finished; no kernel sends any more */
    uint32_t come, summed, sent;      /* lane 0: pieces of the running collective by GDR, see gdr.cuh */
} rd_klane_state_t;

/* The same in every launch of a communicator that goes through proxies. */
typedef struct rd_kproxy {
    rd_klane_t *lanes;       /* RD_KLANES, as the device sees them */
    rd_klane_state_t *state; /* RD_KLANES */
    char *area;     /* pinned: the slots of each proxy channel. Its lanes share them, since launches run in turn */
    char *inlined;  /* pinned: 4 * RD_KINLINE bytes for each slot of the first lane */
    uint32_t slots; /* slots of a lane, a power of two */
    uint32_t slot;  /* collectives: bytes; a slot has as many for the input and, behind them, for the output */
    uint32_t message_slot; /* messages: bytes; the slots of pair p begin at p * slots * message_slot in the area */
    uint32_t least;        /* least bytes of a round or piece, see rd_kpiece */
    uint32_t channels;     /* proxy channels of the communicator */
    uint32_t teams;        /* teams of this launch: proxy channels 0 to teams - 1 have something to do */
    uint32_t captured;     /* messages: this launch belongs to a graph */
} rd_kproxy_t;

/* Where a part of a collective lies in the user's buffer. */
typedef struct rd_kpart {
    uint64_t offset, bytes;
} rd_kpart_t;

/* The parts of one side, input or output. A round has the next `each` bytes of every part, without gaps in the slot. If
 * all parts have one length and one distance, `part` is the first of them; else they are in the launch's table. */
typedef struct rd_kside {
    uint32_t n;
    uint32_t tabled; /* the first row in the table, plus one; 0: the parts are alike */
    rd_kpart_t part;
    uint64_t stride; /* if they are alike: bytes from one part to the next */
} rd_kside_t;

typedef struct rd_kproxied {
    rd_kproxy_t proxy;
    rd_kreduce_t reduce; /* buffers, type, and how contributions are scaled */
    rd_kside_t in, out;
    uint64_t each;   /* bytes, a multiple of 16 */
    uint32_t rounds; /* at least one */
    uint32_t task;
    uint32_t copied;  /* a broadcast's root: the input, which is one part, is copied to the output as it is read */
    uint32_t inlined; /* one block moves the one round inline, by flagged lines */
    uint32_t listed;  /* launches of WRITE have put the table at the beginning of `own`; 0: it is `here` */
    rd_kpart_t here[2 * RD_KRANKS];
} rd_kproxied_t;

typedef struct rd_kproxied_messages {
    rd_kmessages_t messages; /* MIXED: the messages within the node; PROXIED_MESSAGES: only `here` is used */
    rd_kproxy_t proxy;
    uint32_t npairs; /* pairs with ranks of other nodes: their messages are the first in messages.here */
    rd_kpair_t pair[RD_KPAIRS];
} rd_kproxied_messages_t;

/* A collective by GDR, of n ranks on different nodes: see gdr.h. Addresses are those of the whole's first element, of
 * which the buffer may have only a part. */
typedef struct rd_kgdr {
    rd_kproxy_t proxy;
    rd_kreduce_t reduce; /* type, and how contributions are scaled */
    uint64_t in;         /* this rank's contribution */
    uint64_t from;       /* the same, or a copy of it: what the first hop sends */
    uint64_t own;        /* where this rank's own chunk comes to lie, which the second hop sends */
    uint64_t out;        /* where the others' chunks come to lie */
    char *scratch;       /* device memory: RD_KGDR_PIECES times a slot for each of the other ranks */
    uint64_t slot;       /* bytes, at least a piece's chunk */
    uint64_t count;      /* elements of the vector, or of every block */
    uint64_t each;       /* the same of a piece */
    uint64_t copied;     /* bytes that this rank has already, and copies from `keep` to `kept`; 0: none */
    const char *keep;
    char *kept;
    uint32_t coll, root, n, rank; /* rd_coll_t; ranks as the net communicator counts */
    uint32_t only;                /* the one rank that has a chunk, all of a piece; RD_KGDR_ALL: all have one */
    uint32_t pieces, element;     /* element: bytes */
    uint32_t grain;               /* elements that chunks are multiples of, but the last */
    uint32_t hosted;              /* a bit for each of RD_KGDR_FROM, ...: the host can reach it */
    uint32_t reduces, railed;     /* railed: ranks are nodes of a rail */
    uint32_t tabled;              /* blocks have counts of their own, and n is at most RD_KRANKS */
    rd_kpart_t block[RD_KRANKS];  /* in elements */
} rd_kgdr_t;

typedef struct rd_kwork {
    rd_kcomm_t comm;
    union {
        rd_kreduce_t reduce;
        rd_kfused_t fused;
        rd_kprogrammed_t programmed;
        rd_kmessages_t messages;
        rd_kwrite_t write;
        rd_kbarrier_t barrier;
        rd_kput_t put;
        rd_kawait_t await;
        rd_kproxied_t proxied;
        rd_kproxied_messages_t proxied_messages;
        rd_kgdr_t gdr;
    };
} rd_kwork_t; /* at most 4 KB: a kernel's arguments */

/* The beginning of it, which is all that most kernels read: a launch with 3 KB more takes the host 0.25 us longer. */
typedef struct rd_kwork_reduce {
    rd_kcomm_t comm;
    rd_kreduce_t reduce;
} rd_kwork_reduce_t;

typedef struct rd_kwork_put {
    rd_kcomm_t comm;
    rd_kput_t put;
} rd_kwork_put_t;

typedef struct rd_kwork_await {
    rd_kcomm_t comm;
    rd_kawait_t await;
} rd_kwork_await_t;

typedef struct rd_kwork_fused {
    rd_kcomm_t comm;
    rd_kfused_t fused;
} rd_kwork_fused_t;

typedef struct rd_kwork_gdr {
    rd_kcomm_t comm;
    rd_kgdr_t gdr;
} rd_kwork_gdr_t;

typedef struct rd_kwork_proxied {
    rd_kcomm_t comm;
    rd_kproxied_t proxied;
} rd_kwork_proxied_t;

#ifdef __cplusplus
static_assert(RD_KPROMISED == 256, "the number of a slot, and what is left of a word");
static_assert(sizeof(rd_kcontrol_t) <= RD_KLIST_OFFSET && sizeof(rd_kmessage_t) == 16, "the list lies behind control");
static_assert(sizeof(rd_kwork_t) <= 4096, "arguments");
static_assert(offsetof(rd_kwork_t, reduce) == offsetof(rd_kwork_reduce_t, reduce), "the same beginning");
static_assert(offsetof(rd_kwork_t, fused) == offsetof(rd_kwork_fused_t, fused), "the same beginning");
static_assert(offsetof(rd_kwork_t, put) == offsetof(rd_kwork_put_t, put), "the same beginning");
static_assert(offsetof(rd_kwork_t, await) == offsetof(rd_kwork_await_t, await), "the same beginning");
static_assert(2 * RD_KCELLS < 256, "rd_kshort_t.pass");
static_assert(offsetof(rd_kwork_t, gdr) == offsetof(rd_kwork_gdr_t, gdr), "the same beginning");
static_assert(offsetof(rd_kwork_t, proxied) == offsetof(rd_kwork_proxied_t, proxied), "the same beginning");
#endif

/* Functions that host and kernels share. */
#ifdef __CUDACC__
#define RD_KBOTH static __host__ __device__ inline
#else
#define RD_KBOTH static inline
#endif

/* Returns the number of fifos that a message is spread over, of the `fifos` of a pair; `piece` is a piece's bytes. */
RD_KBOTH uint32_t rd_kspread(uint64_t bytes, uint32_t piece, uint32_t fifos)
{
    uint64_t pieces = (bytes + piece - 1) / piece;

    return pieces < fifos ? (uint32_t)pieces : fifos;
}

/* Returns the bytes of a slice of a message. Movers carry 15/16 of a slot at once (p2p_slices.cuh), which is the
 * longest slice. Slices are shorter where that gives all blocks that there may be equal parts, and a few slices each;
 * but they are not shorter than `least`. */
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

#define RD_KFEW 4         /* proxy channels that share short data; each of them carries at least */
#define RD_KSHORT 4       /* a quarter of `least`, and at least */
#define RD_KTO_EACH 4096u /* this many bytes for each part, since each rank's part is a message */

/* Returns the bytes of a round or a piece, of `bytes` in `parts` parts, each for another rank. Each proxy channel gets
 * two, if they are then neither shorter than `least` nor longer than a slot. Data that is too short for that is shared
 * by a few proxy channels, with equally many bytes each. `least` and `slot` are multiples of 64. */
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

/* Returns how many of a pair's `left` messages, from the first on, go by GDR and share a trigger. */
RD_KBOTH uint32_t rd_kgdr_run(const rd_kmessage_t *messages, uint32_t left)
{
    uint32_t n = 0;

    while (n < left && n < RD_KGDR_RUN && messages[n].bytes & RD_KGDR)
        n++;
    return n;
}

/* Returns where the first line of the 16 bytes at p is; p is a multiple of 16. */
RD_KBOTH uint64_t rd_kinline_line(uint64_t p)
{
    return 2 * p - p % RD_KINLINE_LEAP;
}

/* Returns how many of n rounds or pieces a proxy channel has. */
RD_KBOTH uint32_t rd_kproxy_part(uint32_t n, uint32_t channels, uint32_t channel)
{
    return n <= channel ? 0 : (n - channel + channels - 1) / channels;
}

/* Returns the bytes from one chunk to the next where `bytes` are cut in n chunks; all chunks begin on multiples of 16.
 */
RD_KBOTH uint64_t rd_kchunk(uint64_t bytes, uint32_t n)
{
    return (bytes + n * 16 - 1) / (n * 16) * 16;
}

#endif
