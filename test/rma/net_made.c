/* The net communicator of a window is being made, and one rank is held in it by this program's own connect: before the
 * rendezvous, or when all ranks have come there. The communicator's failure ends that at once on all ranks: a rank that
 * is killed there, and an abort by another thread, which returns although the rank is still held. Of a rank that has
 * no descriptor left for it all others hear. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rma/ways.h"

#define BYTES 65536
#define VICTIM 1

typedef enum { KILLED, HELD_BEFORE, HELD_BEHIND, LACKS, KINDS } kind_t;
static const char *const names[KINDS] = {"killed before the rendezvous", "held before the rendezvous",
                                         "held behind the rendezvous", "without descriptors"};

typedef struct {
    _Atomic int held, over; /* the victim is held; the abort has returned */
} seen_t;

static seen_t *seen;
static _Atomic int armed = KINDS; /* in the victim, until it has been held */
static _Atomic bool dialled;      /* the victim has dialled the rendezvous */

/* To its node's leader a rank connects by a unix socket, when all have come. */
static bool is_here(kind_t kind, int family)
{
    if (kind == LACKS)
        return false;
    if (family == AF_INET || family == AF_INET6)
        return kind != HELD_BEHIND;
    return family == AF_UNIX && kind == HELD_BEHIND && atomic_load(&dialled);
}

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    const kind_t now = (kind_t)atomic_load(&armed);

    if (now < KINDS && is_here(now, address->sa_family)) {
        atomic_store(&armed, KINDS);
        if (now == KILLED)
            raise(SIGKILL);
        atomic_store(&seen->held, 1);
        while (!atomic_load(&seen->over))
            sched_yield();
    }
    if (address->sa_family != AF_UNIX)
        atomic_store(&dialled, true);
    return (int)syscall(SYS_connect, fd, address, bytes);
}

static void *end(void *comm)
{
    while (!atomic_load(&seen->held))
        sched_yield();
    rondo_comm_abort(comm);
    atomic_store(&seen->over, 1);
    return NULL;
}

/* Rank 0 makes the id by which all meet. */
static void lack(test_rank_t *t)
{
    struct rlimit limit;

    if (t->rank != 0)
        return;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void body(test_rank_t *t, void *arg)
{
    const kind_t kind = *(const kind_t *)arg;
    const bool aborts = kind == HELD_BEFORE || kind == HELD_BEHIND;
    rondo_comm_t comm = way_comm(t, WAY_MESSAGES, -1, -1);
    char *part = calloc(1, BYTES);
    rondo_window_t window = NULL;
    pthread_t thread;

    if (!part)
        test_stop(t, "no memory");
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t);
    test_note(t, "%s", names[kind]);
    atomic_store(&dialled, false);
    atomic_store(&armed, t->rank == VICTIM ? kind : KINDS);
    if (kind == LACKS)
        lack(t);
    if (aborts && t->rank == 0 && pthread_create(&thread, NULL, end, comm) != 0)
        test_stop(t, "no thread");
    rondo_result_t result = rondo_window_create(comm, part, BYTES, &window, 0);
    if (aborts && t->rank == 0) {
        pthread_join(thread, NULL);
        TEST_GIVES(t, NULL, RONDO_ERR_ABORTED, result);
    } else {
        const bool lacks = kind == LACKS && t->rank == 0;
        TEST_GIVES(t, comm, lacks ? RONDO_ERR_SYSTEM : RONDO_ERR_REMOTE, result);
        if (!lacks)
            test_sentence(t, kind == KILLED ? "rank 1 (" : "rank 0 (");
        if (kind == LACKS)
            test_sentence(t, "open files");
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
    free(part);
}

int main(void)
{
    int bad = 0;

    test_begin("net_made", 120);
    setenv("RONDO_DEBUG", "none", 0);
    way_begin(WAY_MESSAGES);
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    for (kind_t kind = KILLED; kind < KINDS; kind++) {
        test_director_t d = {.victims = kind == KILLED ? 1u << VICTIM : 0};
        seen->held = seen->over = 0;
        printf("%s\n", names[kind]);
        bad += test_run_directed(&d, 3, 30, body, &kind) != 0;
    }
    return bad != 0;
}
