/* Short operations that a rank launches together: the arguments of rd_fused, made of those that each would have alone.
 * Every rank draws for itself which they are. */
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

/* Operations first..first + count - 1 in one launch, whose arguments take the place of the first one's. */
static rd_sim_launch_t fuse(world_t *w, int rank, int first, int count)
{
    static rd_kwork_t work;
    const uint32_t group = 32 * (uint32_t)w->n;
    rd_kwork_t *k = &w->work[rank * WORLD_OPS + first];
    rd_klaunch_t l = {.kernel = RD_KERNEL_FUSED, .proto = RD_PROTO_LL128};

    memset(&work, 0, sizeof work);
    work.comm = k->comm;
    for (int i = 0; i < count; i++)
        if (!rd_kernel_fuse(&work.fused, &w->plan[first + i].launch, &k[i].reduce)) {
            fprintf(stderr, "a launch has no room for %d operations\n", count);
            exit(1);
        }
    *k = work;
    l.threads = group * (1 + world_draw(w, w->n < 5 ? 3 : 2));
    l.blocks = 1 + world_draw(w, (work.fused.tiles + l.threads / group - 1) / (l.threads / group));
    return (rd_sim_launch_t){rd_kernel_find(&l, 1), l.blocks, l.threads, rd_kernel_shared(&l), k, 0};
}

/* Returns how many operations from `first` on are launched together. */
static int draw_count(world_t *w, int first)
{
    uint32_t passes = 0;
    int most = 0;

    while (first + most < w->ops && most < RD_KFUSED && w->plan[first + most].is_short &&
           (passes += w->plan[first + most].passes) <= 2 * RD_KCELLS)
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
