/* The table that librondo_mpi.so calls through. */
#include "mpi/interpose.h"
#include "mpi/kept.h"
#include "mpi/mpi_fortran.h"
#include "mpi/stand_in.h"
#include "mpi/waits.h"

#define likely(condition) __builtin_expect(!!(condition), 1)

/* A call's arguments, by the names that entries.h gives them. */
#define CALL_Barrier .what = RD_MPI_BARRIER_CALL
#define CALL_Bcast .what = RD_MPI_BCAST, .recv = buffer, .recvcount = count, .recvtype = type, .root = root
#define REDUCED .send = send, .recv = recv, .recvtype = type, .op = op
#define CALL_Reduce .what = RD_MPI_REDUCE, REDUCED, .recvcount = count, .root = root
#define CALL_Allreduce .what = RD_MPI_ALLREDUCE, REDUCED, .recvcount = count
#define CALL_Reduce_scatter_block .what = RD_MPI_REDUCE_SCATTER_BLOCK, REDUCED, .recvcount = count
#define CALL_Reduce_scatter .what = RD_MPI_REDUCE_SCATTER, REDUCED, .recvcounts = counts
#define CALL_Scan .what = RD_MPI_SCAN, REDUCED, .recvcount = count
#define CALL_Exscan .what = RD_MPI_EXSCAN, REDUCED, .recvcount = count
#define MOVED .send = send, .sendtype = sendtype, .recv = recv, .recvtype = recvtype
#define BLOCKS MOVED, .sendcount = sendcount, .recvcount = recvcount
#define CALL_Gather .what = RD_MPI_GATHER, BLOCKS, .root = root
#define CALL_Scatter .what = RD_MPI_SCATTER, BLOCKS, .root = root
#define CALL_Allgather .what = RD_MPI_ALLGATHER, BLOCKS
#define CALL_Alltoall .what = RD_MPI_ALLTOALL, BLOCKS
#define GATHERED MOVED, .sendcount = sendcount, .recvcounts = recvcounts, .rdispls = displs
#define CALL_Gatherv .what = RD_MPI_GATHERV, GATHERED, .root = root
#define CALL_Allgatherv .what = RD_MPI_ALLGATHERV, GATHERED
#define CALL_Scatterv                                                                                                  \
    .what = RD_MPI_SCATTERV, MOVED, .sendcounts = sendcounts, .sdispls = displs, .recvcount = recvcount, .root = root
#define CALL_Alltoallv                                                                                                 \
    .what = RD_MPI_ALLTOALLV, MOVED, .sendcounts = sendcounts, .sdispls = sdispls, .recvcounts = recvcounts,           \
    .rdispls = rdispls
#define LARGE false /* by the suffix */
#define LARGE_c true
#define CALL(Name, s, of) (&(rd_mpi_call_t){CALL_##Name, .form = of, .comm = comm, .large = LARGE##s})

#define BLOCKING(Name, name, s, parameters, arguments)                                                                 \
    static int run_##name##s parameters                                                                                \
    {                                                                                                                  \
        return rd_mpi_run(CALL(Name, s, RD_MPI_BLOCKING));                                                             \
    }
RD_MPI_ENTRIES(BLOCKING)

/* The short way of a nonblocking call to the MPI, where that was measured to be quicker, for a type that was looked at
 * before: what is wrong with the call the MPI finds. */
static inline bool goes_on(MPI_Comm comm, rd_mpi_what_t what, MPI_Count count, MPI_Datatype type)
{
    const rd_mpi_comm_t *c = rd_mpi_comm_get(comm);
    const rd_mpi_rules_t *rules = c && c->own ? &c->own->rules : NULL;
    int kind = RD_MPI_NONBLOCKING * RD_MPI_NUM + (int)what;
    uint64_t bytes;

    if (!rules || !rules->mpis[kind] || rules->compare || (what != RD_MPI_BARRIER_CALL && type != c->last_passed))
        return false;
    bytes = what == RD_MPI_BARRIER_CALL ? 0 : (uint64_t)count * c->last_passed_size;
    if (!(rules->mpis[kind] >> rd_mpi_class_of(bytes) & 1) || !rd_mpi_is_widest(rules, kind, bytes))
        return false;
    rd_mpi_handed_on(kind, RD_MPI_SLOWER);
    return true;
}

