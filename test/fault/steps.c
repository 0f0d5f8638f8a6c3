/* What ranks do: calls, groups, splits, shrinks and grows of random numbers, the same on all ranks. */
#include "fault/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/operation.h"

#define OFTEN 3 /* of four steps are of the plan's work */

static rd_coll_t coll_of(do_what_t what)
{
    static const rd_coll_t coll[DO_NUM] = {
        [DO_ALLREDUCE] = RD_ALLREDUCE,
        [DO_REDUCE] = RD_REDUCE,
        [DO_REDUCE_SCATTER] = RD_REDUCE_SCATTER,
        [DO_REDUCE_SCATTERV] = RD_REDUCE_SCATTER,
        [DO_BROADCAST] = RD_BROADCAST,
        [DO_ALLGATHER] = RD_ALLGATHER,
        [DO_ALLGATHERV] = RD_ALLGATHER,
        [DO_GATHER] = RD_GATHER,
        [DO_GATHERV] = RD_GATHER,
        [DO_SCATTER] = RD_SCATTER,
        [DO_SCATTERV] = RD_SCATTER,
        [DO_ALLTOALL] = RD_ALLTOALL,
        [DO_ALLTOALLV] = RD_ALLTOALL,
        [DO_SHIFT] = RD_ALLTOALL,
        [DO_BARRIER] = RD_BARRIER,
    };

    return coll[what];
}

static void draw_case(rank_t *r, do_case_t *c)
{
    uint64_t *random = &r->random;

    memset(c, 0, sizeof *c);
    c->what = (do_what_t)test_below(random, DO_NUM);
    do {
        c->type = (rondo_type_t)test_below(random, RONDO_NUM_TYPES);
        c->op = (rondo_op_t)test_below(random, RONDO_NUM_OPS);
    } while (do_reduces(c->what) && !ref_valid(c->type, c->op));
    c->data = do_reduces(c->what) ? REF_EXACT : REF_BYTES;
    c->count =
        test_below(random, 6) == 0 ? test_below(random, r->nranks > 6 ? 20000 : 100000) : test_below(random, 500);
    if (limit_is_now(r))
        c->count += 20000;
    c->root = (int)test_below(random, (unsigned)r->nranks);
    c->in_place = do_has_in_place(c->what) && test_below(random, 3) == 0;
    c->skew = do_has_counts(c->what) ? (int)test_below(random, 1000) : 0;
    c->seed = test_random(random) >> 32;
}

static rondo_result_t post_group(rank_t *r, do_call_t *call, int ncalls, int submit)
{
    rondo_request_t request = NULL;
    rondo_result_t result = rondo_group_start(), end;
    int i, done = 0;

    for (i = 0; i < ncalls && result == RONDO_SUCCESS; i++)
        result = do_post(&call[i], r->in);
    if (!submit || result != RONDO_SUCCESS) {
        end = rondo_group_end();
        return result != RONDO_SUCCESS ? result : end;
    }
    result = rondo_group_submit(&request);
    while (result == RONDO_SUCCESS && !done)
        result = rondo_request_test(&request, &done);
    return result;
}

/* What is forced cannot serve every operation; then nothing happens, on any rank. (Or the communicator has failed
 * meanwhile: then that is what it says.) */
static int refused(rank_t *r, rondo_result_t result)
{
    const int said = strstr(rondo_last_error(NULL), "RONDO_") != NULL; /* another thread may abort it in between */
    rondo_result_t error = RONDO_SUCCESS;

    if (result != RONDO_ERR_UNSUPPORTED)
        return 0;
    if (atomic_load(&r->aborting)) /* the communicator may be gone */
        return 1;
    rondo_comm_get_error(r->in, &error);
    return said || error != RONDO_SUCCESS || strstr(rondo_last_error(r->in), "RONDO_") != NULL;
}

static void count_call(rank_t *r, const do_case_t *c, rondo_result_t result)
{
    const plan_t *p = &r->trial->plan;
    const rd_algo_t *algo = p->algo[coll_of(c->what)];
    board_t *board = r->trial->board;
    int i;

    if (r->t->rank != (p->victim + 1) % p->nranks)
        return;
    for (i = 0; i < PLAN_MOST_ALGOS - 1 && rd_algos[i] && rd_algos[i] != algo;)
        i++;
    if (result != RONDO_SUCCESS)
        atomic_fetch_add(&board->refused, 1);
    else if (algo && c->what != DO_SHIFT && r->nranks > 1)
        atomic_fetch_add(&board->served[i], 1);
    else
        atomic_fetch_add(&board->chosen, 1);
}

