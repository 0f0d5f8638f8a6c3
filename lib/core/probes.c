/* See probes.h. */
#include "core/probes.h"

#include <string.h>

#include "core/lifetime.h"
#include "core/living.h"
#include "monitor/held.h"
#include "monitor/probe.h"

#define SEEN 256

/* Letters come around both sides, and a circle may be one to which the waits of the probe's origin lead: what was
 * passed on once is not passed on again. A hash that is overwritten costs a letter more. */
static bool is_new(const rd_probe_t *p, uint32_t number)
{
    static _Atomic uint64_t seen[SEEN];
    const uint64_t words[] = {p->origin.comm,
                              (uint64_t)p->origin.waiter,
                              number,
                              p->at.comm,
                              (uint64_t)p->at.peer << 32 | (uint32_t)p->at.waiter,
                              p->at.number};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
    return atomic_exchange(&seen[hash % SEEN], hash) != hash;
}

static bool is_wait_of(rondo_comm_t comm, const void *arg)
{
    const rd_probe_wait_t *wait = arg;

    return comm->seat.record && comm->seat.board->id == wait->comm && comm->team.rank == wait->waiter;
}

static void pass_on(rondo_comm_t comm, const rd_probe_t *p, uint32_t number)
{
    rd_boot_question_t question = {.from = comm->team.rank, .about = p->at.peer, .number = number, .nprobe = sizeof *p};

    memcpy(question.probe, p, sizeof *p);
    if (p->at.peer >= 0 && p->at.peer < comm->team.nranks)
        rd_boot_ask(comm->boot, p->at.peer, &question);
}

static void come_back(rondo_comm_t comm, const rd_probe_t *p, uint32_t number)
{
    char text[RD_ERROR_BYTES];

    rd_probe_text(p, text, sizeof text);
    rd_boot_came_back(comm->boot, number, text);
}

static rd_probe_step_t follow(rd_probe_t *p)
{
    rd_probe_step_t step = RD_PROBE_ENDS;
    rd_view_t view = {0};

    if (rd_held_own(&view) && rd_view_look(&view, 0))
        step = rd_probe_follow(&view, p);
    rd_view_free(&view);
    return step;
}

void rd_probes_pass_on(rondo_comm_t comm, const rd_boot_question_t *question)
{
    rd_probe_t p;

    if (question->nprobe != sizeof p || !comm->seat.record)
        return;
    memcpy(&p, question->probe, sizeof p);
    p.text[sizeof p.text - 1] = 0;
    if (p.at.comm != comm->seat.board->id || p.at.peer != comm->team.rank || !is_new(&p, question->number))
        return;
    const rd_probe_step_t step = follow(&p);
    rondo_comm_t next = step == RD_PROBE_ENDS ? NULL : rd_living_find(is_wait_of, &p.at);
    if (!next)
        return;
    if (rd_comm_query_enter(next)) {
        step == RD_PROBE_IS_BACK ? come_back(next, &p, question->number) : pass_on(next, &p, question->number);
        rd_comm_query_leave(next);
    }
    rd_comm_release(next);
}
