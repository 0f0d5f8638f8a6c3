/* Groups, and the threads that run calls. A call is recorded as data (nc_op_t, nc_job_t), and a batch is one call, or
 * all calls of a group. A batch runs at once on the caller's thread, or, if one of its communicators is nonblocking, on
 * a background thread of its own. Jobs (creation, split, shrink, finalize, windows) run before operations. If there are
 * several, each communicator that they use gets a thread, because each may wait for the others; the calls that use one
 * communicator run in call order.
 *
 * There is no permanent thread: a nonblocking communicator has one call under way at a time, and the next call is
 * refused until that one is complete.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/binding.h"

#include "nccl/shim.h"

#define SIM_MAGIC 0x74685283

typedef struct batch {
    nc_op_t *ops;
    size_t nops, room;
    nc_job_t *jobs, *last;
    ncclResult_t result; /* of the first call that failed */
    int background;
} batch_t;

static _Thread_local int depth;
static _Thread_local batch_t open_batch;

bool nc_group_has(ncclComm_t comm)
{
    if (!depth)
        return false;
    for (size_t i = 0; i < open_batch.nops; i++)
        if (open_batch.ops[i].comm == comm)
            return true;
    for (const nc_job_t *j = open_batch.jobs; j; j = j->next)
        if (j->comm == comm || j->parent == comm)
            return true;
    return false;
}

bool nc_group_holds(ncclComm_t parent, const char *call)
{
    for (const nc_job_t *j = depth ? open_batch.jobs : NULL; j; j = j->next)
        if (j->parent == parent && strcmp(j->call, call) == 0)
            return true;
    return false;
}

ncclResult_t nc_group_check(ncclResult_t result)
{
    if (depth && open_batch.result == ncclSuccess && result != ncclInProgress)
        open_batch.result = result;
    return result;
}

/* ---- operations ---- */

static bool behind(const nc_op_t *op)
{
    return !op->comm->config.blocking && op->comm->device == RONDO_DEVICE_HOST;
}

static void op_release(const nc_op_t *op)
{
    nc_bounce_release(op);
    free(op->waits);
    if (op->user_op)
        nc_user_op_put(op->comm, op->user_op);
}

/* Returns true if the operation's communicator has failed because of another rank, and the operation's stream stalls in
 * its place, as with NCCL: clients learn of the failure from ncclCommGetAsyncError. */
static bool stalls(const nc_op_t *op, rondo_result_t ran)
{
    return ran == RONDO_ERR_REMOTE && op->comm->device != RONDO_DEVICE_HOST &&
           rondo_comm_stall(op->comm->rondo, op->stream) == RONDO_SUCCESS;
}

/* Before a communicator's first operation: gives a kernel that comes before it in the stream the time to fail. NCCL
 * makes its connections in that call and therefore returns the error, and PyTorch's check for NaN, whose kernel traps,
 * counts on it: it makes a communicator at the first call. Returns CUDA's error, or 0. */
static int op_settle(const nc_op_t *op)
{
    ncclComm_t comm = op->comm;
    int lost = 0;

    if (!comm->begun && comm->device != RONDO_DEVICE_HOST)
        comm->begun = nc_device_settle(op->stream, &lost);
    return lost;
}

static ncclResult_t op_now(nc_op_t *op)
{
    const int lost = op_settle(op);

    atomic_fetch_add(&op->comm->inside, 1);
    rondo_result_t ran = atomic_load(&op->comm->ending) ? RONDO_ERR_ABORTED : nc_bounce_copy(op);
    if (ran == RONDO_SUCCESS)
        ran = nc_op_run(op);
    ncclResult_t result = stalls(op, ran) ? ncclSuccess : nc_result(op->comm, NULL, ran);
    if (lost && result == ncclSuccess) /* else rondo has met the error, too, and told the other ranks */
        result = nc_device_lost(op->comm, lost);
    op_release(op);
    atomic_fetch_sub(&op->comm->inside, 1);
    return result;
}

/* Passes every operation to rondo, in which a group is open. Returns the first error. */
static ncclResult_t ops_hand_on(batch_t *b)
{
    ncclResult_t result = ncclSuccess;

    for (size_t i = 0; i < b->nops; i++) {
        if (b->ops[i].stalled)
            continue;
        ncclResult_t one = nc_result(b->ops[i].comm, NULL, nc_op_run(&b->ops[i]));
        if (result == ncclSuccess)
            result = one;
    }
    return result;
}