static rondo_result_t post(rank_t *r, do_call_t *call, int ncalls, int submit)
{
    int now = limit_is_now(r) && r->t->rank == r->trial->plan.victim;
    rondo_result_t result;

    if (now)
        limit_set(r, 1);
    result = ncalls == 1 ? do_post(call, r->in) : post_group(r, call, ncalls, submit);
    if (now)
        limit_set(r, 0);
    return result;
}
static rondo_result_t call_step(rank_t *r, int ncalls, int submit)
{
    do_call_t call[3];
    char text[256] = "a group", wrong[256];
    rondo_result_t result;
    do_case_t c;
    int i;

    for (i = 0; i < ncalls; i++) {
        draw_case(r, &c);
        if (do_prepare(&call[i], &c, r->rank, r->nranks) != 0)
            test_stop(r->t, "no memory");
    }
    if (ncalls == 1)
        do_text(&c, text, sizeof text);
    trial_note(r, "%s%s", text, submit ? ", submitted" : "");
    atomic_store(&r->inside, 1);
    if (atomic_load(&r->aborting))
        result = RONDO_ERR_ABORTED; /* the communicator may be gone */
    else
        result = post(r, call, ncalls, submit);
    atomic_store(&r->inside, 0);
    for (i = 0; i < ncalls; i++) {
        if (result == RONDO_SUCCESS && do_verify(&call[i], 1, wrong, sizeof wrong) != 0) {
            do_text(&call[i].c, text, sizeof text);
            test_fail(r->t, "wrong result: %s: %s", text, wrong);
            atomic_fetch_add(&r->trial->board->wrong, 1);
        }
        if (result == RONDO_SUCCESS || (i == 0 && refused(r, result)))
            count_call(r, &call[i].c, result);
        do_release(&call[i]);
    }
    return refused(r, result) ? RONDO_SUCCESS : result;
}

/* ---- communicators from communicators ---- */

typedef struct {
    int color[TEST_MAX_RANKS], key[TEST_MAX_RANKS]; /* of a split; in a shrink the color is 0 or -1 */
    int member[TEST_MAX_RANKS], n; /* of this rank's part, by their numbers in the first communicator */
    int rank;
} part_t;

/* Who is in this rank's part, by key and rank. */
static void place(const rank_t *r, part_t *p)
{
    p->n = 0;
    for (int key = 0; key < 3; key++)
        for (int q = 0; q < r->nranks; q++) {
            if (p->color[q] != p->color[r->rank] || p->key[q] != key)
                continue;
            if (q == r->rank)
                p->rank = p->n;
            p->member[p->n++] = r->member[q];
        }
}

static void draw_part(rank_t *r, part_t *p, int split)
{
    const plan_t *plan = &r->trial->plan;
    int out = (int)test_below(&r->random, (unsigned)r->nranks + 1);

    if (out < r->nranks && (r->member[out] == plan->victim || (plan->kind == SECOND && r->member[out] == plan->second)))
        out = r->nranks; /* nobody: the list without the dead is the survivors', who may be ahead of this step */
    for (int q = 0; q < r->nranks; q++) {
        int color = (int)test_below(&r->random, 7) - 1, key = (int)test_below(&r->random, 3);
        p->color[q] = !split ? -(q == out) : color < 0 ? -1 : color % 2;
        p->key[q] = split ? key : 0;
    }
    place(r, p);
}

static rondo_result_t make_part(rank_t *r, const part_t *p, int split, rondo_comm_t *part)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    int out[TEST_MAX_RANKS], nout = 0;

    config.device = RONDO_DEVICE_HOST;
    if (split)
        return rondo_comm_split(r->in, p->color[r->rank], p->key[r->rank], part, &config);
    for (int q = 0; q < r->nranks; q++)
        if (p->color[q] < 0)
            out[nout++] = q;
    return rondo_comm_shrink(r->in, out, nout, part, &config);
}

static unsigned set_of(const int *member, int n)
{
    unsigned set = 0;

    for (int i = 0; i < n; i++)
        set |= 1u << member[i];
    return set;
}

