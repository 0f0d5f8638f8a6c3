/* A connection that a rank's endpoint has accepted, and of which nothing has come yet, when the communicator ends: no
 * descriptor is left of it, though whoever connected lives on. Each rank connects to itself, to each port at which its
 * process listens: the endpoint's is one of them, and the one where somebody accepts. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include "util/harness.h"

#define RANKS 2
#define MOST 256 /* descriptors that are looked at */
#define PAUSE 1000
#define PATIENCE 10000 /* pauses */

/* Is it a socket of IPv4? Its own address, or that of its peer. */
static int is_at(int fd, int peers, struct sockaddr_in *at)
{
    socklen_t bytes = sizeof *at;

    return (peers ? getpeername : getsockname)(fd, (struct sockaddr *)at, &bytes) == 0 && at->sin_family == AF_INET;
}

/* Connects to every port at which this process listens. Returns how many there are. */
static int connect_all(int clients[MOST])
{
    int n = 0;

    for (int fd = 0; fd < MOST; fd++) {
        int listens = 0;
        socklen_t bytes = sizeof listens;
        struct sockaddr_in at;
        if (!is_at(fd, 0, &at) || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0 || !listens)
            continue;
        clients[n] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (clients[n] >= 0 && connect(clients[n], (struct sockaddr *)&at, sizeof at) == 0)
            n++;
    }
    return n;
}

/* Has somebody in this process taken the connection, or has it been refused? */
static int is_taken(int client)
{
    struct pollfd heard = {.fd = client, .events = POLLIN};
    struct sockaddr_in own, other;

    if (poll(&heard, 1, 0) == 1)
        return 1;
    for (int fd = 0; fd < MOST && is_at(client, 0, &own); fd++)
        if (is_at(fd, 1, &other) && other.sin_port == own.sin_port && other.sin_addr.s_addr == own.sin_addr.s_addr)
            return 1;
    return 0;
}

static void body(test_rank_t *t, void *arg)
{
    int clients[MOST], n, taken = 0, before = test_count_entries("/proc/self/fd"), left = 0;
    float one = 1, sum = 0;

    (void)arg;
    rondo_comm_t comm = test_comm_on(t, RANKS);
    TEST_OK(t, comm, rondo_allreduce(&one, &sum, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    n = connect_all(clients);
    TEST_TRUE(t, n > 0);
    for (int i = 0; i < PATIENCE && taken < RANKS; i++) { /* all ranks go on until all have theirs */
        float mine = 0, all = 0;
        for (int k = 0; k < n; k++)
            mine = is_taken(clients[k]) ? 1 : mine;
        TEST_OK(t, comm, rondo_allreduce(&mine, &all, 1, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
        taken = (int)all;
        usleep(PAUSE);
    }
    TEST_TRUE(t, taken == RANKS);
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    for (int i = 0; i < PATIENCE; i++) {
        left = test_count_entries("/proc/self/fd") - before - n;
        if (left <= 0)
            break;
        usleep(PAUSE);
    }
    if (left > 0)
        test_fail(t, "%d descriptors are left", left);
}

int main(void)
{
    test_begin("ofi/forgotten", 60);
    setenv("RONDO_IFACE", "lo", 1);
    setenv("RONDO_TRANSPORT", "ofi", 1);
    return test_run(TEST_PROCESSES, RANKS, 50, body, NULL) != 0;
}
