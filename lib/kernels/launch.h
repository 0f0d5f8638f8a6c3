/* Which kernels there are, and what the host must know to launch one: plain C. All of it but the last two functions is
 * pure, so that every rank that asks the same decides the same.
 *
 * Work is cut in *units*: what one warp sends, waits for and writes at a time. In each of its `passes` a launch carries
 * `units` units of every chunk, the next ones in the next pass. Chunks: for allreduce by two-shot or ring an n-th of
 * the whole, for reduce and broadcast by two-shot one of n - 1, rounded up to 16 bytes; in every other case a rank's
 * block, or the whole. A launch's `slice` = units * the bytes of a unit. TREE to BINOMIAL are the programs that have
 * these names in lib/sched: their work is an rd_kprogrammed_t, their chunks are the schedule's, and one kernel runs them
 * all (program.cuh).
 *
 *   kind       serves                                           a unit is served by
 *   ONESHOT    ALLREDUCE REDUCE REDUCE_SCATTER                   n warps: one for each peer
 *              ALLGATHER BROADCAST ALLTOALL GATHER SCATTER
 *   TWOSHOT    ALLREDUCE REDUCE BROADCAST                       n warps
 *   RING       ALLREDUCE REDUCE_SCATTER ALLGATHER                a warp; by SIMPLE a block
 *   CHAIN      REDUCE BROADCAST                                  the same
 *   TREE       ALLREDUCE REDUCE BROADCAST                       4 warps: one for each track of the program
 *   PAT        ALLREDUCE REDUCE_SCATTER ALLGATHER                a warp
 *   RD         ALLREDUCE                                        a warp
 *   BINOMIAL   REDUCE BROADCAST GATHER SCATTER                  a warp
 *   MESSAGES   rd_kmessages_t: no epoch, no units                `warps` warps for each pair
 *   COPY       rd_kmeet_t: ranks meet, one block; between meetings the host's copies move blocks     n warps
 *   ALONE      one rank: out = in, scaled; no window             any number
 *   WRITE      rd_kwrite_t: into this rank's own memory          any number
 *   NOTHING    an empty kernel                                   any number
 *   STAGED     rd_kstaged_t: a collective between nodes          as many blocks for each team
 *   STAGED_MESSAGES  rd_kstaged_messages_t                       a block for each pair and team
 *   STREAMS    as MESSAGES, some of which go by slices           besides, so many blocks for each of their pairs
 *   MIXED      rd_kstaged_messages_t: both, see mixed.cuh        as each
 *
 * Buffers are aligned to their elements, no more. In place is allowed where the operation has it: allreduce, reduce,
 * broadcast and alltoall with out = in, allgather and gather with in = out + rank blocks, reduce_scatter and scatter
 * with out = in + rank blocks. What is moved only (the second line of ONESHOT, RING of ALLGATHER, CHAIN of BROADCAST,
 * and what programs move) arrives bit by bit with LL and LL128; by SENTINEL a NaN of all ones arrives as another NaN.
 *
 * Sums are made in the order of the ranks by ONESHOT and TWOSHOT, narrow floating types in float32 and rounded once.
 * Programs sum in the order of their schedule and round after each sum.
 * RING and CHAIN round at each rank; chunk c begins at rank c + 1 and ends at c, a reduction to the root at root + 1.
 */
#ifndef RD_KERNELS_LAUNCH_H
#define RD_KERNELS_LAUNCH_H

#include <stddef.h>

#include "kernels/work.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    RD_K_ONESHOT,
    RD_K_TWOSHOT,
    RD_K_RING,
    RD_K_CHAIN,
    RD_K_TREE,
    RD_K_PAT,
    RD_K_RD,
    RD_K_BINOMIAL,
    RD_K_MESSAGES,
    RD_K_COPY,
    RD_K_ALONE,
    RD_K_WRITE,
    RD_K_NOTHING,
    RD_K_STAGED,
    RD_K_STAGED_MESSAGES,
    RD_K_STREAMS,
    RD_K_MIXED,
    RD_K_KINDS
} rd_kkind_t;

/* How what lies in the window says that it is there; any kind may follow any other in the same window, but what goes
 * through fifos (CHAIN but by SIMPLE, MESSAGES) keeps to one codec of a communicator. */
