/* The kernels, and what the host must know to launch one. Plain C. All functions but the last two are pure, so that all
 * ranks decide the same for the same arguments.
 *
 * Work is cut in *tiles*: a tile is what one warp sends, waits for and writes at a time. In each of its `passes` a
 * launch carries the next `tiles` tiles of every chunk. A chunk is an n-th of the whole for allreduce by two-shot or
 * ring, and one of n - 1 parts of it for reduce and broadcast by two-shot, rounded up to 16 bytes; in every other case
 * it is a rank's block, or the whole. A launch's `slice` is tiles * the bytes of a tile. PROGRAM runs the schedules of
 * lib/sched whose cards name it (tree, pat, rd, binomial): its work is an rd_kprogrammed_t, and its chunks are those of
 * the schedule (program.cuh).
 *
 *   kernel     serves                                           a tile is served by
 *   ONESHOT    ALLREDUCE REDUCE REDUCE_SCATTER                   n warps: one for each peer
 *              ALLGATHER BROADCAST ALLTOALL GATHER SCATTER
 *   TWOSHOT    ALLREDUCE REDUCE BROADCAST                       n warps
 *   RING       ALLREDUCE REDUCE_SCATTER ALLGATHER                a warp; by SIMPLE a block
 *   CHAIN      REDUCE BROADCAST                                  the same
 *   PROGRAM    the operations in the algorithm's card            a warp for each lane of the program
 *   MESSAGES   rd_kmessages_t: no epoch, no tiles                `warps` warps for each pair
 *   COPY       rd_kbarrier_t: a barrier of one block; between two barriers the host's copies move data  n warps
 *   SINGLE     one rank: out = in, scaled; no window             any number of warps
 *   WRITE      rd_kwrite_t: writes to this rank's own memory     any number of warps
 *   NOTHING    an empty kernel                                   any number of warps
 *   STALL      runs until the host sets `released` of rd_khost_t one
 *   PROXIED    rd_kproxied_t: a collective between nodes         the same number of blocks for each team
 *   PROXIED_MESSAGES  rd_kproxied_messages_t                     a block for each pair and team
 *   PUT        rd_kput_t: a put of one block, a signal          any number of warps, of one block
 *   AWAIT      rd_kawait_t: waits for signals                   one warp
 *   STREAMS    as MESSAGES, but long messages go by slices       as MESSAGES, and blocks for the pairs with slices
 *   MIXED      rd_kproxied_messages_t: both, see mixed.cuh       as STREAMS and PROXIED_MESSAGES
 *   FUSED      rd_kfused_t: several operations of ONESHOT        n warps
 *              and TWOSHOT by cells, and of CHAIN by lines       `share` warps for each fifo
 *   GDR        rd_kgdr_t: a collective between nodes            a block for messages, and any number for sums
 *
 * Buffers are aligned to their elements, no more. Operations may be in place as their definition allows: allreduce,
 * reduce,
 * broadcast and alltoall with out = in, allgather and gather with in = out + rank blocks, reduce_scatter and scatter
 * with out = in + rank blocks. Data that is only moved (the second line of ONESHOT, RING of ALLGATHER, CHAIN of
 * BROADCAST, and moves of programs) arrives with exactly its bits by LL and LL128; by SENTINEL a NaN of all ones
 * arrives as another NaN.
 *
 * Where the buffers' type is narrower than the arithmetic's (rd_kreduce_t.narrow), a tile's bytes are those of float32.
 *
 * ONESHOT and TWOSHOT sum in the order of the ranks; they sum narrow floating types in float32 and round once.
 * Programs sum in the order of their schedule and round after each sum. RING and CHAIN round at each rank; the sum of
 * chunk c begins at rank c + 1 and ends at c, and a reduction to the root begins at root + 1.
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
    const rd_algo_t *algo; /* the card that names the kernel; NULL: the kernel is `kernel` */
    /* Of ONESHOT to CHAIN; of MESSAGES, STREAMS and MIXED it is the protocol of lines, of FUSED LL128. Any kernel may
     * follow any other in the same window, but kernels that use fifos (CHAIN but by SIMPLE, PROGRAM, MESSAGES) must all
     * use one protocol in a communicator. */
    rd_proto_t proto;
    uint32_t coll;            /* rd_coll_t; for all kernels but MESSAGES, STREAMS, MIXED, FUSED */
    uint32_t type, op;        /* rondo_type_t; rondo_op_t, RONDO_SUM for PREMULSUM; ignored where nothing is reduced */
    uint32_t blocks, threads; /* threads: a multiple of 32 (ONESHOT, TWOSHOT: of 32 n), at most rd_kernel_threads */
    uint32_t banks;           /* 1 for RING of ALLREDUCE by lines whose passes take both banks as one; else 0 */
    rd_kernel_t kernel;
    uint32_t narrow; /* as in rd_kreduce_t */
    uint32_t chains; /* FUSED: as `blocks` of rd_kfused_t */
} rd_klaunch_t;

