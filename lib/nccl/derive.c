/* Creates communicators from existing ones: split and shrink. */
#include <stdlib.h>
#include <string.h>

#include "nccl/shim.h"

static ncclResult_t split(nc_job_t *job)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t made = NULL;
    rondo_result_t result;

    if (job->comm)
        config = nc_comm_config(job->comm);
    result = rondo_comm_split(job->parent->rondo, job->number[0], job->number[1], &made, &config);
    ncclResult_t code = nc_result(job->parent, NULL, result);
    return job->comm ? nc_comm_made(job->comm, made, job->call, code) : code;
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
    const char *call = "ncclCommSplit";
    ncclResult_t result = nc_comm_ready(comm, call);
    nc_config_t read;

    if (result != ncclSuccess)
        return result;
    if (!newcomm || (color < 0 && color != NCCL_SPLIT_NOCOLOR))
        return nc_error(comm, ncclInvalidArgument, "%s: %s", call,
                        newcomm ? "color must be 0 or more, or NCCL_SPLIT_NOCOLOR" : "newcomm is NULL");
    if ((result = nc_config_read(&read, config, &comm->config, call)))
        return result;
    nc_job_t job = {.run = split, .call = call, .parent = comm, .newcomm = newcomm, .number = {color, key}};
    job.blocking = read.blocking && comm->config.blocking;
    *newcomm = NULL;
    if (color != NCCL_SPLIT_NOCOLOR) {
        job.creates = 1;
        job.comm = nc_comm_new(0, 0, comm->device, &read);
        if (!job.comm)
            return ncclSystemError;
    }
    return nc_group_job(&job);
}
NC_TWIN(CommSplit);

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
    if (!newcomm || count < 0 || (count > 0 && !list))
        return nc_error(comm, ncclInvalidArgument, "%s: %s", call,
                        !newcomm    ? "newcomm is NULL"
                        : count < 0 ? "excludeRanksCount is negative"
                                    : "excludeRanksList is NULL");
    if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
        return nc_error(comm, ncclInvalidArgument, "%s: shrinkFlags is %d: NCCL_SHRINK_DEFAULT or NCCL_SHRINK_ABORT",
                        call, flags);
    if (!comm->rondo)
        return nc_error(comm, ncclInvalidUsage, "%s: the communicator is not made yet", call);
    if (nc_comm_busy(comm) && flags == NCCL_SHRINK_DEFAULT)
        return nc_comm_ready(comm, call);
    return ncclSuccess;
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
                             ncclConfig_t *config, int shrinkFlags)
{
    const char *call = "ncclCommShrink";
    ncclResult_t result = shrink_check(comm, excludeRanksList, excludeRanksCount, newcomm, shrinkFlags);
    nc_config_t read;

    if (result != ncclSuccess || (result = nc_config_read(&read, config, &comm->config, call)))
        return result;
    if (shrinkFlags == NCCL_SHRINK_ABORT && !atomic_load(&comm->revoked)) {
        if ((result = nc_comm_revoke(comm)))
            return result;
        atomic_store(&comm->revoked, NC_SHRUNK);
    }
    nc_job_t job = {.run = shrink, .creates = 1, .call = call, .parent = comm, .newcomm = newcomm};
    job.number[1] = excludeRanksCount;
    job.blocking = read.blocking && comm->config.blocking;
    job.list = malloc((size_t)excludeRanksCount * sizeof *job.list + 1);
    job.comm = nc_comm_new(0, 0, comm->device, &read);
    if (!job.list || !job.comm) {
        free(job.list);
        free(job.comm);
        return nc_error(comm, ncclSystemError, "%s: no memory", call);
    }
    if (excludeRanksCount)
        memcpy(job.list, excludeRanksList, (size_t)excludeRanksCount * sizeof *job.list);
    return nc_group_job(&job);
}
NC_TWIN(CommShrink);
