/* Compiles a schedule of lib/sched for one rank, in the kernel's form: repeats are written out, and an end is a byte.
 * The functions are pure. */
#include <stdbool.h>
#include <string.h>

#include "kernels/program_bytes.h"

_Static_assert(RD_KENDS == RD_MAX_ENDS, "ends of a step");

static const char *const too_large = "its program is longer than what travels with a launch";

static int links(const rd_link_t *from, int count, rd_kconn_t *to)
{
    if (count > RD_KCONNS)
        return -1;
    for (int i = 0; i < count; i++)
        to[i] = (rd_kconn_t){(uint8_t)from[i].peer, (uint8_t)from[i].channel, 0};
    return 0;
}

static uint8_t end_of(rd_end_t end, int i, const rd_step_t *step, int nchunks)
{
    static const uint8_t where[] = {
        [RD_IN] = RD_KEND_IN, [RD_OUT] = RD_KEND_OUT, [RD_TMP] = RD_KEND_SCRATCH, [RD_PEER] = RD_KEND_CONN};
    int index = end.where == RD_IN || end.where == RD_OUT ? (end.index + i * step->stride) % nchunks : end.index;

    return RD_KEND(where[end.where], index);
}

/* A step that stores what it has summed, or its own part or scratch, has a whole sum. What goes to the output from a
 * peer, or from the output, was whole before. */
static bool finishes(const rd_step_t *step)
{
    int stored = 0;

    for (int d = 0; d < step->ndst; d++)
        stored |= step->dst[d].where == RD_OUT;
    return stored && (step->nsrc > 1 || (step->src[0].where != RD_PEER && step->src[0].where != RD_OUT));
}

/* The i-th time that a step is repeated. -1: two of its sources are the user's. */
static int step_of(const rd_program_t *p, const rd_step_t *step, int i, int track, rd_kstep_t *to, rd_kprogram_t *k)
{
    *to = (rd_kstep_t){
        (uint8_t)step->nsrc, (uint8_t)step->ndst, RD_KEND(RD_KEND_NONE, 0), (uint8_t)finishes(step), {0}, {0}};
    for (int s = 0; s < step->nsrc; s++) {
        rd_end_t end = step->src[s];
        to->from[s] = end_of(end, i, step, p->nchunks);
        if (end.where == RD_PEER)
            k->from[end.index].track = (uint8_t)track;
        if (end.where != RD_IN && end.where != RD_OUT)
            continue;
        if (to->local != RD_KEND(RD_KEND_NONE, 0))
            return -1;
        to->local = to->from[s];
    }
    for (int d = 0; d < step->ndst; d++) {
        to->to[d] = end_of(step->dst[d], i, step, p->nchunks);
        if (step->dst[d].where == RD_PEER)
            k->to[step->dst[d].index].track = (uint8_t)track;
    }
    return 0;
}

static int translate(const rd_program_t *p, rd_kprogram_t *k)
{
    int n = 0;

    memset(k, 0, sizeof *k);
    k->chunks = (uint8_t)p->nchunks;
    k->scratch = (uint8_t)p->ntmp;
    k->tracks = (uint8_t)p->nlanes;
    k->sends = (uint8_t)p->nsends;
    k->receives = (uint8_t)p->nrecvs;
    if (p->nlanes > RD_KTRACKS || p->ntmp > 31 || links(p->sends, p->nsends, k->to) != 0 ||
        links(p->recvs, p->nrecvs, k->from) != 0)
        return -1;
    for (int t = 0; t < p->nlanes; t++) {
        k->track[t].first = (uint8_t)n;
        for (int s = p->lanes[t].first; s < p->lanes[t].first + p->lanes[t].count; s++)
            for (int i = 0; i < p->steps[s].repeat; i++)
                if (n == RD_KSTEPS || step_of(p, &p->steps[s], i, t, &k->step[n++], k) != 0)
                    return -1;
        k->track[t].count = (uint8_t)(n - k->track[t].first);
    }
    return 0;
}

const char *rd_kernel_program_in(const rd_algo_t *algo, uint32_t coll, int n, int rank, int root,
                                 const rd_visits_t *order, rd_kprogram_t *k)
{
    const rd_shape_t shape = {n, 1, NULL};
    const rd_sched_args_t args = {&shape, (rd_coll_t)coll, rank, root, algo->device.param, 0};
    rd_program_t *program;
    const char *why = algo->excluded(&args);
    rd_steps_t *steps = why ? NULL : rd_visits_emit(algo, &args, order);

    if (why)
        return why;
    if (rd_compile(steps, 1, &program, &why) == 0) {
        why = translate(program, k) == 0 ? NULL : too_large;
        rd_program_free(program);
    }
    rd_steps_free(steps);
    return why;
}

const char *rd_kernel_program(const rd_algo_t *algo, uint32_t coll, int n, int rank, int root, rd_kprogram_t *k)
{
    const rd_visits_t by_number = {NULL, NULL};

    return rd_kernel_program_in(algo, coll, n, rank, root, &by_number, k);
}
