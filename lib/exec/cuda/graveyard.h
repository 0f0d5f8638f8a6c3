/* What communicators leave behind, and later ones find: graveyard.c. */
#ifndef RD_EXEC_CUDA_GRAVEYARD_H
#define RD_EXEC_CUDA_GRAVEYARD_H

#include "exec/cuda/cuda_int.h"
#include "exec/cuda/proxy/proxy.h"

/* Counts the communicator among the living ones of the process, and looks for a window of its device and length that
 * nobody touches any more. NULL: there is none. */
char *rd_grave_window_take(rd_cuda_t *cuda);
/* The memory of the proxies, which no proxy uses any more: for the next communicator, when the kernels are over. */
void rd_grave_area_leave(rd_cuda_t *cuda, rd_proxy_path_area_t *area);
/* Lets the communicator, which has failed, end before what it has enqueued is over: everything that this will touch is
 * kept until then. Returns false if too much is kept so, or there is no memory; then the end has to wait. */
bool rd_grave_hold(rd_cuda_t *cuda);

/* words.c: a communicator's words in pinned memory, all zeros. NULL: *error is set. */
rd_khost_t *rd_words_take(cudaError_t *error);
void rd_words_give(rd_khost_t *words);
/* Gives all back. Called when no communicator of this process is left. */
void rd_words_free(void);

#endif
