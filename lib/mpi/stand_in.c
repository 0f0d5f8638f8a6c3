/* Nonblocking and persistent calls that the MPI serves, but not as they came:
 *
 *   buffers of a GPU's   have memory of the host in their place (device_buffers.c), on this rank alone;
 *   reductions           whose bits are to be reproducible are collected by nonblocking calls of the MPI's, and each
 *                        rank reduces for itself at the end (sorted.c). All ranks do that alike.
 *
 * The user's request is made as for what rondo serves (nonblocking.c, persistent.c). It is complete when the MPI's own
 * ones are, which nobody but this file knows of, and what remained to be done has been done.
 *
 * Unlike what rondo serves, this is also done where several threads may be in the MPI at once. Whoever comes first asks
 * the MPI for all that is on the list; another one goes on, for the MPI may let the first one wait for it.
 *
 * Persistent requests may be started in any order, so a reduction has a communicator for what it collects. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi/interpose.h"
#include "mpi/stand_in.h"

#define MOST 256   /* communicators of the MPI's that are taken at a time: MPICH has about 2000 in all */
#define LEAVE_S 10 /* until what nobody has waited for is left in MPI_Finalize */

static _Atomic int num_comms;
static rd_mpi_flight_t *_Atomic first; /* of those that are active */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static rd_mpi_operation_t *operation_of(rd_mpi_flight_t *f)
{
    return (rd_mpi_operation_t *)f;
}

/* Has this rank memory of the host in place of a device's for the whole life of a persistent request? */
static bool keeps_memory(const rd_mpi_operation_t *o)
{
    return o->asked.form == RD_MPI_PERSISTENT && !o->ordered;
}

/* Has it a communicator of the MPI's, on which errors are only returned? */
static bool has_own_comm(const rd_mpi_operation_t *o)
{
    return o->asked.form == RD_MPI_PERSISTENT && o->ordered;
}

/* ---- to the end ---- */

static void land(rd_mpi_operation_t *o)
{
    int result = o->result;

    if (o->unsaid != MPI_SUCCESS)
        rd_mpi_raise(o->c, o->unsaid);
    if (o->ordered)
        result = rd_mpi_end(&o->work, result);
    if (keeps_memory(o))
        o->result = rd_mpi_device_give(o->c, &o->on_host, result);
    else
        o->result = rd_mpi_device_return(o->c, &o->on_host, result);
    if (o->asked.form == RD_MPI_NONBLOCKING)
        rd_mpi_operation_drop_types(o); /* here no lock of the MPI's is held */
    o->done(o);
}

/* Has the MPI done its part? */
static bool is_over(rd_mpi_operation_t *o)
{
    for (int i = 0; i < o->work.num_parts; i++) {
        int flag = 0, result = PMPI_Test(&o->work.parts[i], &flag, MPI_STATUS_IGNORE);
        if (result == MPI_SUCCESS && !flag)
            return false;
        if (result == MPI_SUCCESS)
            continue;
        o->result = result;
        if (has_own_comm(o))
            o->unsaid = result;
    }
    return true;
}

/* Returns one that is over, off the list. */
static rd_mpi_operation_t *take_over(void)
{
    rd_mpi_flight_t *before = NULL, *f;

    if (pthread_mutex_trylock(&lock) != 0)
        return NULL;
    for (f = first; f && !is_over(operation_of(f)); f = f->next)
        before = f;
    if (f && before)
        before->next = f->next;
    else if (f)
        first = f->next;
    pthread_mutex_unlock(&lock);
    return f ? operation_of(f) : NULL;
}

/* Returns whether any was over. */
static bool turn(void)
{
    rd_mpi_operation_t *o;
    bool any = false;

    while (first && (o = take_over())) {
        land(o);
        any = true;
    }
    return any;
}

void rd_mpi_stand_ins_turn(void)
{
    turn();
}

bool rd_mpi_stand_ins_any(void)
{
    return first != NULL;
}

/* How long one is waited for in MPI_Finalize, in seconds: as long as rondo waits for a live rank, if that has an end.
 */
double rd_mpi_finalize_patience(void)
{
    const char *text = getenv("RONDO_TIMEOUT_MS");
    long milliseconds = text ? strtol(text, NULL, 10) : 0;

    return milliseconds > 0 ? (double)milliseconds * 1e-3 : LEAVE_S;
}