/* Sets each communicator's own error, for ncclGetLastError. */
static void errors_note(batch_t *b)
{
    for (size_t i = 0; i < b->nops; i++) {
        rondo_result_t error;

        if (rondo_comm_get_error(b->ops[i].comm->rondo, &error) == RONDO_SUCCESS)
            (void)nc_result(b->ops[i].comm, b->ops[i].comm->rondo, error);
    }
}

/* Has the streams of operations stall whose communicators have failed. Returns true if these are all operations. */
static bool ops_stall(batch_t *b)
{
    rondo_result_t error = RONDO_SUCCESS;
    ncclComm_t asked = NULL; /* a long group is one communicator's as a rule */
    bool all = true;

    for (size_t i = 0; i < b->nops; i++) {
        nc_op_t *op = &b->ops[i];

        if (op->comm != asked && op->comm->device != RONDO_DEVICE_HOST)
            (void)rondo_comm_get_error(op->comm->rondo, &error);
        asked = op->comm;
        op->stalled = op->stalled || stalls(op, error);
        all &= op->stalled;
    }
    return all;
}

/* Runs all operations in one group of rondo's, which fails as a whole if rondo refuses one of them. */
static ncclResult_t ops_run(batch_t *b)
{
    ncclResult_t result, ended;
    int lost = 0;

    if (b->nops == 0 || ops_stall(b))
        return ncclSuccess;
    for (size_t i = 0; i < b->nops; i++) {
        int code = op_settle(&b->ops[i]);
        lost = code ? code : lost;
        if (!b->ops[i].stalled && (result = nc_result(b->ops[i].comm, NULL, nc_bounce_copy(&b->ops[i]))) != ncclSuccess)
            return result;
    }
    (void)rondo_group_start();
    result = ops_hand_on(b);
    ended = nc_result(NULL, NULL, rondo_group_end());
    if (ended == ncclRemoteError && ops_stall(b)) /* it has failed since */
        return ncclSuccess;
    if (ended != ncclSuccess && ended != ncclInProgress)
        errors_note(b);
    if (result != ncclSuccess && result != ncclInProgress)
        return result;
    return lost && ended == ncclSuccess ? nc_device_lost(b->ops[0].comm, lost) : ended;
}

/* ---- jobs ---- */

/* Returns the communicator that the job uses, of which ranks run one call at a time. NULL: a creation uses none. */
static ncclComm_t used(const nc_job_t *job)
{
    return job->creates || !job->comm ? job->parent : job->comm;
}

/* Returns the next job from `at` on that uses the same communicator, in the same way on all ranks, and so has to come
 * after this one. NULL: there is none. */
static nc_job_t *behind_of(const nc_job_t *job, nc_job_t *at)
{
    const ncclComm_t comm = used(job);

    while (at && comm && used(at) != comm)
        at = at->next;
    return comm ? at : NULL;
}

/* Returns true if the job runs in the thread of one before it. */
static bool is_behind(const batch_t *b, const nc_job_t *job)
{
    const nc_job_t *j = b->jobs;

    while (j != job && behind_of(j, j->next) != job)
        j = j->next;
    return j != job;
}

static void *job_thread(void *arg)
{
    nc_job_t *job = arg;

    nc_device_enter(job->comm ? job->comm->device : job->parent->device);
    for (; job; job = behind_of(job, job->next))
        job->result = job->run(job);
    return NULL;
}

/* Starts a thread in which all signals are blocked, because the program's handlers shall run on its own threads. */
static int thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    int code;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static ncclResult_t jobs_run(batch_t *b)
{
    ncclResult_t result = ncclSuccess;

    for (nc_job_t *j = b->jobs; j && b->jobs->next; j = j->next) {
        if (is_behind(b, j))
            continue;
        j->started = thread_start(&j->thread, job_thread, j) == 0;
        for (nc_job_t *n = j; n && !j->started; n = behind_of(n, n->next))
            n->result = nc_error(NULL, ncclSystemError, "%s: no thread for it", n->call);
    }
    for (nc_job_t *j = b->jobs; j; j = j->next) {
        if (j->started)
            pthread_join(j->thread, NULL);
        else if (!b->jobs->next)
            j->result = j->run(j);
        if (result == ncclSuccess)
            result = j->result;
    }
    return result;
}

static void job_free(nc_job_t *job)
{
    nc_job_forget(job);
    free(job->list);
    free(job);
}

/* Publishes the result of a job. If a communicator could not be created, a caller that does not wait keeps the object,
 * to query its error; a caller that has waited, or has aborted it, does not. */
