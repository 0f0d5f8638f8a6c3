/* Operations that a rank launches together, short ones and those by chain: the arguments of rd_fused, made of those
 * that each would have alone. Every rank draws for itself which they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world_int.h"

uint32_t world_cell(const world_t *w)
{
    return w->bank_bytes / RD_KCELLS / 128 * 128;
}

uint32_t world_tiles(const world_t *w, const op_plan_t *p)
{
    const rd_klaunch_t *l = &p->launch;
    uint64_t bytes = p->count * rondo_type_size((rondo_type_t)l->type), tile = rd_kernel_tile(l->algo, l->proto);
    uint64_t chunk = rd_kernel_chunk(l->algo, l->coll, w->n, bytes);

    return chunk ? (uint32_t)((chunk + tile - 1) / tile) : 1;
}

/* The launch of what is in `k`, with any numbers of blocks and of warps for each fifo that suffice. */
static rd_klaunch_t draw_launch(world_t *w, rd_kfused_t *k)
{
    const uint32_t group = 32 * (uint32_t)w->n, groups = 1 + world_draw(w, w->n < 5 ? 3 : 2);
    const uint32_t cells = (k->tiles + groups - 1) / groups, warps = groups * (uint32_t)w->n;
    rd_klaunch_t l = {.kernel = RD_KERNEL_FUSED, .proto = RD_PROTO_LL128, .threads = groups * group};

    k->share = 1u << world_draw(w, 4);
    while (k->share > warps)
        k->share /= 2;
    k->blocks = (k->fifos + warps / k->share - 1) / (warps / k->share);
    l.chains = k->blocks;
    l.blocks = k->blocks + (cells ? 1 + world_draw(w, cells) : 0);
    return l;
}

/* Operations first..first + count - 1 in one launch, whose arguments take the place of the first one's. */
static rd_sim_launch_t fuse(world_t *w, int rank, int first, int count)
{
    static rd_kwork_t work;
    rd_kwork_t *k = &w->work[rank * WORLD_OPS + first];

    memset(&work, 0, sizeof work);
    work.comm = k->comm;
    for (int i = 0; i < count; i++)
        if (!rd_kernel_fuse(&work.fused, &w->plan[first + i].launch, &k[i].reduce)) {
            fprintf(stderr, "a launch has no room for %d operations\n", count);
            exit(1);
        }
    const rd_klaunch_t l = draw_launch(w, &work.fused);
    *k = work;
    return (rd_sim_launch_t){rd_kernel_find(&l, 1), l.blocks, l.threads, rd_kernel_shared(&l), k, 0};
}

static int together(const world_t *w, int op)
{
    const rd_kreduce_t reduce = {.passes = w->plan[op].passes};

    return w->plan[op].is_short || rd_kernel_chained(&w->plan[op].launch, &reduce);
}

/* Returns how many operations from `first` on are launched together. */
static int draw_count(world_t *w, int first)
{
    uint32_t passes = 0;
    int most = 0;

    while (first + most < w->ops && most < RD_KFUSED && together(w, first + most) &&
           (passes += w->plan[first + most].is_short ? w->plan[first + most].passes : 0) <= 2 * RD_KCELLS)
        most++;
    if (most < 2 || w->fused == WORLD_ALONE)
        return 1;
    return w->fused == WORLD_FUSED_ALL ? most : 1 + (int)world_draw(w, (uint32_t)(world_draw(w, 4) ? most : 1));
}

void world_queue(world_t *w, int rank, rd_sim_launch_t *queue)
{
    static const rd_klaunch_t nothing = {.kernel = RD_KERNEL_NOTHING};
    int n = 0;

    for (int i = 0, count; i < w->ops; i += count) {
        count = draw_count(w, i);
        queue[n++] = count > 1 ? fuse(w, rank, i, count) : w->launch[rank * WORLD_OPS + i];
    }
    while (n < w->ops)
        queue[n++] = (rd_sim_launch_t){rd_kernel_find(&nothing, 1), 1, 32, 0, &w->work[rank * WORLD_OPS], 0};
}
