/* What users do with a communicator: create, query, finish, revoke, abort, destroy. */
#include "core/comm.h"

#include "boot/id.h"
#include "core/background.h"
#include "core/binding.h"
#include "core/on_error.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"

static bool is_making(uint64_t alive)
{
    return alive == (rd_comm_mark | RD_COMM_MAKING);
}

static bool is_busy(uint64_t alive)
{
    return alive == (rd_comm_mark | RD_COMM_BUSY);
}

static bool is_suspended(uint64_t alive)
{
    return alive == (rd_comm_mark | RD_COMM_SUSPENDED);
}

static uint64_t state(rondo_comm_t comm)
{
    return comm ? atomic_load_explicit(&comm->alive, memory_order_acquire) : 0;
}

/* A call with blocking = 0 is under way, or the communicator could not be made. */
static rondo_result_t refuse(rondo_comm_t comm, const char *call, uint64_t alive)
{
    rondo_result_t how = (rondo_result_t)atomic_load(&comm->background);

    if (is_making(alive) && how != RONDO_IN_PROGRESS && how != RONDO_SUCCESS) {
        rd_error_again(NULL, rd_log_ctx_error(&comm->ctx));
        return how;
    }
    return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                    "%s: comm is %s (blocking = 0): call when rondo_comm_get_error gives RONDO_SUCCESS", call,
                    is_making(alive) ? "being made" : "in use by a call that is not over");
}

/* Checks a communicator for a call that may come while a call with blocking = 0 is under way. */
static rondo_result_t exists(rondo_comm_t comm, const char *call)
{
    uint64_t alive = state(comm);

    return is_making(alive) || is_busy(alive) ? RONDO_SUCCESS : rd_comm_valid_suspended(comm, call);
}

/* Frees what is left of a communicator that could not be made. Returns false if it has been made. */
static bool end_unmade(rondo_comm_t comm, uint64_t mark)
{
    rd_job_wait(comm);
    if (!is_making(state(comm)))
        return false;
    if (!atomic_exchange(&comm->closed, 1)) {
        atomic_store(&comm->alive, mark);
        rd_comm_closed(comm);
    }
    return true;
}

/* A suspended communicator that has failed is a failed one: its calls say so, and it may be shrunk. */
static bool awakes(rondo_comm_t comm, uint64_t suspended)
{
    if (rd_health_check(&comm->health) == RONDO_SUCCESS)
        return false;
    atomic_compare_exchange_strong(&comm->alive, &suspended, rd_comm_mark);
    return true;
}

rondo_result_t rd_comm_valid(rondo_comm_t comm, const char *call)
{
    uint64_t alive = comm ? atomic_load_explicit(&comm->alive, memory_order_acquire) : 0;

    if (__builtin_expect(rd_caller()->in_hook, 0))
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "%s in a hook, which must not call rondo", call);
    if (__builtin_expect(alive == rd_comm_mark, 1))
        return RONDO_SUCCESS;
    if (is_making(alive) || is_busy(alive))
        return refuse(comm, call, alive);
    if (is_suspended(alive) && awakes(comm, alive))
        return RONDO_SUCCESS;
    if (is_suspended(alive))
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_USAGE,
                        "%s: comm is suspended: rondo_comm_resume, which all ranks call, comes first", call);
    if (comm && rd_comm_inherited(comm))
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE,
                        "%s: comm is the parent process's: a forked child makes communicators of its own", call);
    if (alive == RD_COMM_ABORTED)
        return rd_error(NULL, RONDO_ERR_ABORTED, "%s: comm has been aborted", call);
    return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: comm is %s", call,
                    comm ? "not a communicator, or one that has been destroyed" : "NULL");
}

rondo_result_t rd_comm_valid_suspended(rondo_comm_t comm, const char *call)
{
    return is_suspended(state(comm)) && !rd_caller()->in_hook ? RONDO_SUCCESS : rd_comm_valid(comm, call);
}

/* Ends a communicator. */
static void end(rondo_comm_t comm, uint64_t mark)
{
    atomic_store(&comm->alive, mark);
    rd_comm_end_modules(comm);
    rd_comm_closed(comm);
}

