/* The host's part of inline data, which goes between kernels and proxies by flagged lines: see kernels/inline.cuh. A
 * line is loaded and stored by one instruction. Should that be split, it is split between the halves, each of which has
 * a flag. */
#include "exec/cuda/proxy/proxy.h"

#include <string.h>

typedef uint32_t line_t __attribute__((vector_size(16)));
typedef uint64_t halves_t __attribute__((vector_size(16)));

#define POLLS 256 /* polls of a line in a turn: its kernel has begun, so it comes within a microsecond or two */

static char *lines_of(const rd_proxy_channel_t *channel, uint32_t number)
{
    return channel->path->inlined + (size_t)((number - 1) & (channel->path->k.slots - 1)) * 4 * RD_KINLINE;
}

/* Loads 16 bytes of data out of two lines, or the last 8 out of one. Returns true if the lines have come. */
static bool line_come(const char *lines, size_t at, bool two, line_t flag, line_t *data)
{
    const volatile line_t *first = (const volatile line_t *)(const void *)(lines + rd_kinline_line(at));
    line_t a = first[0], b = first[two ? RD_KINLINE_LEAP / sizeof(line_t) : 0];
    halves_t differs = (halves_t)((line_t){a[1], a[3], b[1], b[3]} ^ flag);

    *data = (line_t){a[0], a[2], b[0], b[2]};
    return (differs[0] | differs[1]) == 0;
}

bool rd_inline_come(rd_proxy_channel_t *channel, uint32_t number, char *to, size_t bytes)
{
    const char *lines = lines_of(channel, number);
    line_t flag = (line_t){0} + (number | RD_KVALID), data;
    size_t at = channel->come;

    for (int polls = 0; at < bytes && polls < POLLS; polls++) {
        if (line_come(lines, at, bytes - at > 8, flag, &data)) {
            memcpy(to + at, &data, sizeof data);
            at += sizeof data;
            polls = 0;
        }
    }
    channel->come = at < bytes ? at : 0;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return at >= bytes;
}

void rd_inline_give(const rd_proxy_channel_t *channel, uint32_t number, const char *from, size_t bytes)
{
    char *lines = lines_of(channel, number) + 2 * RD_KINLINE;
    line_t flag = (line_t){0} + (number | RD_KVALID);

    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (size_t at = 0; at < bytes; at += sizeof(line_t)) {
        volatile line_t *first = (volatile line_t *)(void *)(lines + rd_kinline_line(at));
        line_t data = *(const volatile line_t *)(const void *)(from + at);
        first[0] = (line_t){data[0], flag[0], data[1], flag[1]};
        if (bytes - at > 8)
            first[RD_KINLINE_LEAP / sizeof(line_t)] = (line_t){data[2], flag[2], data[3], flag[3]};
    }
}
