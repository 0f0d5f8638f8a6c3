/* The number of blocks of a launch of messages. The number of warps that serve lines follows from the messages, and
 * ranks agree on it; streams, which are messages by slices, are served by as many blocks as each rank chooses. All of
 * those must run at once, or they wait for each other for ever; blocks that copy what the rank sends to itself wait for
 * nobody. */
#include "exec/cuda/kernel_choose.h"
#include "sched/algo/algos.h"

#define COPY_BLOCKS 32u        /* that copy, beside lines */
#define COPY_BESIDE 16u        /* beside slices, whose blocks have a multiprocessor each: these keep up with a link */
#define COPY_BYTES (32u << 10) /* bytes that one of them copies at least */

static uint32_t at_most(uint32_t value, uint32_t most)
{
    return value < most ? value : most;
}

static uint32_t copy_blocks(const rd_kmessages_t *k)
{
    uint64_t blocks = (k->to_self.bytes + COPY_BYTES - 1) / COPY_BYTES;
    uint32_t most = k->sends + k->receives ? COPY_BESIDE : COPY_BLOCKS;

    return blocks < most ? (uint32_t)blocks : most;
}

/* Returns the number of blocks for streams: fewer if lines, copies or other communicators need some, but one for each
 * stream. */
static uint32_t stream_room(const rd_limits_t *limits, uint32_t parts, const rd_kmessages_t *k)
{
    uint32_t warps = rd_kernel_threads(RD_KERNEL_STREAMS, RD_PROTO_LL) / 32,
             lines = (k->npairs * k->warps + warps - 1) / warps;
    uint32_t least = k->sends + k->receives, most = limits->blocks - lines, copies = copy_blocks(k);

    most -= copies < most ? copies : most;
    most = at_most(most, limits->blocks / parts);
    return most > least ? most : least;
}

void rd_streams_divide(const rd_limits_t *limits, uint32_t parts, uint32_t slices, rd_kmessages_t *k)
{
    k->senders = k->receivers = 1;
    if (k->sends + k->receives == 0)
        return;
    uint32_t room = stream_room(limits, parts, k), most = rd_limits_senders(limits);
    uint32_t receiving = at_most(at_most(most, room * 5 / 8), room - k->sends);
    while (k->receives && k->receivers * 2 * k->receives <= receiving && k->receivers < slices)
        k->receivers *= 2;
    if (k->sends)
        k->senders = at_most(at_most(most, room - k->receives * k->receivers) / k->sends, slices);
    if (k->sends > 1 && k->receives) /* more of them than receive only wait: 3 percent of an all-to-all of four ranks */
        k->senders = at_most(k->senders, k->receivers);
    k->senders += k->senders == 0;
}

rd_klaunch_t rd_streams_launch(const rd_limits_t *limits, bool mixed, const rd_kmessages_t *k)
{
    rd_klaunch_t l = {.kernel = k->sends + k->receives ? RD_KERNEL_STREAMS : RD_KERNEL_MESSAGES,
                      .proto = rd_fifo_proto(limits)};

    l.kernel = mixed ? RD_KERNEL_MIXED : l.kernel;
    l.threads = rd_kernel_threads(l.kernel, l.proto);
    l.blocks = rd_kernel_blocks(&rd_algo_messages, (int)limits->nranks, k->npairs * k->warps, l.threads);
    l.blocks += k->sends * k->senders + k->receives * k->receivers + copy_blocks(k);
    return l;
}
