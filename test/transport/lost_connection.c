/* Connections to a rank on another node are lost while all processes live, as by a firewall or by a host that has heard
 * nothing for a while. Nobody is said to have died, by no rank. A lifeline that is lost is no failure at all; when the
 * other connection is lost, the communicator fails, by that sentence and no other, and who shrinks it may ask the rank
 * itself whether it lives: it is waited for while it does, and no longer, although no connection tells of its end.
 *
 * The ranks are threads here. A connection is lost at both ends when one of them is dissolved: that sends a reset. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/boot_int.h"
#include "transport/silent_ops.h"
#include "util/check.h"

#define RANKS 3
#define LIMIT_MS 20000
#define PARTING_MS 3000 /* an end in order of a lifeline is a death after two seconds, and the next turn */

typedef struct rank {
    pthread_t thread;
    int rank;
    rondo_unique_id_t id;
    rd_env_t env;
    rd_log_ctx_t ctx;
    rd_stop_t stop;
    rd_boot_t *boot;
    rd_node_t node;
    rd_liveness_t *liveness;
} rank_t;

static rank_t ranks[RANKS];
static int lifelines[4 * RANKS * RD_BOOT_ROUNDS], nlifelines;

/* The keeper alone has them from then on. Liveness calls it with its lock held. */
bool __wrap_rd_keeper_hold(int number, int fd);
bool __real_rd_keeper_hold(int number, int fd);
bool __wrap_rd_keeper_hold(int number, int fd)
{
    lifelines[nlifelines++] = dup(fd);
    return __real_rd_keeper_hold(number, fd);
}

static void dissolve(int fd)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

    CHECK(connect(fd, &nobody, sizeof nobody) == 0);
}

static bool never(void *arg, int rank)
{
    (void)arg;
    (void)rank;
    return false;
}

static const rd_liveness_ops_t ops = {never, never, SILENT_OPS};

static void *begin(void *arg)
{
    rank_t *r = arg;
    bool far[RANKS];

    for (int i = 0; i < RANKS; i++)
        far[i] = i != r->rank;
    r->ctx = (rd_log_ctx_t){.rank = r->rank, .nranks = RANKS, .name = "test"};
    snprintf(r->env.hostid, sizeof r->env.hostid, "%d", r->rank);
    if (rd_boot_create(&r->boot, &r->id, r->rank, RANKS, &r->env, &r->ctx, &r->stop) != RONDO_SUCCESS ||
        rd_node_find(&r->node, r->boot, r->rank, RANKS, &r->env, -1, &r->ctx, &r->stop) != RONDO_SUCCESS ||
        rd_node_map(&r->node, r->boot, 4096, NULL, &r->env, &r->ctx, &r->stop) != RONDO_SUCCESS ||
        rd_boot_lifelines(r->boot, far) != RONDO_SUCCESS ||
        rd_liveness_add(&r->liveness, r->boot, &r->node, &r->ctx, &r->stop, &ops, r) != RONDO_SUCCESS)
        exit(1);
    return NULL;
}

static void *end(void *arg)
{
    rank_t *r = arg;

    rd_boot_farewell(r->boot, RONDO_SUCCESS, -1);
    rd_liveness_remove(r->liveness);
    rd_node_free(&r->node);
    rd_boot_destroy(r->boot);
    return NULL;
}

static void all(void *(*step)(void *))
{
    for (int r = 0; r < RANKS; r++)
        if (pthread_create(&ranks[r].thread, NULL, step, &ranks[r]) != 0)
            exit(1);
    for (int r = 0; r < RANKS; r++)
        pthread_join(ranks[r].thread, NULL);
}

static void lose_lifelines(void)
{
    check_now = "the lifelines are lost";
    CHECK(nlifelines == 2 * RANKS * ranks[0].boot->rounds, "%d", nlifelines);
    for (int i = 0; i < nlifelines; i++) {
        dissolve(lifelines[i]);
        close(lifelines[i]);
    }
    usleep(PARTING_MS * 1000);
    for (int r = 0; r < RANKS; r++)
        CHECK(rd_stop_get(&ranks[r].stop) == RONDO_SUCCESS, "rank %d: %s", r, ranks[r].stop.text);
}

