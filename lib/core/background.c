/* Jobs, on the caller's thread or on their own: see background.h. */
#include "core/background.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "core/submit.h"
#include "exec/cuda/cuda.h"

rondo_result_t rd_job_config(rd_job_t *job, const rondo_config_t *config, bool makes)
{
    rondo_result_t result = rd_comm_config(&job->config, config);

    if (result != RONDO_SUCCESS || (result = rd_cuda_device(job->config.device, &job->config.device)))
        return result;
    if (job->config.name) {
        strncpy(job->name, job->config.name, sizeof job->name - 1);
        job->config.name = job->name;
    }
    if (job->config.network) {
        strncpy(job->network, job->config.network, sizeof job->network - 1);
        job->config.network = job->network;
    }
    job->waits = job->config.blocking != 0;
    return makes ? rd_comm_allocate(&job->made, NULL) : RONDO_SUCCESS;
}

void rd_job_used(rd_job_t *job)
{
    uint64_t busy = rd_comm_mark | RD_COMM_BUSY;

    if (job->waits || !job->used)
        return;
    atomic_compare_exchange_strong(&job->used->alive, &busy, rd_comm_mark); /* unless it has been ended */
    rd_comm_release(job->used);
    job->used = NULL;
}

void rd_job_wipe(rd_job_t *job)
{
    explicit_bzero(&job->id, sizeof job->id);
    if (job->ids)
        explicit_bzero(job->ids, (size_t)job->nids * sizeof *job->ids);
    free(job->ids);
    job->ids = NULL;
}

static rondo_result_t run(rd_job_t *job)
{
    if (job->config.name)
        job->config.name = job->name;
    if (job->config.network)
        job->config.network = job->network;
    rondo_result_t result = job->run(job);
    free(job->members);
    rd_job_wipe(job);
    return result;
}

static void *run_behind(void *arg)
{
    rd_job_t *job = arg;
    rondo_comm_t made = job->made, used = job->used;
    rondo_result_t result = run(job);

    if (!made && used && result != RONDO_SUCCESS)
        rd_error_keep(&used->ctx, rd_thread_error());
    rd_job_used(job);
    if (made && result == RONDO_SUCCESS) {
        rd_comm_publish(made);
    } else if (made) {
        rd_error_keep(&made->ctx, rd_thread_error());
        atomic_store(&made->background, (int)result);
    }
    if (made)
        rd_comm_release(made);
    free(job);
    return NULL;
}

/* Marks the communicators and starts the thread. */
static rondo_result_t start(const rd_job_t *job)
{
    uint64_t alive = rd_comm_mark;
    rd_job_t *own = malloc(sizeof *own);
    pthread_t thread;

    if (!own)
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for a call with blocking = 0");
    *own = *job;
    if (own->made)
        rd_comm_retain(own->made);
    if (own->used) {
        rd_comm_retain(own->used);
        atomic_compare_exchange_strong(&own->used->alive, &alive, rd_comm_mark | RD_COMM_BUSY);
    }
    if (rd_thread_start(&thread, run_behind, own) == 0) {
        pthread_detach(thread);
        return RONDO_IN_PROGRESS;
    }
    rd_job_used(own);
    if (own->made)
        rd_comm_release(own->made);
    own->ids = NULL; /* the caller's still */
    rd_job_wipe(own);
    free(own);
    return rd_error(NULL, RONDO_ERR_SYSTEM, "no thread for a call with blocking = 0: see ulimit -u");
}

rondo_result_t rd_job_begin(rd_job_t *job, rondo_comm_t *newcomm)
{
    rondo_comm_t made = job->made;
    rondo_result_t result = job->waits ? run(job) : start(job);

    if (result == RONDO_SUCCESS && made)
        rd_comm_publish(made);
    if (newcomm && (result == RONDO_SUCCESS || result == RONDO_IN_PROGRESS))
        *newcomm = made;
    else if (made)
        rd_comm_release(made);
    if (result == RONDO_IN_PROGRESS)
        job->ids = NULL; /* its thread's */
    if (job->waits || result == RONDO_IN_PROGRESS)
        return result;
    free(job->members);
    return job->used && !job->local ? rd_call_spoiled(job->used, result) : result; /* the other ranks wait for it */
}

/* Returns true if a thread makes or uses the communicator. */
static bool under_way(rondo_comm_t comm)
{
    uint64_t alive = atomic_load(&comm->alive);

    return alive == (rd_comm_mark | RD_COMM_BUSY) ||
           (alive == (rd_comm_mark | RD_COMM_MAKING) && atomic_load(&comm->background) == RONDO_IN_PROGRESS);
}

void rd_job_wait(rondo_comm_t comm)
{
    const struct timespec millisecond = {0, 1000000};

    while (under_way(comm))
        nanosleep(&millisecond, NULL);
}
