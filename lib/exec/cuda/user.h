/* What serves kernels of the program's own (rondo_device.cuh): windows, and sets of barriers and signals, which lie in
 * windows, too. */
#ifndef RD_EXEC_CUDA_USER_H
#define RD_EXEC_CUDA_USER_H

#include "exec/cuda/cuda_int.h"

struct rd_cuda_window {
    struct rd_cuda_window *next;
    bool kept;    /* of barriers and signals: its memory is kept for the next one, because cudaFree waits for kernels */
    void *memory; /* that rondo has allocated; NULL: the program's */
    size_t allocated;
    void *imported[RONDO_DEVICE_RANKS]; /* bases to be closed */
    char *base[RONDO_DEVICE_RANKS];
    uint64_t bytes[RONDO_DEVICE_RANKS];
};

/* Returns an error that names `call` where kernels of this communicator do not reach each other's memory; the same on
 * all ranks. */
rondo_result_t rd_user_possible(const rd_cuda_t *cuda, const char *call);
/* Collective; `kept` as above. */
rondo_result_t rd_user_window_create(rd_cuda_t *cuda, void *buffer, size_t bytes, bool kept, rd_cuda_window_t **made);

#endif
