/* Queries about the device-side API, which programs make before they use it. rondo has none, so no answer may suggest
 * that a program's own kernels can use a window: here a window is no device memory. XLA concludes that they can if the
 * team of load and store is as large as its group, and a team of one rank is as large as a group of one rank. So that
 * team has no ranks; and ncclCommQueryProperties, which is newer than the NCCL that ncclGetVersion names, fails.
 */
#include "nccl/later.h"
#include "nccl/shim.h"

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props)
{
    const char *call = "ncclCommQueryProperties";
    ncclResult_t result = nc_comm_ready(comm, call);

    if (result == ncclSuccess && !props)
        return nc_error(comm, ncclInvalidArgument, "%s: props is NULL", call);
    if (result == ncclSuccess) /* programs only want to know, so this is no error in their logs */
        nc_log(NC_SUBSYS_INIT, "%s: refused: it is newer than NCCL %d.%d.%d, and there is no device-side API", call,
               NC_VERSION_MAJOR, NC_VERSION_MINOR, NC_VERSION_PATCH);
    return result == ncclSuccess ? ncclInvalidUsage : result;
}
NC_TWIN(CommQueryProperties);

/* These functions cannot return an error, so the teams of an invalid communicator have no ranks. */
static ncclTeam_t everybody(ncclComm_t comm, const char *call)
{
    if (nc_comm_ready(comm, call) != ncclSuccess)
        return (ncclTeam_t){0, -1, 0};
    return (ncclTeam_t){comm->nranks, comm->rank, 1};
}

ncclTeam_t pncclTeamWorld(ncclComm_t comm)
{
    return everybody(comm, "ncclTeamWorld");
}
NC_TWIN(TeamWorld);

ncclTeam_t pncclTeamLsa(ncclComm_t comm)
{
    (void)nc_comm_ready(comm, "ncclTeamLsa");
    return (ncclTeam_t){0, -1, 0};
}
NC_TWIN(TeamLsa);

ncclTeam_t pncclTeamRail(ncclComm_t comm)
{
    return everybody(comm, "ncclTeamRail");
}
NC_TWIN(TeamRail);

int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t of, int rank)
{
    return nc_comm_ready(comm, "ncclTeamRankToWorld") == ncclSuccess ? comm->rank + (rank - of.rank) * of.stride : -1;
}
NC_TWIN(TeamRankToWorld);

int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t of, int rank)
{
    (void)nc_comm_ready(comm, "ncclTeamRankToLsa");
    (void)of;
    (void)rank;
    return -1;
}
NC_TWIN(TeamRankToLsa);

/* Teams whose windows a fabric makes visible (2.31). Programs only want to know, so no error appears in their logs. */
static ncclTeam_t no_fabric(ncclComm_t comm, const char *call)
{
    if (nc_comm_ready(comm, call) == ncclSuccess)
        nc_log(NC_SUBSYS_INIT, "%s: no ranks: there is no device-side API", call);
    return (ncclTeam_t){0, -1, 0};
}

ncclTeam_t pncclTeamCft(ncclComm_t comm, int mode)
{
    (void)mode;
    return no_fabric(comm, "ncclTeamCft");
}
NC_TWIN(TeamCft);

ncclTeam_t pncclTeamCftMultimem(ncclComm_t comm)
{
    return no_fabric(comm, "ncclTeamCftMultimem");
}
NC_TWIN(TeamCftMultimem);
