/* The exchange of asks: an allgather of one record a rank, by the communicator's own programs, before data moves. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"

typedef struct {
    uint64_t sequence, count;
    int32_t type, op, root;
    char name[20]; /* of the operation */
} record_t;

struct rd_check {
    int nranks;
    record_t records[];
};

static rondo_result_t prepare(rondo_comm_t comm, const rd_call_t *call, rd_check_t **check, rd_plan_t **plan)
{
    const rd_ask_t *ask = &call->ask;
    rd_ask_t exchange;
    rd_check_t *c = calloc(1, sizeof *c + (size_t)comm->nranks * sizeof(record_t));
    rondo_result_t result;

    if (!c)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for RONDO_CHECK");
    c->nranks = comm->nranks;
    record_t *own = &c->records[comm->rank];
    own->count = ask->count;
    own->type = (int32_t)ask->type;
    own->op = ask->op < RONDO_NUM_OPS ? (int32_t)ask->op : RONDO_NUM_OPS; /* numbers of user ops are each rank's */
    own->root = call->name ? call->root : ask->root;
    snprintf(own->name, sizeof own->name, "%s", call->name ? call->name : rd_coll_name(ask->coll));
    memset(&exchange, 0, sizeof exchange);
    exchange.coll = RD_ALLGATHER;
    exchange.type = RONDO_UINT8;
    exchange.count = sizeof(record_t);
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

static void describe(char *text, size_t room, const record_t *r)
{
    snprintf(text, room, "%s number %llu: count %llu, type %s, op %s, root %d", r->name,
             (unsigned long long)r->sequence, (unsigned long long)r->count, rd_type_name((rondo_type_t)r->type),
             r->op < RONDO_NUM_OPS ? rd_op_name(r->op) : "user", r->root);
}

/* The first field in which they differ. */
static const char *differs(const record_t *a, const record_t *b)
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

rondo_result_t rd_check_compare(rondo_comm_t comm, const rd_check_t *check)
{
    char one[160], other[160];

    for (int r = 1; r < check->nranks; r++) {
        const char *field = differs(&check->records[0], &check->records[r]);
        if (!field)
            continue;
        describe(one, sizeof one, &check->records[0]);
        describe(other, sizeof other, &check->records[r]);
        return rd_comm_fail(
            comm, RONDO_ERR_MISMATCH, r,
            "ranks do not call the same: they differ in %s. rank 0 (%s) calls %s; rank %d (%s) calls %s", field,
            rd_boot_whois(comm->boot, 0), one, r, rd_boot_whois(comm->boot, r), other);
    }
    return RONDO_SUCCESS;
}

void rd_check_free(rd_check_t *check)
{
    free(check);
}