static inline rd_kernel_t rd_launch_kernel(const rd_klaunch_t *launch)
{
    return launch->algo ? launch->algo->device.kernel : launch->kernel;
}

/* Does the kernel count an epoch (work.h)? */
static inline bool rd_launch_has_epoch(const rd_klaunch_t *launch)
{
    const rd_kernel_t kernel = rd_launch_kernel(launch);

    return kernel == RD_KERNEL_FUSED
               ? launch->blocks > launch->chains
               : kernel == RD_KERNEL_ONESHOT || kernel == RD_KERNEL_TWOSHOT || kernel == RD_KERNEL_COPY ||
                     (kernel == RD_KERNEL_RING && launch->proto != RD_PROTO_SIMPLE);
}

/* Returns the kernel for work of `passes` passes, or NULL if there is none. `blocks` and `threads` do not matter. */
const void *rd_kernel_find(const rd_klaunch_t *launch, uint32_t passes);
/* Is there a kernel of the algorithm, for this operation, that works by cells (work.h)? */
bool rd_kernel_by_cells(const rd_algo_t *algo, uint32_t coll);
/* Returns the cells that so many tiles take, if each has 1 << shift. */
static inline uint32_t rd_kernel_cells(uint32_t tiles, uint32_t shift)
{
    return (tiles + (1u << shift) - 1) >> shift;
}
/* May FUSED serve the operation by chain, which has this launch if it is launched by itself? */
bool rd_kernel_chained(const rd_klaunch_t *launch, const rd_kreduce_t *reduce);
/* Adds to the work of FUSED a short operation, or one by chain, as launch and arguments have it that is launched by
 * itself. Returns false if there is no more room; all operations of a launch must have cells of the same length. */
bool rd_kernel_fuse(rd_kfused_t *fused, const rd_klaunch_t *launch, const rd_kreduce_t *reduce);
/* Returns the bytes of a chunk that a tile carries, or 0 if the algorithm's kernel does not have the protocol. */
uint32_t rd_kernel_tile(const rd_algo_t *algo, rd_proto_t proto);
/* Returns the number of warps that serve a tile. */
uint32_t rd_kernel_warps(const rd_algo_t *algo, int n);
/* Returns the bytes of a chunk; `bytes` are those of the whole (allreduce) or of a block. */
uint64_t rd_kernel_chunk(const rd_algo_t *algo, uint32_t coll, int n, uint64_t bytes);
/* Returns the bytes of a bank that a pass of `tiles` tiles takes. */
uint64_t rd_kernel_bank(const rd_algo_t *algo, rd_proto_t proto, uint32_t coll, int n, uint32_t tiles);
/* Return the most passes (2 for ONESHOT where not every rank answers) and the most tiles (for CHAIN and PROGRAM as many
 * as a pair has fifos for). */
uint32_t rd_kernel_passes(const rd_algo_t *algo, uint32_t coll);
uint32_t rd_kernel_tiles(const rd_algo_t *algo);
/* Fills in a rank's program for the kernel (program_bytes.c). Returns NULL, or the reason why there is none. */
const char *rd_kernel_program(const rd_algo_t *algo, uint32_t coll, int n, int rank, int root, rd_kprogram_t *k);
/* Returns the most threads of a block. */
uint32_t rd_kernel_threads(rd_kernel_t kernel, rd_proto_t proto);
/* Returns the warps of MESSAGES, STREAMS or MIXED that run at once on a multiprocessor; a launch may not have more. */
uint32_t rd_kernel_at_once(void);
/* Returns the number of blocks of `threads` threads that `tiles` tiles need. */
uint32_t rd_kernel_blocks(const rd_algo_t *algo, int n, uint32_t tiles, uint32_t threads);
/* Makes the grid of ONESHOT, FUSED, TWOSHOT, RING, PROGRAM or any kernel by SIMPLE so small that `parts` such grids fit
 * on `sms` multiprocessors together, wherever their blocks go. Its groups of warps may then serve several tiles each.
 */
void rd_kernel_narrow(rd_klaunch_t *launch, int n, uint32_t sms, uint32_t parts);
/* Is the kernel one that lets the next one of its stream begin beside it, if it may, and small enough for that? */
bool rd_kernel_lets_in(const rd_klaunch_t *launch);
/* Returns the bytes of shared memory of a block. */
uint32_t rd_kernel_shared(const rd_klaunch_t *launch);
/* Launches into `stream` (a cudaStream_t). `event` (a cudaEvent_t) is recorded when all blocks have begun, which is
 * behind the end of what comes before in the stream; NULL: none is. `beside`: the kernel may begin beside the one
 * before, and wait for its end in gpu_begin(). Returns a cudaError_t. */
int rd_kernel_launch(const rd_klaunch_t *launch, const rd_kwork_t *work, void *stream, void *event, bool beside);
/* Loads every kernel on the current device, so that none has to be loaded while another one spins. `context`: the id of
 * the current context; 0: it is not known, and taken to be the device's only one. Returns a cudaError_t. */
int rd_kernel_load(uint64_t context);

#ifdef __cplusplus
}
#endif

#endif
