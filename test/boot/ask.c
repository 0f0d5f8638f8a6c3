/* Questions and answers between ranks that are no neighbours: every rank asks every other one, alone and about a third,
 * and gets its answer once, in communicators of 1 to 13 ranks; also where a rank on one of the ways takes nothing. What
 * a rank asks another one to say comes to that one alone, whole. A question that comes in an exchange is answered
 * behind it. All ranks are in one process, and take turns.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot_int.h"
#include "util/check.h"
#include "util/harness.h"

#define MOST 13
#define TURNS 20 /* more than an answer takes, there and back */

static rd_env_t env;
static rondo_unique_id_t id;
static int nranks;

static struct rank {
    pthread_t thread;
    rd_log_ctx_t ctx;
    rd_stop_t stop;
    rd_boot_t *boot;
} ranks[MOST];

static void *join(void *arg)
{
    struct rank *r = arg;

    CHECK(rd_boot_create(&r->boot, &id, r->ctx.rank, nranks, &env, &r->ctx, &r->stop) == RONDO_SUCCESS, "rank %d",
          r->ctx.rank);
    return NULL;
}

/* Every rank but one takes in what has come, and answers. */
static void turn(int deaf)
{
    rd_boot_question_t q;
    rd_boot_answer_t answer;

    for (int r = 0; r < nranks; r++) {
        if (r == deaf)
            continue;
        CHECK(rd_boot_check(ranks[r].boot) == RONDO_SUCCESS, "rank %d hears of a failure", r);
        while (rd_boot_asked(ranks[r].boot, &q)) {
            answer = (rd_boot_answer_t){.status = (int)q.call, .rank = q.about, .next = r};
            snprintf(answer.text, sizeof answer.text, "rank %d asks rank %d about rank %d", q.from, r, q.about);
            rd_boot_answer(ranks[r].boot, &q, &answer);
        }
    }
}

static void ask(int from, int to, int about, int deaf)
{
    rd_boot_t *boot = ranks[from].boot;
    rd_questioner_t by = (rd_questioner_t)((from + to) % RD_QUESTIONERS);
    rd_boot_question_t q = {
        .from = from, .about = about, .number = rd_boot_ask_new(boot, by), .call = (uint64_t)(100 * from + to)};
    rd_boot_answer_t answer;
    char text[64];

    rd_boot_ask(boot, to, &q);
    for (int i = 0; i < TURNS && !rd_boot_answered(boot, by, &answer); i++)
        turn(deaf);
    if (!rd_boot_answered(boot, by, &answer)) {
        CHECK(0, "rank %d of %d has no answer of rank %d", from, nranks, to);
        return;
    }
    snprintf(text, sizeof text, "rank %d asks rank %d about rank %d", from, to, about);
    CHECK(answer.status == 100 * from + to && answer.rank == about && answer.next == to &&
              strcmp(answer.text, text) == 0,
          "rank %d of %d asks rank %d about %d, and hears status %d, rank %d, next %d: %s", from, nranks, to, about,
          answer.status, answer.rank, answer.next, answer.text);
}

/* Probes of two ranks come by way of one, and both arrive, each once or twice. One that comes back is an answer. */
static void probe(int from, int to)
{
    rd_boot_question_t q = {.from = from, .about = to, .nprobe = RD_BOOT_PROBE}, got;
    rd_boot_answer_t answer;
    int found[2] = {0, 0};

    q.number = rd_boot_ask_new(ranks[from].boot, RD_QUESTIONER_CALL_PROBE);
    for (int i = 0; i < 2; i++) {
        q.probe[RD_BOOT_PROBE - 1] = (unsigned char)i;
        rd_boot_ask(ranks[from].boot, to, &q);
    }
    for (int i = 0; i < TURNS; i++)
        for (int r = 0; r < nranks; r++) {
            CHECK(rd_boot_check(ranks[r].boot) == RONDO_SUCCESS, "rank %d hears of a failure", r);
            while (rd_boot_asked(ranks[r].boot, &got)) {
                CHECK(r == to && got.number == q.number && got.nprobe == RD_BOOT_PROBE, "rank %d: %zu bytes", r,
                      got.nprobe);
                found[got.probe[RD_BOOT_PROBE - 1] & 1]++;
            }
        }
    CHECK(found[0] && found[1], "probes of %d ranks come %d and %d times", nranks, found[0], found[1]);
    rd_boot_came_back(ranks[from].boot, q.number - RD_QUESTIONERS, "an older one");
    CHECK(!rd_boot_answered(ranks[from].boot, RD_QUESTIONER_CALL_PROBE, &answer), "an older one is taken");
    rd_boot_came_back(ranks[from].boot, q.number, "round");
    CHECK(rd_boot_answered(ranks[from].boot, RD_QUESTIONER_CALL_PROBE, &answer) && strcmp(answer.text, "round") == 0,
          "a probe has not come back");
}