/* All of the part are in it, and in the right order. 0; -1: it has failed. */
static int use_part(rank_t *r, const part_t *p, rondo_comm_t part)
{
    int32_t me = r->t->rank, all[TEST_MAX_RANKS];
    rondo_result_t result;
    int size = 0, rank = -1;

    trial_note(r, "allgather of a part of %d", p->n);
    TEST_OK(r->t, part, rondo_comm_size(part, &size));
    TEST_OK(r->t, part, rondo_comm_rank(part, &rank));
    TEST_TRUE(r->t, size == p->n && rank == p->rank);
    result = rondo_allgather(&me, all, 1, RONDO_INT32, part, NULL);
    if (result == RONDO_ERR_UNSUPPORTED && strstr(rondo_last_error(part), "RONDO_"))
        return 0; /* what is forced cannot serve it */
    if (result != RONDO_SUCCESS) {
        judge_error(r, part, result, p->member, p->n, set_of(p->member, p->n), "a part's allgather");
        return -1;
    }
    for (int i = 0; i < p->n; i++)
        if (all[i] != p->member[i])
            test_fail(r->t, "rank %d of the part is rank %d, not %d", i, all[i], p->member[i]);
    atomic_fetch_add(&r->trial->board->derived, 1);
    return 0;
}

/* What has failed a split, a shrink or what they made fails `in`, too: a dead rank shows there without any call. */
static rondo_result_t wait_for_failure(rank_t *r)
{
    rondo_result_t error = RONDO_SUCCESS;

    trial_note(r, "waits for the communicator to have failed, too");
    while (rondo_comm_get_error(r->in, &error) == RONDO_SUCCESS && error == RONDO_SUCCESS)
        usleep(100);
    return rondo_barrier(r->in, NULL);
}

/* What a split ends with may be due to any rank of `in`; a shrink asks nothing of those whom it leaves out. */
static rondo_result_t derive_step(rank_t *r, int split)
{
    const plan_t *plan = &r->trial->plan;
    rondo_comm_t part = NULL;
    rondo_result_t result;
    part_t p;

    draw_part(r, &p, split);
    if (!split && p.color[r->rank] < 0)
        return RONDO_SUCCESS;
    trial_note(r, "%s of %d, color %d", split ? "split" : "shrink", r->nranks, p.color[r->rank]);
    atomic_store(&r->inside, 1);
    result = atomic_load(&r->aborting) ? RONDO_ERR_ABORTED : make_part(r, &p, split, &part);
    atomic_store(&r->inside, 0);
    if (result == RONDO_SUCCESS && part) {
        int failed = use_part(r, &p, part);
        trial_note(r, "destroys a part of %d", p.n);
        TEST_OK(r->t, NULL, rondo_comm_destroy(part));
        if (failed && r->t->rank != plan->victim)
            return wait_for_failure(r);
    }
    if (result == RONDO_SUCCESS || r->t->rank == plan->victim)
        return result;
    judge_error(r, NULL, result, split ? r->member : p.member, split ? r->nranks : p.n,
                split ? set_of(r->member, r->nranks) : set_of(p.member, p.n), split ? "a split" : "a shrink");
    return plan->kind == LATE ? result : wait_for_failure(r); /* nobody fails there: it was the machine */
}

/* ---- some ranks of `in` become members, and the others come to them as new ones ---- */

typedef struct {
    part_t members, all; /* `all`: the members come first, as rondo_comm_grow numbers them */
    int old;             /* the number of members */
    int maker;           /* of the id: its number in `in`, a member's */
    uint64_t number;
} grow_t;

static void draw_grow(rank_t *r, grow_t *g)
{
    unsigned any = 1 + test_below(&r->random, (1u << r->nranks) - 2); /* not all, and not none */

    memset(g, 0, sizeof *g);
    do
        g->maker = (int)test_below(&r->random, (unsigned)r->nranks);
    while (!(any >> g->maker & 1));
    g->number = test_random(&r->random) | 1;
    for (int q = 0; q < r->nranks; q++) {
        g->members.color[q] = any >> q & 1 ? 0 : -1;
        g->all.key[q] = any >> q & 1 ? 0 : 1;
        g->old += (int)(any >> q & 1);
    }
    place(r, &g->members);
    place(r, &g->all);
}

/* A new rank gets the id of the maker. 0: that has died, or the death of another has kept it from making one. */
static int take_id(rank_t *r, const grow_t *g, rondo_unique_id_t *id)
{
    board_t *board = r->trial->board;
    rondo_result_t error = RONDO_SUCCESS;
    int over = 0;

    trial_note(r, "waits for the id of a grow");
    while (atomic_load(&board->grow) != g->number) {
        if (over)
            return 0;
        rondo_comm_get_error(r->in, &error);
        over = error != RONDO_SUCCESS || atomic_load(&board->fate[r->member[g->maker]]) != UNHARMED;
        usleep(50);
    }
    *id = board->id;
    return 1;
}

