/* See trial.h: what a rank does. */
#define _GNU_SOURCE
#include "fault/trial.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOW_MS "15000"      /* longer than the slow one is away, and tries in vain */
#define STOP_TIMEOUT_MS 2000 /* a rank that lives, and waits, has said so within half of it on a busy machine, too */

void trial_note(rank_t *r, const char *format, ...)
{
    char text[TRIAL_NOTE];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    test_note(r->t, "%s", text);
    memcpy(r->trial->board->doing[r->t->rank], text, sizeof text);
}

void trial_fate(board_t *board, int rank, fate_t fate, _Atomic int64_t *when)
{
    memcpy(board->where[rank], board->doing[rank], TRIAL_NOTE);
    atomic_store(&board->fate[rank], fate);
    if (when)
        atomic_store(when, test_clock_us());
}

static void note_time(rank_t *r)
{
    int64_t happened = atomic_load(&r->trial->board->happened);

    r->trial->board->took_us[r->t->rank] = happened ? test_clock_us() - happened : -1;
    atomic_fetch_add(&r->trial->board->noticed, 1);
}

/* ---- victims ---- */

/* An abort frees the communicator: who aborts sees to it that no further call begins. One that runs is ended by it. */
static void *abort_later(void *arg)
{
    rank_t *r = arg;
    board_t *board = r->trial->board;
    rondo_result_t result;
    int64_t began;

    usleep((unsigned)r->trial->plan.delay_us);
    atomic_store(&r->aborting, 1);
    if (atomic_load(&r->inside))
        usleep((unsigned)(r->trial->plan.seed % 300));
    began = test_clock_us();
    trial_fate(board, r->t->rank, ABORTED, &board->happened);
    result = rondo_comm_abort(r->comm);
    board->abort_us = test_clock_us() - began;
    if (result != RONDO_SUCCESS)
        test_fail(r->t, "rondo_comm_abort gave %s", rondo_result_string(result));
    return NULL;
}

/* The rank executes another program, or crashes. */
static void *die_later(void *arg)
{
    rank_t *r = arg;
    const struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    const plan_t *p = &r->trial->plan;

    usleep((unsigned)p->delay_us);
    if (p->way == BY_CORE && (setrlimit(RLIMIT_CORE, &most) != 0 || chdir(r->trial->folder) != 0))
        test_stop(r->t, "cannot dump core");
    trial_fate(r->trial->board, r->t->rank, DIED, &r->trial->board->happened);
    if (p->way == BY_EXEC)
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    signal(SIGSEGV, SIG_DFL);
    syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), SIGSEGV);
    return NULL;
}

/* A child that no handler knows of: it holds all descriptors, until the trial is over. */
static void make_child(rank_t *r)
{
    board_t *board = r->trial->board;
    pid_t trials = getppid();

    if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
        while (!atomic_load(&board->over) && kill(trials, 0) == 0)
            usleep(10000);
        _exit(0);
    }
}

static void be_victim(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    board_t *board = r->trial->board;
    int by_itself = p->kind == ABORT || p->way == BY_EXEC || p->way == BY_CORE;
    rondo_result_t result;
    pthread_t thread;

    /* Creation is over here; an abort before it is over everywhere is another trial (birth). */
    while (by_itself && atomic_load(&board->ready) < p->nranks)
        sched_yield();
    if (p->way == WITH_CHILD)
        make_child(r);
    atomic_store(&board->armed, 1);
    if (by_itself && pthread_create(&thread, NULL, p->kind == ABORT ? abort_later : die_later, r) != 0)
        test_stop(r->t, "cannot start a thread");
    do
        result = step_once(r);
    while (result == RONDO_SUCCESS);
    if (p->kind == ABORT) {
        if (result != RONDO_ERR_ABORTED) /* that call's communicator, so no more than the code can be said */
            test_fail(r->t, "the aborted call gave %s: %s", rondo_result_string(result), rondo_last_error(NULL));
        pthread_join(thread, NULL); /* the communicator is gone */
        return;
    }
    /* While one thread executes another program, the others go on for a moment, and can start no thread any more: that
     * is the call's error, and no end in order must follow. */
    while (by_itself && board->fate[r->t->rank] == DIED)
        pause();
    trial_note(r, "the victim destroys");
    rondo_comm_destroy(r->comm);
}

static void be_other(rank_t *r)
{
    rondo_result_t result;
    int64_t began;

    do
        result = step_once(r);
    while (result == RONDO_SUCCESS);
    note_time(r);
    judge_pending(r, result);
    if (r->trial->plan.unnamed) {
        recover_survivors(r);
    } else {
        if (r->trial->plan.kind == SECOND)
            recover_in_vain(r);
        began = atomic_load(&r->trial->board->again);
        recover_by_list(r, began ? began : test_clock_us());
    }
    trial_note(r, "destroy");
    rondo_comm_destroy(r->comm);
}

