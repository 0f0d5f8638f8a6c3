/* How the survivors go on: by a list of who is gone, or without one. */
#include "fault/trial.h"

#include <stdlib.h>
#include <unistd.h>

#define GIVEN_UP_US 1500000 /* longer than a failed creation is kept up for those who still come */

static rondo_result_t shrink_of(rank_t *r, rondo_comm_t from, const int *out, int nout, rondo_comm_t *small)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = RONDO_DEVICE_HOST;
    unsetenv("RONDO_ALGO"); /* what is asked of the smaller one cannot be served by everything */
    unsetenv("RONDO_PROTO");
    trial_note(r, "shrink without %d ranks, the first is %d", nout, nout > 0 ? out[0] : -1);
    return rondo_comm_shrink(from, out, nout, small, &config);
}

rondo_result_t recover_shrink(rank_t *r, const int *out, int nout, rondo_comm_t *small)
{
    return shrink_of(r, r->comm, out, nout, small);
}

void recover_by_list(rank_t *r, int64_t began)
{
    const plan_t *p = &r->trial->plan;
    int out[2] = {p->victim, p->second}, nout = p->kind == SECOND ? 2 : 1;
    rondo_comm_t small = NULL;

    setenv("RONDO_CREATE_TIMEOUT_MS", TRIAL_CREATE_MS, 1); /* nobody dies any more, but some may still wait in vain */
    if (!TEST_OK(r->t, NULL, recover_shrink(r, out, nout, &small)))
        return;
    judge_group(r, small, out, nout);
    r->trial->board->back_us[r->t->rank] = test_clock_us() - began;
    trial_note(r, "destroy after the shrink");
    TEST_OK(r->t, NULL, rondo_comm_destroy(small));
}

/* The communicator without the victim, of which the second one is or was a rank. */
static void use_until_failed(rank_t *r, rondo_comm_t small)
{
    const plan_t *p = &r->trial->plan;
    rondo_result_t result;

    r->in = small;
    r->rank -= r->t->rank > p->victim;
    r->nranks--;
    for (int i = p->victim; i < r->nranks; i++)
        r->member[i] = i + 1;
    r->random = p->seed + 1;
    do
        result = step_once(r);
    while (result == RONDO_SUCCESS);
    judge_error(r, r->in, result, r->member, r->nranks, 1u << p->second, "the smaller communicator's call");
    r->in = r->comm;
}

void recover_in_vain(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    board_t *board = r->trial->board;
    rondo_comm_t small = NULL;
    rondo_result_t result;
    int member[TEST_MAX_RANKS]; /* of the smaller communicator, whose numbers are in its sentence */

    for (int i = 0; i < r->nranks - 1; i++)
        member[i] = i + (i >= p->victim);
    if (r->t->rank == p->slow)
        usleep(GIVEN_UP_US);
    atomic_fetch_add(&board->shrinking, 1);
    result = recover_shrink(r, &p->victim, 1, &small);
    if (result != RONDO_SUCCESS) {
        judge_error(r, NULL, result, member, r->nranks - 1, 1u << p->second, "rondo_comm_shrink");
        atomic_fetch_add(&board->failed_shrink, 1);
        return;
    }
    atomic_fetch_add(&board->failed_later, 1);
    use_until_failed(r, small);
    TEST_OK(r->t, NULL, rondo_comm_destroy(small));
}

/* All have the same group; if the second one is still in that, it fails, and is shrunk in
 * its turn. */
void recover_survivors(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    int out[2] = {p->victim, p->second}, nout = p->kind == SECOND ? 2 : 1, size = 0;
    int64_t began = test_clock_us();
    rondo_comm_t small = NULL;

    if (p->kind == SECOND && r->t->rank == p->slow)
        usleep(GIVEN_UP_US);
    atomic_fetch_add(&r->trial->board->shrinking, 1);
    while (size != p->nranks - nout) {
        rondo_comm_t from = small ? small : r->comm;
        rondo_result_t result = shrink_of(r, from, NULL, RONDO_SURVIVORS, &small);
        if (from != r->comm)
            TEST_OK(r->t, NULL, rondo_comm_destroy(from));
        if (!TEST_OK(r->t, NULL, result))
            return;
        TEST_OK(r->t, small, rondo_comm_size(small, &size));
        if (size != p->nranks - nout && (p->kind != SECOND || size != p->nranks - 1 || from != r->comm))
            test_stop(r->t, "%d ranks are left of %d", size, p->nranks);
        if (size != p->nranks - nout)
            use_until_failed(r, small);
    }
    judge_group(r, small, out, nout);
    if (atomic_load(&r->trial->board->again))
        began = atomic_load(&r->trial->board->again);
    r->trial->board->back_us[r->t->rank] = test_clock_us() - began;
    TEST_OK(r->t, NULL, rondo_comm_destroy(small));
}
