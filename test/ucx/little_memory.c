/* A rank whose UCX gets little memory, or none, while a communicator of three nodes is made. What UCX needs for its
 * first messages was reserved for it; where that cannot be, or UCX has no memory for a connection, that rank alone is
 * to blame, whoever is at the connection's other end. So it is where UCX has none for a message later, and all ranks
 * hear it before that rank does anything more. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ucx/ucx_load.h"
#include "util/harness.h"

#define RANKS 3
#define VICTIM 1

typedef enum { NO_ENDPOINT, NO_ROOM, ROOM_RESERVED, NO_MESSAGE, CASES } case_t;

static __typeof__(ucp_am_send_nbx) *am_send;
static __typeof__(ucp_ep_create) *ep_create;
static __typeof__(ucp_worker_create) *worker_create;
static case_t now;
static bool is_victim, sends_nothing;

/* So that threads take little of what is left. */
static void small_stacks(void)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, 256 << 10) != 0 || pthread_setattr_default_np(&attributes) != 0)
        exit(1);
    pthread_attr_destroy(&attributes);
}

/* Leaves this process so much address space; arenas of the C library, which are larger, get none. */
static void leave(long mib)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    struct rlimit limit;

    if (!file || fscanf(file, "%ld", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) != 0)
        exit(1);
    fclose(file);
    limit.rlim_cur = (rlim_t)(pages * sysconf(_SC_PAGESIZE)) + ((rlim_t)mib << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        exit(1);
}

static ucs_status_t create_endpoint(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    return is_victim && now == NO_ENDPOINT ? UCS_ERR_NO_MEMORY : ep_create(worker, params, ep);
}

static ucs_status_t create_worker(ucp_context_h context, const ucp_worker_params_t *params, ucp_worker_h *worker)
{
    ucs_status_t status = worker_create(context, params, worker);

    if (is_victim && now == ROOM_RESERVED)
        leave(4);
    return status;
}

static ucs_status_ptr_t send_message(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                     const void *buffer, size_t count, const ucp_request_param_t *param)
{
    return sends_nothing ? UCS_STATUS_PTR(UCS_ERR_NO_MEMORY)
                         : am_send(ep, id, header, header_length, buffer, count, param);
}

void rd_ucx_loaded(rd_ucp_t *ucp)
{
    am_send = ucp->am_send_nbx;
    ucp->am_send_nbx = send_message;
    ep_create = ucp->ep_create;
    worker_create = ucp->worker_create;
    ucp->ep_create = create_endpoint;
    ucp->worker_create = create_worker;
    if (is_victim && now == NO_ROOM)
        leave(12);
}

/* On a communicator that is made: the rank that waits for another one hears it as well. */
static void no_message(test_rank_t *t, int nodes)
{
    test_note(t, "no memory for a message, on %d nodes", nodes);
    test_play_node(t, nodes);
    rondo_comm_t comm = test_comm(t, NULL);
    sends_nothing = is_victim;
    int data = 0, peer = (t->rank + RANKS - 1) % RANKS; /* the victim's messages alone are sent */
    test_barrier(t);
    rondo_result_t result = is_victim ? rondo_send(&data, 1, RONDO_INT32, (VICTIM + 1) % RANKS, comm, NULL)
                                      : rondo_recv(&data, 1, RONDO_INT32, peer, comm, NULL);
    (void)test_result(t, comm, result, is_victim ? RONDO_ERR_NO_MEMORY : RONDO_ERR_REMOTE, "no message");
    const char *said = rondo_last_error(comm);
    if (!strstr(said, "UCX has no memory for messages") || (!is_victim && strncmp(said, "rank 1 (", 8) != 0))
        test_fail(t, "the sentence is: %s", said);
    test_barrier(t);
    sends_nothing = false;
    (void)rondo_comm_destroy(comm);
}

static void body(test_rank_t *t, void *arg)
{
    int one = 1, sum = 0;

    now = *(case_t *)arg;
    is_victim = t->rank == VICTIM;
    if (now == NO_MESSAGE) {
        for (int nodes = 2; nodes <= RANKS; nodes++)
            no_message(t, nodes);
        return;
    }
    test_play_node(t, RANKS);
    if (is_victim)
        small_stacks();
    if (now == ROOM_RESERVED) {
        rondo_comm_t comm = test_comm(t, NULL);
        test_result(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL), RONDO_SUCCESS,
                    "allreduce");
        TEST_TRUE(t, sum == RANKS);
        rondo_comm_destroy(comm);
        return;
    }
    const char *what = now == NO_ROOM ? "no memory for UCX" : "UCX has no memory for a connection";
    (void)test_comm_gives(t, is_victim ? RONDO_ERR_NO_MEMORY : RONDO_ERR_REMOTE, what);
    test_sentence(t, "ulimit -v");
    if (!is_victim)
        test_sentence(t, "rank 1 (");
}

int main(void)
{
    int bad = 0;

    test_begin("ucx_little_memory", 100);
    setenv("RONDO_IFACE", "lo", 1);
    setenv("RONDO_SLOTS", "2", 1);
    setenv("RONDO_SLOT_BYTES", "4096", 1);
    for (case_t c = 0; c < CASES; c++)
        bad += test_run(TEST_PROCESSES, RANKS, 30, body, &c) != 0;
    return bad != 0;
}
