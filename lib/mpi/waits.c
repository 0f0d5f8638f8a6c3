/* Requests, under an MPI that makes no progress for rondo while it waits itself. As long as anything is in flight, a
 * wait is a test after a turn, over and over; so what is waited for may be anything. `use mpi_f08` calls
 * PMPI_ there, so its functions are taken in between themselves. */
#include "mpi/interpose.h"
#include "mpi/stand_in.h"
#include "mpi/waits.h"

#ifndef OPEN_MPI
static bool any(void)
{
    return rd_mpi_flights_any() || rd_mpi_stand_ins_any();
}

static void turn(void)
{
    rd_mpi_flights_turn();
    rd_mpi_stand_ins_turn();
}

#define WAIT(Name, name, Test, test, parameters, arguments, tested, done)                                              \
    static int c_##name parameters                                                                                     \
    {                                                                                                                  \
        while (any()) {                                                                                                \
            int flag = 0, result;                                                                                      \
                                                                                                                       \
            turn();                                                                                                    \
            result = rd_mpi_next.Test tested;                                                                          \
            if (result != MPI_SUCCESS || (done))                                                                       \
                return result;                                                                                         \
        }                                                                                                              \
        return rd_mpi_next.Name arguments;                                                                             \
    }                                                                                                                  \
    static void f08_##name(RD_MPI_OPEN parameters, W ierror)                                                           \
    {                                                                                                                  \
        while (any()) {                                                                                                \
            int flag = 0, result = MPI_SUCCESS;                                                                        \
                                                                                                                       \
            turn();                                                                                                    \
            rd_mpi_next.f08_##test(RD_MPI_OPEN tested, (W)&result);                                                    \
            if (result == MPI_SUCCESS && !(done))                                                                      \
                continue;                                                                                              \
            if (ierror)                                                                                                \
                *(int *)ierror = result;                                                                               \
            return;                                                                                                    \
        }                                                                                                              \
        rd_mpi_next.f08_##name(RD_MPI_OPEN arguments, ierror);                                                         \
    }
#define FLAG (W) & flag
WAIT(Wait, wait, Test, test, (W request, W status), (request, status), (request, FLAG, status), flag)
WAIT(Waitany, waitany, Testany, testany, (W n, W requests, W index, W status), (n, requests, index, status),
     (n, requests, index, FLAG, status), flag)
/* The number of those that are over is MPI_UNDEFINED if there was none to wait for. */
WAIT(Waitsome, waitsome, Testsome, testsome, (W n, W requests, W number, W indices, W statuses),
     (n, requests, number, indices, statuses), (n, requests, number, indices, statuses), (flag = *(int *)number) != 0)

/* Asks for one after the other: MPICH 4.0's MPI_Testall is wrong about persistent collectives of its own. */
static void wait_for_all(int n, const MPI_Request *requests)
{
    for (int i = 0; requests && i < n; i++) {
        int flag = 0;

        while (any() && !flag) {
            turn();
            if (PMPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS)
                return;
        }
    }
}

static int c_waitall(W n, W requests, W statuses)
{
    wait_for_all((int)n, (const MPI_Request *)requests);
    return rd_mpi_next.Waitall(n, requests, statuses);
}

/* A request is one number in C and in Fortran. */
static void f08_waitall(W n, W requests, W statuses, W ierror)
{
    wait_for_all(*(const int *)n, (const MPI_Request *)requests);
    rd_mpi_next.f08_waitall(n, requests, statuses, ierror);
}

#define TEST(Name, name, parameters, arguments)                                                                        \
    static int c_##name parameters                                                                                     \
    {                                                                                                                  \
        turn();                                                                                                        \
        return rd_mpi_next.Name arguments;                                                                             \
    }                                                                                                                  \
    static void f08_##name(RD_MPI_OPEN parameters, W ierror)                                                           \
    {                                                                                                                  \
        turn();                                                                                                        \
        rd_mpi_next.f08_##name(RD_MPI_OPEN arguments, ierror);                                                         \
    }
TEST(Test, test, (W a, W b, W c), (a, b, c))
TEST(Testany, testany, (W a, W b, W c, W d, W e), (a, b, c, d, e))
TEST(Testall, testall, (W a, W b, W c, W d), (a, b, c, d))
TEST(Testsome, testsome, (W a, W b, W c, W d, W e), (a, b, c, d, e))
TEST(Request_get_status, request_get_status, (W a, W b, W c), (a, b, c))
#if RD_MPI_HAS_GET_STATUSES
TEST(Request_get_status_any, request_get_status_any, (W a, W b, W c, W d, W e), (a, b, c, d, e))
TEST(Request_get_status_all, request_get_status_all, (W a, W b, W c, W d), (a, b, c, d))
TEST(Request_get_status_some, request_get_status_some, (W a, W b, W c, W d, W e), (a, b, c, d, e))
#endif
#endif

int rd_mpi_wait(MPI_Request *request)
{
#ifdef OPEN_MPI
    return PMPI_Wait(request, MPI_STATUS_IGNORE);
#else
    return c_wait((W)request, (W)MPI_STATUS_IGNORE);
#endif
}

#define FILL(Name, name, n, n_f08)                                                                                     \
    entries->Name = c_##name;                                                                                          \
    entries->f08_##name = f08_##name;
void rd_mpi_waits_fill(rd_mpi_entries_t *entries)
{
    (void)entries;
    RD_MPI_WAITS(FILL)
}
