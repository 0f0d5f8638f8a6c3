/* What is launched of messages: by p2p.c, or exec/cuda/proxy/p2p_proxy.c. */
#ifndef RD_EXEC_CUDA_P2P_H
#define RD_EXEC_CUDA_P2P_H

#include "exec/cuda/cuda_int.h"

typedef struct rd_list {
    rd_cuda_message_t *first, *last;
} rd_list_t;

/* What is to be launched: a list for each peer and direction, in order. */
typedef struct rd_lists {
    rd_list_t *of, here[2 * RD_KRANKS]; /* [2 * peer + send] */
    int nearest, farthest;              /* ranks that a receiver is behind its sender */
    size_t count; /* in all of them, those of no bytes left out: such are not sent at all, as both sides know */
} rd_lists_t;

/* p2p.c: what a launch by windows is told besides what the rank sends to itself, which `k` has; behind `used` of
 * k->here, and beside what takes so many multiprocessors. What does not fit there is written into the window before. */
rondo_result_t rd_messages_take(rd_cuda_t *cuda, const rd_lists_t *l, uint32_t used, uint32_t beside, rd_kmessages_t *k,
                                cudaStream_t stream);

/* exec/cuda/proxy/p2p_proxy.c: none of this rank to itself. They are taken off the lists. `near`: what stays on this
 * node, as cuda->inner counts its ranks, and goes beside; NULL: nothing does. */
rondo_result_t rd_messages_proxied(rd_cuda_t *cuda, rd_lists_t *left, const rd_lists_t *near, cudaStream_t stream);

#endif