/* All of them are on this host here, where a reset is a death. */
static void be_far(rd_boot_t *b)
{
    pthread_mutex_lock(&b->lock);
    for (int k = 0; k < b->rounds; k++)
        b->from[k].chan->far = b->to[k].chan->far = true;
    pthread_mutex_unlock(&b->lock);
}

static void lose_connection(void)
{
    int64_t until = rd_clock_ms() + LIMIT_MS;
    int say_lost = 0;

    check_now = "a connection between ranks 0 and 1 is lost";
    for (int r = 0; r < RANKS; r++)
        be_far(ranks[r].boot);
    dissolve(ranks[0].boot->from[0].chan->fd);
    for (int r = 0; r < RANKS; r++) {
        const rd_stop_t *stop = &ranks[r].stop;
        while (rd_stop_get(&ranks[r].stop) == RONDO_SUCCESS && rd_clock_ms() < until)
            usleep(1000);
        CHECK(rd_stop_get(&ranks[r].stop) == RONDO_ERR_REMOTE, "rank %d", r);
        CHECK(atomic_load(&stop->failed_rank) == 0 || atomic_load(&stop->failed_rank) == 1, "rank %d: %s", r,
              stop->text);
        CHECK(!strstr(stop->text, "died") && strstr(stop->text, "lost"), "rank %d: %s", r, stop->text);
        say_lost += strstr(stop->text, "the connection to rank ") != NULL;
    }
    CHECK(say_lost > 0, "no rank says which connection was lost");
    usleep(2 * RD_LIVENESS_MS * 1000); /* the news go round */
    for (int r = 0; r < RANKS; r++)
        for (int of = 0; of < RANKS; of++)
            CHECK(!rd_liveness_died(ranks[r].liveness, of), "rank %d takes rank %d for dead", r, of);
}

/* Where a process has ended nobody listens any more, and who is in the queue there is turned away. */
static void end_of_process(rank_t *r)
{
    rd_fd_close(r->boot->listener);
    r->boot->listener = -1;
}

static void meet_without(void)
{
    static const int members[] = {0, 1};
    rank_t *r = &ranks[0];
    rd_stop_t met = {0};
    rd_meeting_t meeting;
    int64_t until;

    check_now = "a meeting with rank 1, which is late";
    rd_liveness_meeting(r->liveness, &meeting, members, 2);
    rd_liveness_meeting_begin(&meeting, &r->ctx, &met);
    usleep(4 * RD_LIVENESS_MS * 1000);
    CHECK(rd_stop_get(&met) == RONDO_SUCCESS, "a living rank: %s", met.text);
    check_now = "a meeting with rank 1, whose process ends";
    end_of_process(&ranks[1]);
    until = rd_clock_ms() + LIMIT_MS;
    while (rd_stop_get(&met) == RONDO_SUCCESS && rd_clock_ms() < until)
        usleep(1000);
    CHECK(rd_stop_get(&met) == RONDO_ERR_REMOTE, "rank 0 waits for it");
    CHECK(atomic_load(&met.failed_rank) == 1 && strstr(met.text, "rank 1 ") && !strstr(met.text, "died"), "%s",
          met.text);
    rd_liveness_meeting_end(&meeting);
    CHECK(!rd_liveness_died(r->liveness, 1), "rank 0 takes rank 1 for dead");
}

int main(void)
{
    rondo_unique_id_t id;
    rd_env_t env;

    alarm(100);
    rd_log_set_level(RD_LOG_NONE);
    if (rd_env_read(&env) != RONDO_SUCCESS || rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
        return 1;
    for (int r = 0; r < RANKS; r++)
        ranks[r] = (rank_t){.rank = r, .id = id, .env = env};
    all(begin);
    lose_lifelines();
    lose_connection();
    meet_without();
    all(end);
    printf("lost_connection: %d failures\n", failures);
    return failures != 0;
}
