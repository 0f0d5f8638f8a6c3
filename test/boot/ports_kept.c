/* Communicators that are made and destroyed leave few connections in TIME_WAIT: each keeps a port for a minute, and a
 * node has some 28,000. In a network namespace of the test's own, so that only its connections are counted. */
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 8
#define SPLITS 40

/* Returns 0, or -1 if the system does not let this process have a network of its own. */
static int own_network(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return -1;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), failed = fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) != 0;
    if (fd >= 0)
        close(fd);
    return failed ? -1 : 0;
}

/* Returns the number of connections in TIME_WAIT, or -1. */
static int waiting(void)
{
    char line[256];
    unsigned state;
    int n = 0;
    FILE *f = fopen("/proc/net/tcp", "re");

    while (f && fgets(line, sizeof line, f))
        n += sscanf(line, " %*d: %*x:%*x %*x:%*x %x", &state) == 1 && state == 6;
    if (!f)
        return -1;
    fclose(f);
    return n;
}

static void body(test_rank_t *t, void *arg)
{
    rondo_comm_t comm = test_comm(t, NULL), part;

    (void)arg;
    for (int i = 0; i < SPLITS; i++) {
        test_note(t, "split %d", i);
        if (!TEST_OK(t, comm, rondo_comm_split(comm, 0, t->rank, &part, NULL)))
            break;
        TEST_OK(t, NULL, rondo_comm_destroy(part));
    }
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    test_begin("ports_kept", 60);
    if (own_network() != 0) {
        printf("no network namespace can be made here\n");
        return TEST_SKIPPED;
    }
    int bad = test_run(TEST_PROCESSES, RANKS, 50, body, NULL), n = waiting();
    printf("ports_kept: %d connections in TIME_WAIT after %d splits of %d ranks\n", n, SPLITS, RANKS);
    return bad || n < 0 || n > RANKS * SPLITS / 2;
}
