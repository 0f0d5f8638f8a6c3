/* What is launched of messages: by messages.c, or messages_staged.c. */
#ifndef RD_CUDA_MESSAGES_H
#define RD_CUDA_MESSAGES_H

#include "inside.h"

typedef struct rd_list {
    rd_cuda_message_t *first, *last;
} rd_list_t;

/* What is to be launched: a list for each peer and direction, in order. */
typedef struct rd_lists {
    rd_list_t *of, here[2 * RD_KRANKS]; /* [2 * peer + send] */
    int nearest, farthest;              /* ranks that a receiver is behind its sender */
    size_t count; /* in all of them, those of no bytes left out: such are not sent at all, as both sides know */
} rd_lists_t;

/* messages_staged.c: none of this rank to itself. They are taken off the lists. */
rondo_result_t rd_messages_staged(rd_cuda_t *cuda, rd_lists_t *left, cudaStream_t stream);

#endif
