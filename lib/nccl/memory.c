/* Memory, registrations and windows. NCCL's registration is local and rondo's is collective, so a registration is only
 * recorded here. A symmetric window, which is collective in NCCL as well, becomes a registration of rondo. A caller
 * promises to use it at the same offset on all ranks, which is the condition that RONDO_CUDA_COPY needs
 * (rondo_comm_windows).
 */
#include <stdlib.h>

#include "core/binding.h"
#include "nccl/later.h"
#include "nccl/shim.h"

typedef struct nc_registration {
    struct nc_registration *next;
    void *buffer;
    size_t bytes;
    int window;
    rondo_registration_t rondo; /* or NULL */
    rondo_window_t opened;      /* of a symmetric window, for one-sided operations; NULL: it does not serve them */
} nc_registration_t;

ncclResult_t pncclMemAlloc(void **ptr, size_t size)
{
    nc_settings();
    if (!ptr)
        return nc_error(NULL, ncclInvalidArgument, "ncclMemAlloc: ptr is NULL");
    return nc_device_alloc(ptr, size);
}
NC_TWIN(MemAlloc);

ncclResult_t pncclMemFree(void *ptr)
{
    return ptr ? nc_device_free(ptr) : ncclSuccess;
}
NC_TWIN(MemFree);

static nc_registration_t *add(ncclComm_t comm, void *buffer, size_t bytes, int window)
{
    nc_registration_t *made = calloc(1, sizeof *made);

    if (!made)
        return NULL;
    made->buffer = buffer;
    made->bytes = bytes;
    made->window = window;
    pthread_mutex_lock(&nc_lock);
    made->next = comm->registrations;
    comm->registrations = made;
    pthread_mutex_unlock(&nc_lock);
    return made;
}

/* Finds a registration or window and, with `take`, removes it from the list. Returns NULL if it is none of this
 * communicator. */
static nc_registration_t *find(ncclComm_t comm, const void *handle, int window, int take)
{
    nc_registration_t *found = NULL;

    pthread_mutex_lock(&nc_lock);
    for (nc_registration_t **r = &comm->registrations; *r; r = &(*r)->next) {
        if (*r != handle || (*r)->window != window)
            continue;
        found = *r;
        if (take)
            *r = found->next;
        break;
    }
    pthread_mutex_unlock(&nc_lock);
    return found;
}

void nc_registration_end_all(ncclComm_t comm)
{
    for (nc_registration_t *r = comm->registrations; r; r = r->next) {
        if (r->rondo && r->opened && comm->rondo)
            (void)rondo_window_close(comm->rondo, r->opened);
        if (r->rondo && comm->rondo)
            (void)rondo_comm_deregister(comm->rondo, r->rondo);
        r->rondo = NULL;
        r->opened = NULL;
    }
}

void nc_registration_free_all(ncclComm_t comm)
{
    while (comm->registrations) {
        nc_registration_t *gone = comm->registrations;
        comm->registrations = gone->next;
        free(gone);
    }
}

ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    const char *call = "ncclCommRegister";
    ncclResult_t result = nc_comm_ready(comm, call);

    if (result != ncclSuccess)
        return result;
    if (!handle || !buff || !size)
        return nc_error(comm, ncclInvalidArgument, "%s: %s", call,
                        !handle ? "handle is NULL"
                        : !buff ? "buff is NULL"
                                : "size is 0");
    nc_log(NC_SUBSYS_REG, "register comm %p buffer %p size %zu", (void *)comm, buff, size);
    *handle = add(comm, buff, size, 0);
    return *handle ? ncclSuccess : nc_error(comm, ncclSystemError, "%s: no memory", call);
}
NC_TWIN(CommRegister);

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
    const char *call = "ncclCommDeregister";
    ncclResult_t result = nc_comm_valid(comm, call);
    nc_registration_t *gone;

    if (result != ncclSuccess || !handle)
        return result;
    if ((gone = find(comm, handle, 0, 1)) == NULL && find(comm, handle, 1, 0) != NULL)
        return pncclCommWindowDeregister(comm, handle); /* PyTorch passes windows, too, before an abort */
    if (!gone)
        return nc_error(comm, ncclInvalidUsage, "%s: handle is not from ncclCommRegister of this communicator", call);
    nc_log(NC_SUBSYS_REG, "deregister comm %p buffer %p size %zu", (void *)comm, gone->buffer, gone->bytes);
    free(gone);
    return ncclSuccess;
}
NC_TWIN(CommDeregister);

