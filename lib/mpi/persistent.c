/* Persistent calls of MPI 4. The user's request is a persistent receive from this process itself, on a communicator
 * that nobody else has (rd_mpi_private): starting it starts the operation, and the message that completes it is sent
 * when that is over. So it is one of the MPI's own here, too, and stays when it is complete, which a generalised
 * request does not.
 *
 * Requests are made in one order on all ranks, but started in any. So each has one of rondo's communicators for itself,
 * until it is freed: some of those that nobody uses are kept, and of new ones only a few are made. Making a request may
 * wait for the other ranks, so that happens there, and what it cannot have is the MPI's: as it came, or in the way of
 * stand_in.c, which has its requests here, too. Only those are there where several threads may be in here at once. */
#include <pthread.h>
#include <stdlib.h>

#include "mpi/interpose.h"
#include "mpi/stand_in.h"
#include "mpi/waits.h"

#if RD_MPI_HAS_INIT
#define MOST 8     /* of rondo's communicators that are made for one of the MPI's */
#define TAGS 32768 /* an MPI has at least so many */

static rd_mpi_operation_t *_Atomic first;                /* of those that are not freed, or still active */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */

static rd_mpi_operation_t *find(MPI_Request request)
{
    rd_mpi_operation_t *o;

    pthread_mutex_lock(&lock);
    o = first;
    while (o && (o->freed || o->request != request)) /* the MPI may use the handle of a freed one again */
        o = o->next;
    pthread_mutex_unlock(&lock);
    return o;
}

static bool taken[TAGS];

/* -1: all are taken. */
static int free_tag(void)
{
    static int last;

    for (int i = 0; i < TAGS; i++) {
        last = (last + 1) % TAGS;
        if (!taken[last])
            return last;
    }
    return -1;
}

static void keep(rd_mpi_operation_t *o)
{
    taken[o->tag] = true;
    o->next = first;
    first = o;
}

static void drop(rd_mpi_operation_t *o)
{
    if (o->flight.core)
        rd_mpi_core_put(o->flight.core);
    rd_mpi_operation_free(o);
}

static void release(rd_mpi_operation_t *o)
{
    rd_mpi_operation_t *before;

    pthread_mutex_lock(&lock);
    taken[o->tag] = false;
    if (first == o) {
        first = o->next;
    } else {
        for (before = first; before->next != o; before = before->next)
            ;
        before->next = o->next;
    }
    pthread_mutex_unlock(&lock);
    rd_mpi_comm_landed(o->c);
    if (o->flight.core)
        drop(o);
    else
        rd_mpi_stand_in_free(o);
}

/* Open MPI frees a request, persistent or not, when a wait or a test returns its error. */
static bool ends_with_error(void)
{
#ifdef OPEN_MPI
    return true;
#else
    return false;
#endif
}

/* A message that is too long for its receiver lets the wait for it return an error. */
static void done(rd_mpi_operation_t *o)
{
    int bytes = o->result == MPI_SUCCESS ? 0 : 1, tag = o->tag;
    bool freed;

    pthread_mutex_lock(&lock);
    o->active = false;
    if (bytes && ends_with_error())
        o->freed = true;
    freed = o->freed;
    pthread_mutex_unlock(&lock);
    PMPI_Send("", bytes, MPI_BYTE, 0, tag, rd_mpi_private);
    if (freed)
        release(o);
}

/* Would it be served? All of it is done but the operation itself. Returns what rd_mpi_begin does. */
static int rehearse(rd_mpi_operation_t *o)
{
    double microseconds;
    int result = MPI_SUCCESS;

    o->call = o->asked;
    if (rd_mpi_device_used())
        result = rd_mpi_device_bring(o->c, &o->call, &o->on_host);
    o->work = (rd_mpi_work_t){.c = o->c, .call = &o->call, .rondo = o->c->rondo, .lists = o->words, .but = -1};
    rondo_group_start();
    if (result == MPI_SUCCESS)
        result = rd_mpi_begin(&o->work);
    (void)rondo_group_estimate(&microseconds); /* ends the group, and does nothing */
    rd_mpi_end(&o->work, MPI_ERR_OTHER);       /* so there is nothing to unpack */
    rd_mpi_device_return(o->c, &o->on_host, MPI_ERR_OTHER);
    return result;
}

int rd_mpi_persistent_request(rd_mpi_operation_t *o)
{
    int result = MPI_ERR_OTHER;

    pthread_mutex_lock(&lock);
    o->tag = free_tag();
    if (o->tag >= 0)
        result = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, o->tag, rd_mpi_private, &o->request);
    if (result == MPI_SUCCESS) {
        o->c->uses++;
        o->done = done;
        keep(o);
    }
    pthread_mutex_unlock(&lock);
    return result == MPI_SUCCESS ? result : rd_mpi_raise(o->c, result);
}

/* Who is quicker is found out before there is a request. */
static int rehearse_and_measure(rd_mpi_operation_t *o)
{
    rd_mpi_core_t *core = o->c->core;
    int result = rehearse(o);

    if (result == MPI_SUCCESS)
        rd_mpi_table_count(&o->work);
    if (result != MPI_SUCCESS || !core->due)
        return result;
    rd_mpi_measure(o->c, core);
    return rehearse(o);
}

