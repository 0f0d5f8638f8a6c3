/* Several communicators on one GPU. A kernel here waits for its peers on other GPUs. So kernels that two GPUs may start
 * in different orders have to fit on each of them together; otherwise all wait for ever, because on one GPU the first
 * communicator's kernel keeps the second's out, and on the other it is the other way round.
 *
 * A communicator that is alone may fill the GPU. If there are more, each takes its part, and its groups of warps serve
 * one tile after the other; ranks need not do so alike. With more than MOST communicators the parts get no smaller, so
 * only MOST operations fit at a time. A third of a ring's warps is as many as the link needs, by its rate and a latency
 * of 2 us.
 *
 * This does not apply to messages by lines, all of whose warps must run at once: their number is agreed on when a
 * communicator is created. For messages by slices each rank chooses its number of blocks (p2p.c).
 *
 * A small kernel lets the next one of its stream in, so that two of a communicator stand side by side. It does so where
 * no other communicator of the process, and no other rank, is on the GPU: there nobody else's kernel needs the room.
 * And what is let in must be as small, because both may wait long for a rank that is late.
 */
#include "exec/cuda/cuda_int.h"

#define DEVICES 64
#define MOST 3

static _Atomic int living[DEVICES]; /* communicators of this process, on all of its ranks */

void rd_occupancy_join(rd_cuda_t *cuda)
{
    if (cuda->device < DEVICES)
        atomic_fetch_add(&living[cuda->device], 1);
}

void rd_occupancy_leave(rd_cuda_t *cuda)
{
    if (cuda->device < DEVICES)
        atomic_fetch_sub(&living[cuda->device], 1);
}

uint32_t rd_occupancy_parts(const rd_cuda_t *cuda)
{
    int beside = cuda->parent ? cuda->parent->beside : cuda->beside, here = 0;

    if (cuda->device < DEVICES)
        here = atomic_load_explicit(&living[cuda->device], memory_order_relaxed);
    if (here <= beside)
        return 1;
    int all = (here + beside - 1) / beside;
    return (uint32_t)(all < MOST ? all : MOST);
}

bool rd_occupancy_alone(const rd_cuda_t *cuda)
{
    return cuda->sharing == 1 && rd_occupancy_parts(cuda) == 1 && cuda->team->env->cuda_early;
}

rd_klaunch_t rd_occupancy_part(const rd_cuda_t *cuda, const rd_klaunch_t *launch)
{
    uint32_t parts = rd_occupancy_parts(cuda);
    rd_klaunch_t part = *launch;

    if (parts > 1)
        rd_kernel_narrow(&part, cuda->k.nranks, cuda->limits.blocks, parts);
    return part;
}
