/* central: rank 0 hears from all others, sums, and tells all.
 *
 *     rank 0 of 4:   OUT ◀── IN + 1 + 2 + 3  ──▶ 1, 2, 3         (one step if they are few)
 *
 *                  steps     messages of rank 0     bytes it sends     cost
 *     allreduce    2         2 (n-1)                (n-1) N            2 alpha + (2 beta + gamma) N (n-1)
 *     barrier      2         2 (n-1)                                   2 alpha
 *
 * Of few bytes it is the fastest on many cores where rank 0 writes its answer once for all (transport/shm/board.h): two
 * hops, and n-1 lines that rank 0 finds one after the other while they are under way at the same time. The sum is made
 * once, in the order of the ranks.
 */
#include "sched/algo/algos.h"

enum { SUM, HEARD, SAID }; /* names of scratch */

static void tell_all(rd_steps_t *s, int n, rd_end_t what)
{
    rd_fan_t fan;

    rd_fan_begin(&fan, s, what, 0);
    for (int r = 1; r < n; r++)
        rd_fan_add(&fan, r);
    rd_fan_end(&fan);
}

static void allreduce(rd_steps_t *s, int n)
{
    rd_sum_t sum;

    rd_sum_begin(&sum, s, 0, SUM);
    rd_sum_add(&sum, rd_in(0));
    for (int r = 1; r < n; r++)
        rd_sum_add(&sum, rd_peer(r));
    rd_sum_end(&sum, rd_out(0));
    tell_all(s, n, rd_out(0));
}

static void barrier(rd_steps_t *s, int n)
{
    for (int r = 1; r < n; r++)
        rd_step_recv(s, rd_tmp(HEARD), 0, r);
    tell_all(s, n, rd_tmp(SAID));
}

static rd_steps_t *emit(const rd_sched_args_t *args)
{
    bool moves = args->coll != RD_BARRIER;
    rd_steps_t *s = rd_steps_create(1);

    if (!s)
        return NULL;
    rd_steps_lane(s, 0);
    if (args->rank != 0) {
        rd_step_send(s, moves ? rd_in(0) : rd_tmp(SAID), 0, 0);
        rd_step_recv(s, moves ? rd_out(0) : rd_tmp(HEARD), 0, 0);
    } else if (moves) {
        allreduce(s, args->shape->nranks);
    } else {
        barrier(s, args->shape->nranks);
    }
    return s;
}

/* ---- what it costs ---- */

static int work(const rd_count_t *c, rd_work_t *w)
{
    bool moves = c->coll != RD_BARRIER;

    w->chunks = 1;
    w->hops = w->again = 2;
    w->messages = 2 * c->m;
    w->received = c->m;
    w->received_all = 2 * c->m;
    w->moved = moves ? rd_work_sum(c->n, 1 + c->m) : c->m + rd_work_fan(c->m);
    w->moved_all = w->moved + 2 * c->m;
    w->summed = w->summed_all = moves ? c->m : 0;
    w->link = c->m;
    w->leave = 2 * (double)(c->n - c->local);
    rd_work_once(w, c->m, 1, 1);
    return 0;
}

const rd_algo_t rd_algo_central = {
    .name = "central",
    .colls = 1u << RD_ALLREDUCE | 1u << RD_BARRIER,
    .excluded = rd_sched_any,
    .emit = emit,
    .work = work,
    .near = RD_PEERS_ALL,
    .board = 1u << RD_ALLREDUCE | 1u << RD_BARRIER,
    .board_alone = true,
};
