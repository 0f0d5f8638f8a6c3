/* Two hosts, played by network namespaces, between which the bootstrap's connections of one rank are reset while every
 * process lives, as by a firewall that has forgotten them. All ranks' calls end with RONDO_ERR_REMOTE, nobody is said
 * to have died, and the ranks that are left are all of them: who shrinks asks each by a new connection. Needs root and
 * `ip`. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "util/harness.h"
#include "util/hosts.h"

#define RANKS 4
#define HOSTS 2
#define RESET 1 /* the rank */
#define MOST_FDS 1024

/* A connection to a neighbour on another host ends when that host is silent, as no other one here does; dissolving it
 * sends a reset. */
static int reset_all(void)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int n = 0;

    for (int fd = 3; fd < MOST_FDS; fd++) {
        int ms = 0;
        socklen_t bytes = sizeof ms;
        if (getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &bytes) == 0 && ms > 0)
            n += connect(fd, &nobody, sizeof nobody) == 0;
    }
    return n;
}

static void body(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = NULL, next = NULL;
    rondo_result_t result = RONDO_SUCCESS;
    rondo_unique_id_t id;
    int one = 1, sum = 0;

    (void)arg;
    if (hosts_enter(t->rank % HOSTS) != 0)
        test_stop(t, "cannot go to its host");
    config.device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    if (!TEST_OK(t, NULL, rondo_comm_create(&comm, t->nranks, &id, t->rank, &config)))
        return;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t);
    if (t->rank == RESET && reset_all() == 0)
        test_fail(t, "it has no connection to another host");
    test_note(t, "until it fails");
    while (result == RONDO_SUCCESS)
        result = rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
    test_result(t, comm, result, RONDO_ERR_REMOTE, "the pending call");
    const char *text = rondo_last_error(comm);
    if (strstr(text, "died") || !strstr(text, "lost"))
        test_fail(t, "the sentence: \"%s\"", text);
    test_note(t, "shrinks");
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config))) {
        TEST_OK(t, next, rondo_allreduce(&one, &sum, 1, RONDO_INT32, RONDO_SUM, next, NULL));
        if (sum != t->nranks)
            test_fail(t, "of %d ranks, who all live, %d are left", t->nranks, sum);
        TEST_OK(t, NULL, rondo_comm_destroy(next));
    }
    rondo_comm_destroy(comm);
}

int main(void)
{
    test_begin("reset", 100);
    if (hosts_make(HOSTS) != 0) {
        printf("reset: skipped: needs root and network namespaces\n");
        return TEST_SKIPPED;
    }
    int bad = test_run(TEST_PROCESSES, RANKS, 60, body, NULL);
    hosts_remove();
    return bad != 0;
}
