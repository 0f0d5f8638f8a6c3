/* Lists of messages and their launches, by p2p.c or exec/cuda/proxy/p2p_proxy.c. */
#ifndef RD_EXEC_CUDA_P2P_H
#define RD_EXEC_CUDA_P2P_H

#include "exec/cuda/cuda_int.h"

typedef struct rd_list {
    rd_cuda_message_t *first, *last;
} rd_list_t;

/* The messages to be launched: a list for each peer and direction, in order. */
typedef struct rd_lists {
    rd_list_t *of, here[2 * RD_KRANKS]; /* [2 * peer + send] */
    int nearest, farthest;              /* smallest and greatest distance in ranks from a sender to its receiver */
    size_t count; /* of messages in all lists; those of no bytes are not sent, as both sides know, and not counted */
} rd_lists_t;

/* p2p.c. Fills in `k` for a launch by windows, except the messages of the rank to itself, which `k` has already. The
 * messages are placed behind the first `used` entries of k->here, and leave `beside` multiprocessors free. If they do
 * not fit there, they are written into the window before the launch. */
rondo_result_t rd_messages_take(rd_cuda_t *cuda, const rd_lists_t *l, uint32_t used, uint32_t beside, rd_kmessages_t *k,
                                cudaStream_t stream);

/* exec/cuda/proxy/p2p_proxy.c. Launches the messages in `left`, which has none of this rank to itself, and takes them
 * off the lists. `near`: messages within this node, with ranks as cuda->node_comm counts them, that go beside them;
 * NULL: none. */
rondo_result_t rd_messages_proxied(rd_cuda_t *cuda, rd_lists_t *left, const rd_lists_t *near, cudaStream_t stream);

#endif
