/* Ranks of a node that fail in the same instant, each because of something else, all have one failure with one
 * sentence; what a rank has done, or has happened to itself, stays its own error there, and is the others' in their
 * words. Ranks are threads here, and their memory is the node's. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/conns.h"
#include "util/check.h"
#include "util/harness.h"

#define RANKS 4
#define ROUNDS 300

static struct rank {
    rd_log_ctx_t ctx;
    rd_health_t health;
    rd_control_t control;
    rd_conns_t conns;
} ranks[RANKS];

static rd_control_t *controls[RANKS];
static pthread_barrier_t together;

static void tell(void *arg, const rd_failure_t *failure)
{
    (void)arg;
    (void)failure;
}

static const char *whois(void *arg, int rank)
{
    static const char *const names[RANKS] = {"a:1", "b:2", "c:3", "d:4"};

    (void)arg;
    return names[rank];
}

static bool cause(void *arg, int rank, rd_failure_t *failure)
{
    (void)arg;
    (void)rank;
    (void)failure;
    return false;
}

static int first(void *arg, const rd_failure_t *own, rd_failure_t *failure)
{
    const struct rank *r = arg;

    return rd_conns_first(&r->conns, r->ctx.rank, own, failure);
}

static const rd_health_ops_t ops = {tell, tell, whois, cause, first};

static void begin(void)
{
    memset(ranks, 0, sizeof ranks);
    for (int i = 0; i < RANKS; i++) {
        struct rank *r = &ranks[i];
        controls[i] = &r->control;
        r->ctx = (rd_log_ctx_t){.name = "first", .rank = i, .nranks = RANKS};
        r->conns = (rd_conns_t){.nranks = RANKS, .controls = controls, .self = &r->control};
        rd_health_begin(&r->health, &r->ctx, &r->control.notice, &ops, r);
    }
}

static void *time_out(void *arg)
{
    struct rank *r = arg;
    int late = (r->ctx.rank + 1) % RANKS;

    pthread_barrier_wait(&together);
    CHECK(rd_health_fail(&r->health, RONDO_ERR_TIMEOUT, late, "rank %d waits for rank %d", r->ctx.rank, late) ==
              RONDO_ERR_TIMEOUT,
          "rank %d", r->ctx.rank);
    return NULL;
}

static void in_one_instant(void)
{
    pthread_t threads[RANKS];

    begin();
    for (int i = 0; i < RANKS; i++)
        CHECK(pthread_create(&threads[i], NULL, time_out, &ranks[i]) == 0, "a thread");
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < RANKS; i++) {
        const rd_stop_t *one = &ranks[0].health.stop, *other = &ranks[i].health.stop;
        CHECK(strcmp(one->text, other->text) == 0 && one->failed_rank == other->failed_rank,
              "rank 0 says \"%s\", rank %d \"%s\"", one->text, i, other->text);
    }
}

static void has(int rank, rondo_result_t code, int failed_rank, const char *text)
{
    rd_stop_t *stop = &ranks[rank].health.stop;
    int failed = atomic_load(&stop->failed_rank);

    CHECK(rd_stop_get(stop) == code && failed == failed_rank && strcmp(stop->text, text) == 0,
          "rank %d has %s because of rank %d: \"%s\"", rank, rondo_result_string(rd_stop_get(stop)), failed,
          stop->text);
}

/* By the liveness or a transport as by a call, one after the other. */
static void whoever_finds_it(void)
{
    rd_failure_t heard = {.code = RONDO_ERR_REMOTE, .failed_rank = 1, .reporter = 1, .text = "rank 1 has failed"};

    begin();
    rd_stop_set(&ranks[1].health.stop, &ranks[1].ctx, RONDO_ERR_REMOTE, 3, "rank 3 is gone");
    rd_health_fail(&ranks[0].health, RONDO_ERR_TIMEOUT, 3, "rank 3 is late");
    rd_stop_heard(&ranks[2].health.stop, &ranks[2].ctx, &heard);
    for (int r = 0; r < 3; r++)
        has(r, RONDO_ERR_REMOTE, 3, "rank 3 is gone");
}

