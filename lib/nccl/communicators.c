/* The life of a communicator: creation, queries, finalize, destroy, abort and revoke. The object exists before rondo's
 * communicator does, because with blocking = 0, and in a group, the caller has it while it is being created.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/binding.h"

#include "nccl/shim.h"

#define KEPT 32 /* structs of communicators that have ended */

pthread_mutex_t nc_lock = PTHREAD_MUTEX_INITIALIZER;

ncclResult_t nc_comm_valid(ncclComm_t comm, const char *call)
{
    if (comm && comm->alive == NC_ALIVE)
        return ncclSuccess;
    return nc_error(NULL, ncclInvalidArgument, "%s: comm is %s", call,
                    comm ? "not a communicator, or one that has been destroyed" : "NULL");
}

bool nc_comm_busy(ncclComm_t comm)
{
    bool busy = atomic_load(&comm->busy);

    if (busy) {
        pthread_mutex_lock(&nc_lock);
        busy = atomic_load(&comm->busy);
        pthread_mutex_unlock(&nc_lock);
    }
    return busy;
}

ncclResult_t nc_comm_ready(ncclComm_t comm, const char *call)
{
    ncclResult_t result = nc_comm_valid(comm, call);

    if (result != ncclSuccess)
        return result;
    if (nc_comm_busy(comm))
        return nc_error(comm, ncclInvalidArgument,
                        "%s: an earlier call on the communicator is not over: wait until ncclCommGetAsyncError no "
                        "longer says ncclInProgress",
                        call);
    if ((result = (ncclResult_t)atomic_load(&comm->result)) != ncclSuccess)
        return result;
    if (!comm->rondo)
        return nc_error(comm, ncclInvalidUsage, "%s: the communicator is made when the open group ends, not before",
                        call);
    if (atomic_load(&comm->revoked) || atomic_load(&comm->finalized))
        return nc_error(comm, ncclInvalidUsage, "%s: the communicator has been %s", call,
                        comm->revoked ? "revoked: shrink, split, destroy or abort it" : "finalized: destroy it");
    return ncclSuccess;
}

void nc_comm_wait(ncclComm_t comm)
{
    const struct timespec nap = {0, 50000};

    while (atomic_load(&comm->inside) || atomic_load(&comm->busy))
        nanosleep(&nap, NULL);
}

/* `shrinking` is read first: a shrink that begins meanwhile counts in `busy` alone, and is waited for once more. */
static bool only_shrinks(ncclComm_t comm)
{
    const int shrinking = atomic_load(&comm->shrinking);

    return atomic_load(&comm->busy) == shrinking;
}

/* Waits until it is neither inside nor busy, but by a shrink of it. */
static void wait_calls(ncclComm_t comm)
{
    const struct timespec nap = {0, 50000};

    while (atomic_load(&comm->inside) || !only_shrinks(comm))
        nanosleep(&nap, NULL);
}

ncclComm_t nc_comm_new(int rank, int nranks, int device, const nc_config_t *config)
{
    ncclComm_t comm = calloc(1, sizeof *comm);

    if (!comm) {
        nc_error(NULL, ncclSystemError, "no memory for a communicator");
        return NULL;
    }
    comm->rank = rank;
    comm->nranks = nranks;
    comm->device = device;
    comm->config = *config;
    comm->pending = 1;
    atomic_store(&comm->alive, NC_ALIVE); /* last: a thread that sees it, in an abort, sees the rest */
    return comm;
}

/* The structs of the last KEPT communicators are not freed. A call that another thread makes while this thread ends the
 * communicator, or a second end of it, then finds a struct that says that it has ended. */
void nc_comm_free(ncclComm_t comm)
{
    static _Atomic ncclComm_t kept[KEPT];
    static _Atomic unsigned nkept;

    nc_user_op_free_all(comm);
    nc_registration_free_all(comm);
    atomic_store(&comm->alive, 0);
    free(atomic_exchange(&kept[atomic_fetch_add(&nkept, 1) % KEPT], comm));
}

