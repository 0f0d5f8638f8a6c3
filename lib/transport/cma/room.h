/* Room for a message: where the receiver wants it, so that its sender puts it there by the kernel (process_vm_writev).
 *
 * A rank that takes messages from all others would copy them one after the other. If it says where each belongs, its
 * senders copy them, all at once. The room lies beside the credits of the connection, in the sender's memory (conn.h):
 *
 *     receiver                                   sender
 *     address, bytes ──▶ number of the line      is that the number of my next line, and are those my bytes?
 *                                                writer = thread; fence; process_vm_writev; writer = 0
 *     message is there   ◀──────────────────     the line: no address
 *
 * A buffer must not be written to once its user has it back, which may be at any time: a call fails, or is ended by
 * another thread, while a sender is about to write, and that sender may have been stopped (SIGSTOP, a debugger) just
 * before. So the kernel itself looks whether there still is room, as the first thing it does in the call: address and
 * bytes are the iovec of process_vm_writev, and lie where the receiver can set them to no bytes. Then it waits for
 * those senders that may already be in the kernel: a sender stores its mark before it enters it, and a stopped thread
 * is not in it, but before or behind it. A copy that is under way ends by itself.
 *
 * Where the kernel refuses to write, or the lengths differ, the sender posts its address as ever
 * (exec/host/cma_step.h), and the receiver reads, compares or asks for slots. */
#ifndef RD_TRANSPORT_CMA_ROOM_H
#define RD_TRANSPORT_CMA_ROOM_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "transport/conns.h"
#include "transport/shm/ll.h"

/* Gives room for the message that begins with the next line of the connection, in the call with this signature. */
void rd_room_open(rd_recv_t *recv, uint64_t sign, void *at, size_t bytes);
/* Takes back all room that this rank has given. When it returns, no rank writes into it, nor will. To be called after a
 * failure, when no thread of this rank is in a call. */
void rd_rooms_close(const rd_conns_t *conns);

static inline bool rd_room_is_open(const rd_send_t *send, uint64_t sign)
{
    return atomic_load_explicit(&send->ll_head->room.number, memory_order_acquire) ==
           rd_ll_sequence(sign, send->ll_sent);
}

/* Puts the message into its room, in the memory of process `pid`. Returns 0, or -1 with errno; that is 0 if the room is
 * of another length, or has been taken back. */
int rd_room_put(rd_room_t *room, int32_t pid, const void *from, size_t bytes);

/* The same between two ranks of which the one that copies chooses the place, and may read, too: a one-sided operation.
 * The room lies in memory of both, and only one thread at a time uses it. Copies between `here` and as many bytes at
 * `address` in the memory of the rank that `peer` comes from. Returns the number of bytes, at least 1; 0 if that rank
 * has failed, so that its memory is its user's again and nothing of what was read may be used; or -1 with errno. */
ssize_t rd_room_copy(rd_room_t *room, const rd_recv_t *peer, uint64_t address, const struct iovec *here, bool write);
/* Takes the place back in which `peer` may copy. When it returns, that rank does not, nor will. This rank's `failed`
 * must be set, with a full fence behind it. */
void rd_room_close(rd_room_t *room, const rd_recv_t *peer);

#endif
