/* A peer that has taken the connection is gone when UCX sends the first message of its own there, as one that dies at
 * this moment. What UCX has queued for a connection it cannot take back while it sends it, and ends the process. Rank
 * 0's creation fails with the peer's loss, the other rank's fails too, and nobody ends. What the kernel would say of
 * such a peer is put in place of its answer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "ucx/ucx_load.h"
#include "util/harness.h"

#define RANKS 2
#define OWN 32 /* lower first bytes are of messages, higher ones of how UCX's tcp makes a connection */

static rd_ucp_t ucp;
static int plays; /* this rank's peer is gone so */
static _Thread_local int within;
static _Atomic int lost;

static int is_lost(const void *data, size_t bytes)
{
    if (!within || !plays || bytes == 0 || *(const unsigned char *)data >= OWN)
        return 0;
    lost = 1;
    errno = ECONNRESET;
    return 1;
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    static __typeof__(send) *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "send");
    return is_lost(data, bytes) ? -1 : real(fd, data, bytes, flags);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static __typeof__(sendmsg) *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    return is_lost(message->msg_iov->iov_base, message->msg_iov->iov_len) ? -1 : real(fd, message, flags);
}

static unsigned progress(ucp_worker_h worker)
{
    within++;
    unsigned events = ucp.worker_progress(worker);
    within--;
    return events;
}

static ucs_status_ptr_t am_send(ucp_ep_h ep, unsigned id, const void *header, size_t length, const void *from,
                                size_t count, const ucp_request_param_t *param)
{
    within++;
    ucs_status_ptr_t request = ucp.am_send_nbx(ep, id, header, length, from, count, param);
    within--;
    return request;
}

void rd_ucx_loaded(rd_ucp_t *found)
{
    ucp = *found;
    found->worker_progress = progress;
    found->am_send_nbx = am_send;
}

static void body(test_rank_t *t, void *arg)
{
    (void)arg;
    test_play_node(t, RANKS);
    plays = t->rank == 0;
    (void)test_comm_gives(t, RONDO_ERR_REMOTE, "rank ");
    if (plays && !lost)
        test_fail(t, "nothing was sent to the peer: there was nothing to survive");
}

int main(void)
{
    test_begin("ucx_greeting_lost", 60);
    setenv("RONDO_IFACE", "lo", 1);
    unsetenv("UCX_LOG_LEVEL");
    return test_run(TEST_PROCESSES, RANKS, 30, body, NULL) != 0;
}
