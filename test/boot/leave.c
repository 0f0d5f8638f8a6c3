/* How ranks leave, and what the others hear.
 *
 *   in turn   two ranks leave one after the other, and the first one is still there when the second leaves: it hears
 *             that farewell, and does not take the end of the connection for a death
 *   cause     one has lost another: all have its sentence, whoever tells them
 *   death     one ends without a farewell while the others meet: their sentence says what can be done, and the same
 *             where there is no communicator yet does not */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot.h"
#include "boot/listener.h"
#include "boot/rendezvous.h"
#include "boot/session.h"
#include "util/check.h"

#define LIMIT_MS 20000
#define MOST 3

static rd_env_t env;
static _Atomic int parted; /* rank 0 says its farewell, or has said it */
static _Atomic int gone;   /* rank 1 has ended its connection */

typedef struct rank {
    pthread_t thread;
    rondo_unique_id_t id;
    int rank;
    rd_log_ctx_t ctx;
    rd_stop_t stop;
} rank_t;

/* Hears what comes until the other rank has left. */
static void hear_leave(rank_t *r, rd_boot_t *boot)
{
    int64_t until = rd_clock_ms() + LIMIT_MS;

    while (rd_boot_check(boot) == RONDO_SUCCESS && !rd_boot_has_left(boot, 1 - r->rank) && rd_clock_ms() < until)
        usleep(1000);
    CHECK(rd_stop_get(&r->stop) == RONDO_SUCCESS);
    CHECK(rd_boot_has_left(boot, 1 - r->rank));
}

static _Atomic int made; /* so many ranks have the communicator */

static rd_boot_t *create(rank_t *r, int nranks)
{
    rd_boot_t *boot = NULL;

    r->ctx = (rd_log_ctx_t){.rank = r->rank, .nranks = nranks, .name = "test"};
    if (rd_boot_create(&boot, &r->id, r->rank, nranks, &env, &r->ctx, &r->stop) != RONDO_SUCCESS)
        exit(1);
    atomic_fetch_add(&made, 1);
    while (atomic_load(&made) < nranks)
        usleep(1000);
    return boot;
}

static void *leave_in_turn(void *arg)
{
    rank_t *r = arg;
    rd_boot_t *boot = create(r, 2);

    if (r->rank == 0) {
        atomic_store(&parted, 1);
        rd_boot_farewell(boot, RONDO_SUCCESS, -1);
        while (!atomic_load(&gone))
            usleep(1000);
    }
    hear_leave(r, boot);
    if (r->rank == 1)
        CHECK(atomic_load(&parted));
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_boot_destroy(boot);
    atomic_store(&gone, 1);
    return NULL;
}

static void end(rd_boot_t *boot)
{
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_boot_destroy(boot);
}

#define CAUSE "UCX cannot reach rank 2 (host): no route"

static void *lose(void *arg)
{
    const rd_failure_t lost = {
        .code = RONDO_ERR_REMOTE, .said = RONDO_ERR_REMOTE, .failed_rank = 2, .text = CAUSE RD_STOP_ADVICE};
    rank_t *r = arg;
    rd_boot_t *boot = create(r, 3);
    int64_t until = rd_clock_ms() + LIMIT_MS;

    if (r->rank == 0)
        rd_boot_pass_on(boot, &lost);
    while (r->rank && rd_boot_check(boot) == RONDO_SUCCESS && rd_clock_ms() < until)
        usleep(1000);
    CHECK(r->rank == 0 || strcmp(r->stop.text, CAUSE RD_STOP_ADVICE) == 0, "%s", r->stop.text);
    end(boot);
    return NULL;
}

static bool exists; /* the communicator */

static void *die(void *arg)
{
    rank_t *r = arg;
    rd_boot_t *boot = create(r, 3);

    if (r->rank == 2) {
        rd_boot_destroy(boot);
        return NULL;
    }
    rd_boot_exchange_for(boot, exists ? "window_create" : NULL);
    CHECK(rd_boot_barrier(boot) == RONDO_ERR_REMOTE);
    CHECK(strstr(r->stop.text, "died"), "%s", r->stop.text);
    CHECK(!strstr(r->stop.text, RD_STOP_ADVICE) == !exists, "%s", r->stop.text);
    end(boot);
    return NULL;
}

static void run(int nranks, void *(*live)(void *), unsigned char job)
{
    rank_t ranks[MOST];
    rd_id_t id;
    int fd = -1;

    atomic_store(&made, 0);
    memset(&id, 0, sizeof id);
    id.derived = 1;
    id.addr = rd_addr_loopback(4);
    id.creds.job[0] = job;
    memcpy(id.maker, "test", sizeof "test");
    if (rd_sock_listen(&fd, &id.addr, &env, NULL) != RONDO_SUCCESS)
        exit(1);
    CHECK(rd_rendezvous_start(&id, fd, false, env.create_timeout_ms, 0, NULL) == RONDO_SUCCESS);
    for (int r = 0; r < nranks; r++) {
        memset(&ranks[r], 0, sizeof ranks[r]);
        rd_id_pack(&ranks[r].id, &id);
        ranks[r].rank = r;
        if (pthread_create(&ranks[r].thread, NULL, live, &ranks[r]) != 0)
            exit(1);
    }
    for (int r = 0; r < nranks; r++)
        pthread_join(ranks[r].thread, NULL);
}

int main(void)
{
    alarm(60);
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    env.create_timeout_ms = LIMIT_MS;
    rd_log_set_level(RD_LOG_NONE);
    if (rd_crypto_init(NULL) != RONDO_SUCCESS)
        return 1;
    run(2, leave_in_turn, 1);
    run(3, lose, 2);
    run(3, die, 3);
    exists = true;
    run(3, die, 4);
    printf("boot_leave: %d failures\n", failures);
    return failures != 0;
}
