/* UCX's calls that make a connection, where its other end is not there, in two ways.
 *
 * A peer that takes the connection and is gone before the first bytes come, as one that dies at this moment: UCX tries
 * once more, finds nobody, and returns an endpoint whose next use would end the process. Rank 0's creation fails, and
 * says whom UCX cannot reach; the other rank's fails too; nobody ends. What the kernel would say of such a peer is put
 * in place of its answers while the endpoint is made.
 *
 * And one for which UCX waits in that call, as where a firewall swallows the packets: the other rank has long given up,
 * and is the one that knows the cause, which both say. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ucx/ucx_load.h"
#include "util/harness.h"

#define RANKS 2

static __typeof__(ucp_ep_create) *ep_create;
static int plays; /* this rank's peers are gone so */
static _Thread_local int making, connects, refused;

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    static __typeof__(connect) *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "connect");
    if (making && ++connects > 1) {
        refused++;
        errno = ECONNREFUSED;
        return -1;
    }
    return real(fd, address, bytes);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    static __typeof__(send) *real;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "send");
    if (making) {
        errno = ECONNRESET;
        return -1;
    }
    return real(fd, data, bytes, flags);
}

static _Atomic int *given_up; /* NULL: not this way */

static ucs_status_t create_in_vain(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    while (given_up && plays && !*given_up)
        usleep(1000);
    making = plays && !given_up;
    connects = 0;
    ucs_status_t status = ep_create(worker, params, ep);
    making = 0;
    return status;
}

void rd_ucx_loaded(rd_ucp_t *ucp)
{
    ep_create = ucp->ep_create;
    ucp->ep_create = create_in_vain;
}

static void body(test_rank_t *t, void *arg)
{
    (void)arg;
    test_play_node(t, RANKS);
    plays = t->rank == 0;
    (void)test_comm_gives(t, RONDO_ERR_REMOTE, t->rank == 0 ? "UCX cannot reach rank 1" : "rank ");
    if (plays && refused == 0)
        test_fail(t, "UCX has not tried once more: there was nothing to survive");
}

static void waits(test_rank_t *t, void *arg)
{
    given_up = arg;
    setenv("RONDO_CREATE_TIMEOUT_MS", "5000", 1);
    test_play_node(t, RANKS);
    plays = t->rank == 1;
    (void)test_comm_gives(t, RONDO_ERR_TIMEOUT, "rank 1 (");
    test_sentence(t, "was not reached over the network within 5000 ms: does a firewall close the ports");
    *given_up = t->rank == 0 ? 1 : *given_up;
}

int main(void)
{
    test_begin("ucx_half_connect", 60);
    setenv("RONDO_IFACE", "lo", 1);
    unsetenv("UCX_LOG_LEVEL");
    void *flag = mmap(NULL, sizeof *given_up, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (flag == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    return test_run(TEST_PROCESSES, RANKS, 30, body, NULL) != 0 ||
           test_run(TEST_PROCESSES, RANKS, 30, waits, flag) != 0;
}
