/* The order in which rings, chains and trees visit the GPUs of a node whose links differ (topo/gpu_ring.h). Kernels
 * know nothing of it.
 *
 * A tree is a program, whose steps are renamed when it is compiled (sched/visits.h). Rings and chains by SIMPLE are
 * launched as if every rank's number were its place: the windows stand in the order of places, and so do rank and root.
 * That is possible because SIMPLE keeps no count by number of peer: a channel's slots and counters belong to the two
 * neighbours, which are the same in all such launches of a communicator, and it has no epochs. Whatever else a window
 * holds (epochs, banks, fifos, streams) is counted by number of rank, so kernels by lines, messages and copies go by
 * number as before. Where links differ, it is the long operations, SIMPLE's, that the order is for.
 *
 * A place is no number of a block, and kernels find blocks by number. An allgather by such a ring is therefore done as
 * a broadcast by chain of each block, and a reduce_scatter as a reduction of each, in the order of places: a rank goes
 * on to the next one when its part of the last is done, so that the chains follow each other around the ring, and as
 * many bytes cross a link as by a ring, and one block more.
 *
 * What such a kernel says of a peer is a place, too. The call's number in its arguments has a bit of its own that tells
 * (RD_KCALL_VISITS).
 *
 * On several nodes the GPUs of each have an order of their own, in the part of an operation that their kernels do
 * (hier/node_comm.c). */
#include <string.h>

#include "exec/cuda/cuda_int.h"
#include "sched/algo/algos.h"
#include "topo/gpu_ring.h"

_Static_assert(RD_KRANKS <= RD_GPUS_MOST, "the ranks whose windows are mapped have a ring");

/* ---- creation ---- */

rondo_result_t rd_ring_order_offer(rd_cuda_t *cuda, rd_ring_offer_t *offer)
{
    const rd_team_t *team = cuda->team;
    const bool dumps = team->env->graph_dump_file[0] && team->rank == team->env->graph_dump_rank;
    const char *bus[RD_KRANKS];
    int rank[RD_KRANKS];
    rd_gpu_ring_t ring;
    rondo_result_t result;

    memset(offer, 0, sizeof *offer);
    if (cuda->k.nranks > RD_KRANKS || (cuda->k.rank != 0 && !dumps))
        return RONDO_SUCCESS;
    for (int i = 0; i < cuda->k.nranks; i++) {
        bus[i] = cuda->peers[i].bus;
        rank[i] = rd_cuda_rank_of(cuda, i);
    }
    const rd_ring_gpus_t gpus = {cuda->k.nranks, bus, rank};
    result = rd_gpu_ring_find(&ring, team->env, &gpus, dumps, team->ctx);
    if (result != RONDO_SUCCESS || cuda->k.rank != 0)
        return result;
    offer->is = ring.is;
    offer->given = ring.given;
    offer->gbps = ring.gbps;
    offer->number_gbps = ring.number_gbps;
    for (int i = 0; i < cuda->k.nranks; i++)
        offer->rank[i] = (uint8_t)ring.rank[i];
    return RONDO_SUCCESS;
}