static rondo_result_t create(rd_job_t *job)
{
    job->made->roots = job->nids;
    return rd_comm_build(job->made, job->nranks, job->ids ? job->ids : &job->id, job->rank, &job->config, NULL, NULL);
}

/* Neither the config nor the environment need have been found good. Who has not come to the creation may call again,
 * unless the process ends; where memory was short the others need not wait for that. */
static void not_made(const rd_job_t *job, const rondo_config_t *given, rondo_result_t result, bool came)
{
    const rondo_config_t config = rd_config_of(given);
    char why[RD_ERROR_BYTES];
    rd_env_t env;

    snprintf(why, sizeof why, "%s", rd_thread_error());
    bool known = rd_env_read(&env) == RONDO_SUCCESS;
    rd_thread_error_set(why);
    if (!known)
        return;
    int on_error = rd_on_error(&config, &env);
    if (!came && (result == RONDO_ERR_NO_MEMORY || rd_on_error_ends(on_error)))
        rd_boot_give_up(job->ids ? job->ids : &job->id, job->nids, job->rank, job->nranks, &env, result);
    rd_on_error_unmade(on_error);
}

/* Creates by a job that is complete but for its config. The ids are the job's. */
static rondo_result_t join(rd_job_t *job, rondo_comm_t *comm, const rondo_config_t *config)
{
    rondo_result_t result = rd_job_config(job, config, true);
    bool began = result == RONDO_SUCCESS, known = began && job->known, given_up = false;

    if (known) {
        rd_comm_retain(job->made);
        job->known(job->made, job->arg);
    }
    if (began)
        result = rd_job_begin(job, comm);
    if (known) {
        job->known(NULL, job->arg);
        given_up = atomic_load(&job->made->abandoned); /* which is no error of the program */
        rd_comm_release(job->made);
    }
    if (result != RONDO_SUCCESS && result != RONDO_IN_PROGRESS && !given_up)
        not_made(job, config, result, began && job->waits);
    rd_job_wipe(job);
    return result;
}

/* By one id, which the job does not have yet. */
static rondo_result_t join_by_one(const char *call, rd_job_t *job, rondo_comm_t *comm, const rondo_unique_id_t *id,
                                  const rondo_config_t *config)
{
    rondo_result_t grouped = rd_group_refuse(NULL, call);

    if (grouped != RONDO_SUCCESS)
        return grouped;
    if (!comm || !id)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: %s is NULL", call, comm ? "id" : "comm");
    if (job->nranks < 1)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: nranks is %d, at least 1 is needed", call, job->nranks);
    job->id = *id;
    job->nids = 1;
    return join(job, comm, config);
}

rondo_result_t rd_comm_join(const char *call, rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                            const rondo_config_t *config)
{
    rd_job_t job = {.run = create, .nranks = nranks, .rank = rank};

    return join_by_one(call, &job, comm, id, config);
}

rondo_result_t rondo_comm_create(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                                 const rondo_config_t *config)
{
    return rd_comm_join("rondo_comm_create", comm, nranks, id, rank, config);
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(rondo_unique_id_t));
}

/* Sorts the ids, and looks whether two are one. */
static bool has_twins(rondo_unique_id_t *ids, int nids)
{
    bool twins = false;

    qsort(ids, (size_t)nids, sizeof *ids, by_bytes);
    for (int i = 1; i < nids; i++)
        twins |= by_bytes(&ids[i - 1], &ids[i]) == 0;
    return twins;
}

rondo_result_t rondo_comm_create_known(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *ids, int nids, int rank,
                                       const rondo_config_t *config, void (*known)(rondo_comm_t made, void *arg),
                                       void *arg)
{
    const char *call = "rondo_comm_create_scalable";
    size_t bytes = (size_t)(nids > 0 ? nids : 1) * sizeof *ids;
    rd_job_t job = {.run = create, .nids = nids, .nranks = nranks, .rank = rank, .known = known, .arg = arg};

    if (!comm || !ids || nids == 1 || nranks < 1)
        return join_by_one(call, &job, comm, ids, config);
    if (nids < 1 || nids > nranks)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "%s: nids is %d: at least 1, and at most as many as the %d ranks", call, nids, nranks);
    rondo_result_t grouped = rd_group_refuse(NULL, call);
    if (grouped != RONDO_SUCCESS)
        return grouped;
    job.ids = malloc(bytes);
    if (!job.ids) {
        grouped = rd_error(NULL, RONDO_ERR_NO_MEMORY, "%s: no memory for %d ids", call, nids);
        rd_boot_cancel(ids, nids, rank, grouped);
        return grouped;
    }
    memcpy(job.ids, ids, bytes);
    if (has_twins(job.ids, nids)) {
        rd_job_wipe(&job);
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s: two of the %d ids are the same", call, nids);
    }
    memcpy(job.ids, ids, bytes);
    return join(&job, comm, config);
}

