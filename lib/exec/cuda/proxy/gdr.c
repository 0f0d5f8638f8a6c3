/* Messages between nodes that go from GPU to GPU by GDR: see proxy.h.
 *
 * If UCX has transports that move a GPU's memory without the host's (cuda_ipc, or a network's with GPUDirect), a long
 * message need not be cut into pieces and go through slots: its kernel only says where it lies and waits, so that it
 * begins and ends in the stream's order, and a proxy lets UCX move it as a whole. Both ends know how long it is, and
 * all ranks agree when the communicator is created whether GDR is used (gdr_probe.c).
 *
 * A message costs a proxy some twenty microseconds where UCX announces and acknowledges each by tcp, as long as 8 MB
 * take on NVLink. So proxy channel 0, whose lane has the triggers of all of them in order, deals out the shorter ones,
 * two by two: messages 2i and 2i + 1 of a pair and direction go to proxy channel i modulo the number of channels, on
 * both ends, because both count the same messages. It counts them as they come, not as they are launched, so that
 * graphs count too. The messages of each proxy channel match in order, on a connection of its own, and what a proxy
 * channel finds dealt to it is announced together; kernels are notified in the order of the triggers. Longer messages
 * stay with proxy channel 0: messages of 16 MB that came one at a time took half as long again when they were dealt out
 * to eight.
 *
 * UCX fetches messages by a key to the whole allocation, which it keeps: see rd_net_memory_t of transport/transport.h,
 * and rcache.c for what is known of allocations. Memory of which CUDA knows nothing, or that other processes cannot
 * map, is announced by UCX in its own ways. The same holds for all memory where keys prove slow: UCX may have no fast
 * way to fetch, but one to put. */
#include <string.h>

#include "exec/cuda/proxy/proxy.h"

_Static_assert(RD_KLANE_SLOTS *RD_KGDR_RUN <= RD_GDR_MOST, "what a lane has under way");

#define DEALT_LESS ((uint64_t)8 << 20) /* messages of fewer bytes are dealt out */
#define DEALT_CHANNELS 4               /* with more, single messages were slower: 1 MB took 45 us, and 39 with four */
#define DEALT_RUN 2                    /* consecutive messages that one proxy channel gets, and announces together */

rd_kmessage_t rd_gdr_message(const rd_proxy_path_t *s, const rd_cuda_message_t *m)
{
    const int *node_of = s->cuda->team->node->node_of;
    rd_kmessage_t k = {m->buffer, m->bytes};

    if (s->gdr_min && m->bytes >= s->gdr_min && node_of[m->peer] != node_of[s->cuda->k.rank])
        k.bytes |= RD_KGDR | (rd_buffer_hosts(s->cuda, m->buffer) ? RD_KGDR_HOST : 0);
    return k;
}

int rd_gdr_channels(const rd_proxy_path_t *s)
{
    return s->nchannels < DEALT_CHANNELS ? s->nchannels : DEALT_CHANNELS;
}

/* Returns the proxy channel of a pair's next message. All messages are counted, so that ends whose lengths differ count
 * alike. */
static rd_proxy_channel_t *next_channel(rd_proxy_path_t *s, int peer, int send, uint64_t bytes)
{
    uint32_t run = s->gdr[2 * peer + send]++ / DEALT_RUN;

    return &s->channels[bytes < DEALT_LESS ? run % (uint32_t)rd_gdr_channels(s) : 0];
}

static void deal(rd_proxy_path_t *s, rd_proxy_channel_t *to, int peer, int send, const rd_kmessage_t *m,
                 _Atomic int *pending)
{
    rd_dealt_t *d = to->dealt;

    d->all[d->filled++ % RD_DEALT_MOST] =
        (rd_gdr_message_t){.peer = peer,
                           .send = send,
                           .device = !(m->bytes & RD_KGDR_HOST),
                           .data = m->buffer,
                           .bytes = m->bytes & ~(RD_KGDR | RD_KGDR_HOST),
                           .pending = pending,
                           .whole = send && s->offers ? rd_rcache_whole(s, m) : (rd_net_memory_t){NULL, 0, 0}};
}