/* Nobody has waited for them, and the other ranks may never come. Then they are left to the MPI, as without this
 * library, and their memory with them. */
void rd_mpi_stand_ins_end(void)
{
    double since = rd_mpi_clock(), longest = rd_mpi_finalize_patience();
    int left = 0;

    while (first && rd_mpi_clock() - since < longest) {
        if (turn())
            since = rd_mpi_clock();
        rd_mpi_progress(NULL);
    }
    for (rd_mpi_flight_t *f = first; f; f = f->next)
        left++;
    first = NULL;
    if (left)
        fprintf(stderr,
                "rondo: MPI_Finalize was called before %d nonblocking or persistent collective call%s, which the MPI "
                "serves, had been waited for: other ranks have not made all of them within %g s, so they are left\n",
                left, left == 1 ? "" : "s", longest);
}

void rd_mpi_stand_in_free(rd_mpi_operation_t *o)
{
    if (keeps_memory(o)) {
        for (int i = 0; i < o->work.num_parts; i++) {
            if (o->work.parts[i] != MPI_REQUEST_NULL) /* Open MPI has freed one that ended with an error */
                PMPI_Request_free(&o->work.parts[i]);
        }
        rd_mpi_device_return(o->c, &o->on_host, MPI_ERR_OTHER); /* gives the memory back */
    } else if (has_own_comm(o) && o->work.comm != MPI_COMM_NULL) {
        PMPI_Comm_free(&o->work.comm);
        num_comms--;
    }
    rd_mpi_operation_free(o);
}

/* ---- from the start ---- */

static void add(rd_mpi_operation_t *o)
{
    pthread_mutex_lock(&lock);
    o->flight.next = first;
    first = &o->flight;
    pthread_mutex_unlock(&lock);
}

/* Whether there is a device's memory, only this rank need know; but see rd_mpi_is_tolerant. */
static bool may_be_on_device(const rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    return rd_mpi_device_used() && c->refused != RD_MPI_INTER && !rd_mpi_is_tolerant() && rd_mpi_plausible(c, call) &&
           rd_mpi_progress_start();
}

/* NULL: the call goes on as it came, or there is no memory (`result`). */
static rd_mpi_operation_t *create(const rd_mpi_call_t *call, rd_mpi_reason_t reason, int *result)
{
    int error;
    rd_mpi_comm_t *c = rd_mpi_comm_of(call->comm, &error);
    size_t size;
    bool ordered;
    rd_mpi_operation_t *o;

    *result = RD_MPI_HAND_ON(reason);
    if (!c || call->what == RD_MPI_BARRIER_CALL)
        return NULL;
    ordered =
        rd_mpi_may_order(call->form) && rd_mpi_is_ordered(c, call, reason, &size) && rd_mpi_may_collect(c, call, size);
    if (!ordered && !may_be_on_device(c, call))
        return NULL;
    o = rd_mpi_operation_create(c, NULL, call, call->form == RD_MPI_PERSISTENT);
    if (!o || !(o->work.parts = calloc((size_t)c->nranks, sizeof *o->work.parts))) {
        *result = rd_mpi_raise(c, MPI_ERR_NO_MEM);
        if (o)
            rd_mpi_operation_free(o);
        return NULL;
    }
    o->ordered = ordered;
    o->size = size;
    o->work.comm = call->form == RD_MPI_PERSISTENT ? MPI_COMM_NULL : c->comm;
    *result = MPI_SUCCESS;
    return o;
}

/* Lets the MPI begin what is collected. */
static int collect(rd_mpi_operation_t *o)
{
    int result = MPI_SUCCESS;

    o->call = o->asked;
    o->work = (rd_mpi_work_t){
        .c = o->c, .call = &o->call, .lists = o->words, .comm = o->work.comm, .parts = o->work.parts, .but = -1};
    if (rd_mpi_device_used())
        result = rd_mpi_device_bring(o->c, &o->call, &o->on_host);
    return result == MPI_SUCCESS ? rd_mpi_begin_sorted(&o->work, o->size, true) : result;
}