static ncclResult_t window_register(nc_job_t *job)
{
    nc_registration_t *made = add(job->comm, job->buffer, job->bytes, 1);
    rondo_registration_t registration = NULL;
    rondo_window_t opened = NULL;
    rondo_result_t result = RONDO_SUCCESS;

    if (!made)
        return nc_error(job->comm, ncclSystemError, "%s: no memory", job->call);
    if (job->number[0] & NCCL_WIN_COLL_SYMMETRIC && job->comm->device == RONDO_DEVICE_HOST)
        result = rondo_window_create(job->comm->rondo, job->buffer, job->bytes, &opened, 0);
    else if (job->number[0] & NCCL_WIN_COLL_SYMMETRIC)
        result = rondo_comm_register(job->comm->rondo, job->buffer, job->bytes, &registration);
    if (registration) /* what else fails, fails in the calls that need a window */
        (void)rondo_registration_window(job->comm->rondo, registration, &opened);
    if (result != RONDO_SUCCESS) {
        free(find(job->comm, made, 1, 1));
        return nc_result(job->comm, job->comm->rondo, result);
    }
    made->rondo = registration;
    made->opened = opened;
    *job->window = (ncclWindow_t)(void *)made;
    return ncclSuccess;
}

static ncclResult_t record_window(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
    const char *call = "ncclCommWindowRegister";
    ncclResult_t result = nc_comm_ready(comm, call);

    if (win)
        *win = NULL; /* as in NCCL, also if it fails */
    if (result != ncclSuccess)
        return result;
    if (!win || !buff || !size)
        return nc_error(comm, ncclInvalidArgument, "%s: %s", call,
                        !win    ? "win is NULL"
                        : !buff ? "buff is NULL"
                                : "size is 0");
    if (winFlags & ~(NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING))
        return nc_error(comm, ncclInvalidArgument,
                        "%s: winFlags is %#x: NCCL_WIN_COLL_SYMMETRIC (1) is known, and "
                        "NCCL_WIN_STRICT_ORDERING (2)",
                        call, (unsigned)winFlags);
    /* The call completes before it returns, also with config.blocking = 0, because PyTorch takes ncclInProgress for an
     * error here. */
    nc_log(NC_SUBSYS_REG, "register window comm %p buffer %p size %zu flags %d", (void *)comm, buff, size, winFlags);
    nc_job_t job = {.run = window_register,
                    .call = call,
                    .comm = comm,
                    .blocking = 1,
                    .number = {winFlags, 0},
                    .buffer = buff,
                    .bytes = size,
                    .window = win};
    return nc_group_job(&job);
}

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
    return nc_group_check(record_window(comm, buff, size, win, winFlags));
}
NC_TWIN(CommWindowRegister);

/* The window stays in the list where it is refused (a group that fails, a communicator that is suspended): the program
 * can try again. */
static ncclResult_t window_deregister(nc_job_t *job)
{
    nc_registration_t *gone = find(job->comm, job->registration, 1, 0);
    rondo_result_t result = RONDO_SUCCESS;

    if (!gone)
        return nc_error(job->comm, ncclInvalidArgument, "%s: the group has deregistered win before", job->call);
    if (gone->opened) /* local, as in NCCL: what is left of it goes with the communicator */
        result = rondo_window_close(job->comm->rondo, gone->opened);
    if (gone->rondo) /* by which a registration's window is no more */
        gone->opened = NULL;
    if (gone->rondo)
        result = rondo_comm_deregister(job->comm->rondo, gone->rondo);
    if (result == RONDO_SUCCESS)
        free(find(job->comm, gone, 1, 1));
    return nc_result(job->comm, job->comm->rondo, result);
}

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    const char *call = "ncclCommWindowDeregister";
    ncclResult_t result = nc_comm_valid(comm, call);

    if (result != ncclSuccess || !win)
        return result;
    if (nc_comm_busy(comm))
        return nc_comm_ready(comm, call);
    nc_job_t job = {.run = window_deregister, .call = call, .comm = comm, .blocking = 1};
    job.registration = find(comm, win, 1, 0);
    if (!job.registration)
        return nc_error(comm, ncclInvalidArgument, "%s: win is not from ncclCommWindowRegister of this communicator",
                        call);
    nc_log(NC_SUBSYS_REG, "deregister window comm %p buffer %p size %zu", (void *)comm, job.registration->buffer,
           job.registration->bytes);
    return nc_group_job(&job);
}
NC_TWIN(CommWindowDeregister);