/* That it is a death goes along, for those who tell other nodes. */
static void of_a_death(void)
{
    static const char sentence[] = "rank 3 (d:4) died: its process has ended without a farewell" RD_STOP_ADVICE;
    rd_failure_t said = {.failed_rank = -1};
    rd_failure_t heard = {.code = RONDO_ERR_REMOTE, .failed_rank = 2, .reporter = 3, .text = "rank 2 has failed"};

    begin();
    rd_stop_died(&ranks[1].health.stop, &ranks[1].ctx, 3, "d:4");
    rd_stop_heard(&ranks[0].health.stop, &ranks[0].ctx, &heard);
    for (int r = 0; r < 2; r++) {
        has(r, RONDO_ERR_REMOTE, 3, sentence);
        CHECK(atomic_load(&ranks[r].health.stop.died), "rank %d knows of a death", r);
    }
    rd_stop_read(&ranks[1].health.stop, &said);
    rd_conns_notify(&ranks[1].conns, 1, &said);
    CHECK(rd_conns_cause(&ranks[0].conns, 3, &heard) == 1 && heard.died && strcmp(heard.text, sentence) == 0,
          "what rank 1 has published: \"%s\"", heard.text);
}

static void of_its_own(void)
{
    begin();
    rd_health_fail(&ranks[2].health, RONDO_ERR_SYSTEM, -1, "no memory");
    rd_health_fail(&ranks[1].health, RONDO_ERR_TIMEOUT, 2, "rank 2 is late");
    rd_health_fail(&ranks[0].health, RONDO_ERR_SYSTEM, -1, "no descriptors");
    has(2, RONDO_ERR_SYSTEM, -1, "no memory");
    has(1, RONDO_ERR_REMOTE, 2, "rank 2 (c:3): no memory");
    has(0, RONDO_ERR_SYSTEM, -1, "no descriptors");
    begin();
    rd_health_fail(&ranks[2].health, RONDO_ERR_ABORTED, 2, "rank 2 called rondo_comm_abort");
    rd_health_fail(&ranks[1].health, RONDO_ERR_MISMATCH, 0, "ranks 0 and 1 differ");
    rd_health_fail(&ranks[3].health, RONDO_ERR_ABORTED, 3, "rank 3 called rondo_comm_abort");
    has(1, RONDO_ERR_REMOTE, 2, "rank 2 (c:3) has aborted the communicator");
    has(3, RONDO_ERR_ABORTED, 3, "rank 3 called rondo_comm_abort");
}

/* The one that is late has the sentence as well; one that is said to be lost has what it knows of that. */
static void of_the_one_blamed(void)
{
    begin();
    rd_health_fail(&ranks[0].health, RONDO_ERR_TIMEOUT, 1, "rank 1 is late");
    rd_health_fail(&ranks[1].health, RONDO_ERR_TIMEOUT, 0, "rank 0 is late");
    has(1, RONDO_ERR_TIMEOUT, 1, "rank 1 is late");
    begin();
    rd_health_fail(&ranks[0].health, RONDO_ERR_REMOTE, 1, "rank 1 is gone");
    rd_health_fail(&ranks[1].health, RONDO_ERR_REMOTE, 2, "rank 2 is gone");
    has(1, RONDO_ERR_REMOTE, 2, "rank 2 is gone");
}

/* A rank that has died while it wrote what had failed keeps nobody from failing. */
static void half_written(void)
{
    begin();
    atomic_store(&controls[0]->first, 1);
    rd_health_fail(&ranks[1].health, RONDO_ERR_TIMEOUT, 0, "rank 0 is late");
    has(1, RONDO_ERR_TIMEOUT, 0, "rank 0 is late");
}

int main(void)
{
    test_begin("transport/first_failure", 60);
    rd_log_set_level(RD_LOG_NONE);
    pthread_barrier_init(&together, NULL, RANKS);
    for (int i = 0; i < ROUNDS && !failures; i++)
        in_one_instant();
    pthread_barrier_destroy(&together);
    whoever_finds_it();
    of_a_death();
    of_its_own();
    of_the_one_blamed();
    half_written();
    printf("%d failures\n", failures);
    return failures != 0;
}
