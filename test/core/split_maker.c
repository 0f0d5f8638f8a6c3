/* The rank that has made the id of a split ends before the other one comes to it, and a child of it, made by a bare
 * clone, holds what it had open before. Nobody serves the id then, and the death is known only seconds later, by the
 * lifeline: the other rank must say who has died, and not that it was given a wrong id, nor, where the host seems to be
 * gone as well, that this is not reached. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/lifetime.h"
#include "util/bare_child.h"
#include "util/harness.h"

#define VICTIM 0 /* the first of its color makes the id */

typedef struct job {
    pid_t child;
    _Atomic int gone;
} job_t;

static job_t *job;
static int alive[2], rank_here;
static bool host_gone;

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    static __typeof__(connect) *real;

    if (host_gone && atomic_load(&job->gone) && address->sa_family != AF_UNIX) {
        errno = EHOSTUNREACH;
        return -1;
    }
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "connect");
    return real(fd, address, bytes);
}

rondo_result_t __real_rd_comm_build(rondo_comm_t made, int nranks, const rondo_unique_id_t *id, int rank,
                                    const rondo_config_t *config, rd_meeting_t *meeting, rondo_comm_t parent);
rondo_result_t __wrap_rd_comm_build(rondo_comm_t made, int nranks, const rondo_unique_id_t *id, int rank,
                                    const rondo_config_t *config, rd_meeting_t *meeting, rondo_comm_t parent);

/* In a split, when the ranks have exchanged the ids: the victim ends, and the other one is late. */
rondo_result_t __wrap_rd_comm_build(rondo_comm_t made, int nranks, const rondo_unique_id_t *id, int rank,
                                    const rondo_config_t *config, rd_meeting_t *meeting, rondo_comm_t parent)
{
    if (parent && rank_here == VICTIM)
        kill(getpid(), SIGKILL);
    while (parent && !atomic_load(&job->gone))
        usleep(1000);
    return __real_rd_comm_build(made, nranks, id, rank, config, meeting, parent);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t part = NULL;
    char host[32];

    (void)arg;
    close(alive[1]);
    rank_here = t->rank;
    snprintf(host, sizeof host, "node%d", t->rank);
    setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    rondo_comm_t comm = test_comm(t, &config);
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    if (t->rank == VICTIM && (job->child = bare_child(alive[0])) < 0)
        test_stop(t, "cannot clone");
    rondo_result_t result = rondo_comm_split(comm, 0, 0, &part, &config);
    if (result != RONDO_ERR_REMOTE || !strstr(rondo_last_error(NULL), "rank 0 ") ||
        !strstr(rondo_last_error(NULL), "died"))
        test_fail(t, "%s, %s", rondo_result_string(result), rondo_last_error(NULL));
    TEST_OK(t, comm, rondo_comm_abort(comm));
}

static void step(test_director_t *d, const pid_t *pid)
{
    (void)d;
    if (job->child > 0 && pid[VICTIM] == 0)
        atomic_store(&job->gone, 1);
}

int main(void)
{
    test_director_t d = {.step = step, .victims = 1u << VICTIM};

    test_begin("split_maker", 60);
    job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job == MAP_FAILED || pipe(alive) != 0)
        return 1;
    int bad = 0;
    for (int i = 0; i < 2; i++) {
        host_gone = i == 1;
        *job = (job_t){0};
        bad += test_run_directed(&d, 2, 30, body, NULL) != 0;
        if (job->child > 0)
            kill(job->child, SIGKILL);
    }
    return bad != 0;
}
