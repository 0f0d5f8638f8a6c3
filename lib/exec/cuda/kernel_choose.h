/* Which kernel an operation runs by, and in what portions: a pure function of what all ranks agree on, so that all of
 * them choose alike without a word. */
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
    uint32_t blocks;          /* of one launch, at most */
    uint32_t bank;            /* bytes */
    uint32_t fifos;           /* of a pair */
    uint32_t channels, slice; /* of SIMPLE: to the next rank; bytes of a slice, at most */
    uint32_t streams; /* 0: messages cannot go by slices; there is no room for a block each way for every peer */
    uint64_t sliced;  /* messages of so many bytes go by slices; UINT64_MAX: none does */
    uint32_t apart;   /* GPUs do not all reach each other: windows lie in pinned host memory */
    uint32_t copies;  /* registered buffers are mapped by all: blocks may be copied out of them */
    uint32_t split;   /* 1: a store of 128 bytes may arrive in parts: PCIe */
    double gbps;      /* by data sheet, of the slowest way between two of them, each way; 0: unknown */
    const rd_prices_t *prices; /* NULL: the built-in ones */
} rd_limits_t;

/* Zeroed before it is filled: compared as bytes. */
typedef struct rd_wanted {
    uint32_t coll, type, op; /* op: as the kernels want it */
    uint32_t element;        /* bytes */
    uint64_t count;          /* elements: as in rd_kreduce_t */
    uint32_t kernels;        /* not COPY, unless it is forced */
} rd_wanted_t;

typedef struct rd_chosen {
    rd_klaunch_t launch; /* without a card: nothing. MESSAGES: blocks and threads follow from the messages */
    uint32_t passes, units;
    uint32_t slice; /* SIMPLE: bytes of a unit */
    double us;      /* expected */
} rd_chosen_t;

/* What goes through fifos, CHAIN but by SIMPLE, and MESSAGES, has one protocol. */
rd_proto_t rd_fifo_proto(const rd_limits_t *limits);
/* What the way between the farthest pair means for choices. */
void rd_limits_way(rd_limits_t *limits, rd_gpu_way_t way);
/* Which messages go by slices: RONDO_CUDA_LONG, RONDO_PROTO, or the prices. When all else is known. */
void rd_limits_sliced(rd_limits_t *limits, const rd_env_t *env);
/* Blocks of a rank that send by slices at a time, and as many that receive. */
uint32_t rd_limits_senders(const rd_limits_t *limits);

/* p2p_blocks.c: the blocks of streams, one of which has so many slices, where the device is in so many parts: about
 * half of the room is for those that receive, a power of two of blocks each, and the rest for those that send, neither
 * more than there are channels. That is this rank's business alone. Then the launch; mixed: without the blocks for
 * other nodes. */
void rd_streams_divide(const rd_limits_t *limits, uint32_t parts, uint32_t slices, rd_kmessages_t *k);
rd_klaunch_t rd_streams_launch(const rd_limits_t *limits, int mixed, const rd_kmessages_t *k);

/* Do RONDO_ALGO and RONDO_PROTO name what the CUDA executor has? */
rondo_result_t rd_kchoose_names(const rd_env_t *env, rd_who_t *who);

/* One candidate: NULL, or why it cannot serve. */
const char *rd_kchoose_one(const rd_wanted_t *wanted, const rd_limits_t *limits, const rd_algo_t *algo,
                           rd_proto_t proto, rd_chosen_t *chosen);
/* All of them, the cheapest first, those that cannot serve last. */
void rd_kchoose_all(const rd_wanted_t *wanted, const rd_limits_t *limits, const rd_forced_t *forced, rd_choices_t *all);
/* The cheapest, or what goes by SIMPLE if that is little slower (RONDO_CUDA_SPARE); or COPY, never for its price alone,
 * where RONDO_CUDA_COPY promises that it can serve; or what RONDO_ALGO and RONDO_PROTO force. NULL, or why there is
 * none. */
const char *rd_kchoose(const rd_wanted_t *wanted, const rd_limits_t *limits, const rd_env_t *env, rd_chosen_t *chosen);

#endif
