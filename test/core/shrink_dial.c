/* A rank of a shrink cannot connect to the one that leads: for a moment its host has no port or no memory for that, or
 * forbids it; or more ranks wait there than the queue of a socket takes.
 *
 *   passes   it tries again, and is in the group
 *   lasts    it says why, when the deadline of creations has passed
 *   full     the one that leads comes later than a host may be silent, and is in the group
 *   blind    to the one that leads getsockopt is refused, as by a sandbox: it finds all the same that nobody listens
 *            where a rank that does not come has listened */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/agree_shrink.h"
#include "boot/boot_int.h"
#include "core/comm.h"
#include "util/harness.h"

#define RANKS 3

static const int errors[] = {EADDRNOTAVAIL, ENOBUFS, ENOMEM, EPERM};
static _Atomic int refuses; /* the next attempts */
static test_rank_t *full;   /* the queue of its socket; NULL: it stays as it is */
static int shrink_ms;       /* RONDO_CREATE_TIMEOUT_MS, once the communicator has been made; 0: as it is */

int __real_rd_boot_dial(const rd_boot_t *b, int rank);
int __wrap_rd_boot_dial(const rd_boot_t *b, int rank);

int __wrap_rd_boot_dial(const rd_boot_t *b, int rank)
{
    int left = atomic_load(&refuses);

    if (left <= 0)
        return __real_rd_boot_dial(b, rank);
    atomic_store(&refuses, left - 1);
    errno = errors[left % 4];
    return -1;
}

rondo_result_t __real_rd_agree_shrink_begin(rd_agree_shrink_t **agreement, rd_boot_t *boot, int32_t round,
                                            const rd_agree_shrink_ops_t *ops);
rondo_result_t __wrap_rd_agree_shrink_begin(rd_agree_shrink_t **agreement, rd_boot_t *boot, int32_t round,
                                            const rd_agree_shrink_ops_t *ops);

rondo_result_t __wrap_rd_agree_shrink_begin(rd_agree_shrink_t **agreement, rd_boot_t *boot, int32_t round,
                                            const rd_agree_shrink_ops_t *ops)
{
    if (shrink_ms)
        boot->patience.ms = shrink_ms;
    if (full) {
        if (listen(boot->listener, 0) != 0) /* there is room for one */
            abort();
        test_barrier(full);
        sleep(RD_AGREE_SHRINK_SILENT_MS / 1000 + 1);
    }
    return __real_rd_agree_shrink_begin(agreement, boot, round, ops);
}

static void passes(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = test_comm(t, &config), next = NULL;

    (void)arg;
    atomic_store(&refuses, t->rank ? 8 : 0);
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config))) {
        TEST_TRUE(t, test_group(next, t->rank) == (1u << RANKS) - 1);
        TEST_TRUE(t, atomic_load(&refuses) == 0);
        rondo_comm_destroy(next);
    }
    rondo_comm_destroy(comm);
}

static void lasts(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = test_comm(t, &config), next = NULL;

    (void)arg;
    shrink_ms = 1000;
    atomic_store(&refuses, t->rank == 2 ? 1 << 30 : 0);
    TEST_GIVES(t, comm, RONDO_ERR_TIMEOUT, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config));
    if (t->rank == 2)
        test_sentence(t, "rank 0 (");
    if (t->rank == 2)
        test_sentence(t, "could not be reached (");
    test_barrier(t);
    rondo_comm_destroy(comm);
}

static void fills(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = test_comm(t, &config), next = NULL;

    (void)arg;
    if (t->rank == 0)
        full = t;
    else
        test_barrier(t);
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config))) {
        TEST_TRUE(t, test_group(next, t->rank) == (1u << RANKS) - 1);
        rondo_comm_destroy(next);
    }
    rondo_comm_destroy(comm);
}

static _Atomic bool blind;

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes);

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
    if (!atomic_load(&blind))
        return __real_getsockopt(fd, level, name, value, bytes);
    errno = EPERM;
    return -1;
}

static void blinds(test_rank_t *t, void *arg)
{
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = test_comm(t, &config), next = NULL;

    (void)arg;
    if (t->rank == 2) {
        rd_fd_close(comm->boot->listener);
        comm->boot->listener = -1;
    }
    test_barrier(t);
    atomic_store(&blind, true);
    if (t->rank < 2 && TEST_OK(t, comm, rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &next, &config))) {
        TEST_TRUE(t, test_group(next, t->rank) == 3);
        rondo_comm_destroy(next);
    }
    test_barrier(t);
    rondo_comm_destroy(comm);
}

static int part(int i)
{
    static const test_body_fn bodies[] = {passes, lasts, fills, blinds};

    return test_run(TEST_PROCESSES, RANKS, 40, bodies[i], NULL);
}

int main(void)
{
    test_begin("shrink_dial", 60);
    return test_at_once(4, part) != 0;
}
