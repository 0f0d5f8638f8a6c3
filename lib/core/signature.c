/* The exchange of asks: an allgather of one record a rank, by the communicator's own programs, before data moves. */
#include "core/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"

struct rd_check {
    int nranks;
    rd_asked_t records[];
};

void rd_asked_fill(rd_asked_t *asked, const rd_call_t *call, uint64_t sequence)
{
    const rd_ask_t *ask = &call->ask;

    memset(asked, 0, sizeof *asked);
    asked->sequence = sequence;
    asked->count = ask->count;
    asked->type = (int32_t)ask->type;
    asked->op = ask->op < RONDO_NUM_OPS ? (int32_t)ask->op : RONDO_NUM_OPS; /* numbers of user ops are each rank's */
    asked->root = call->name ? call->root : ask->root;
    snprintf(asked->name, sizeof asked->name, "%s", call->name ? call->name : rd_coll_name(ask->coll));
}

static rondo_result_t prepare(rondo_comm_t comm, const rd_call_t *call, rd_check_t **check, rd_plan_t **plan)
{
    rd_ask_t exchange;
    rd_check_t *c = calloc(1, sizeof *c + (size_t)comm->nranks * sizeof(rd_asked_t));
    rondo_result_t result;

    if (!c)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for RONDO_CHECK");
    c->nranks = comm->nranks;
    rd_asked_fill(&c->records[comm->rank], call, 0);
    memset(&exchange, 0, sizeof exchange);
    exchange.coll = RD_ALLGATHER;
    exchange.type = RONDO_UINT8;
    exchange.count = sizeof(rd_asked_t);
    exchange.own = 1;
    result = rd_plan_get(comm->planner, &exchange, NULL, NULL, plan);
    if (result != RONDO_SUCCESS) {
        free(c);
        return result;
    }
    *check = c;
    return RONDO_SUCCESS;
}

void rd_check_number(rondo_comm_t comm, rd_check_t *check)
{
    check->records[comm->rank].sequence = comm->sequence++;
}

rondo_result_t rd_check_now(rondo_comm_t comm, const rd_call_t *call)
{
    rd_check_t *check = NULL;
    rd_plan_t *plan = NULL;
    rondo_result_t result = prepare(comm, call, &check, &plan);

    if (result != RONDO_SUCCESS)
        return result;
    rd_check_number(comm, check);
    result = rd_queue_run(comm, plan, RD_CHAIN_COLLECTIVE, &check->records[comm->rank], check->records);
    if (result == RONDO_SUCCESS)
        result = rd_check_compare(comm, check);
    rd_check_free(check);
    return result;
}

rondo_result_t rd_check_task(rondo_comm_t comm, const rd_call_t *call, rd_task_t **task)
{
    rd_check_t *check = NULL;
    rd_plan_t *plan = NULL;
    rondo_result_t result = prepare(comm, call, &check, &plan);

    if (result != RONDO_SUCCESS)
        return result;
    result = rd_task_create(comm, plan, RD_CHAIN_COLLECTIVE, &check->records[comm->rank], check->records, task);
    if (result != RONDO_SUCCESS)
        rd_check_free(check);
    else
        (*task)->check = check;
    return result;
}

static void describe(char *text, size_t room, const rd_asked_t *r)
{
    snprintf(text, room, "%s number %llu: count %llu, type %s, op %s, root %d", r->name,
             (unsigned long long)r->sequence, (unsigned long long)r->count, rd_type_name((rondo_type_t)r->type),
             r->op < RONDO_NUM_OPS ? rd_op_name(r->op) : "user", r->root);
}

/* The first field in which they differ. */
static const char *differs(const rd_asked_t *a, const rd_asked_t *b)
{
    if (a->sequence != b->sequence)
        return "sequence number";
    if (memcmp(a->name, b->name, sizeof a->name) != 0)
        return "operation";
    if (a->count != b->count)
        return "count";
    if (a->type != b->type)
        return "type";
    if (a->op != b->op)
        return "op";
    return a->root != b->root ? "root" : NULL;
}

rondo_result_t rd_asked_compare(rondo_comm_t comm, int rank, const rd_asked_t *asked, int other,
                                const rd_asked_t *others)
{
    const char *field = differs(asked, others);
    char one[160], two[160];

    if (!field)
        return RONDO_SUCCESS;
    describe(one, sizeof one, asked);
    describe(two, sizeof two, others);
    return rd_health_fail(&comm->health, RONDO_ERR_MISMATCH, other,
        "ranks do not call the same: they differ in %s. rank %d (%s) calls %s; rank %d (%s) calls %s", field, rank,
        rd_boot_whois(comm->boot, rank), one, other, rd_boot_whois(comm->boot, other), two);
}

rondo_result_t rd_check_compare(rondo_comm_t comm, const rd_check_t *check)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (int r = 1; r < check->nranks && result == RONDO_SUCCESS; r++)
        result = rd_asked_compare(comm, 0, &check->records[0], r, &check->records[r]);
    return result;
}

void rd_check_free(rd_check_t *check)
{
    free(check);
}
