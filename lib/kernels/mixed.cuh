/* One launch for messages to and from ranks of this node and of others: those within the node go as in p2p.cuh, by the
 * windows of the node's ranks, whose communicator is `comm`; the others go as in proxy.cuh, by the proxy. Neither kind
 * waits for the other, so each message depends on its own peer alone, as in a launch of one kind. Two kernels side by
 * side would not do: nothing guarantees that both run at once, least of all as branches of a graph. */
#ifndef RD_KERNELS_MIXED_CUH
#define RD_KERNELS_MIXED_CUH

#include "kernels/p2p.cuh"
#include "kernels/proxy.cuh"

/* Blocks for other nodes come first. */
template <class PROTO, uint32_t ITEMS, uint32_t THREADS, uint32_t BLOCKS>
RD_KERNEL_OF(THREADS, BLOCKS)
rd_mixed(RD_WORK(rd_kwork_t))
{
    const rd_kproxied_messages_t &m = work.proxied_messages;
    const uint32_t proxied = m.npairs * m.proxy.teams;

    gpu_begin();
    rd_begun(work.comm);
    if (gpu_block() < proxied)
        rd_proxied_serve(work, gpu_block());
    else
        rd_messages_serve<PROTO, ITEMS>(work, gpu_block() - proxied, gpu_blocks() - proxied);
}

#endif