static void job_settle(nc_job_t *j, int background)
{
    ncclComm_t comm = j->comm;
    int dropped = 0;

    if (comm && background && j->result != ncclSuccess)
        atomic_store(&comm->result, (int)j->result);
    else if (!comm && background && j->result != ncclSuccess)
        atomic_store(&j->parent->result, (int)j->result);
    pthread_mutex_lock(&nc_lock); /* nc_comm_busy sees both changes at once: callers wait for either and use both */
    if (comm) {
        comm->pending = 0;
        dropped = comm->dropped;
        atomic_fetch_sub(&comm->busy, 1);
    }
    if (j->shrinks) /* first: from the other on the communicator may be gone */
        atomic_fetch_sub(&j->parent->shrinking, 1);
    if (j->parent)
        atomic_fetch_sub(&j->parent->busy, 1);
    pthread_mutex_unlock(&nc_lock);
    if (j->creates && j->result != ncclSuccess && (dropped || !background)) {
        if (!background)
            *j->newcomm = NULL;
        nc_comm_free(comm);
    }
}

/* ---- batches ---- */

static void batch_free(batch_t *b)
{
    while (b->jobs) {
        nc_job_t *j = b->jobs;
        b->jobs = j->next;
        job_free(j);
    }
    free(b->ops);
    memset(b, 0, sizeof *b);
}

/* Frees a batch that has not begun. */
static void batch_drop(batch_t *b)
{
    for (nc_job_t *j = b->jobs; j; j = j->next) {
        if (j->creates) {
            *j->newcomm = NULL;
            nc_comm_free(j->comm);
        }
    }
    for (size_t i = 0; i < b->nops; i++)
        op_release(&b->ops[i]);
    batch_free(b);
}

static void batch_mark(batch_t *b, int by)
{
    for (size_t i = 0; i < b->nops; i++)
        atomic_fetch_add(b->background ? &b->ops[i].comm->busy : &b->ops[i].comm->inside, by);
}

/* Returns an error if another thread had begun to abort one of the communicators before this batch was marked. */
static ncclResult_t batch_ending(const batch_t *b)
{
    for (size_t i = 0; i < b->nops; i++) {
        if (atomic_load(&b->ops[i].comm->ending))
            return nc_result(b->ops[i].comm, NULL, RONDO_ERR_ABORTED);
    }
    return ncclSuccess;
}

static ncclResult_t batch_run(batch_t *b)
{
    ncclResult_t result = jobs_run(b);

    if (result == ncclSuccess)
        result = batch_ending(b);
    if (result == ncclSuccess)
        result = ops_run(b);
    for (nc_job_t *j = b->jobs; j; j = j->next)
        job_settle(j, b->background);
    for (size_t i = 0; i < b->nops; i++) {
        op_release(&b->ops[i]);
        if (b->background && result != ncclSuccess)
            atomic_store(&b->ops[i].comm->result, (int)result);
    }
    batch_mark(b, -1); /* from here on the communicators may be gone */
    batch_free(b);
    return result;
}

static void *batch_thread(void *arg)
{
    batch_t *b = arg;
    const ncclComm_t first = !b->jobs ? b->ops[0].comm : b->jobs->comm ? b->jobs->comm : b->jobs->parent;

    nc_device_enter(first->device);
    (void)batch_run(b);
    free(b);
    return NULL;
}

/* Takes ownership of `b`. */
static ncclResult_t batch_begin(batch_t *b)
{
    batch_t *own;
    pthread_t thread;

    for (nc_job_t *j = b->jobs; j; j = j->next)
        b->background |= !j->blocking;
    for (size_t i = 0; i < b->nops; i++)
        b->background |= behind(&b->ops[i]);
    for (nc_job_t *j = b->jobs; j; j = j->next) {
        if (j->comm)
            atomic_fetch_add(&j->comm->busy, 1);
        if (j->parent)
            atomic_fetch_add(&j->parent->busy, 1);
        if (j->shrinks)
            atomic_fetch_add(&j->parent->shrinking, 1);
    }
    batch_mark(b, 1);
    if (!b->background)
        return batch_run(b);
    own = malloc(sizeof *own);
    if (own)
        *own = *b;
    if (!own || thread_start(&thread, batch_thread, own) != 0) {
        free(own);
        b->background = 0; /* no thread could be started, so the caller waits after all */
        return batch_run(b);
    }
    pthread_detach(thread);
    memset(b, 0, sizeof *b);
    return ncclInProgress;
}