static rondo_result_t grow_by_id(rank_t *r, const grow_t *g, rondo_comm_t members, rondo_comm_t *all)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    board_t *board = r->trial->board;
    rondo_unique_id_t id;
    int has_id = !members || r->rank == g->maker;

    config.device = RONDO_DEVICE_HOST;
    setenv("RONDO_CREATE_TIMEOUT_MS", TRIAL_GROW_MS, 1);
    if (!members && !take_id(r, g, &id))
        return RONDO_SUCCESS;
    trial_note(r, "grow of %d to %d", g->old, g->all.n);
    if (r->rank == g->maker) {
        rondo_result_t result = rondo_unique_id_create(&id);
        if (result != RONDO_SUCCESS && board->fate[r->t->rank] == DIED) /* no more threads: see trial.c */
            return result;
        TEST_GIVES(r->t, NULL, RONDO_SUCCESS, result);
        board->id = id;
        atomic_store(&board->grow, g->number);
    }
    return rondo_comm_grow(members, g->all.n, has_id ? &id : NULL, members ? -1 : g->all.rank, all, &config);
}

/* A process that dumps its core for long on a busy machine has not ended, and no communicator that is still to be made
 * looks whether it does. */
static bool dumps_meanwhile(const rank_t *r, const char *text)
{
    const plan_t *plan = &r->trial->plan;
    char who[32];

    snprintf(who, sizeof who, ":%d) did not take part", (int)r->trial->board->pid[plan->victim]);
    return plan->way == BY_CORE && (strstr(text, who) || strstr(text, ") on did not take part"));
}

/* A new rank that died before it came is missed; one that came when the maker had died found nobody. */
static void judge_grow(rank_t *r, const grow_t *g, rondo_result_t result)
{
    const plan_t *plan = &r->trial->plan;
    int victim = 0, died = atomic_load(&r->trial->board->fate[plan->victim]) == DIED;
    const char *text = rondo_last_error(NULL);

    while (victim < g->all.n && g->all.member[victim] != plan->victim)
        victim++;
    if (died && result == RONDO_ERR_TIMEOUT && victim >= g->old && judge_missing(text, victim))
        return;
    if (died && result == RONDO_ERR_TIMEOUT && dumps_meanwhile(r, text))
        return;
    if (died && result == RONDO_ERR_INVALID_USAGE && r->member[g->maker] == plan->victim && g->all.rank >= g->old &&
        strstr(text, "nobody serves this unique id"))
        return;
    judge_error(r, NULL, result, g->all.member, g->all.n, set_of(g->all.member, g->all.n), "a grow");
}

static rondo_result_t grow_step(rank_t *r)
{
    rondo_comm_t members = NULL, all = NULL;
    rondo_result_t result;
    int failed = 1;
    grow_t g;

    draw_grow(r, &g);
    trial_note(r, "split before a grow, color %d", g.members.color[r->rank]);
    result = make_part(r, &g.members, 1, &members);
    if (result != RONDO_SUCCESS) {
        judge_error(r, NULL, result, r->member, r->nranks, set_of(r->member, r->nranks), "a split before a grow");
        return wait_for_failure(r);
    }
    result = grow_by_id(r, &g, members, &all);
    setenv("RONDO_CREATE_TIMEOUT_MS", TRIAL_CREATE_MS, 1);
    if (result != RONDO_SUCCESS)
        judge_grow(r, &g, result);
    if (all) {
        failed = use_part(r, &g.all, all);
        trial_note(r, "destroys what has grown to %d", g.all.n);
        TEST_OK(r->t, NULL, rondo_comm_destroy(all));
    }
    if (members)
        TEST_OK(r->t, NULL, rondo_comm_destroy(members));
    return failed ? wait_for_failure(r) : RONDO_SUCCESS;
}

rondo_result_t step_once(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    work_t work = test_below(&r->random, 4) < OFTEN ? p->work : (work_t)test_below(&r->random, SUBMITS + 1);
    unsigned pause = test_below(&r->random, 8) ? 0 : test_below(&r->random, 500);
    rondo_result_t result;

    if (pause)
        usleep(pause); /* trouble must be noticed between calls too */
    if (work == GROWS && r->nranks > 1)
        result = grow_step(r);
    else if (work == SPLITS || work == SHRINKS)
        result = derive_step(r, work == SPLITS);
    else
        result = call_step(r, work == CALLS || work == GROWS ? 1 : 3, work == SUBMITS);
    r->steps++;
    return result;
}