rondo_result_t rondo_comm_create_scalable(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *ids, int nids,
                                          int rank, const rondo_config_t *config)
{
    return rondo_comm_create_known(comm, nranks, ids, nids, rank, config, NULL, NULL);
}

void rondo_comm_give_up(rondo_comm_t made)
{
    rd_comm_abandon(made);
}

/* Waits for everything that is submitted or enqueued. */
static rondo_result_t drain(rondo_comm_t comm)
{
    return comm->cuda ? rd_cuda_drain(comm->cuda) : rd_queue_drain(&comm->queue);
}

static rondo_result_t finalize(rd_job_t *job)
{
    rondo_result_t result = rd_comm_enter(job->used);

    return rd_comm_leave(job->used, result == RONDO_SUCCESS ? drain(job->used) : result);
}

rondo_result_t rondo_comm_finalize(rondo_comm_t comm)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_finalize");
    rd_job_t job = {.run = finalize, .used = comm, .local = true, .waits = result != RONDO_SUCCESS || comm->blocking};

    if (result != RONDO_SUCCESS)
        return result;
    return rd_job_begin(&job, NULL);
}

rondo_result_t rondo_comm_test(rondo_comm_t comm, int *done)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_test");

    if (result != RONDO_SUCCESS)
        return result;
    if (!done)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_test: done is NULL");
    result = rd_comm_enter(comm);
    if (result == RONDO_SUCCESS)
        result = comm->cuda ? rd_cuda_drained(comm->cuda) : rd_queue_drained(&comm->queue);
    *done = result != RONDO_IN_PROGRESS;
    return rd_comm_leave(comm, *done ? result : RONDO_SUCCESS);
}

rondo_result_t rondo_comm_destroy(rondo_comm_t comm)
{
    rondo_result_t result = exists(comm, "rondo_comm_destroy");

    if (result == RONDO_SUCCESS)
        result = rd_group_refuse(comm, "rondo_comm_destroy");
    if (result != RONDO_SUCCESS || (is_making(state(comm)) && end_unmade(comm, RD_COMM_DESTROYED)))
        return result;
    rd_job_wait(comm);
    return rd_comm_end(comm);
}

rondo_result_t rd_comm_end(rondo_comm_t comm)
{
    rondo_result_t result;

    result = rd_comm_enter(comm) == RONDO_SUCCESS ? drain(comm) : RONDO_SUCCESS;
    rd_comm_leave(comm, result);
    if (rd_comm_close(comm))
        end(comm, RD_COMM_DESTROYED);
    return result;
}

