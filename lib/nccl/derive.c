/* Creates communicators from existing ones: split, grow and shrink. */
#include <stdlib.h>
#include <string.h>

#include "nccl/later.h"
#include "nccl/shim.h"

/* NCCL's communicators may be split when they have been revoked. rondo's then exchange nothing any more, so that the
 * ranks meet anew, by a shrink that leaves nobody out: in host memory, for as long as the split takes. */
static rondo_result_t split_revoked(nc_job_t *job, rondo_comm_t *made, const rondo_config_t *config)
{
    rondo_config_t host = RONDO_CONFIG_INIT;
    rondo_comm_t all = NULL;

    host.device = RONDO_DEVICE_HOST;
    host.blocking = 1;
    rondo_result_t result = rondo_comm_shrink(job->parent->rondo, NULL, 0, &all, &host);
    if (result != RONDO_SUCCESS)
        return result;
    result = rondo_comm_split(all, job->number[0], job->number[1], made, config);
    (void)rondo_comm_destroy(all);
    return result;
}

static ncclResult_t split(nc_job_t *job)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t made = NULL;
    rondo_result_t result;

    if (job->comm)
        config = nc_comm_config(job->comm);
    result = job->shrinks ? split_revoked(job, &made, &config)
                          : rondo_comm_split(job->parent->rondo, job->number[0], job->number[1], &made, &config);
    ncclResult_t code = nc_result(job->parent, NULL, result);
    return job->comm ? nc_comm_made(job->comm, made, job->call, code) : code;
}

static ncclResult_t record_split(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
    const char *call = "ncclCommSplit";
    ncclResult_t result = nc_comm_valid(comm, call);
    nc_config_t read;

    if (result != ncclSuccess)
        return result;
    const bool revoked = nc_comm_rests_revoked(comm) && atomic_load(&comm->revoked) != NC_SHRUNK;
    if (!revoked && (result = nc_comm_ready(comm, call)))
        return result;
    if (!newcomm)
        return nc_error(comm, ncclInvalidArgument, "%s: newcomm is NULL", call);
    *newcomm = NULL; /* as in NCCL, also if it fails from here on */
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
        return nc_error(comm, ncclInvalidArgument, "%s: color must be 0 or more, or NCCL_SPLIT_NOCOLOR", call);
    if ((result = nc_config_read(&read, config, &comm->config, call)))
        return result;
    nc_job_t job = {.run = split, .call = call, .parent = comm, .newcomm = newcomm, .number = {color, key}};
    job.shrinks = revoked;
    job.blocking = comm->config.blocking; /* as in NCCL, where the config of the new one decides for its own calls */
    if (color != NCCL_SPLIT_NOCOLOR) {
        job.creates = 1;
        job.comm = nc_comm_new(0, 0, comm->device, &read);
        if (!job.comm)
            return ncclSystemError;
    }
    return nc_group_job(&job);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
    return nc_group_check(record_split(comm, color, key, newcomm, config));
}
NC_TWIN(CommSplit);

static const char grow_call[] = "ncclCommGrow";

/* The id stays with the communicator whose rank has made it: NCCL's members pass none when they grow. */
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId)
{
    const char *call = "ncclCommGetUniqueId";
    ncclResult_t result = nc_comm_ready(comm, call);

    if (result != ncclSuccess)
        return result;
    if (!uniqueId)
        return nc_error(comm, ncclInvalidArgument, "%s: uniqueId is NULL", call);
    if (nc_group_holds(comm, grow_call))
        return nc_group_check(
            nc_error(comm, ncclInvalidUsage,
                     "%s: the open group holds an %s of the communicator, which would go without this id: call it "
                     "before that, or when the group has ended",
                     call, grow_call));
    result = pncclGetUniqueId(uniqueId);
    memcpy(&comm->grow_id, uniqueId, sizeof comm->grow_id); /* also one that carries an error to all ranks */
    comm->has_grow_id = 1;
    return result;
}
NC_TWIN(CommGetUniqueId);

static ncclResult_t grow(nc_job_t *job)
{
    rondo_config_t config = nc_comm_config(job->comm);
    rondo_comm_t made = NULL;
    const ncclResult_t refused = nc_comm_refused(job);

    if (refused != ncclSuccess)
        return refused;
    if (job->parent) { /* it serves one grow */
        job->parent->has_grow_id = 0;
        explicit_bzero(&job->parent->grow_id, sizeof job->parent->grow_id);
    }
    rondo_result_t result = rondo_comm_grow(job->parent ? job->parent->rondo : NULL, job->number[0],
                                            job->has_id ? &job->id : NULL, job->number[1], &made, &config);

    return nc_comm_made(job->comm, made, job->call, nc_result(job->parent ? job->parent : job->comm, NULL, result));
}

/* A member: its rank stays, and its id is the one that it is given, or has made. */
static ncclResult_t grow_member(nc_job_t *job, const ncclUniqueId *id, nc_config_t *read, ncclConfig_t *config)
{
    ncclComm_t comm = job->parent;
    ncclResult_t result = nc_comm_ready(comm, job->call);

    if (result != ncclSuccess)
        return result;
    if (job->number[1] != -1 || job->number[0] <= comm->nranks)
        return nc_error(comm, ncclInvalidArgument,
                        "%s: rank %d, %d ranks: a rank of the communicator has -1, and nRanks is more than its %d",
                        job->call, job->number[1], job->number[0], comm->nranks);
    if ((result = nc_config_read(read, config, &comm->config, job->call)))
        return result;
    job->has_id = id || comm->has_grow_id;
    if (job->has_id)
        memcpy(&job->id, id ? (const void *)id : &comm->grow_id, sizeof job->id);
    job->comm = nc_comm_new(0, 0, comm->device, read);
    return job->comm ? ncclSuccess : ncclSystemError;
}