static int init(rd_mpi_comm_t *c, const rd_mpi_call_t *call, bool may_measure, MPI_Request *request)
{
    rd_mpi_operation_t *o = rd_mpi_operation_create(c, NULL, call, true);
    rd_mpi_reason_t why;
    int result = !o ? rd_mpi_raise(c, MPI_ERR_NO_MEM) : may_measure ? rehearse_and_measure(o) : rehearse(o);

    if (result == MPI_SUCCESS) {
        o->flight.core = rd_mpi_core_take(c, RD_MPI_PERSISTENT, c->made < MOST, &why);
        if (!o->flight.core)
            result = RD_MPI_HAND_ON(why);
    }
    if (result == MPI_SUCCESS)
        result = rd_mpi_persistent_request(o);
    if (result != MPI_SUCCESS) {
        if (o)
            drop(o);
        return result;
    }
    *request = o->request;
    return MPI_SUCCESS;
}

int rd_mpi_init(const rd_mpi_call_t *call, MPI_Request *request)
{
    int error = MPI_SUCCESS, result;
    rd_mpi_comm_t *c = rd_mpi_comm_find(call->comm, &error);
    rd_mpi_reason_t reason;

    if (!c)
        return error == MPI_SUCCESS ? RD_MPI_HAND_ON(RD_MPI_ARGUMENT) : error;
    reason = rd_mpi_judge(c, call);
    result = reason == RD_MPI_SERVED ? init(c, call, true, request) : RD_MPI_HAND_ON(reason);
    if (result < 0)
        rd_mpi_handed_on(rd_mpi_kind(call), (rd_mpi_reason_t)-result);
    return result;
}

int rd_mpi_start_next(MPI_Request *request)
{
    return rd_mpi_next.Start((W)request);
}

static int start(MPI_Request *request)
{
    rd_mpi_operation_t *o = find(*request);
    double began = rd_mpi_settings.report ? rd_mpi_clock() : 0;
    int result;

    if (!o)
        return rd_mpi_start_next(request);
    result = PMPI_Start(request);
    if (result != MPI_SUCCESS)
        return result;
    o->active = true;
    if (!o->flight.core)
        return rd_mpi_stand_in_submit(o);
    result = rd_mpi_operation_submit(o, NULL);
    rd_mpi_tallies[rd_mpi_kind(&o->call)].served_s += rd_mpi_settings.report ? rd_mpi_clock() - began : 0;
    if (result < 0) /* it was served when it was rehearsed */
        result = rd_mpi_raise(o->c, MPI_ERR_OTHER);
    o->result = result;
    if (result != MPI_SUCCESS)
        done(o);
    return result;
}

static int c_start(W request)
{
    return first ? start((MPI_Request *)request) : rd_mpi_next.Start(request);
}

static int c_startall(W n, W requests)
{
    int result = MPI_SUCCESS;

    if (!first || (int)n < 0 || !requests)
        return rd_mpi_next.Startall(n, requests);
    for (int i = 0; i < (int)n && result == MPI_SUCCESS; i++)
        result = start((MPI_Request *)requests + i);
    return result;
}

static int c_request_free(W request)
{
    rd_mpi_operation_t *o = first ? find(*(MPI_Request *)request) : NULL;
    int result = rd_mpi_next.Request_free(request);

    bool active = true;

    if (o && result == MPI_SUCCESS) {
        pthread_mutex_lock(&lock);
        o->freed = true;
        active = o->active;
        pthread_mutex_unlock(&lock);
    }
    if (!active)
        release(o);
    return result;
}

int rd_mpi_init_own(rd_mpi_comm_t *c, const rd_mpi_call_t *call, MPI_Request *request)
{
    return init(c, call, false, request);
}

int rd_mpi_start_and_wait(MPI_Request *request)
{
    int result = c_start((W)request);

    return result == MPI_SUCCESS ? rd_mpi_wait(request) : result;
}

void rd_mpi_request_free(MPI_Request *request)
{
    c_request_free((W)request);
}

void rd_mpi_persistent_fill(rd_mpi_entries_t *entries)
{
    entries->Start = c_start;
    entries->Startall = c_startall;
    entries->Request_free = c_request_free;
}

void rd_mpi_persistent_end(void)
{
    rd_mpi_operation_t *next;

    for (rd_mpi_operation_t *o = first; o; o = next) {
        next = o->next;
        if (!o->active)
            release(o);
    }
}
#else
int rd_mpi_init_own(rd_mpi_comm_t *c, const rd_mpi_call_t *call, MPI_Request *request)
{
    (void)call;
    (void)request;
    return rd_mpi_raise(c, MPI_ERR_OTHER);
}

int rd_mpi_persistent_request(rd_mpi_operation_t *o)
{
    return rd_mpi_raise(o->c, MPI_ERR_OTHER);
}

int rd_mpi_start_next(MPI_Request *request)
{
    return PMPI_Start(request);
}

int rd_mpi_start_and_wait(MPI_Request *request)
{
    return rd_mpi_wait(request);
}

void rd_mpi_request_free(MPI_Request *request)
{
    PMPI_Request_free(request);
}

void rd_mpi_persistent_fill(rd_mpi_entries_t *entries)
{
    (void)entries;
}

void rd_mpi_persistent_end(void)
{
}
#endif