static void say(const rd_cuda_t *cuda, const rd_ring_offer_t *offer)
{
    char text[12 * RD_KRANKS] = "";
    size_t used = 0;

    for (int i = 0; i < cuda->k.nranks; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %d", rd_cuda_rank_of(cuda, cuda->visits.rank[i]));
    rd_log(cuda->team->ctx, RD_LOG_INFO, "rings, chains and trees visit the ranks%s in the order%s, %s",
           cuda->parent ? " of this node" : "", text,
           offer->given ? "as RONDO_GRAPH_FILE says" : "as their links lie (RONDO_ORDER)");
    if (offer->number_gbps > 0)
        rd_log(cuda->team->ctx, RD_LOG_INFO, "that order carries %.1f GB/s, and the one by number %.1f", offer->gbps,
               offer->number_gbps);
}

double rd_ring_order_take(rd_cuda_t *cuda, const rd_ring_offer_t *offer)
{
    const double times = offer->number_gbps > 0 ? offer->gbps / offer->number_gbps : 1;
    rd_ring_visits_t *p = &cuda->visits;

    p->is = offer->is;
    if (!p->is)
        return 1;
    for (int i = 0; i < cuda->k.nranks; i++) {
        p->rank[i] = offer->rank[i];
        p->visit[offer->rank[i]] = i;
    }
    if (cuda->k.rank == 0)
        say(cuda, offer);
    return times > 1 ? times : 1;
}

/* ---- launches ---- */

bool rd_ring_order_follows(const rd_cuda_t *cuda, const rd_klaunch_t *launch)
{
    return cuda->visits.is && launch->algo && launch->proto == RD_PROTO_SIMPLE &&
           (launch->algo->device.kernel == RD_KERNEL_RING || launch->algo->device.kernel == RD_KERNEL_CHAIN);
}

void rd_ring_order_apply(const rd_cuda_t *cuda, rd_kwork_t *work)
{
    const rd_ring_visits_t *p = &cuda->visits;

    work->comm.rank = p->visit[cuda->k.rank];
    for (int i = 0; i < cuda->k.nranks; i++)
        work->comm.window[i] = cuda->k.window[p->rank[i]];
    work->reduce.root = p->visit[work->reduce.root];
}

/* Kernels of a communicator and of its node communicator write into the same words. */
static const rd_cuda_t *ordered(const rd_cuda_t *cuda)
{
    return cuda->node_comm ? cuda->node_comm : cuda;
}

uint32_t rd_ring_order_call(const rd_cuda_t *cuda, uint32_t call, bool visits)
{
    return ordered(cuda)->visits.is ? (call & ~RD_KCALL_VISITS) | (visits ? RD_KCALL_VISITS : 0) : call;
}

int rd_ring_order_bits(const rd_cuda_t *cuda)
{
    return ordered(cuda)->visits.is ? RD_KCALL_BITS - 1 : RD_KCALL_BITS;
}

int rd_ring_order_peer(const rd_cuda_t *cuda, uint32_t call, int peer)
{
    const rd_cuda_t *of = ordered(cuda);
    const bool by_visit = of->visits.is && (call & RD_KCALL_VISITS) && peer >= 0 && peer < of->k.nranks;

    return by_visit ? of->visits.rank[peer] : peer;
}

bool rd_ring_order_divides(const rd_cuda_t *cuda, const rd_klaunch_t *launch)
{
    return rd_ring_order_follows(cuda, launch) && (launch->coll == RD_ALLGATHER || launch->coll == RD_REDUCE_SCATTER);
}

/* The broadcast or reduction that has the block of the rank at a place. */
static rd_call_t one_block(const rd_cuda_t *cuda, const rd_call_t *call, int root, void *out, size_t gap)
{
    const size_t block = call->desc.count * rondo_type_size(call->desc.type);
    const bool own = root == cuda->k.rank;
    rd_call_t one = *call;

    one.desc.root = root;
    one.tables = NULL;
    one.bounce = 0;
    if (call->desc.coll == RD_ALLGATHER) {
        one.desc.coll = RD_BROADCAST;
        one.out = (char *)out + (size_t)root * block;
        one.in = own ? call->in : one.out;
    } else {
        one.desc.coll = RD_REDUCE;
        one.in = (const char *)call->in + (size_t)root * (block + gap);
        one.out = own ? out : NULL;
    }
    return one;
}

rondo_result_t rd_ring_order_blocks(rd_cuda_t *cuda, const rd_call_t *call, void *out, size_t gap)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < cuda->k.nranks && result == RONDO_SUCCESS; i++) {
        const rd_call_t one = one_block(cuda, call, cuda->visits.rank[i], out, gap);
        result = rd_cuda_run_by(cuda, &one, &rd_algo_chain, RD_PROTO_SIMPLE);
    }
    return result;
}
