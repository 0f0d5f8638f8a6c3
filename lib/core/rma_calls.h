/* One-sided operations of a communicator: its windows, and the way of a call to rma/. */
#ifndef RD_CORE_RMA_CALLS_H
#define RD_CORE_RMA_CALLS_H

#include "core/comm.h"
#include "rma/rma.h"

/* Makes a window; collective. The arguments have been checked. If `buffer` is NULL, `bytes` are allocated. */
rondo_result_t rd_comm_window_create(rondo_comm_t comm, void *buffer, size_t bytes, rondo_window_t *window);
/* Ends it, and frees what was allocated for it; collective. */
rondo_result_t rd_comm_window_destroy(rondo_comm_t comm, rondo_window_t window);
/* Says where this rank's part lies. */
rondo_result_t rd_comm_window_buffer(rondo_comm_t comm, rondo_window_t window, void **buffer);
/* Returns true if it is one of the communicator's. The caller is inside. */
bool rd_comm_has_window(rondo_comm_t comm, rondo_window_t window);
/* Says what is wrong with one that is not. */
rondo_result_t rd_window_refused(rondo_comm_t comm, rondo_window_t window, const char *call);

/* Runs a one-sided operation of `call`, enqueues it, or records it in this thread's group. Its arguments have been
 * checked, but for the window and what it has of memory; its `rma` is set here. */
rondo_result_t rd_call_rma(rondo_comm_t comm, rd_rma_op_t *op, const char *call, rondo_stream_t stream);

/* The one-sided operations of a group, in the order of the calls. */
typedef struct rd_rma_list {
    rd_rma_op_t *first, *last;
    int n;
} rd_rma_list_t;

void rd_rma_list_add(rd_rma_list_t *list, rd_rma_op_t *op); /* takes it over */
/* Hands all of them to their communicators. The caller is inside those, and `completion` counts the operations. */
void rd_rma_list_hand_on(rd_rma_list_t *list, rd_completion_t *completion);
void rd_rma_list_clear(rd_rma_list_t *list);

/* The end: tells the other ranks that this one leaves, and then frees everything. */
void rd_comm_rma_leave(rondo_comm_t comm);
void rd_comm_rma_end(rondo_comm_t comm);

#endif