static void claim(int from, int to, int late)
{
    rd_boot_claim_t claim = {.late = late}, got = {.from = -1};
    int found = 0;

    snprintf(claim.text, sizeof claim.text, "rank %d is late, rank %d says to rank %d", late, from, to);
    rd_boot_claim(ranks[from].boot, to, &claim);
    for (int i = 0; i < TURNS; i++) {
        turn(-1);
        for (int r = 0; r < nranks; r++) {
            if (!rd_boot_claimed(ranks[r].boot, &got))
                continue;
            found++;
            CHECK(r == to && got.from == from && got.late == late && strcmp(got.text, claim.text) == 0,
                  "rank %d of %d hears of rank %d, of rank %d: %s", r, nranks, got.from, got.late, got.text);
        }
    }
    CHECK(found == 1 || found == 2, "what rank %d of %d claims comes %d times to rank %d, not once around each side",
          from, nranks, found, to);
}

static void all(void)
{
    for (int from = 0; from < nranks; from++)
        for (int to = 0; to < nranks; to++)
            if (to != from) {
                ask(from, to, (from * to + 1) % nranks, -1);
                claim(from, to, (from + 2 * to) % nranks);
                probe(from, to);
            }
}

/* On one side or the other there is always a way around one rank. */
static void around(int deaf)
{
    for (int from = 0; from < nranks; from++)
        for (int to = 0; to < nranks; to++)
            if (to != from && to != deaf && from != deaf)
                ask(from, to, deaf, deaf);
    turn(-1); /* what has come to it meanwhile */
}

static void *meet(void *arg)
{
    struct rank *r = arg;

    CHECK(rd_boot_barrier(r->boot) == RONDO_SUCCESS, "rank %d", r->ctx.rank);
    return NULL;
}

/* A question lies at rank 0, which its own thread has read: no other one reads there. */
static bool has_read(void)
{
    rd_questions_t *questions = &ranks[0].boot->questions;

    pthread_mutex_lock(&questions->lock);
    bool has = questions->nasked > 0;
    pthread_mutex_unlock(&questions->lock);
    return has;
}

static bool all_answered(void)
{
    rd_boot_answer_t answer;

    return rd_boot_answered(ranks[1].boot, RD_QUESTIONER_USER, &answer) &&
           rd_boot_answered(ranks[1].boot, RD_QUESTIONER_CALL, &answer);
}

/* Of two ranks. Whoever takes questions at any moment, as the liveness thread does, takes none that it cannot answer,
 * and what it took just before the exchange began lies there again. */
static void in_an_exchange(void)
{
    rd_boot_question_t q = {.from = 1, .number = rd_boot_ask_new(ranks[1].boot, RD_QUESTIONER_USER)}, taken;
    const rd_boot_question_t before = {.from = 1, .number = rd_boot_ask_new(ranks[1].boot, RD_QUESTIONER_CALL)};
    const rd_boot_answer_t nothing = {.rank = -1, .next = -1};

    CHECK(pthread_create(&ranks[0].thread, NULL, meet, &ranks[0]) == 0, "a thread");
    rd_boot_ask(ranks[1].boot, 0, &q);
    while (!has_read())
        usleep(1000);
    CHECK(!rd_boot_asked(ranks[0].boot, &taken), "a question is taken in an exchange");
    rd_boot_answer(ranks[0].boot, &before, &nothing);
    meet(&ranks[1]);
    pthread_join(ranks[0].thread, NULL);
    for (int i = 0; i < TURNS && !all_answered(); i++)
        turn(-1);
    CHECK(all_answered(), "an exchange costs a question its answer");
}

static void with(int n)
{
    nranks = n;
    memset(ranks, 0, sizeof ranks);
    CHECK(rd_boot_id_create(&id, &env) == RONDO_SUCCESS, "an id");
    for (int r = 0; r < n; r++) {
        ranks[r].ctx = (rd_log_ctx_t){.name = "ask", .rank = r, .nranks = n};
        CHECK(pthread_create(&ranks[r].thread, NULL, join, &ranks[r]) == 0, "a thread");
    }
    for (int r = 0; r < n; r++)
        pthread_join(ranks[r].thread, NULL);
    all();
    if (n == 2)
        in_an_exchange();
    if (n > 2)
        around(n / 2);
    for (int r = 0; r < n; r++)
        rd_boot_farewell(ranks[r].boot, RONDO_SUCCESS, -1);
    for (int r = 0; r < n; r++)
        rd_boot_destroy(ranks[r].boot);
}

int main(void)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 8, 13};

    test_begin("boot/ask", 60);
    env.create_timeout_ms = 30000;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !failures; i++)
        with(sizes[i]);
    printf("%d failures\n", failures);
    return failures != 0;
}
