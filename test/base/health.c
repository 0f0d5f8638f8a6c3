/* Health: a failure is told to the node and to the others once it stands, a notice of another rank's becomes this
 * rank's failure, a mismatch with the sentence of the rank that found it, what failed on that rank with its own, and
 * that this rank itself is late goes no further. */
#include <stdio.h>
#include <string.h>

#include "util/check.h"
#include "base/health.h"

typedef struct told {
    int node, others;
    rondo_result_t code, passed; /* what stood when the node was told, and what it was told */
    int failed_rank, reporter;
    bool died;
    rd_health_t *health;
} told_t;

static void tell_node(void *arg, const rd_failure_t *failure)
{
    told_t *t = arg;

    t->node++;
    t->code = rd_health_check(t->health);
    t->failed_rank = failure->failed_rank;
    t->reporter = failure->reporter;
    t->passed = failure->said;
    t->died = failure->died;
}

static void tell_others(void *arg, const rd_failure_t *failure)
{
    told_t *t = arg;

    t->others++;
    CHECK(t->passed == failure->said, "both are told the same code");
    CHECK(t->failed_rank == failure->failed_rank, "both are told of the same rank");
    CHECK(t->died == failure->died, "and both whether it has died");
}

static const char *whois(void *arg, int rank)
{
    static const char *const names[] = {"host0", "host1", "host2", "host3"};

    (void)arg;
    return names[rank];
}

static const char *published; /* NULL: no sentence yet */

static int publisher = -1;     /* whose sentence it is */
static bool published_a_death; /* and whether it is of a death */

static bool cause(void *arg, int rank, rd_failure_t *failure)
{
    (void)arg;
    if (!published || (rank >= 0 && rank != publisher))
        return false;
    snprintf(failure->text, sizeof failure->text, "%s", published);
    failure->died = published_a_death;
    return true;
}

static int first(void *arg, const rd_failure_t *own, rd_failure_t *failure)
{
    (void)arg;
    (void)own;
    (void)failure;
    return -1;
}

static const rd_health_ops_t ops = {tell_node, tell_others, whois, cause, first};
static _Atomic uint64_t notice;
static rd_log_ctx_t ctx;
static rd_health_t health;
static told_t told;

static void begin(uint64_t said)
{
    memset(&told, 0, sizeof told);
    told.health = &health;
    memset(&ctx, 0, sizeof ctx);
    ctx.rank = 1;
    ctx.nranks = 4;
    atomic_store(&notice, said);
    rd_health_begin(&health, &ctx, &notice, &ops, &told);
}

static void fails(rondo_result_t code, int failed_rank, int others)
{
    begin(0);
    CHECK(rd_health_poll(&health) == RONDO_SUCCESS, "it begins healthy");
    CHECK(rd_health_fail(&health, code, failed_rank, "something of rank %d", failed_rank) == code, "it fails");
    CHECK(told.node == 1 && told.others == others, "who is told");
    CHECK(told.code == code && told.passed == code, "the code that is told is the one that stands");
    CHECK(told.failed_rank == (failed_rank < 0 ? 1 : failed_rank) && told.reporter == 0, "and of whom");
    CHECK(rd_health_fail(&health, RONDO_ERR_ABORTED, 0, "later") == code, "the first failure stands");
    CHECK(told.node == 1, "and a later one is told to nobody");
    CHECK(rd_health_poll(&health) == code && rd_health_check(&health) == code, "and is what polls return");
}

/* What rank 2 says of rank 3, or of itself. */
static void notices(rondo_result_t said, int of, rondo_result_t expected, const char *sentence)
{
    begin(rd_notice(said, of + 1, 2 + 1));
    CHECK(rd_health_noticed(&health) == said, "the notice");
    CHECK(rd_health_check(&health) == RONDO_SUCCESS, "a notice is taken in by a poll alone");
    CHECK(rd_health_poll(&health) == expected, "what a poll makes of it");
    CHECK(strcmp(health.stop.text, sentence) == 0, "the sentence");
    if (expected != RONDO_SUCCESS)
        CHECK(told.failed_rank == of && told.reporter == 3 && told.code == expected &&
                  told.passed == (said == RONDO_ERR_ABORTED ? RONDO_ERR_REMOTE : said),
              "it is passed on as it was heard");
    CHECK(rd_health_poll(&health) == expected && told.node == (expected != RONDO_SUCCESS), "once");
}

static void has_died(const rd_health_t *of, bool died, const char *what)
{
    CHECK(atomic_load(&of->stop.died) == died && told.died == died, "%s: %s", what, of->stop.text);
}