typedef enum {
    RD_KC_LL,       /* half data, half flags: the shortest operations, any type; stores of 8 bytes arrive whole */
    RD_KC_LL128,    /* 15/16 data, any type; lines of 128 bytes arrive whole */
    RD_KC_SENTINEL, /* all data, each word for itself; sums of float16, bfloat16, float32, float64; moving of what has 4 or 8 bytes a word */
    RD_KC_SIMPLE,   /* slices of plain data, told of by a word behind a fence: RING, CHAIN, any type; see slices.cuh */
    RD_KC_CODECS
} rd_kcodec_t;

typedef struct rd_klaunch {
    rd_kkind_t kind;
    rd_kcodec_t codec; /* ONESHOT, TWOSHOT, RING, CHAIN; MESSAGES, STREAMS and MIXED: of lines */
    uint32_t coll;     /* rd_coll_t; all but MESSAGES, STREAMS, MIXED */
    uint32_t type, op; /* rondo_type_t; rondo_op_t, RONDO_SUM for PREMULSUM; not looked at where nothing is reduced */
    uint32_t blocks, threads; /* threads: a multiple of 32 (ONESHOT, TWOSHOT: of 32 n), at most rd_kernel_threads */
    uint32_t banks; /* RING of ALLREDUCE by lines: 1: a pass takes both banks as one. Else 0 */
} rd_klaunch_t;

/* Of work of so many passes. NULL: there is no such kernel. `blocks` and `threads` do not matter. */
const void *rd_kernel_find(const rd_klaunch_t *launch, uint32_t passes);
/* Bytes of a chunk that a unit carries; 0: the codec is not for this kind. */
uint32_t rd_kernel_unit(rd_kkind_t kind, rd_kcodec_t codec);
/* Warps that serve a unit. */
uint32_t rd_kernel_warps(rd_kkind_t kind, int n);
/* Bytes of a chunk, of `bytes` in all (allreduce) or a block. */
uint64_t rd_kernel_chunk(rd_kkind_t kind, uint32_t coll, int n, uint64_t bytes);
/* Bytes of a bank that a pass of so many units takes. */
uint64_t rd_kernel_bank(rd_kkind_t kind, rd_kcodec_t codec, uint32_t coll, int n, uint32_t units);
/* At most so many passes (ONESHOT where not everybody answers: 2) and units (CHAIN and programs: as many as a pair has
 * fifos for). */
uint32_t rd_kernel_passes(rd_kkind_t kind, uint32_t coll);
uint32_t rd_kernel_units(rd_kkind_t kind);
/* A unit of TREE to BINOMIAL: fifos of a pair that it takes. 0: the kind is no program. */
uint32_t rd_kernel_channels(rd_kkind_t kind);
#define RD_KAGGREGATION 4 /* pat's parameter: a block has scratch for no more, see RD_KT_PLACES */
/* program_bytes.c: the schedule's name, NULL: it is no program; and a rank's program for the kernel: NULL, or why there is
 * none. */
const char *rd_kernel_algo(rd_kkind_t kind);
const char *rd_kernel_program(rd_kkind_t kind, uint32_t coll, int n, int rank, int root, rd_kprogram_t *k);
/* At most so many threads of a block. */
uint32_t rd_kernel_threads(rd_kkind_t kind, rd_kcodec_t codec);
/* Warps of MESSAGES, STREAMS or MIXED that run at once on a multiprocessor: there may be no more of them. */
uint32_t rd_kernel_at_once(void);
/* Blocks that hold `units` units in blocks of so many threads. */
uint32_t rd_kernel_blocks(rd_kkind_t kind, int n, uint32_t units, uint32_t threads);
/* Of ONESHOT, TWOSHOT, RING, programs and whatever goes by SIMPLE: so small a grid that `parts` such grids fit on `sms`
 * multiprocessors together, wherever their blocks go. Its groups of warps may serve several units each then. */
void rd_kernel_narrow(rd_klaunch_t *launch, int n, uint32_t sms, uint32_t parts);
/* Bytes of shared memory of a block. */
uint32_t rd_kernel_shared(rd_kkind_t kind, rd_kcodec_t codec, uint32_t threads);
/* Into `stream` (a cudaStream_t). Returns a cudaError_t. */
int rd_kernel_launch(const rd_klaunch_t *launch, const rd_kwork_t *work, void *stream);
/* Loads every kernel on the current device, so that none has to be loaded beside one that spins: a cudaError_t. */
int rd_kernel_load(void);

#ifdef __cplusplus
}
#endif

#endif