/* A fixed number of operations; the late one sleeps before one of them, or the parent stops it for a moment. */
static void be_late(rank_t *r)
{
    const plan_t *p = &r->trial->plan;
    int k, when = (int)(p->seed % (unsigned)p->operations);

    for (k = 0; k < p->operations; k++) {
        if (r->t->rank == p->victim && k == when && !p->resume_early)
            usleep((unsigned)p->delay_us);
        rondo_result_t result = step_once(r);
        if (result != RONDO_SUCCESS) {
            test_fail(r->t, "with nobody but one late: %s: \"%s\"", rondo_result_string(result),
                      rondo_last_error(NULL));
            return;
        }
    }
    TEST_OK(r->t, NULL, rondo_comm_destroy(r->comm));
}

/* Whether the communicator was made or not: it ends, and tells the truth. */
static void be_born(rank_t *r, rondo_result_t result)
{
    if (result != RONDO_SUCCESS) {
        judge_creation(r, result);
        return;
    }
    do
        result = step_once(r);
    while (result == RONDO_SUCCESS);
    judge_error(r, r->comm, result, r->member, r->nranks, 1u << r->trial->plan.victim, "the pending call");
    rondo_comm_destroy(r->comm);
}

/* ---- a rank ---- */

/* Nobody waits for a deadline in vain: where a death can be seen, there is none. */
static const char *create_ms(const plan_t *p)
{
    if (p->kind == SECOND && p->nnodes > 1 && p->slow >= 0)
        return SLOW_MS;
    if (p->kind == BIRTH || (p->kind == LIMIT && p->stage == IN_CREATION) || (p->kind == SECOND && p->nnodes > 1))
        return TRIAL_PATIENCE_MS;
    return p->kind == SECOND ? "3600000" : TRIAL_CREATE_MS;
}

static void set_environment(const plan_t *p, int rank)
{
    char text[512] = "", host[32];
    int coll, n = 0;

    snprintf(host, sizeof host, "node%d", plan_node_of(p, rank));
    if (p->nnodes > 1)
        setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_CREATE_TIMEOUT_MS", create_ms(p), 1);
    for (coll = 0; coll < RD_NUM_COLLS; coll++)
        if (p->algo[coll])
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%s=%s", n ? "," : "", rd_coll_name((rd_coll_t)coll),
                          p->algo[coll]->name);
    if (n)
        setenv("RONDO_ALGO", text, 1);
    if (p->proto)
        setenv("RONDO_PROTO", p->proto, 1);
    if (p->narrow) {
        setenv("RONDO_SLOTS", "1", 1);
        setenv("RONDO_SLOT_BYTES", "512", 1);
        setenv("RONDO_SLICE_BYTES", "192", 1);
    }
}

static rondo_result_t create(rank_t *r, const rondo_unique_id_t *id)
{
    const plan_t *p = &r->trial->plan;
    rondo_config_t config = RONDO_CONFIG_INIT;
    int now = p->kind == LIMIT && p->stage == IN_CREATION && r->t->rank == p->victim;
    rondo_result_t result;

    config.device = RONDO_DEVICE_HOST;
    config.timeout_ms = p->kind == STOP ? STOP_TIMEOUT_MS : 0;
    if (now)
        limit_set(r, 1);
    result = rondo_comm_create(&r->comm, r->t->nranks, id, r->t->rank, &config);
    if (now)
        limit_set(r, 0);
    r->in = r->comm;
    return result;
}

void trial_body(test_rank_t *t, void *arg)
{
    trial_t *trial = arg;
    const plan_t *p = &trial->plan;
    board_t *board = trial->board;
    rank_t r = {.t = t, .trial = trial, .rank = t->rank, .nranks = t->nranks, .random = p->seed};
    rondo_unique_id_t id;
    rondo_result_t result;

    for (int q = 0; q < t->nranks; q++)
        r.member[q] = q;
    board->pid[t->rank] = getpid();
    r.descriptors = test_count_entries("/proc/self/fd");
    set_environment(p, t->rank);
    trial_note(&r, "create");
    if (p->kind == LATE && t->rank == p->victim)
        usleep((unsigned)p->delay_us / 2);
    if (!test_id_unless_ended(t, &id))
        return; /* killed before it made one */
    result = create(&r, &id);
    if (p->kind != BIRTH && (p->kind != LIMIT || p->stage != IN_CREATION) && !TEST_OK(t, NULL, result))
        return;
    atomic_fetch_add(&board->ready, 1);
    if (p->kind == BIRTH)
        be_born(&r, result);
    else if (p->kind == LATE)
        be_late(&r);
    else if (p->kind == LIMIT)
        limit_run(&r, result);
    else if (t->rank == p->victim)
        be_victim(&r);
    else
        be_other(&r);
    if (t->rank != p->victim)
        atomic_fetch_add(&board->finished, 1);
    trial_note(&r, "counts what is left");
    judge_leftovers(&r);
}