/* That a rank has died goes along with the sentence, whatever this says. */
static void deaths(void)
{
    static const char sentence[] = "rank 3 (host3) died: its process has ended without a farewell" RD_STOP_ADVICE;
    rd_health_t other;
    rd_failure_t stands = {.failed_rank = -1};

    begin(0);
    CHECK(rd_stop_read(&health.stop, &stands) == RONDO_SUCCESS && stands.failed_rank == -1, "nothing to read");
    CHECK(rd_health_died(&health, 3) == RONDO_ERR_REMOTE && strcmp(health.stop.text, sentence) == 0, "the sentence");
    has_died(&health, true, "found here");
    CHECK(rd_stop_read(&health.stop, &stands) == RONDO_ERR_REMOTE && stands.died && stands.failed_rank == 3 &&
              stands.said == RONDO_ERR_REMOTE && stands.reporter == 0 && strcmp(stands.text, sentence) == 0,
          "what is read of it");
    memcpy(&other, &health, sizeof other);
    for (int number = 2; number <= 3; number++) {
        begin(0);
        rd_health_follow(&health, RONDO_ERR_REMOTE, number, &other.stop, " (of another one)");
        CHECK(told.failed_rank == number && strstr(health.stop.text, sentence) == health.stop.text &&
                  strstr(health.stop.text, " (of another one)"),
              "the sentence of the other one: %s", health.stop.text);
        has_died(&health, number == 3, "of another communicator");
    }
    published = sentence;
    publisher = 3;
    for (int died = 0; died < 2; died++) {
        published_a_death = died;
        notices(RONDO_ERR_REMOTE, 3, RONDO_ERR_REMOTE, sentence);
        has_died(&health, died, "heard on the node");
    }
    published_a_death = false;
    begin(0);
    rd_health_fail(&health, RONDO_ERR_REMOTE, 3, "%s", sentence);
    has_died(&health, false, "words alone");
}

int main(void)
{
    rd_log_set_level(RD_LOG_NONE);
    fails(RONDO_ERR_REMOTE, 3, 1);
    fails(RONDO_ERR_ABORTED, -1, 1);
    fails(RONDO_ERR_TIMEOUT, 2, 1);
    fails(RONDO_ERR_TIMEOUT, -1, 0);
    fails(RONDO_ERR_MISMATCH, 2, 1);
    fails(RONDO_ERR_NAN, 2, 1);
    notices(RONDO_ERR_REMOTE, 3, RONDO_ERR_REMOTE,
            "rank 3 (host3) failed or left, or the connection to it was lost, rank 2 (host2) reports");
    notices(RONDO_ERR_ABORTED, 2, RONDO_ERR_REMOTE, "rank 2 (host2) has aborted the communicator");
    notices(RONDO_ERR_TIMEOUT, 3, RONDO_ERR_TIMEOUT, "rank 3 (host3) did not come in time, rank 2 (host2) reports");
    notices(RONDO_ERR_REMOTE, 1, RONDO_ERR_REMOTE,
            "rank 2 (host2) reports that rank 1 (host1) was lost: nothing of it arrives any more");
    notices(RONDO_ERR_MISMATCH, 3, RONDO_SUCCESS, "");
    notices(RONDO_ERR_SYSTEM, 2, RONDO_ERR_REMOTE, "rank 2 (host2) failed: system call failed");
    published = "rank 2 calls this, rank 3 that";
    notices(RONDO_ERR_MISMATCH, 3, RONDO_ERR_MISMATCH, published);
    notices(RONDO_ERR_NAN, 3, RONDO_ERR_NAN, published);
    published = "rank 2 (host2): no more threads";
    publisher = 3;
    notices(RONDO_ERR_SYSTEM, 2, RONDO_ERR_REMOTE, "rank 2 (host2) failed: system call failed");
    publisher = 2;
    notices(RONDO_ERR_SYSTEM, 2, RONDO_ERR_REMOTE, published);
    notices(RONDO_ERR_REMOTE, 2, RONDO_ERR_REMOTE, published);
    notices(RONDO_ERR_REMOTE, 3, RONDO_ERR_REMOTE,
            "rank 3 (host3) failed or left, or the connection to it was lost, rank 2 (host2) reports");
    deaths();
    CHECK(strcmp(rd_health_whois(&health, 4), "?") == 0 && strcmp(rd_health_whois(&health, -1), "?") == 0, "no rank");
    return failures != 0;
}
