/* Two threads find that a communicator has failed, and take back what was posted: neither has done so before nobody
 * reads any more. The reader is played: a rank of this process has said that it reads, and has not yet said that it has
 * read. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/check.h"
#include "core/comm.h"

#define PATIENCE 20000 /* turns in which a call that does not wait would be over */

typedef struct {
    rondo_comm_t comm;
    rondo_result_t result;
    _Atomic int over;
} caller_t;

static void *revoke(void *arg)
{
    caller_t *c = arg;

    c->result = rondo_comm_revoke(c->comm);
    atomic_store(&c->over, 1);
    return NULL;
}

static void *call(void *arg)
{
    caller_t *c = arg;

    c->result = rondo_barrier(c->comm, NULL);
    atomic_store(&c->over, 1);
    return NULL;
}

int main(void)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comms[2];
    pthread_t revokes, calls;

    setenv("RONDO_DEBUG", "none", 0);
    config.device = RONDO_DEVICE_HOST;
    if (rondo_comm_create_all(comms, 2, NULL, &config) != RONDO_SUCCESS)
        return 1;
    caller_t first = {.comm = comms[0]}, second = {.comm = comms[0]};
    rd_control_t *reader = comms[1]->conns.self;

    atomic_store(&reader->reading, 1);
    if (pthread_create(&revokes, NULL, revoke, &first) != 0)
        return 1;
    while (!atomic_load(&comms[0]->conns.self->failed))
        sched_yield();
    if (pthread_create(&calls, NULL, call, &second) != 0)
        return 1;
    for (int i = 0; i < PATIENCE && !atomic_load(&second.over); i++)
        sched_yield();
    CHECK(!atomic_load(&first.over), "a revocation that waits for the reader");
    CHECK(!atomic_load(&second.over), "a call that waits for it beside the revocation");
    atomic_store(&reader->reading, 2);
    pthread_join(revokes, NULL);
    pthread_join(calls, NULL);
    CHECK(first.result == RONDO_SUCCESS, "what the revocation returns");
    CHECK(second.result == RONDO_ERR_ABORTED, "what the call returns");
    for (int r = 0; r < 2; r++)
        CHECK(rondo_comm_destroy(comms[r]) == RONDO_SUCCESS, "destruction");
    return failures != 0;
}