rondo_config_t nc_comm_config(ncclComm_t comm)
{
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = comm->device;
    /* This library, not rondo, runs creation in the background, and on the host operations, too. */
    config.blocking = 1; /* with blocking = 0 a thread of the shim waits: see group.c */
    config.name = comm->config.name[0] ? comm->config.name : NULL;
    config.signals = comm->config.signals;
    config.contexts = comm->config.contexts;
    config.blocks = comm->config.blocks;
    config.blocks_least = comm->config.blocks_least;
    config.net_channels = comm->config.net_channels;
    config.cta_policy = comm->config.cta_policy;
    config.network = comm->config.network;
    config.traffic_class = comm->config.traffic_class;
    return config;
}

ncclResult_t nc_comm_made(ncclComm_t comm, rondo_comm_t rondo, const char *call, ncclResult_t result)
{
    int dropped;

    pthread_mutex_lock(&nc_lock);
    dropped = comm->dropped;
    if (!dropped)
        comm->rondo = rondo;
    pthread_mutex_unlock(&nc_lock);
    if (dropped) {
        if (rondo)
            (void)rondo_comm_abort(rondo);
        return nc_error(NULL, ncclInvalidUsage, "%s: the communicator was aborted while it was being made", call);
    }
    if (result != ncclSuccess)
        return result;
    if (rondo) {
        (void)rondo_comm_windows(rondo); /* everything registered with rondo is a symmetric window: memory.c */
        rondo_comm_patient(rondo);
    }
    (void)rondo_comm_rank(rondo, &comm->rank);
    (void)rondo_comm_size(rondo, &comm->nranks);
    (void)rondo_comm_device(rondo, &comm->device);
    nc_log(NC_SUBSYS_INIT, "%s comm %p rank %d nranks %d cudaDev %d%s - Init COMPLETE", call, (void *)comm, comm->rank,
           comm->nranks, comm->device, comm->device == RONDO_DEVICE_HOST ? " (host memory)" : "");
    return ncclSuccess;
}

/* Called by rondo when the creation begins, and with NULL when it is over. */
static void known(rondo_comm_t made, void *arg)
{
    ncclComm_t comm = arg;

    pthread_mutex_lock(&nc_lock);
    comm->making = made;
    if (made && comm->dropped)
        rondo_comm_give_up(made);
    pthread_mutex_unlock(&nc_lock);
}

ncclResult_t nc_comm_refused(nc_job_t *job)
{
    const char *wrong = nc_settings_wrong();

    return wrong ? nc_comm_made(job->comm, NULL, job->call,
                                nc_error(job->comm, ncclInvalidUsage, "%s: %s", job->call, wrong))
                 : ncclSuccess;
}

static ncclResult_t make(nc_job_t *job)
{
    rondo_config_t config = nc_comm_config(job->comm);
    rondo_comm_t made = NULL;
    const ncclResult_t refused = nc_comm_refused(job);

    if (refused != ncclSuccess)
        return refused;
    rondo_result_t result =
        rondo_comm_create_known(&made, job->comm->nranks, job->ids ? job->ids : &job->id, job->ids ? job->number[0] : 1,
                                job->comm->rank, &config, known, job->comm);

    return nc_comm_made(job->comm, made, job->call, nc_result(job->comm, NULL, result));
}

static ncclResult_t create(const char *call, ncclComm_t *newcomm, int nranks, const ncclUniqueId *ids, int nids,
                           int rank, int device, const ncclConfig_t *given)
{
    nc_config_t config;
    ncclResult_t result;

    if (!newcomm)
        return nc_error(NULL, ncclInvalidArgument, "%s: the pointer for the communicator is NULL", call);
    *newcomm = NULL; /* as in NCCL, also if it fails from here on */
    if (nranks < 1 || rank < 0 || rank >= nranks)
        return nc_error(NULL, ncclInvalidArgument, "%s: rank %d of %d: nranks must be at least 1, rank from 0 to %d",
                        call, rank, nranks, nranks < 1 ? 0 : nranks - 1);
    if ((result = nc_config_read(&config, given, NULL, call)))
        return result;
    nc_job_t job = {.run = make, .creates = 1, .call = call, .newcomm = newcomm, .blocking = config.blocking};
    _Static_assert(sizeof job.id == sizeof *ids, "NCCL's id and rondo's are of one size");
    memcpy(&job.id, ids, sizeof job.id);
    job.number[0] = nids;
    job.ids = nids > 1 ? malloc((size_t)nids * sizeof *job.ids) : NULL;
    job.comm = nc_comm_new(rank, nranks, device, &config);
    if (!job.comm || (nids > 1 && !job.ids)) {
        nc_job_forget(&job);
        free(job.comm);
        return nc_error(NULL, ncclSystemError, "%s: no memory", call);
    }
    if (job.ids)
        memcpy(job.ids, ids, (size_t)nids * sizeof *job.ids);
    return nc_group_job(&job);
}