rondo_result_t rondo_comm_revoke(rondo_comm_t comm)
{
    rondo_result_t result = is_busy(state(comm)) ? RONDO_SUCCESS : rd_comm_valid_suspended(comm, "rondo_comm_revoke");

    if (result != RONDO_SUCCESS || !rd_comm_query_enter(comm))
        return result;
    rd_health_fail(&comm->health, RONDO_ERR_ABORTED, comm->team.rank, "rank %d called rondo_comm_revoke",
                   comm->team.rank);
    if (comm->cuda)
        rd_cuda_release(comm->cuda);
    rd_comm_empty(comm);
    rd_comm_cancel(comm);
    rd_comm_query_leave(comm);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_abort(rondo_comm_t comm)
{
    rondo_result_t result = exists(comm, "rondo_comm_abort");

    if (result != RONDO_SUCCESS)
        return result;
    if (is_making(state(comm))) {
        rd_comm_abandon(comm);
        if (end_unmade(comm, RD_COMM_ABORTED))
            return RONDO_SUCCESS;
    }
    if (rd_comm_query_enter(comm)) {
        rd_comm_fail_aborted(comm);
        if (comm->cuda) /* a query may wait for the device, and rd_comm_close waits for queries */
            rd_cuda_release(comm->cuda);
        rd_comm_query_leave(comm);
    }
    if (rd_comm_close(comm))
        end(comm, RD_COMM_ABORTED);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_get_error(rondo_comm_t comm, rondo_result_t *error)
{
    rondo_result_t result = exists(comm, "rondo_comm_get_error");
    uint64_t alive = state(comm);

    if (result != RONDO_SUCCESS)
        return result;
    if (!error)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "rondo_comm_get_error: error is NULL");
    if (is_busy(alive)) {
        *error = RONDO_IN_PROGRESS;
    } else if (is_making(alive)) { /* or has been made since `state` was read: then `background` says so */
        *error = (rondo_result_t)atomic_load(&comm->background);
    } else if (rd_comm_query_enter(comm)) {
        *error = rd_health_poll(&comm->health);
        if (comm->cuda && *error == RONDO_SUCCESS)
            *error = rd_cuda_check(comm->cuda);
        rd_comm_query_leave(comm);
    } else {
        *error = rd_health_check(&comm->health);
    }
    return RONDO_SUCCESS;
}

static rondo_result_t give(rondo_comm_t comm, const char *call, int value, int *to)
{
    rondo_result_t result = rd_comm_valid_suspended(comm, call);

    if (result != RONDO_SUCCESS)
        return result;
    if (!to)
        return rd_error(&comm->ctx, RONDO_ERR_INVALID_ARGUMENT, "%s: the result's pointer is NULL", call);
    *to = value;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_rank(rondo_comm_t comm, int *rank)
{
    return give(comm, "rondo_comm_rank", comm ? comm->team.rank : 0, rank);
}

rondo_result_t rondo_comm_size(rondo_comm_t comm, int *size)
{
    return give(comm, "rondo_comm_size", comm ? comm->team.nranks : 0, size);
}

rondo_result_t rondo_comm_device(rondo_comm_t comm, int *device)
{
    return give(comm, "rondo_comm_device", comm ? comm->team.device : 0, device);
}

rondo_result_t rondo_comm_on_wait(rondo_comm_t comm, void (*call)(void *data), void *data)
{
    rondo_result_t result = rd_comm_valid(comm, "rondo_comm_on_wait");

    if (result == RONDO_SUCCESS)
        result = rd_comm_enter(comm);
    else
        return result;
    if (result == RONDO_SUCCESS) {
        comm->queue.on_wait = call;
        comm->queue.on_wait_data = data;
    }
    return rd_comm_leave(comm, result);
}

rondo_result_t rondo_on_error(rondo_comm_t comm, int on_error)
{
    rondo_result_t result = comm ? rd_comm_valid(comm, "rondo_on_error") : RONDO_SUCCESS;

    if (result != RONDO_SUCCESS)
        return result;
    if (on_error < RONDO_ON_ERROR_RETURN || on_error > RONDO_ON_ERROR_REVOKE_EXIT)
        return rd_error(comm ? &comm->ctx : NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "rondo_on_error: on_error is %d: it must be RONDO_ON_ERROR_RETURN, _EXIT, _REVOKE_ALL, _REPORT "
                        "or _REVOKE_EXIT",
                        on_error);
    if (!comm) {
        rd_on_error_of_process(on_error);
        return RONDO_SUCCESS;
    }
    result = rd_comm_enter(comm);
    rd_on_error_set(comm, on_error);
    return rd_comm_leave(comm, result);
}

const char *rondo_last_error(rondo_comm_t comm)
{
    uint64_t alive = state(comm);

    return alive == rd_comm_mark || is_making(alive) || is_busy(alive) || is_suspended(alive)
               ? rd_log_ctx_error(&comm->ctx)
               : rd_thread_error();
}

rondo_result_t rondo_unique_id_create(rondo_unique_id_t *id)
{
    rd_env_t env;
    rondo_result_t result;

    if (!id)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_unique_id_create: id is NULL");
    result = rd_env_read(&env);
    if (result == RONDO_SUCCESS)
        return rd_boot_id_create(id, &env);
    rd_id_pack_error(id, result, rd_thread_error());
    return result;
}
