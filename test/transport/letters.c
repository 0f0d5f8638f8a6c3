/* A letter that the user's own thread reads, in an exchange of the bootstrap, is taken by the liveness thread all the
 * same, though it gets no event for it: what another rank has asked this one to say is said, and questions are
 * answered. Two ranks on two nodes are threads here, and the first one's liveness thread is kept from reading
 * meanwhile. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "transport/liveness.h"
#include "util/check.h"
#include "util/harness.h"

#define RANKS 2
#define WAIT_S 30 /* the most that is waited for what may never come */

static rondo_unique_id_t id;

static struct rank {
    pthread_t thread;
    rd_env_t env;
    rd_log_ctx_t ctx;
    rd_stop_t stop;
    rd_boot_t *boot;
    rd_node_t node;
} ranks[RANKS];

static sem_t hold, kept, go, claimed, asked;

static bool no(void *arg, int rank)
{
    (void)arg;
    (void)rank;
    return false;
}

static void silent(void *arg)
{
    (void)arg;
}

static void is_asked(void *arg, const rd_boot_question_t *question)
{
    (void)arg;
    CHECK(question->from == 1 && question->about == 0 && question->call == 7, "the question of rank 1");
    sem_post(&asked);
}

static void is_claimed(void *arg, const rd_boot_claim_t *claim)
{
    (void)arg;
    CHECK(claim->from == 1 && claim->late == 0 && strcmp(claim->text, "rank 0 is late") == 0, "\"%s\"", claim->text);
    sem_post(&claimed);
}

static const rd_liveness_ops_t ops = {no, no, silent, silent, is_asked, is_claimed};

/* The liveness thread calls this before it waits for events. */
static void keep(void *arg)
{
    (void)arg;
    if (sem_trywait(&hold) != 0)
        return;
    sem_post(&kept);
    sem_wait(&go);
}

static bool comes(sem_t *what)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    return sem_timedwait(what, &until) == 0;
}

static void *join(void *arg)
{
    struct rank *r = arg;

    CHECK(rd_boot_create(&r->boot, &id, r->ctx.rank, RANKS, &r->env, &r->ctx, &r->stop) == RONDO_SUCCESS &&
              rd_node_find(&r->node, r->boot, r->ctx.rank, RANKS, &r->env, -1, &r->ctx, &r->stop) == RONDO_SUCCESS &&
              rd_node_map(&r->node, r->boot, 4096, NULL, &r->env, &r->ctx, &r->stop) == RONDO_SUCCESS,
          "rank %d", r->ctx.rank);
    return NULL;
}

static void *meet(void *arg)
{
    struct rank *r = arg;

    CHECK(rd_boot_barrier(r->boot) == RONDO_SUCCESS, "rank %d", r->ctx.rank);
    return NULL;
}

static void together(void *(*what)(void *arg))
{
    for (int r = 0; r < RANKS; r++)
        CHECK(pthread_create(&ranks[r].thread, NULL, what, &ranks[r]) == 0, "a thread");
    for (int r = 0; r < RANKS; r++)
        pthread_join(ranks[r].thread, NULL);
}

static void claim(void)
{
    const rd_boot_claim_t late = {.late = 0, .text = "rank 0 is late"};

    rd_boot_claim(ranks[1].boot, 0, &late);
}

static void ask(void)
{
    const rd_boot_question_t question = {
        .from = 1, .about = 0, .number = rd_boot_ask_new(ranks[1].boot, RD_QUESTIONER_CALL), .call = 7};

    rd_boot_ask(ranks[1].boot, 0, &question);
}

static void keep_it(void)
{
    sem_post(&hold);
    CHECK(comes(&kept), "the liveness thread calls");
}

static void letter(void (*send)(void), sem_t *taken, const char *what)
{
    keep_it();
    send();
    together(meet);
    sem_post(&go);
    CHECK(comes(taken), "%s that the user's thread has read is taken", what);
}

static void letters(void)
{
    rd_liveness_t *liveness;

    CHECK(rd_liveness_add(&liveness, ranks[0].boot, &ranks[0].node, &ranks[0].ctx, &ranks[0].stop, &ops, NULL) ==
              RONDO_SUCCESS,
          "liveness");
    rd_liveness_poll(liveness, keep);
    keep_it(); /* behind this it has heard that it shall call */
    sem_post(&go);
    letter(claim, &claimed, "a claim");
    letter(ask, &asked, "a question");
    rd_liveness_remove(liveness);
}

int main(void)
{
    test_begin("transport/letters", 100);
    sem_init(&hold, 0, 0);
    sem_init(&kept, 0, 0);
    sem_init(&go, 0, 0);
    sem_init(&claimed, 0, 0);
    sem_init(&asked, 0, 0);
    for (int r = 0; r < RANKS; r++) {
        ranks[r].ctx = (rd_log_ctx_t){.name = "letters", .rank = r, .nranks = RANKS};
        if (rd_env_read(&ranks[r].env) != RONDO_SUCCESS)
            return 1;
        snprintf(ranks[r].env.hostid, sizeof ranks[r].env.hostid, "%d", r);
    }
    if (rd_boot_id_create(&id, &ranks[0].env) != RONDO_SUCCESS)
        return 1;
    together(join);
    if (!failures)
        letters();
    for (int r = 0; r < RANKS; r++) {
        rd_boot_farewell(ranks[r].boot, RONDO_SUCCESS, -1);
        rd_node_free(&ranks[r].node);
        rd_boot_destroy(ranks[r].boot);
    }
    printf("%d failures\n", failures);
    return failures != 0;
}
