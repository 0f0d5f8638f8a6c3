/* Collectives by copy engines: what copy_engine.c, which reads registered buffers, shares with copy_staging.c, which
 * reads what has been put into a window first. */
#ifndef RD_EXEC_CUDA_COPY_ENGINE_H
#define RD_EXEC_CUDA_COPY_ENGINE_H

#include "exec/cuda/cuda_int.h"

typedef struct rd_copies {
    rd_cuda_t *cuda;
    const rd_call_t *call;
    size_t bytes;                  /* of a block; broadcast: of the whole */
    const rd_kregistered_t *where; /* what is read; NULL: staged */
    uint64_t offset;
    bool in_place;
    rondo_result_t result; /* the first error: nothing more is enqueued after it */
    rd_kwork_t barrier;
} rd_copies_t;

/* Launches a meeting. `behind`: this rank has read since the last meeting. */
void rd_copies_barrier(rd_copies_t *c, bool behind);
void rd_copies_copy(rd_copies_t *c, void *to, const void *from, size_t bytes, cudaStream_t stream);
/* Two branches (rd_order_fork), of which the first one goes into fork->beside. Returns false where there are none,
 * because an error came before. Once there are, both that follow are called, even behind an error: what is enqueued
 * must be over before anything is closed. */
bool rd_copies_fork(rd_copies_t *c, cudaStream_t beside, rd_fork_t *fork);
void rd_copies_forked(rd_copies_t *c, rd_fork_t *fork);
void rd_copies_joined(rd_copies_t *c, rd_fork_t *fork);
/* Returns the i-th rank behind this one, so that not all ranks read from the same one at once. */
int rd_copies_behind(const rd_copies_t *c, int i);
/* Cuts `bytes` bytes into `n` parts. */
void rd_copies_part(size_t bytes, int n, int i, size_t *at, size_t *part);

/* copy_staging.c. Enqueues the operation out of staging memory. */
void rd_copies_staging(rd_copies_t *c);

#endif