static ncclResult_t create_here(const char *call, ncclComm_t *newcomm, int nranks, const ncclUniqueId *ids, int nids,
                                int rank, const ncclConfig_t *given)
{
    ncclResult_t result;
    int device;

    nc_settings();
    result = nc_device_current(&device, call);
    return nc_group_check(result == ncclSuccess ? create(call, newcomm, nranks, ids, nids, rank, device, given)
                                                : result);
}

ncclResult_t pncclGetUniqueId(ncclUniqueId *uniqueId)
{
    rondo_unique_id_t id;
    rondo_result_t result;

    nc_settings();
    if (!uniqueId)
        return nc_error(NULL, ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
    result = rondo_unique_id_create(&id);
    memcpy(uniqueId, &id, sizeof *uniqueId); /* on failure the id carries the error to all ranks */
    explicit_bzero(&id, sizeof id);
    return nc_result(NULL, NULL, result);
}
NC_TWIN(GetUniqueId);

ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
    return create_here("ncclCommInitRank", comm, nranks, &commId, 1, rank, NULL);
}
NC_TWIN(CommInitRank);

ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config)
{
    return create_here("ncclCommInitRankConfig", comm, nranks, &commId, 1, rank, config);
}
NC_TWIN(CommInitRankConfig);

ncclResult_t pncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
                                       ncclConfig_t *config)
{
    const char *call = "ncclCommInitRankScalable";

    if (nId < 1 || nId > nranks || !commIds)
        return nc_group_check(nc_error(NULL, ncclInvalidArgument,
                                       "%s: %d ids of %d ranks: at least one, and no more than ranks", call,
                                       commIds ? nId : 0, nranks));
    return create_here(call, newcomm, nranks, commIds, nId, myrank, config);
}
NC_TWIN(CommInitRankScalable);

static ncclResult_t check_devices(int ndev, const int *devlist)
{
    const char *call = "ncclCommInitAll", *several = nc_settings_text("MULTI_RANK_GPU_ENABLE", "");
    ncclResult_t result;
    int count;

    if ((result = nc_device_count(&count, call)))
        return result;
    if (ndev < 1 || (!devlist && ndev > count))
        return nc_error(NULL, ncclInvalidArgument, "%s: ndev is %d: from 1 to the number of devices", call, ndev);
    for (int i = 0; devlist && i < ndev; i++) {
        if (devlist[i] < 0 || devlist[i] >= count)
            return nc_error(NULL, ncclInvalidArgument, "%s: devlist[%d] is %d: there is no such device", call, i,
                            devlist[i]);
        for (int k = 0; k < i; k++)
            if (devlist[k] == devlist[i] && (!several || nc_number_is(several, 0)))
                return nc_error(NULL, ncclInvalidUsage,
                                "%s: devlist names device %d twice: NCCL_MULTI_RANK_GPU_ENABLE=1 allows it", call,
                                devlist[i]);
    }
    return ncclSuccess;
}

ncclResult_t pncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    const char *call = "ncclCommInitAll";
    ncclResult_t result, ended;
    ncclUniqueId id;

    nc_settings();
    if (!comm)
        return nc_error(NULL, ncclInvalidArgument, "%s: comm is NULL", call);
    if ((result = check_devices(ndev, devlist)) || (result = pncclGetUniqueId(&id)) || (result = pncclGroupStart()))
        return result;
    for (int i = 0; i < ndev && result == ncclSuccess; i++)
        result = nc_group_check(create(call, &comm[i], ndev, &id, 1, i,
                                       nc_settings_host() ? RONDO_DEVICE_HOST
                                       : devlist          ? devlist[i]
                                                          : i,
                                       NULL));
    ended = pncclGroupEnd();
    explicit_bzero(&id, sizeof id);
    return result != ncclSuccess ? result : ended;
}
NC_TWIN(CommInitAll);

/* Returns what a communicator's end returns. Where the context is lost there is nothing left that could complete, and
 * the program has heard of it: NCCL's ends succeed there, and PyTorch ends its communicators so when its check for NaN
 * has trapped. */
