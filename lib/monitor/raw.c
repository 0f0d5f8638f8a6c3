/* See raw.h. */
#include "monitor/raw.h"

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/process.h"
#include "monitor/record.h"

/* Signal stacks are small. */
#define BLOCK 1920
#define TRIES 4

_Static_assert(BLOCK % sizeof(rd_monitor_comm_t) == 0 && BLOCK % sizeof(rd_monitor_event_t) == 0, "whole items");

static bool all_read(int fd, void *to, size_t bytes, size_t at)
{
    ssize_t n;

    do
        n = pread(fd, to, bytes, (off_t)at);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes;
}

/* Writes items, each of which begins with a word that is another one after the item was written. An item that changed
 * while it was read gets the word `absent`. */
static int copy_items(int from, int to, size_t at, size_t n, size_t each, uint64_t absent)
{
    alignas(64) char items[BLOCK], again[BLOCK];

    for (size_t most = BLOCK / each, i = 0; i < n; i += most) {
        size_t here = n - i < most ? n - i : most, steady = 0;
        for (int tries = 0; tries < TRIES && steady < here; tries++) {
            if (!all_read(from, items, here * each, at + i * each) ||
                !all_read(from, again, here * each, at + i * each))
                return EIO;
            for (steady = 0; steady < here && memcmp(items + steady * each, again + steady * each, sizeof absent) == 0;)
                steady++;
        }
        for (size_t k = steady; k < here; k++)
            if (memcmp(items + k * each, again + k * each, sizeof absent) != 0)
                memcpy(items + k * each, &absent, sizeof absent);
        int error = rd_fd_write_all(to, items, here * each);
        if (error)
            return error;
    }
    return 0;
}

static int copy_page(int from, int to)
{
    char part[RD_MONITOR_PAGE / 4];
    int error = 0;

    for (size_t at = 0; at < RD_MONITOR_PAGE && !error; at += sizeof part)
        error = all_read(from, part, sizeof part, at) ? rd_fd_write_all(to, part, sizeof part) : EIO;
    return error;
}

int rd_raw_copy(int to)
{
    int from = rd_record_open_fd(), error;
    rd_monitor_head_t head;

    if (from < 0)
        return ENOENT;
    if (!all_read(from, &head, sizeof head, 0) || head.magic != RD_MONITOR_MAGIC)
        return EIO;
    error = copy_page(from, to);
    if (!error) /* odd: it is being written */
        error = copy_items(from, to, head.comms_at, head.ncomms, head.comm_bytes, 1);
    if (!error)
        error = copy_items(from, to, head.events_at, head.nevents, head.event_bytes, 0);
    if (!error) /* these are written once, and without RONDO_STACKS there are none */
        error = copy_items(from, to, head.stacks_at, head.nstacks, head.stack_bytes, 0);
    return error ? error : copy_items(from, to, head.modules_at, head.nmodules, head.module_bytes, 0);
}