/* Returns the communicator's rank of the message's peer, which the trigger names, or the message itself; -1: there is
 * no such rank. A message that names it loses the name. */
static int peer_of(const rd_proxy_path_t *s, const rd_ktrigger_t *trigger, rd_kmessage_t *m)
{
    const bool each = trigger->round & RD_KMESSAGE_EACH, rail = trigger->round & RD_KMESSAGE_RAIL;
    int peer = (int)RD_KMESSAGE_PEER(trigger->round);

    if (each) {
        peer = (int)(m->bytes >> RD_KGDR_PEER & RD_KGDR_PEERS);
        m->bytes &= ~((uint64_t)RD_KGDR_PEERS << RD_KGDR_PEER);
    }
    if (each && rail)
        peer = s->rail && peer < s->net_comms[RD_NET_COMM_RAIL].nranks ? s->rail[peer] : -1;
    return peer < s->cuda->k.nranks && peer != s->cuda->k.rank ? peer : -1;
}

/* Makes everything that was dealt to a proxy channel visible at once, so that it is announced together. */
static void show(rd_proxy_channel_t *from, rd_proxy_channel_t *to)
{
    if (!to)
        return;
    atomic_store_explicit(&to->dealt->put, to->dealt->filled, memory_order_release);
    if (to != from)
        rd_proxy_wake(&to->client);
}

rondo_result_t rd_gdr_deal(rd_proxy_channel_t *channel, rd_proxy_path_lane_t *lane, const rd_ktrigger_t *trigger,
                           const char *slot)
{
    rd_proxy_path_t *s = channel->path;
    rd_completion_t *completion = &lane->flying[lane->taken & (s->k.slots - 1)];
    const uint32_t count = trigger->what;
    const int send = (int)RD_KMESSAGE_SEND(trigger->round);
    rd_proxy_channel_t *last = NULL;
    rd_kmessage_t m;

    if (channel->number || !channel->dealt || count < 1 || count > RD_KGDR_RUN)
        return rd_error(s->cuda->team->ctx, RONDO_ERR_INTERNAL, "a kernel asks proxy channel %d for %u GDR messages",
                        channel->number, count);
    atomic_store(&completion->pending, (int)count);
    lane->taken++;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&m, slot + i * sizeof m, sizeof m);
        int peer = peer_of(s, trigger, &m);
        if (peer < 0)
            return rd_error(s->cuda->team->ctx, RONDO_ERR_INTERNAL, "a kernel asks for a message of no other rank");
        rd_proxy_channel_t *to = next_channel(s, peer, send, m.bytes & ~(RD_KGDR | RD_KGDR_HOST));
        if (to != last)
            show(channel, last);
        deal(s, to, peer, send, &m, &completion->pending);
        last = to;
    }
    show(channel, last);
    return RONDO_SUCCESS;
}

rondo_result_t rd_gdr_begin(rd_proxy_channel_t *channel, int *moved)
{
    rd_queue_t *net_comm = channel->net_comms[RD_NET_COMM_ALL];
    rondo_result_t result = RONDO_SUCCESS;
    rd_dealt_t *d = channel->dealt;

    while (result == RONDO_SUCCESS && d->taken != atomic_load_explicit(&d->put, memory_order_acquire)) {
        if (!net_comm->active && rd_transport_gdr_peer(net_comm->net) < 0)
            rd_queue_wait_begin(net_comm);
        result = net_comm->net->ops->gdr(net_comm->net, &d->all[d->taken++ % RD_DEALT_MOST]);
        *moved = 1;
    }
    return result;
}

/* UCX works with a device's memory on the thread's current device, and must be able to while other threads capture.
 * Nothing else sets device and capture mode of a proxy's thread. */
void rd_gdr_turn(const rd_proxy_path_t *s)
{
    static _Thread_local int at = -1;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    if (at == s->cuda->device || cudaSetDevice(s->cuda->device) != cudaSuccess)
        return;
    if (at < 0)
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
    at = s->cuda->device;
}

/* The kernel is running already, and what a network device has written may still be on its way to the GPU. */
void rd_gdr_flush(void)
{
    if (cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                           cudaFlushGPUDirectRDMAWritesToOwner) != cudaSuccess)
        (void)cudaGetLastError();
}
