/* What the files of the world share: see world.h. */
#ifndef TEST_SIM_WORLD_INT_H
#define TEST_SIM_WORLD_INT_H

#include "sim/world.h"

struct op_buffers {
    char *in, *out;           /* as the kernel gets them */
    char *in_area, *out_area; /* with guards; out_area may be in_area */
    size_t in_bytes, out_bytes;
    char *in_was; /* what the input was */
    char scalar[16];
    int has_in, has_out;
};

void *world_get(size_t bytes); /* zeroed; ends the test if there is no memory */
/* Bytes that may be anything, but floating values near 1, of either sign and with random mantissas, so that no sum is a
 * NaN and every one rounds. */
void world_fill(world_t *w, rondo_type_t type, void *to, size_t bytes);
/* The largest and the least numbers of a narrow floating type, so that sums are near its limits. */
void world_fill_hard(world_t *w, rondo_type_t type, void *to, size_t bytes);
/* The output of a rank: `to` has as many bytes as that. */
void world_expected(const world_t *w, const op_plan_t *p, int op, int rank, char *to);
/* The tiles of a short operation in all its passes. The last pass may have fewer than the others. */
uint32_t world_tiles(const world_t *w, const op_plan_t *p);
/* world_fused.c: a rank's launches, in order; of those that are launched together the later ones become launches that
 * do nothing. */
void world_queue(world_t *w, int rank, rd_sim_launch_t *queue);
/* The same by the steps of the schedule whose result the kernel's is by name; 0: there is none. */
int world_scheduled(const world_t *w, const op_plan_t *p, int op, int rank, char *to);

/* The type of the user's elements; the kernel may compute with a wider one. */
static inline rondo_type_t world_type(const op_plan_t *p)
{
    return (rondo_type_t)(p->launch.narrow ? p->launch.narrow : p->launch.type);
}

static inline size_t world_element(const op_plan_t *p)
{
    return rondo_type_size(world_type(p));
}

#endif