static ncclResult_t end_result(ncclComm_t comm, rondo_comm_t rondo, rondo_result_t result)
{
    bool lost = result == RONDO_ERR_CUDA || (result == RONDO_ERR_REMOTE && nc_device_is_lost(comm->device));

    if (lost)
        return ncclSuccess;
    return nc_result(rondo ? comm : NULL, rondo, result);
}

/* Another rank may have ended already. That is an error only if an operation of this one waited for it. */
static ncclResult_t finalize(nc_job_t *job)
{
    ncclComm_t comm = job->comm;

    atomic_store(&comm->finalized, 1);
    rondo_result_t result = rondo_comm_finalize(comm->rondo);
    if (result == RONDO_ERR_REMOTE && rondo_comm_complete(comm->rondo))
        result = RONDO_SUCCESS;
    ncclResult_t ended = end_result(comm, comm->rondo, result);
    atomic_store(&comm->complete, ended == ncclSuccess); /* so it is what ncclCommGetAsyncError says from now on */
    return ended;
}

bool nc_comm_rests_revoked(ncclComm_t comm)
{
    return atomic_load(&comm->revoked) && !atomic_load(&comm->finalized) && !nc_comm_busy(comm) &&
           !atomic_load(&comm->result);
}

/* NCCL's communicators outlive a shrink with NCCL_SHRINK_ABORT. rondo's are revoked by it, but may be finalized:
 * nothing is under way any more. */
static bool was_shrunk(ncclComm_t comm)
{
    return atomic_load(&comm->revoked) == NC_SHRUNK && !nc_comm_busy(comm);
}

static ncclResult_t record_finalize(ncclComm_t comm)
{
    const char *call = "ncclCommFinalize";
    ncclResult_t result = comm ? nc_comm_valid(comm, call) : ncclSuccess;

    if (!comm || result != ncclSuccess || (was_shrunk(comm) && !atomic_exchange(&comm->finalized, 1)))
        return result;
    const bool over = atomic_load(&comm->finalized) || atomic_load(&comm->revoked);
    if (over && !nc_comm_busy(comm) && !atomic_load(&comm->result))
        return nc_error(comm, ncclInvalidArgument, "%s: the communicator has been %s already", call,
                        comm->finalized ? "finalized" : "revoked");
    if ((result = nc_comm_ready(comm, call)))
        return result;
    nc_job_t job = {.run = finalize, .call = call, .comm = comm, .blocking = comm->config.blocking};
    return nc_group_job(&job);
}

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
    return nc_group_check(record_finalize(comm));
}
NC_TWIN(CommFinalize);

static ncclResult_t may_end(ncclComm_t comm, const char *call)
{
    ncclResult_t result = nc_comm_valid(comm, call);

    if (result != ncclSuccess || !nc_group_has(comm))
        return result;
    return nc_group_check(nc_error(comm, ncclInvalidUsage,
                                   "%s: the open group holds calls on this communicator: end the group first", call));
}

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
    ncclResult_t result;

    if (!comm)
        return ncclSuccess;
    if ((result = may_end(comm, "ncclCommDestroy")))
        return result;
    nc_comm_wait(comm);
    nc_registration_end_all(comm);
    nc_bounce_free_all(comm);
    if (comm->rondo)
        result = end_result(comm, NULL, rondo_comm_destroy(comm->rondo));
    nc_comm_free(comm);
    return result;
}
NC_TWIN(CommDestroy);

/* Returns true if all operations are complete without a failure. It waits up to 20 ms for what a proxy has left to
 * send. Operations that begin from here on see `ending` and stop. */
static bool at_rest(ncclComm_t comm)
{
    const struct timespec nap = {0, 1000000};
    int done = 0;

    atomic_store(&comm->ending, 1);
    if (atomic_load(&comm->inside) || atomic_load(&comm->busy))
        return false;
    for (int i = 0; i < 20 && !done; i++) {
        if (rondo_comm_test(comm->rondo, &done) != RONDO_SUCCESS)
            return false;
        if (!done)
            nanosleep(&nap, NULL);
    }
    return done;
}

