/* The choice of the kernel that runs an operation, and of the portions in which it does: a pure function of what all
 * ranks agree on, so that all of them choose alike without communication. */
#ifndef RD_EXEC_CUDA_KERNEL_CHOOSE_H
#define RD_EXEC_CUDA_KERNEL_CHOOSE_H

#include "base/env.h"
#include "kernels/launch.h"
#include "cost/model_gpu.h"
#include "plan/candidates.h"
#include "topo/topo_gpu.h"

/* What the device and the window allow; agreed on at creation. */
typedef struct rd_limits {
    uint32_t nranks;
    uint32_t blocks;           /* of one launch, at most */
    uint32_t blocks_least;     /* at least, as far as there are tiles for them; `blocks` stands above it */
    uint32_t bank;             /* bytes */
    uint32_t fifos;            /* of a pair */
    uint32_t channels, slice;  /* of SIMPLE: channels to the next rank; bytes of a slice, at most */
    uint32_t streams;          /* 0: no messages by slices, for want of a block each way for every peer */
    uint64_t sliced;           /* messages of this many bytes or more go by slices; UINT64_MAX: none do */
    uint64_t sliced_coll;      /* the same where every rank has a message for every other, in a collective */
    bool host_windows;         /* GPUs do not all reach each other: windows lie in pinned host memory */
    uint32_t copies;           /* registered buffers are mapped by all: blocks may be copied out of them */
    size_t staging;            /* bytes of each window in which blocks are staged for copy engines; 0: none are */
    uint32_t split;            /* 1: a store of 128 bytes may arrive in parts, as over PCIe */
    bool visits;               /* rings and chains by SIMPLE visit the GPUs in an order of their own (ring_order.c) */
    double ring_gbps;          /* what they then count with in place of `gbps` */
    double gbps;               /* of the slowest path between two GPUs, each way, by data sheet; 0: unknown */
    const rd_prices_t *prices; /* NULL: the built-in ones */
} rd_limits_t;

/* Where copy engines would read what the call moves. The same on all ranks, if the caller keeps its promise. */
typedef enum {
    RD_COPIES_REGISTERED, /* in registered buffers */
    RD_COPIES_STAGING,    /* in the windows, into which it is copied first */
    RD_COPIES_NONE        /* they do not serve it, unless COPY is forced */
} rd_copies_way_t;

/* Zeroed before it is filled in, because it is compared as bytes. */
typedef struct rd_wanted {
    uint32_t coll, type, op; /* op: as the kernels take it */
    uint32_t element;        /* bytes */
    uint64_t count;          /* elements, as in rd_kreduce_t */
    uint16_t copies;         /* rd_copies_way_t */
    uint16_t forced;         /* what the call forces for itself: plan/force.h; 0: nothing */
    uint32_t narrow;         /* as in rd_kreduce_t: `type` and `element` are float32's then */
} rd_wanted_t;

typedef struct rd_kchoice {
    rd_klaunch_t launch;    /* algo NULL: nothing chosen. MESSAGES: blocks and threads follow from the messages */
    uint32_t passes, tiles; /* COPY: turns; 1 */
    uint32_t slice;         /* SIMPLE: bytes of a tile */
    uint32_t celled;        /* a short operation (kernels/work.h): RD_KCELLED; 0: it is not short */
    double us;              /* expected */
} rd_kchoice_t;

/* Returns the one protocol of everything that goes through fifos: CHAIN (except by SIMPLE), programs and MESSAGES. */
rd_proto_t rd_fifo_proto(const rd_limits_t *limits);
/* Sets what the path between the farthest pair means for choices. */
void rd_limits_path(rd_limits_t *limits, rd_gpu_path_t path);
/* Decides which messages go by slices: by RONDO_CUDA_LONG, RONDO_PROTO, or the prices. Called when all else is known.
 */
void rd_limits_sliced(rd_limits_t *limits, const rd_env_t *env);
/* Returns the number of a rank's blocks that may send by slices at a time; as many may receive. */
uint32_t rd_limits_senders(const rd_limits_t *limits);

/* p2p_blocks.c. rd_streams_divide sets how many blocks serve each stream, where the longest stream has `slices` slices
 * and the device is divided into `parts` parts: about half of them receive, a power of two for each stream, and the
 * rest send, but neither are more than there are channels. Each rank decides this for itself. rd_streams_launch then
 * returns the launch; `mixed`: the launch has blocks for other nodes, too, which are not counted in it. */
void rd_streams_divide(const rd_limits_t *limits, uint32_t parts, uint32_t slices, rd_kmessages_t *k);
rd_klaunch_t rd_streams_launch(const rd_limits_t *limits, bool mixed, const rd_kmessages_t *k);

/* Of copy engines. Are the blocks of this operation always staged? Does a rank that stages have a block for each peer,
 * and not one for all? How many bytes of a block go in a turn? */
bool rd_copies_staging_only(rd_coll_t coll);
bool rd_copies_by_staging(const rd_wanted_t *wanted);
bool rd_copies_for_each(rd_coll_t coll);
size_t rd_copies_turn(const rd_limits_t *limits, rd_coll_t coll);

/* Returns an error if RONDO_ALGO or RONDO_PROTO names what the CUDA executor does not have. */
rondo_result_t rd_kchoose_names(const rd_env_t *env, rd_log_ctx_t *ctx);

/* Evaluates one candidate. Returns NULL, or the reason why it cannot serve. */
const char *rd_kchoose_one(const rd_wanted_t *wanted, const rd_limits_t *limits, const rd_algo_t *algo,
                           rd_proto_t proto, rd_kchoice_t *choice);
/* Lists all candidates, the cheapest first, those that cannot serve last. */
void rd_kchoose_all(const rd_wanted_t *wanted, const rd_limits_t *limits, const rd_forced_t *forced, rd_choices_t *all);
/* Chooses the cheapest candidate, or one by SIMPLE if that is little slower (RONDO_CUDA_SPARE); or COPY, if
 * RONDO_CUDA_COPY or RONDO_CTA_POLICY=zero wants it, or RONDO_CTA_POLICY=efficiency does and it is little slower, and
 * never for its price alone; or what RONDO_ALGO and RONDO_PROTO force. Returns NULL, or the reason why there is none.
 */
const char *rd_kchoose(const rd_wanted_t *wanted, const rd_limits_t *limits, const rd_env_t *env, rd_kchoice_t *choice);

#endif
