/* Which kernels there are, and what the host must know to launch one: plain C. All of it but the last two functions is
 * pure, so that every rank that asks the same decides the same.
 *
 * Work is cut in *units*: what one warp sends, waits for and writes at a time. In each of its `passes` a launch carries
 * `units` units of every chunk, the next ones in the next pass. Chunks: for allreduce by two-shot or ring an n-th of
 * the whole, for reduce and broadcast by two-shot one of n - 1, rounded up to 16 bytes; in every other case a rank's
 * block, or the whole. A launch's `slice` = units * the bytes of a unit. PROGRAM runs the schedules of lib/sched whose
 * cards say so (tree, pat, rd, binomial): its work is an rd_kprogrammed_t, its chunks are the schedule's (program.cuh).
 *
 *   kernel     serves                                           a unit is served by
 *   ONESHOT    ALLREDUCE REDUCE REDUCE_SCATTER                   n warps: one for each peer
 *              ALLGATHER BROADCAST ALLTOALL GATHER SCATTER
 *   TWOSHOT    ALLREDUCE REDUCE BROADCAST                       n warps
 *   RING       ALLREDUCE REDUCE_SCATTER ALLGATHER                a warp; by SIMPLE a block
 *   CHAIN      REDUCE BROADCAST                                  the same
 *   PROGRAM    as the card of the algorithm says                 a warp for each lane of the program
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

#include "base/proto.h"
#include "kernels/work.h"
#include "sched/algo.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rd_klaunch {
    const rd_algo_t *algo; /* the card whose kernel it is; NULL: `kernel` */
    /* ONESHOT to CHAIN; MESSAGES, STREAMS and MIXED: of lines. Any kernel may follow any other in the same window, but
     * what goes through fifos (CHAIN but by SIMPLE, PROGRAM, MESSAGES) keeps to one protocol of a communicator. */
    rd_proto_t proto;
    uint32_t coll;     /* rd_coll_t; all but MESSAGES, STREAMS, MIXED */
    uint32_t type, op; /* rondo_type_t; rondo_op_t, RONDO_SUM for PREMULSUM; not looked at where nothing is reduced */
    uint32_t blocks, threads; /* threads: a multiple of 32 (ONESHOT, TWOSHOT: of 32 n), at most rd_kernel_threads */
    uint32_t banks;           /* RING of ALLREDUCE by lines: 1: a pass takes both banks as one. Else 0 */
    rd_kernel_t kernel;
} rd_klaunch_t;

static inline rd_kernel_t rd_launch_kernel(const rd_klaunch_t *launch)
{
    return launch->algo ? launch->algo->device.kernel : launch->kernel;
}

/* Of work of so many passes. NULL: there is no such kernel. `blocks` and `threads` do not matter. */
const void *rd_kernel_find(const rd_klaunch_t *launch, uint32_t passes);
/* Bytes of a chunk that a unit carries; 0: the protocol is not for this algorithm's kernel. */
uint32_t rd_kernel_unit(const rd_algo_t *algo, rd_proto_t proto);
/* Warps that serve a unit. */
uint32_t rd_kernel_warps(const rd_algo_t *algo, int n);
/* Bytes of a chunk, of `bytes` in all (allreduce) or a block. */
uint64_t rd_kernel_chunk(const rd_algo_t *algo, uint32_t coll, int n, uint64_t bytes);
/* Bytes of a bank that a pass of so many units takes. */
uint64_t rd_kernel_bank(const rd_algo_t *algo, rd_proto_t proto, uint32_t coll, int n, uint32_t units);
/* At most so many passes (ONESHOT where not everybody answers: 2) and units (CHAIN and PROGRAM: as many as a pair has
 * fifos for). */
uint32_t rd_kernel_passes(const rd_algo_t *algo, uint32_t coll);
uint32_t rd_kernel_units(const rd_algo_t *algo);
/* program_bytes.c: a rank's program for the kernel: NULL, or why there is none. */
const char *rd_kernel_program(const rd_algo_t *algo, uint32_t coll, int n, int rank, int root, rd_kprogram_t *k);
/* At most so many threads of a block. */
uint32_t rd_kernel_threads(rd_kernel_t kernel, rd_proto_t proto);
/* Warps of MESSAGES, STREAMS or MIXED that run at once on a multiprocessor: there may be no more of them. */
uint32_t rd_kernel_at_once(void);
/* Blocks that hold `units` units in blocks of so many threads. */
uint32_t rd_kernel_blocks(const rd_algo_t *algo, int n, uint32_t units, uint32_t threads);
/* Of ONESHOT, TWOSHOT, RING, PROGRAM and whatever goes by SIMPLE: so small a grid that `parts` such grids fit on `sms`
 * multiprocessors together, wherever their blocks go. Its groups of warps may serve several units each then. */
void rd_kernel_narrow(rd_klaunch_t *launch, int n, uint32_t sms, uint32_t parts);
/* Bytes of shared memory of a block. */
uint32_t rd_kernel_shared(const rd_klaunch_t *launch);
/* Into `stream` (a cudaStream_t). Returns a cudaError_t. */
int rd_kernel_launch(const rd_klaunch_t *launch, const rd_kwork_t *work, void *stream);
/* Loads every kernel on the current device, so that none has to be loaded beside one that spins: a cudaError_t. */
int rd_kernel_load(void);

#ifdef __cplusplus
}
#endif

#endif