static ncclResult_t op_add(batch_t *b, const nc_op_t *op)
{
    if (b->nops == b->room) {
        size_t room = b->room ? 2 * b->room : 16;
        nc_op_t *more = realloc(b->ops, room * sizeof *more);
        if (!more) {
            op_release(op);
            return nc_error(op->comm, ncclSystemError, "no memory to record an operation");
        }
        b->ops = more;
        b->room = room;
    }
    b->ops[b->nops++] = *op;
    return ncclSuccess;
}

ncclResult_t nc_group_op(nc_op_t *op)
{
    batch_t single = {0};
    ncclResult_t result;

    if (depth)
        return op_add(&open_batch, op);
    if (!behind(op))
        return op_now(op);
    result = op_add(&single, op);
    return result == ncclSuccess ? batch_begin(&single) : result;
}

void nc_job_forget(nc_job_t *job)
{
    if (job->ids)
        explicit_bzero(job->ids, (size_t)job->number[0] * sizeof *job->ids);
    explicit_bzero(&job->id, sizeof job->id);
    free(job->ids);
    job->ids = NULL;
}

ncclResult_t nc_group_job(nc_job_t *job)
{
    batch_t single = {0};
    nc_job_t *copy = malloc(sizeof *copy);
    batch_t *to = depth ? &open_batch : &single;

    if (!copy) {
        if (job->creates)
            nc_comm_free(job->comm);
        free(job->list);
        nc_job_forget(job);
        return nc_error(NULL, ncclSystemError, "%s: no memory to record it", job->call);
    }
    *copy = *job;
    explicit_bzero(&job->id, sizeof job->id);
    if (job->newcomm)
        *job->newcomm = job->comm;
    if (to->last)
        to->last->next = copy;
    else
        to->jobs = copy;
    to->last = copy;
    return depth ? ncclSuccess : batch_begin(&single);
}

ncclResult_t pncclGroupStart(void)
{
    nc_settings();
    depth++;
    return ncclSuccess;
}
NC_TWIN(GroupStart);

/* Ends a group. At the outermost end it moves the thread's batch to `b`, and returns true if that has to run. */
static bool take(batch_t *b, ncclResult_t *result, const char *call)
{
    *result = ncclSuccess;
    if (depth == 0) {
        *result = nc_error(NULL, ncclInvalidUsage, "%s without an ncclGroupStart before it", call);
        return false;
    }
    if (--depth)
        return false;
    *b = open_batch;
    memset(&open_batch, 0, sizeof open_batch);
    if (b->result == ncclSuccess)
        return true;
    *result = b->result;
    batch_drop(b);
    return false;
}

ncclResult_t pncclGroupEnd(void)
{
    ncclResult_t result;
    batch_t b;

    return take(&b, &result, "ncclGroupEnd") ? batch_begin(&b) : result;
}
NC_TWIN(GroupEnd);

/* Sets *us to the time that rondo's cost model predicts for the group, and drops the group. */
static ncclResult_t simulate(batch_t *b, double *us, const char *call)
{
    ncclResult_t result, ended;

    if (b->jobs) {
        result = nc_error(NULL, ncclInvalidUsage, "%s: the group holds an %s, which has no price: only operations have",
                          call, b->jobs->call);
        batch_drop(b);
        return result;
    }
    for (size_t i = 0; i < b->nops; i++)
        nc_bounce_simulate(&b->ops[i]);
    (void)rondo_group_start();
    result = ops_hand_on(b);
    ended = nc_result(NULL, NULL, rondo_group_estimate(us));
    if (ended == ncclInvalidUsage) /* the program has a group of rondo open, which must not be closed here */
        (void)rondo_group_end();
    batch_drop(b);
    return result != ncclSuccess ? result : ended;
}

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
    const char *call = "ncclGroupSimulateEnd";
    ncclResult_t result;
    double us = 0;
    batch_t b;

    if (!take(&b, &result, call))
        return result;
    if (simInfo && (simInfo->magic != SIM_MAGIC || simInfo->size < offsetof(ncclSimInfo_t, estimatedTime))) {
        batch_drop(&b); /* as in NCCL, the group is over */
        return nc_error(NULL, ncclInvalidArgument, "%s: initialise simInfo with NCCL_SIM_INFO_INITIALIZER", call);
    }
    result = simulate(&b, &us, call);
    if (result == ncclSuccess && simInfo && simInfo->size >= sizeof *simInfo)
        simInfo->estimatedTime = (float)us;
    return result;
}
NC_TWIN(GroupSimulateEnd);
