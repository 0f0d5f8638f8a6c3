/* RONDO_CHECK where data is staged: what each rank asks for, compared before rounds move.
 *
 * A call on a stream waits for nobody, so it only writes down what it asks for. The first crew's proxy exchanges that
 * with all other ranks on a carrier of its own, call by call, and compares; rounds of an operation wait until its call
 * has been compared. What a rail's ranks do inside their node goes ahead of it: when ranks differ, those kernels leave
 * as from every failure. What is captured is not compared, nor messages.
 */
#include <stdlib.h>

#include "core/signature.h"
#include "core/comm.h"
#include "exec/cuda/proxy/proxy.h"

#define UNDER_WAY 16 /* calls that are compared at a time: a host may be far ahead */

typedef struct asked {
    struct asked *next;
    rd_call_t call; /* what is compared of it */
} asked_t;

struct rd_stage_check {
    pthread_mutex_t lock; /* of the list */
    asked_t *first, *last;
    uint64_t calls;        /* that are compared; by the calling thread */
    uint64_t taken;        /* by the proxy */
    _Atomic uint64_t done; /* by the proxy: compared, and alike */
    struct rondo_request flying;
    int held; /* by the proxy: an operation waits for this */
};

rondo_result_t rd_stage_check_create(rd_stage_t *s)
{
    struct rd_stage_check *c = s->check = calloc(1, sizeof *c);

    if (!c)
        return rd_error(&s->cuda->comm->who, RONDO_ERR_NO_MEMORY, "no memory for RONDO_CHECK");
    pthread_mutex_init(&c->lock, NULL);
    return RONDO_SUCCESS;
}

void rd_stage_check_free(rd_stage_t *s)
{
    struct rd_stage_check *c = s->check;

    if (!c)
        return;
    while (c->first) {
        asked_t *a = c->first;
        c->first = a->next;
        free(a);
    }
    pthread_mutex_destroy(&c->lock);
    free(c);
    s->check = NULL;
}

static void put(struct rd_stage_check *c, asked_t *a)
{
    pthread_mutex_lock(&c->lock);
    if (c->last)
        c->last->next = a;
    else
        c->first = a;
    c->last = a;
    pthread_mutex_unlock(&c->lock);
}

static asked_t *get(struct rd_stage_check *c)
{
    pthread_mutex_lock(&c->lock);
    asked_t *a = c->first;
    if (a)
        c->first = a->next;
    if (!c->first)
        c->last = NULL;
    pthread_mutex_unlock(&c->lock);
    return a;
}

rondo_result_t rd_stage_check_call(rd_stage_t *s, const rd_call_t *call)
{
    struct rd_stage_check *c = s->check;

    if (!c || rd_cuda_captured(call->stream))
        return RONDO_SUCCESS;
    asked_t *a = calloc(1, sizeof *a);
    if (!a)
        return rd_error(&s->cuda->comm->who, RONDO_ERR_NO_MEMORY, "no memory for RONDO_CHECK");
    a->call.ask = call->ask;
    a->call.name = call->name;
    a->call.root = call->root;
    put(c, a);
    c->calls++;
    atomic_fetch_add(&s->crews[0].asked, 1);
    rd_proxy_wake(&s->crews[0].client);
    return RONDO_SUCCESS;
}

uint64_t rd_stage_check_calls(const rd_stage_t *s)
{
    return s->check ? s->check->calls : 0;
}

int rd_stage_checked(const rd_crew_t *crew, uint64_t calls)
{
    struct rd_stage_check *c = crew->stage->check;
    int held = c && atomic_load(&c->done) < calls;

    if (c && crew->number == 0) /* whose round is the first of every operation */
        c->held = held;
    return !held;
}

rondo_result_t rd_stage_check_turn(rd_crew_t *crew, int *moved)
{
    struct rd_stage_check *c = crew->stage->check;
    rondo_comm_t by = crew->carriers[RD_CARRIER_CHECK];
    rondo_result_t result = RONDO_SUCCESS;
    rd_task_t *task;

    /* A host may be ahead of its stream, and of the others': nobody is late before an operation waits. */
    if (!c->held)
        rd_wait_progress(&by->queue.wait);
    for (asked_t *a; result == RONDO_SUCCESS && atomic_load(&c->flying.pending) < UNDER_WAY && (a = get(c));) {
        result = rd_check_task(by, &a->call, &task);
        if (result == RONDO_SUCCESS) {
            rd_check_number(by, task->check);
            result = rd_carry_add(by, task, &c->flying);
        }
        free(a);
        crew->answered++;
        c->taken++;
        *moved = 1;
    }
    uint64_t done = c->taken - (uint64_t)atomic_load(&c->flying.pending);
    if (result == RONDO_SUCCESS && done != atomic_load(&c->done)) {
        atomic_store(&c->done, done);
        *moved = 1;
        rd_carry_wake_others(crew);
    }
    return result;
}