/* Returns true if the communicator is still being created, and ends that. The job that creates it frees the object. */
static bool drop(ncclComm_t comm)
{
    bool dropped;

    pthread_mutex_lock(&nc_lock);
    dropped = !comm->rondo && comm->pending;
    comm->dropped = dropped;
    if (dropped && comm->making)
        rondo_comm_give_up(comm->making);
    pthread_mutex_unlock(&nc_lock);
    return dropped;
}

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
    ncclResult_t result;

    if (!comm)
        return ncclSuccess;
    if ((result = may_end(comm, "ncclCommAbort")))
        return result;
    if (drop(comm))
        return ncclSuccess;
    if (comm->rondo) {
        bool rests = at_rest(comm); /* then, as with NCCL, only ranks that wait for this one learn of the abort */
        if (!rests)
            (void)rondo_comm_revoke(comm->rondo); /* threads that are inside operations return */
        else
            rondo_comm_hasten(comm->rondo);
        wait_calls(comm);
        nc_registration_end_all(comm);
        nc_bounce_free_all(comm);
        rests = rests && !atomic_load(&comm->shrinking);
        result = nc_result(NULL, NULL, rests ? rondo_comm_destroy(comm->rondo) : rondo_comm_abort(comm->rondo));
        nc_comm_wait(comm); /* a thread that shrinks it, too */
    }
    nc_comm_free(comm);
    return result;
}
NC_TWIN(CommAbort);

ncclResult_t nc_comm_revoke(ncclComm_t comm)
{
    rondo_result_t result = rondo_comm_revoke(comm->rondo);

    wait_calls(comm);
    atomic_store(&comm->revoked, 1);
    atomic_store(&comm->result, ncclSuccess); /* as in NCCL, whatever was cut short in the background */
    return nc_result(comm, comm->rondo, result);
}

ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
    const char *call = "ncclCommRevoke";
    ncclResult_t result = comm ? nc_comm_valid(comm, call) : ncclSuccess;

    if (!comm || result != ncclSuccess)
        return result;
    if (revokeFlags != NCCL_REVOKE_DEFAULT)
        return nc_error(comm, ncclInvalidArgument, "%s: revokeFlags is %d: NCCL_REVOKE_DEFAULT (0) is all there is",
                        call, revokeFlags);
    if (!comm->rondo || atomic_load(&comm->revoked) || atomic_load(&comm->finalized))
        return nc_error(comm, ncclInvalidArgument, "%s: the communicator %s", call,
                        !comm->rondo    ? "is not made yet"
                        : comm->revoked ? "has been revoked already"
                                        : "has been finalized");
    return nc_comm_revoke(comm);
}
NC_TWIN(CommRevoke);

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    const char *call = "ncclCommGetAsyncError";
    ncclResult_t result = nc_comm_valid(comm, call);
    rondo_result_t error;

    if (result != ncclSuccess)
        return result;
    if (!asyncError)
        return nc_error(comm, ncclInvalidArgument, "%s: asyncError is NULL", call);
    *asyncError = ncclSuccess;
    if (nc_comm_busy(comm))
        *asyncError = ncclInProgress;
    else if (atomic_load(&comm->result))
        *asyncError = (ncclResult_t)atomic_load(&comm->result);
    else if (comm->rondo && !atomic_load(&comm->revoked) && !atomic_load(&comm->complete) &&
             rondo_comm_get_error(comm->rondo, &error) == RONDO_SUCCESS &&
             (error != RONDO_ERR_REMOTE || rondo_comm_shown(comm->rondo)))
        *asyncError = nc_result(comm, comm->rondo, error);
    return ncclSuccess;
}
NC_TWIN(CommGetAsyncError);

static ncclResult_t answer(ncclComm_t comm, const char *call, const int *from, int *to)
{
    ncclResult_t result = nc_comm_valid(comm, call);

    if (result != ncclSuccess)
        return result;
    if (!to)
        return nc_error(comm, ncclInvalidArgument, "%s: the result's pointer is NULL", call);
    if (!comm->rondo)
        return nc_comm_ready(comm, call);
    *to = *from;
    return ncclSuccess;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
    return answer(comm, "ncclCommCount", comm ? &comm->nranks : NULL, count);
}
NC_TWIN(CommCount);

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return answer(comm, "ncclCommCuDevice", comm ? &comm->device : NULL, device);
}
NC_TWIN(CommCuDevice);

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return answer(comm, "ncclCommUserRank", comm ? &comm->rank : NULL, rank);
}
NC_TWIN(CommUserRank);
