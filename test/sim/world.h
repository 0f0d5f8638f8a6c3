/* Ranks without a library: windows, buffers and launches for the kernels alone, run by the machine, and what must come
 * out of each operation, worked out with the reducers of lib/host. */
#ifndef TEST_SIM_WORLD_H
#define TEST_SIM_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include <rondo.h>

#include "exec/host/reduce.h"
#include "kernels/launch.h"
#include "sched/program.h"
#include "sim/machine.h"

#define WORLD_OPS 160 /* in a row, at most */

typedef struct op_plan {
    rd_klaunch_t launch;
    uint64_t count, gap; /* gap: between blocks that are reduced and scattered, elements */
    int root;
    uint32_t tiles, passes;
    uint32_t slice;      /* by SIMPLE: bytes of a tile */
    rd_kscaled_t scaled; /* NONE with op AVG of integers; PREMULSUM: op SUM, scaled */
    int device_scale;
    int in_place;
    int is_short; /* each pass takes a cell */
} op_plan_t;

typedef struct world {
    int n;
    uint64_t seed, random;
    uint32_t fifos, bank_bytes;
    size_t window_bytes;
    int host_windows; /* as where GPUs do not reach each other: what is a rank's own is no part of its window, and no
                         LL128 */
    int alike;        /* all ranks have warps for all tiles: none waits for a rank because that one waits */
    rd_proto_t fifo_proto;                                         /* of all that goes through fifos */
    enum { WORLD_ALONE, WORLD_FUSED_SOME, WORLD_FUSED_ALL } fused; /* how short operations are launched together */
    char *window[RD_KRANKS];
    char *own[RD_KRANKS];
    rd_khost_t host[RD_KRANKS];
    int ops;
    op_plan_t plan[WORLD_OPS];
    rd_kwork_t *work; /* [rank * WORLD_OPS + op] */
    rd_sim_launch_t *launch;
    struct op_buffers *buffers; /* as work */
    int rough;                  /* random bits that are no NaN; else what sums exactly */
} world_t;

uint32_t world_draw(world_t *w, uint32_t below);
#define WORLD_SLICE 8192 /* of blocks of few threads; RD_KSLICE of greater ones */
#define WORLD_LEAST 384u /* bytes of a slice of a message, at least */
#define WORLD_RECEIVE 8u /* blocks that have places for slices: as many as lie in 2 MB */

/* Every other seed: apart; every other two: fifos by LL. */
void world_begin(world_t *w, int n, uint64_t seed, uint32_t fifos, uint32_t bank_bytes);
/* What every launch of a rank is told. */
rd_kcomm_t world_comm(world_t *w, int rank);
void world_end(world_t *w);
/* Adds an operation; `threads` of the launch are chosen here. */
void world_add(world_t *w, const op_plan_t *plan);
/* The bytes of a cell. */
uint32_t world_cell(const world_t *w);
/* Runs what was added and looks at everything: results, inputs, what lies around them, windows at rest. 0, or -1 and a
 * sentence in `text`. Nothing is left to run afterwards. */
int world_run(world_t *w, char *text, size_t size);

#endif