#define GOES_ON_Barrier goes_on(comm, RD_MPI_BARRIER_CALL, 0, MPI_DATATYPE_NULL)
#define GOES_ON_Bcast goes_on(comm, RD_MPI_BCAST, (MPI_Count)count, type)
#define GOES_ON_Allgather goes_on(comm, RD_MPI_ALLGATHER, (MPI_Count)recvcount, recvtype)
#define GOES_ON_Alltoall goes_on(comm, RD_MPI_ALLTOALL, (MPI_Count)recvcount, recvtype)
#define GOES_ON_Reduce false
#define GOES_ON_Allreduce false
#define GOES_ON_Reduce_scatter_block false
#define GOES_ON_Reduce_scatter false
#define GOES_ON_Scan false
#define GOES_ON_Exscan false
#define GOES_ON_Gather false
#define GOES_ON_Gatherv false
#define GOES_ON_Scatter false
#define GOES_ON_Scatterv false
#define GOES_ON_Allgatherv false
#define GOES_ON_Alltoallv false
#define NONBLOCKING(Name, name, s, parameters, arguments)                                                              \
    static int i##name##s(RD_MPI_OPEN parameters, MPI_Request *request)                                                \
    {                                                                                                                  \
        if (GOES_ON_##Name)                                                                                            \
            return rd_mpi_next.I##name##s(RD_MPI_OPEN arguments, request);                                             \
        const rd_mpi_call_t *call = CALL(Name, s, RD_MPI_NONBLOCKING);                                                 \
        int result = rd_mpi_start(call, request);                                                                      \
        if (result >= 0)                                                                                               \
            return result;                                                                                             \
        rd_mpi_watch_t watch = rd_mpi_watch(call, (rd_mpi_reason_t)-result);                                           \
        result = rd_mpi_stand_in_start(call, watch.reason, request);                                                   \
        return rd_mpi_passed(&watch, result < 0 ? rd_mpi_next.I##name##s(RD_MPI_OPEN arguments, request) : result);    \
    }
RD_MPI_ENTRIES(NONBLOCKING)

#if RD_MPI_HAS_INIT
#define PERSISTENT(Name, name, s, parameters, arguments)                                                               \
    static int name##_init##s(RD_MPI_OPEN parameters, MPI_Info info, MPI_Request *request)                             \
    {                                                                                                                  \
        const rd_mpi_call_t *call = CALL(Name, s, RD_MPI_PERSISTENT);                                                  \
        int result = rd_mpi_init(call, request);                                                                       \
        if (result >= 0)                                                                                               \
            return result;                                                                                             \
        rd_mpi_watch_t watch = rd_mpi_watch(call, (rd_mpi_reason_t)-result);                                           \
        result = rd_mpi_stand_in_init(call, watch.reason, request);                                                    \
        return rd_mpi_passed(&watch,                                                                                   \
                             result < 0 ? rd_mpi_next.Name##_init##s(RD_MPI_OPEN arguments, info, request) : result);  \
    }
#define FILL_INIT(Name, name, s) entries.Name##_init##s = name##_init##s;
RD_MPI_ENTRIES(PERSISTENT)
#else
#define FILL_INIT(Name, name, s)
#endif

#define K int
#define FORM(name) name
#define NEXT(name) name
#define NEXT_I(name) I##name
#define NEXT_INIT(name) name##_init
#include "mpi/entry_forms.h"
#if MPI_VERSION >= 4
#undef K
#undef FORM
#undef NEXT
#undef NEXT_I
#undef NEXT_INIT
#define K MPI_Count
#define FORM(name) name##_c
#define NEXT(name) name##_c
#define NEXT_I(name) I##name##_c
#define NEXT_INIT(name) name##_init_c
#include "mpi/entry_forms.h"
#endif

static int barrier(MPI_Comm comm)
{
    rd_mpi_comm_t *c = rd_mpi_comm_get(comm);

    if (likely(c && rd_mpi_short_ways(c) && rd_mpi_allowed(c->rules, RD_MPI_BARRIER_CALL, 0))) {
        rd_mpi_count_served(RD_MPI_BARRIER_CALL, 0);
        return rd_mpi_result(c, rondo_barrier(c->rondo, NULL));
    }
    return run_barrier(comm);
}

int rd_mpi_pass(const rd_mpi_call_t *call, MPI_Request *request)
{
#if MPI_VERSION >= 4
    if (call->large)
        return pass_c(call, request);
#endif
    return pass(call, request);
}

#define FILL(Name, name, s, parameters, arguments)                                                                     \
    entries.Name##s = run_##name##s;                                                                                   \
    entries.I##name##s = i##name##s;                                                                                   \
    FILL_INIT(Name, name, s)

/* Those that have a short way. */
#define SHORT(Name, name)                                                                                              \
    entries.Name = name;                                                                                               \
    SHORT_LARGE(Name, name)
#if MPI_VERSION >= 4
#define SHORT_LARGE(Name, name) entries.Name##_c = name##_c;
#else
#define SHORT_LARGE(Name, name)
#endif

__attribute__((visibility("default"))) const rd_mpi_entries_t *rd_mpi_table(const rd_mpi_entries_t *next);
const rd_mpi_entries_t *rd_mpi_table(const rd_mpi_entries_t *next)
{
    static rd_mpi_entries_t entries;
    int up = 0, down = 0;

    /* Outside of MPI_Init and MPI_Finalize there is nothing to serve, and no attribute to be made. */
    PMPI_Initialized(&up);
    PMPI_Finalized(&down);
    if (!up || down)
        return NULL;
    entries = rd_mpi_next = *next;
    rd_mpi_settings_read();
    if (!rd_mpi_comms_start() || !rd_mpi_setup_start())
        return NULL;
    rd_mpi_handles_start();
    rd_mpi_arguments_start();
    rd_mpi_report_start();
    RD_MPI_ENTRIES(FILL)
    entries.begin = rd_mpi_setup_begin;
    entries.Barrier = barrier;
    SHORT(Bcast, bcast)
    SHORT(Reduce, reduce)
    SHORT(Allreduce, allreduce)
    SHORT(Gather, gather)
    SHORT(Scatter, scatter)
    SHORT(Allgather, allgather)
    SHORT(Alltoall, alltoall)
    rd_mpi_comms_fill(&entries);
    rd_mpi_kept_fill(&entries);
    rd_mpi_revoke_fill(&entries);
    rd_mpi_persistent_fill(&entries);
    rd_mpi_fortran_fill(&entries);
    rd_mpi_waits_fill(&entries);
    return &entries;
}
