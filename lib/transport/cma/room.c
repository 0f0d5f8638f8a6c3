/* See room.h. */
#include "transport/cma/cma.h"
#include "transport/cma/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "transport/conns.h"

_Static_assert(offsetof(rd_room_t, address) == offsetof(struct iovec, iov_base) &&
                   offsetof(rd_room_t, bytes) == offsetof(struct iovec, iov_len) &&
                   sizeof(((rd_room_t *)0)->bytes) == sizeof(size_t),
               "the kernel reads a room as an iovec");

void rd_room_open(rd_recv_t *recv, uint64_t sign, void *at, size_t bytes)
{
    rd_room_t *room = &recv->ll_head->room;

    recv->gives_room = true;
    atomic_store_explicit(&room->address, (uintptr_t)at, memory_order_relaxed);
    atomic_store_explicit(&room->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&room->number, rd_ll_sequence(sign, recv->ll_received), memory_order_release);
}

/* The fence pairs with that of rd_room_close: either this mark is seen there, or the kernel finds no bytes here. */
int rd_room_put(rd_room_t *room, int32_t pid, const void *from, size_t bytes)
{
    const struct iovec here = {(void *)(uintptr_t)from, bytes};
    ssize_t put = 0;
    int error = 0;

    if (atomic_load_explicit(&room->bytes, memory_order_relaxed) == bytes) {
        atomic_store_explicit(&room->writer, (int32_t)syscall(SYS_gettid), memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        put = rd_cma_copy(pid, &here, (const struct iovec *)(void *)room, true);
        error = put < 0 ? errno : EFAULT;
        atomic_store_explicit(&room->writer, 0, memory_order_release);
    }
    errno = atomic_load_explicit(&room->bytes, memory_order_relaxed) == bytes ? error : 0;
    return put == (ssize_t)bytes ? 0 : -1;
}

/* The fence pairs with the one between the peer's mark `failed` and its rd_room_close. If the mark is not seen here,
 * this fence comes first: then the peer's store of 0 bytes is later than the one here, and the peer sees the thread. So
 * either the kernel finds no bytes, or the peer waits until it has copied. */
ssize_t rd_room_copy(rd_room_t *room, const rd_recv_t *peer, uint64_t address, const struct iovec *here, bool write)
{
    ssize_t done = 0;
    int error = 0;

    atomic_store_explicit(&room->address, (uintptr_t)address, memory_order_relaxed);
    atomic_store_explicit(&room->bytes, here->iov_len, memory_order_relaxed);
    atomic_store_explicit(&room->writer, (int32_t)syscall(SYS_gettid), memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(peer->failed, memory_order_relaxed)) {
        done = rd_cma_copy(peer->pid, here, (const struct iovec *)(void *)room, write);
        error = errno;
    }
    atomic_store_explicit(&room->writer, 0, memory_order_release);
    if (done > 0 && write)
        return done;
    atomic_thread_fence(memory_order_acquire); /* the mark is looked at after what was read */
    if (atomic_load_explicit(peer->failed, memory_order_relaxed))
        return 0;
    errno = done < 0 ? error : EFAULT;
    return done > 0 ? done : -1;
}

/* Returns false if the thread has ended, or is stopped: a thread stops on its way into the kernel or out of it, never
 * in a copy. What cannot be found out is taken for a thread that runs; so is a process that executes another program,
 * whose first thread has the number of the old one's. */
static bool may_copy(int32_t pid, int32_t thread)
{
    char path[64], text[256];

    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT || access("/proc/self/stat", R_OK) != 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    int error = errno;
    close(fd);
    if (got <= 0)
        return got == 0 || error != ESRCH;
    text[got] = 0;
    const char *name_end = strrchr(text, ')'); /* the name is the second field, and may have any characters */
    return !name_end || !name_end[1] || !name_end[2] || !strchr("TtZXx", name_end[2]);
}

void rd_room_close(rd_room_t *room, const rd_recv_t *peer)
{
    const struct timespec while_copied = {0, 100000};
    int32_t writer;

    atomic_store_explicit(&room->bytes, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    while ((writer = atomic_load_explicit(&room->writer, memory_order_acquire)) && may_copy(peer->pid, writer) &&
           (!peer->link || rd_cma_same_program(peer)))
        nanosleep(&while_copied, NULL);
}

void rd_rooms_close(const rd_conns_t *conns)
{
    for (size_t i = 0; i < (size_t)conns->nranks * RD_CHANNELS; i++)
        if (conns->recvs[i].gives_room)
            rd_room_close(&conns->recvs[i].ll_head->room, &conns->recvs[i]);
}
