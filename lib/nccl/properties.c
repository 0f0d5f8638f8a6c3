/* Queries about the device-side API, which programs make before they use it: rondo has none. A team is a set of ranks
 * whose memory kernels reach by load and store, so each rank has a team of its own.
 */
#include "nccl/later.h"
#include "nccl/shim.h"

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props)
{
    const char *call = "ncclCommQueryProperties";
    ncclResult_t result = nc_comm_ready(comm, call);

    if (result != ncclSuccess)
        return result;
    if (!props || props->magic != NCCL_API_MAGIC || props->size < offsetof(ncclCommProperties_t, nLsaTeams))
        return nc_error(comm, ncclInvalidUsage, "%s: props must come from NCCL_COMM_PROPERTIES_INITIALIZER", call);
    props->rank = comm->rank;
    props->nRanks = comm->nranks;
    props->cudaDev = comm->device;
    props->nvmlDev = comm->device;
    props->deviceApiSupport = false;
    props->multimemSupport = false;
    props->ginType = 0;
    if (props->version > NCCL_VERSION(2, 29, 3) && props->size >= sizeof *props) {
        props->nLsaTeams = comm->nranks;
        props->hostRmaSupport = false;
        props->railedGinType = 0;
    }
    return ncclSuccess;
}
NC_TWIN(CommQueryProperties);

/* These functions cannot return an error, so the teams of an invalid communicator have no ranks. */
static ncclTeam_t team(ncclComm_t comm, const char *call, int alone)
{
    if (nc_comm_ready(comm, call) != ncclSuccess)
        return (ncclTeam_t){0, -1, 0};
    return alone ? (ncclTeam_t){1, 0, 1} : (ncclTeam_t){comm->nranks, comm->rank, 1};
}

ncclTeam_t pncclTeamWorld(ncclComm_t comm)
{
    return team(comm, "ncclTeamWorld", 0);
}
NC_TWIN(TeamWorld);

ncclTeam_t pncclTeamLsa(ncclComm_t comm)
{
    return team(comm, "ncclTeamLsa", 1);
}
NC_TWIN(TeamLsa);

ncclTeam_t pncclTeamRail(ncclComm_t comm)
{
    return team(comm, "ncclTeamRail", 0);
}
NC_TWIN(TeamRail);

/* These two convert a rank of a team to one of the communicator, and to one of this rank's team of one. */
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t of, int rank)
{
    return nc_comm_ready(comm, "ncclTeamRankToWorld") == ncclSuccess ? comm->rank + (rank - of.rank) * of.stride : -1;
}
NC_TWIN(TeamRankToWorld);

int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t of, int rank)
{
    return nc_comm_ready(comm, "ncclTeamRankToLsa") == ncclSuccess ? (rank - of.rank) * of.stride : -1;
}
NC_TWIN(TeamRankToLsa);
