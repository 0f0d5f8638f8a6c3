/* The ids of splits and grown communicators are secrets, and are not left behind on stacks: each call is made by a
 * thread that has a stack of the test's, and when it has ended the id is not there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/harness.h"
#include "boot/boot.h"

#define STACK ((size_t)8 << 20)

static rondo_unique_id_t made_id; /* the one that this process has made last */

rondo_result_t __real_rd_boot_id_create(rondo_unique_id_t *id, const rd_env_t *env);
rondo_result_t __wrap_rd_boot_id_create(rondo_unique_id_t *id, const rd_env_t *env);
rondo_result_t __wrap_rd_boot_id_create(rondo_unique_id_t *id, const rd_env_t *env)
{
    rondo_result_t result = __real_rd_boot_id_create(id, env);

    made_id = *id;
    return result;
}

typedef struct {
    rondo_comm_t comm, made;
    const rondo_unique_id_t *id; /* NULL: a split */
    rondo_result_t result;
} call_t;

static void *call(void *arg)
{
    call_t *c = arg;
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = RONDO_DEVICE_HOST;
    c->result = c->id ? rondo_comm_grow(c->comm, 2, c->id, c->comm ? -1 : 1, &c->made, &config)
                      : rondo_comm_split(c->comm, 0, 0, &c->made, &config);
    return NULL;
}

/* `id` is NULL where nobody knows it. The secret lies behind the first 44 bytes: see lib/boot/id.c. */
static void run(test_rank_t *t, call_t *c, const rondo_unique_id_t *id)
{
    char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    if (stack == MAP_FAILED || pthread_attr_setstack(&attr, stack, STACK) != 0 ||
        pthread_create(&thread, &attr, call, c) != 0)
        test_stop(t, "no thread");
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    TEST_OK(t, c->made, c->result);
    for (const char *at = stack; id && (at = memmem(at, STACK - (size_t)(at - stack), id->bytes + 44, 16)); at++)
        test_fail(t, "the secret of the id lies %zu bytes below the end of the stack", STACK - (size_t)(at - stack));
    munmap(stack, STACK);
    if (c->made)
        TEST_OK(t, NULL, rondo_comm_destroy(c->made));
}

static void body(test_rank_t *t, void *arg)
{
    static rondo_unique_id_t id; /* not on a stack */
    rondo_config_t config = test_host_config();
    rondo_comm_t comm = NULL;

    (void)arg;
    test_note(t, "split");
    comm = test_comm(t, &config);
    call_t split = {.comm = comm};
    run(t, &split, t->rank == 0 ? &made_id : NULL);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    test_note(t, "grow");
    test_id(t, &id);
    comm = NULL;
    if (t->rank == 0)
        TEST_OK(t, NULL, rondo_comm_create(&comm, 1, &id, 0, &config));
    test_id(t, &id);
    call_t grow = {.comm = comm, .id = &id};
    run(t, &grow, &id);
    if (comm)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

int main(void)
{
    test_begin("ids_wiped", 60);
    return test_run(TEST_PROCESSES, 2, 30, body, NULL) != 0;
}
