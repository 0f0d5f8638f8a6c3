/* A communicator in the records of its node's processes: see records.h. */
#include "core/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/probes.h"
#include "monitor/held.h"
#include "monitor/process.h"
#include "monitor/verdict.h"

int rd_comm_record(rondo_comm_t comm)
{
    comm->recorded = !comm->internal && rd_record_join(&comm->env, &comm->ctx);
    return comm->recorded ? rd_record_fd() : -1;
}

void rd_comm_hold_records(rondo_comm_t comm)
{
    comm->held = comm->node.brought;
    comm->nheld = comm->node.nlocal;
    comm->node.brought = NULL;
    for (int m = 0; m < comm->nheld; m++)
        comm->held[m] = rd_held_take(comm->held[m]);
}

/* Of a communicator of several nodes, whose other records are elsewhere, it is known where it is as large as the job,
 * and the ranks of this node have their own numbers there. */
void rd_comm_job_ranks(const struct rondo_comm *comm, int *start, int *stride)
{
    const bool all = comm->node.nlocal == comm->team.nranks;
    int first = -1, step = 0;

    *start = *stride = 0;
    for (int m = 0; m < comm->node.nlocal; m++) {
        int rank, size, at = comm->node.local[m];
        rd_held_job_rank(m < comm->nheld ? comm->held[m] : -1, &rank, &size);
        if (m == comm->node.self) {
            rank = rd_record_job_rank();
            size = rd_record_job_size();
        }
        if (rank < 0 || (!all && (rank != at || size != comm->team.nranks)))
            return;
        if (m == 0)
            first = all ? rank : 0;
        if (m == 1)
            step = all ? rank - first : 1;
        if (all && rank != first + step * m)
            return;
    }
    *start = first;
    *stride = comm->team.nranks == 1 || !all ? 1 : step;
}

void rd_comm_drop_records(rondo_comm_t comm)
{
    for (int m = 0; m < comm->nheld; m++)
        rd_held_drop(comm->held[m]);
    free(comm->held);
    comm->held = NULL;
    comm->nheld = 0;
    if (comm->recorded)
        rd_record_leave();
    comm->recorded = false;
}

uint64_t rd_comm_number(rondo_comm_t comm)
{
    unsigned char key[32];
    uint64_t number;

    rd_boot_key(comm->boot, "monitor", key);
    memcpy(&number, key, sizeof number);
    return number;
}

void rd_comm_take_seat(rondo_comm_t comm)
{
    const rd_node_t *node = &comm->node;
    rd_monitor_comm_args_t args = {.name = comm->ctx.name,
                                   .rank = comm->team.rank,
                                   .size = comm->team.nranks,
                                   .nodes = node->nnodes,
                                   .node = node->node_of[comm->team.rank],
                                   .locals = node->nlocal,
                                   .device = comm->team.device >= 0 ? comm->team.device : -1};

    if (!comm->recorded)
        return;
    args.id = rd_comm_number(comm);
    rd_seat_take(&comm->seat, &args);
}

static bool judge(rondo_comm_t comm, rd_view_t *view, const rd_boot_question_t *question, rd_monitor_verdict_t *verdict)
{
    if (!comm->seat.record || !rd_held_view(view) || !rd_view_look(view, 0))
        return false;
    const rd_view_comm_t *seen = rd_view_comm_of(view->comms, view->ncomms, comm->seat.board->id);
    if (seen)
        rd_verdict_of(view, seen, question->about, question->call, verdict);
    return seen && verdict->status != RD_VERDICT_NONE;
}

/* A rank that waits in no call of this communicator does not poll its network, by which others ask that, too. */
static void answer_called(rondo_comm_t comm, const rd_boot_question_t *question)
{
    rd_boot_answer_t answer = {.rank = -1, .next = -1};
    const rd_control_t *control = comm->conns.controls[question->about];
    rd_called_digest_t digest;

    if (control && comm->queue.signing.called) {
        rd_called_tell(&control->called, &digest);
        memcpy(answer.more, &digest, sizeof digest);
        answer.nmore = sizeof digest;
    }
    rd_boot_answer(comm->boot, question, &answer);
}

void rd_comm_answer(rondo_comm_t comm, const rd_boot_question_t *question)
{
    rd_boot_answer_t answer = {.status = RD_VERDICT_UNKNOWN, .rank = -1, .next = -1};
    rd_monitor_verdict_t verdict;
    rd_view_t view = {0};

    if (question->nprobe) {
        rd_probes_pass_on(comm, question);
        return;
    }
    if (rd_questioner(question) == RD_QUESTIONER_UNLIKE) {
        answer_called(comm, question);
        return;
    }
    snprintf(answer.text, sizeof answer.text, "unknown: there is no record of what rank %d (%s) does", question->about,
             rd_boot_whois(comm->boot, question->about));
    if (judge(comm, &view, question, &verdict)) {
        answer.status = verdict.status;
        answer.rank = verdict.rank;
        answer.next = verdict.next;
        rd_verdict_copy(answer.text, sizeof answer.text, verdict.text);
        memcpy(answer.more, &verdict.hop, sizeof verdict.hop);
        answer.nmore = sizeof verdict.hop;
    }
    rd_view_free(&view);
    rd_boot_answer(comm->boot, question, &answer);
}