rondo_window_t nc_window_of(ncclComm_t comm, ncclWindow_t win)
{
    const nc_registration_t *r = find(comm, win, 1, 0);

    return r ? r->opened : NULL;
}

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr)
{
    const char *call = "ncclWinGetUserPtr";
    ncclResult_t result = nc_comm_valid(comm, call);
    const nc_registration_t *r;

    if (result != ncclSuccess)
        return result;
    r = find(comm, win, 1, 0);
    if (!r || !outUserPtr)
        return nc_error(comm, ncclInvalidArgument, "%s: %s", call,
                        r ? "outUserPtr is NULL" : "win is not from ncclCommWindowRegister of this communicator");
    *outUserPtr = r->buffer;
    return ncclSuccess;
}
NC_TWIN(WinGetUserPtr);

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
    const char *call = "ncclCommMemStats";
    ncclResult_t result = nc_comm_ready(comm, call);
    rondo_memory_t memory = {.size = sizeof memory};

    if (result != ncclSuccess)
        return result;
    if (!value || (unsigned)stat > ncclStatGpuMemTotal)
        return nc_error(comm, ncclInvalidArgument, "%s: %s", call,
                        value ? "stat is none of ncclCommMemStat_t" : "value is NULL");
    result = nc_result(comm, comm->rondo, rondo_comm_memory_now(comm->rondo, &memory));
    if (result == ncclSuccess)
        *value = stat == ncclStatGpuMemSuspend     ? memory.suspend
                 : stat == ncclStatGpuMemSuspended ? (uint64_t)atomic_load(&comm->suspended)
                 : stat == ncclStatGpuMemPersist   ? memory.device - memory.suspend
                                                   : memory.device;
    return result;
}
NC_TWIN(CommMemStats);

static ncclResult_t suspend(nc_job_t *job)
{
    ncclResult_t result = nc_result(job->comm, job->comm->rondo, rondo_comm_suspend(job->comm->rondo));

    if (result == ncclSuccess)
        atomic_store(&job->comm->suspended, 1);
    return result;
}

static ncclResult_t resume(nc_job_t *job)
{
    ncclResult_t result = nc_result(job->comm, job->comm->rondo, rondo_comm_resume(job->comm->rondo));

    if (result == ncclSuccess)
        atomic_store(&job->comm->suspended, 0);
    return result;
}

/* They complete before they return, or at the end of the group, also with config.blocking = 0, as registering does. */
static ncclResult_t run(ncclComm_t comm, const char *call, ncclResult_t (*job_run)(nc_job_t *job))
{
    nc_job_t job = {.run = job_run, .call = call, .comm = comm, .blocking = 1};
    ncclResult_t result = nc_comm_ready(comm, call);

    return nc_group_check(result == ncclSuccess ? nc_group_job(&job) : result);
}

ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags)
{
    const char *call = "ncclCommSuspend";
    ncclResult_t result = nc_comm_valid(comm, call);

    if (result != ncclSuccess)
        return result;
    if (flags != NCCL_SUSPEND_MEM)
        return nc_error(comm, ncclInvalidArgument, "%s: flags is %#x: NCCL_SUSPEND_MEM (1) is all there is", call,
                        (unsigned)flags);
    return run(comm, call, suspend);
}
NC_TWIN(CommSuspend);

ncclResult_t pncclCommResume(ncclComm_t comm)
{
    return run(comm, "ncclCommResume", resume);
}
NC_TWIN(CommResume);