/* Lets the MPI begin the call, or make its request, on memory of the host, as far as the call has a device's. */
static int pass(rd_mpi_operation_t *o, const rd_mpi_call_t *call, rd_mpi_reason_t reason)
{
    int result;

    o->call = *call;
    rd_mpi_operation_drop_types(o); /* the MPI keeps them itself; where this ends, it may hold its lock */
    result = rd_mpi_device_bring(o->c, &o->call, &o->on_host);
    if (result == MPI_SUCCESS && !o->on_host.send.host && !o->on_host.recv.host)
        return RD_MPI_HAND_ON(reason);
    if (result == MPI_SUCCESS)
        result = rd_mpi_pass(&o->call, o->work.parts);
    o->work.num_parts = result == MPI_SUCCESS;
    return result;
}

static void forget(rd_mpi_operation_t *o)
{
    rd_mpi_comm_landed(o->c);
    rd_mpi_operation_free(o);
}

/* What did not begin. Where a part of it has, that goes on to its end, for it uses the memory. */
static int drop(rd_mpi_operation_t *o, int result)
{
    if (o->asked.form == RD_MPI_PERSISTENT) {
        rd_mpi_stand_in_free(o);
        return result;
    }
    if (o->work.num_parts > 0) {
        o->c->uses++;
        o->result = result;
        o->done = forget;
        add(o);
        return result;
    }
    if (o->ordered)
        rd_mpi_end(&o->work, result);
    rd_mpi_device_return(o->c, &o->on_host, result);
    rd_mpi_operation_free(o);
    return result;
}

int rd_mpi_stand_in_start(const rd_mpi_call_t *call, rd_mpi_reason_t reason, MPI_Request *request)
{
    int result;
    rd_mpi_operation_t *o = create(call, reason, &result);

    if (!o)
        return result;
    result = o->ordered ? collect(o) : pass(o, call, reason);
    if (result != MPI_SUCCESS)
        return drop(o, result);
    o->c->uses++;
    result = rd_mpi_nonblocking_request(o);
    *request = o->request;
    add(o);
    return result;
}

/* A communicator for what a persistent reduction collects, unless one of the ranks has taken MOST. It does not inherit
 * the handler that it finds, which may be refused.c's for the time of the call. */
static int split(rd_mpi_operation_t *o)
{
    int mine = num_comms, most, result = PMPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, o->c->comm);

    if (result == MPI_SUCCESS && most >= MOST)
        return RD_MPI_HAND_ON(RD_MPI_MANY);
    if (result == MPI_SUCCESS)
        result = PMPI_Comm_split(o->c->comm, 0, o->c->rank, &o->work.comm);
    if (result != MPI_SUCCESS)
        return result;
    num_comms++;
    return PMPI_Comm_set_errhandler(o->work.comm, MPI_ERRORS_RETURN);
}

static int prepare(rd_mpi_operation_t *o, const rd_mpi_call_t *call, rd_mpi_reason_t reason)
{
    int result = RD_MPI_HAND_ON(reason);

    if (o->ordered)
        result = split(o);
    if (result >= 0 || !may_be_on_device(o->c, call))
        return result;
    o->ordered = false;
    return pass(o, call, reason);
}

int rd_mpi_stand_in_init(const rd_mpi_call_t *call, rd_mpi_reason_t reason, MPI_Request *request)
{
    int result = RD_MPI_HAND_ON(reason);
    rd_mpi_operation_t *o = rd_mpi_next.requests_come_by ? create(call, reason, &result) : NULL;

    if (!o)
        return result;
    result = prepare(o, call, reason);
    if (result == MPI_SUCCESS)
        result = rd_mpi_persistent_request(o);
    if (result != MPI_SUCCESS)
        return drop(o, result);
    *request = o->request;
    return MPI_SUCCESS;
}

int rd_mpi_stand_in_submit(rd_mpi_operation_t *o)
{
    int result;

    o->result = o->unsaid = MPI_SUCCESS;
    if (o->ordered)
        result = collect(o);
    else if ((result = rd_mpi_device_bring_again(o->c, &o->on_host)) == MPI_SUCCESS)
        result = rd_mpi_start_next(o->work.parts);
    if (result == MPI_SUCCESS) {
        add(o);
        return result;
    }
    o->result = result > 0 ? result : rd_mpi_raise(o->c, MPI_ERR_OTHER);
    result = o->result;
    if (o->ordered && o->work.num_parts > 0)
        add(o);
    else
        land(o);
    return result;
}