static ncclResult_t grow_new(nc_job_t *job, const ncclUniqueId *id, nc_config_t *read, ncclConfig_t *config)
{
    ncclResult_t result;
    int device;

    nc_settings();
    if (!id || job->number[1] < 0 || job->number[1] >= job->number[0])
        return nc_error(NULL, ncclInvalidArgument, "%s: comm is NULL, and %s: a new rank has both", job->call,
                        id ? "rank is not one of nRanks" : "uniqueId is NULL");
    if ((result = nc_device_current(&device, job->call)) || (result = nc_config_read(read, config, NULL, job->call)))
        return result;
    job->has_id = 1;
    memcpy(&job->id, id, sizeof job->id);
    job->comm = nc_comm_new(job->number[1], job->number[0], device, read);
    return job->comm ? ncclSuccess : ncclSystemError;
}

static ncclResult_t record_grow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank,
                                ncclComm_t *newcomm, ncclConfig_t *config)
{
    const char *call = grow_call;
    nc_job_t job = {.run = grow, .creates = 1, .call = call, .parent = comm, .newcomm = newcomm};
    ncclResult_t result;
    nc_config_t read;

    if (!newcomm)
        return nc_error(NULL, ncclInvalidArgument, "%s: newcomm is NULL", call);
    *newcomm = NULL; /* as in NCCL, also if it fails from here on */
    job.number[0] = nRanks;
    job.number[1] = rank;
    result = comm ? grow_member(&job, uniqueId, &read, config) : grow_new(&job, uniqueId, &read, config);
    if (result != ncclSuccess)
        return result;
    job.blocking = read.blocking; /* as in NCCL: a grow is the new communicator's call */
    return nc_group_job(&job);
}

ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
                           ncclConfig_t *config)
{
    return nc_group_check(record_grow(comm, nRanks, uniqueId, rank, newcomm, config));
}
NC_TWIN(CommGrow);

static ncclResult_t shrink(nc_job_t *job)
{
    rondo_config_t config = nc_comm_config(job->comm);
    rondo_comm_t made = NULL;
    rondo_result_t result = rondo_comm_shrink(job->parent->rondo, job->list, job->number[1], &made, &config);

    return nc_comm_made(job->comm, made, job->call, nc_result(job->parent, NULL, result));
}

static ncclResult_t shrink_check(ncclComm_t comm, const int *list, int count, ncclComm_t *newcomm, int flags)
{
    const char *call = "ncclCommShrink";
    ncclResult_t result = nc_comm_valid(comm, call);

    if (result != ncclSuccess)
        return result;
    if (!newcomm || !list || count < 1)
        return nc_error(comm, ncclInvalidArgument, "%s: %s", call,
                        !newcomm ? "newcomm is NULL"
                        : !list  ? "excludeRanksList is NULL"
                                 : "excludeRanksCount is less than 1");
    if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
        return nc_error(comm, ncclInvalidArgument, "%s: shrinkFlags is %d: NCCL_SHRINK_DEFAULT or NCCL_SHRINK_ABORT",
                        call, flags);
    if (!comm->rondo)
        return nc_error(comm, ncclInvalidUsage, "%s: the communicator is not made yet", call);
    if (nc_comm_busy(comm) && flags == NCCL_SHRINK_DEFAULT)
        return nc_comm_ready(comm, call);
    for (int i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] >= comm->nranks)
            return nc_error(comm, ncclInvalidArgument, "%s: excludeRanksList[%d] is %d: ranks are 0 to %d", call, i,
                            list[i], comm->nranks - 1);
        if (list[i] == comm->rank)
            return nc_error(comm, ncclInvalidArgument,
                            "%s: excludeRanksList has this rank, %d: only those that stay call", call, comm->rank);
    }
    return ncclSuccess;
}

static ncclResult_t record_shrink(ncclComm_t comm, const int *excludeRanksList, int excludeRanksCount,
                                  ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
    const char *call = "ncclCommShrink";
    ncclResult_t result = shrink_check(comm, excludeRanksList, excludeRanksCount, newcomm, shrinkFlags);
    nc_config_t read;

    if (result != ncclSuccess)
        return result;
    *newcomm = NULL; /* as in NCCL, also if it fails from here on */
    if ((result = nc_config_read(&read, config, &comm->config, call)))
        return result;
    if (shrinkFlags == NCCL_SHRINK_ABORT && !atomic_load(&comm->revoked)) {
        if ((result = nc_comm_revoke(comm)))
            return result;
        atomic_store(&comm->revoked, NC_SHRUNK);
    }
    if (shrinkFlags == NCCL_SHRINK_ABORT)
        nc_comm_wait(comm); /* for an earlier shrink */
    nc_job_t job = {.run = shrink, .creates = 1, .shrinks = 1, .call = call, .parent = comm, .newcomm = newcomm};
    job.number[1] = excludeRanksCount;
    job.blocking = comm->config.blocking;
    job.list = malloc((size_t)excludeRanksCount * sizeof *job.list);
    job.comm = nc_comm_new(0, 0, comm->device, &read);
    if (!job.list || !job.comm) {
        free(job.list);
        free(job.comm);
        return nc_error(comm, ncclSystemError, "%s: no memory", call);
    }
    memcpy(job.list, excludeRanksList, (size_t)excludeRanksCount * sizeof *job.list);
    return nc_group_job(&job);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
                             ncclConfig_t *config, int shrinkFlags)
{
    return nc_group_check(record_shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
}
NC_TWIN(CommShrink);
