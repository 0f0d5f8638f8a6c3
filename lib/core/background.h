/* Calls that need not wait: creation, split, shrink and finalize with blocking = 0.
 *
 * Such a call is a job: a function, and copies of all arguments. A caller that waits runs it itself;
 * with blocking = 0 a thread does, and the call returns RONDO_IN_PROGRESS. Meanwhile the communicator that is being
 * made has the mark RD_COMM_MAKING, that which is used RD_COMM_BUSY, so that every other call on them is refused
 * without a test of its own. rondo_comm_get_error reads `background`; abort ends what is under way by the stop words,
 * and waits for the thread to let go. */
#ifndef RD_CORE_BACKGROUND_H
#define RD_CORE_BACKGROUND_H

#include <stdbool.h>

#include "core/comm.h"

typedef struct rd_job {
    rondo_result_t (*run)(struct rd_job *job);
    rondo_comm_t made; /* the communicator to be made; NULL: none */
    rondo_comm_t used; /* the one that is used; NULL: none */
    rondo_config_t config;
    char name[64], network[64]; /* those of the config, or nothing */
    rondo_unique_id_t id;
    bool has_id;            /* of a grow: this member has the id */
    rondo_unique_id_t *ids; /* of a creation by several ids: `nids`; owned by the job that runs */
    int nids, nranks, rank;
    int color, key; /* of a split */
    int *members;   /* of a shrink; freed with the job */
    int nmembers;
    bool waits;                                  /* the caller runs it */
    bool local;                                  /* no other rank waits for it: a finalize */
    void (*known)(rondo_comm_t made, void *arg); /* of a creation by rondo_comm_create_known; or NULL */
    void *arg;
} rd_job_t;

/* Takes the config into a job whose other fields are set, and allocates `made` if `makes`. The device is found out
 * here, because it is that of the calling thread. */
rondo_result_t rd_job_config(rd_job_t *job, const rondo_config_t *config, bool makes);
/* Runs the job, or starts a thread that does if it need not wait. *newcomm is set if a communicator is made (with
 * blocking = 0 at once), to NULL if none is to be made; it may be NULL itself. */
rondo_result_t rd_job_begin(rd_job_t *job, rondo_comm_t *newcomm);
/* The job uses `used` no more: others may. */
void rd_job_used(rd_job_t *job);

/* Wipes the ids, which contain the secret that lets a rank join, and frees `ids`. */
void rd_job_wipe(rd_job_t *job);

/* Waits until no job makes or uses the communicator. */
void rd_job_wait(rondo_comm_t comm);

#endif
