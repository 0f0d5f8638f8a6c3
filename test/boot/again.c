/* A derived id that is used again while a rank is not yet through with the last time. The rendezvous turns away who has
 * been told and comes again; a rank that is turned away, or is shown the listener before it has heard anything, comes
 * until it is let stay. */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/boot.h"
#include "boot/session.h"
#include "boot/listener.h"
#include "boot/rendezvous.h"
#include "util/check.h"

#define RANKS 3

static rd_env_t env;

/* An id as a shrink derives it, and the listener where its rendezvous is served. */
static int make_id(rd_id_t *id)
{
    static unsigned char made;
    int fd = -1;

    memset(id, 0, sizeof *id);
    id->derived = 1;
    id->addr = rd_addr_loopback(4);
    id->creds.job[0] = ++made;
    memcpy(id->maker, "test", sizeof "test");
    if (rd_sock_listen(&fd, &id->addr, &env, NULL) != RONDO_SUCCESS)
        exit(1);
    return fd;
}

static void pump(rd_chan_t *c)
{
    struct pollfd p = {.fd = c->fd, .events = rd_chan_events(c)};

    poll(&p, 1, 50);
    rd_chan_pump(c);
}

/* A connection to the rendezvous that has said its JOIN. */
static rd_chan_t *say_join(const rd_id_t *id, int rank)
{
    rd_hello_t hello = {.purpose = RD_FOR_MEETING, .rank = rank, .nranks = RANKS};
    rd_chan_t *c = rd_chan_client(rd_sock_connect(&id->addr), &id->creds, &id->addr, sizeof id->addr, &hello);
    rd_join_t join;

    while (c && c->state != RD_CHAN_OPEN && c->state != RD_CHAN_DEAD)
        pump(c);
    memset(&join, 0, sizeof join);
    rd_whois(join.whois);
    join.addr = rd_addr_loopback(4);
    CHECK(c && rd_chan_send(c, RD_REC_JOIN, &join, sizeof join) == 0);
    return c;
}

typedef struct rank {
    pthread_t thread;
    rondo_unique_id_t id;
    int rank, nranks;
    rondo_result_t result;
    rd_log_ctx_t ctx;
    rd_stop_t stop;
} rank_t;

static void *join_one(void *arg)
{
    rank_t *r = arg;
    rd_boot_t *boot = NULL;

    r->ctx = (rd_log_ctx_t){.rank = r->rank, .nranks = r->nranks, .name = "test"};
    r->result = rd_boot_create(&boot, &r->id, r->rank, r->nranks, &env, &r->ctx, &r->stop);
    if (r->result == RONDO_SUCCESS)
        rd_boot_destroy(boot);
    return NULL;
}

static void begin_rank(rank_t *r, const rd_id_t *id, int rank, int nranks)
{
    memset(r, 0, sizeof *r);
    rd_id_pack(&r->id, id);
    r->rank = rank;
    r->nranks = nranks;
    if (pthread_create(&r->thread, NULL, join_one, r) != 0)
        exit(1);
}

/* The rank that hears of a failure in the process of the rendezvous gives that up 0.4 s later: who has had no core
 * until then finds nobody. */
static bool comes_too_late(const rank_t *r)
{
    const char *text = rd_log_ctx_error(&r->ctx);

    return r->result == RONDO_ERR_REMOTE &&
           (strstr(text, "is not there") || strstr(text, "or no longer") || strstr(text, "the message there says why"));
}

/* Rank 1 fails, and comes again before ranks 0 and 2 have come at all: they are told of the failure, it is not. */
static void comes_too_early(void)
{
    rd_fail_t failure = {.code = RONDO_ERR_NO_MEMORY, .failed_rank = 1, .text = "no memory"};
    rank_t others[2];
    rd_id_t id;

    check_now = "comes too early";
    int fd = make_id(&id);
    CHECK(rd_rendezvous_start(&id, fd, false, env.create_timeout_ms, 0, NULL) == RONDO_SUCCESS);
    rd_chan_t *first = say_join(&id, 1);
    CHECK(rd_chan_send(first, RD_REC_FAIL, &failure, sizeof failure) == 0);
    rd_chan_t *second = say_join(&id, 1);
    const unsigned char *data;
    size_t bytes;
    int type, heard = 0;
    while (!rd_chan_over(second) && !heard) {
        pump(second);
        heard = rd_chan_next(second, &type, &data, &bytes);
    }
    CHECK(!heard);
    begin_rank(&others[0], &id, 0, RANKS);
    begin_rank(&others[1], &id, 2, RANKS);
    for (int i = 0; i < 2; i++)
        pthread_join(others[i].thread, NULL);
    for (int i = 0; i < 2; i++)
        CHECK(others[i].result == RONDO_ERR_NO_MEMORY ||
                  (comes_too_late(&others[i]) && others[1 - i].result == RONDO_ERR_NO_MEMORY),
              "%s", rd_log_ctx_error(&others[i].ctx));
    rd_chan_free(first);
    rd_chan_free(second);
}

/* The rendezvous that lets the rank in first has nothing to say to it; the next one has. So it is, too, for who loses
 * his place at the listener of a flooded rendezvous, which he cannot tell from that: his proof was on its way. */
static void is_turned_away(int derived)
{
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = -1};
    rd_listener_t incoming;
    rd_chan_t *c = NULL;
    rank_t one;
    rd_id_t id;
    int fd = make_id(&id);

    check_now = derived ? "is turned away" : "loses its place";
    id.derived = derived;
    rd_listener_open(&incoming, fd, &id.creds, &id.addr, sizeof id.addr, &mine);
    begin_rank(&one, &id, 0, 1);
    while (!(c = rd_listener_next(&incoming))) {
        struct pollfd p[RD_LISTENER_POLLS];
        poll(p, (nfds_t)rd_listener_fill(&incoming, p), 50);
        rd_listener_pump(&incoming);
    }
    rd_chan_hang_up(c);
    rd_listener_close(&incoming);
    CHECK(rd_rendezvous_start(&id, fd, false, env.create_timeout_ms, 0, NULL) == RONDO_SUCCESS);
    pthread_join(one.thread, NULL);
    CHECK(one.result == RONDO_SUCCESS);
    rd_chan_free(c);
}

/* So it is for a while, and what the rank has said is not read: its connections are reset. */
static void is_reset(void)
{
    static const struct linger at_once = {.l_onoff = 1};
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = -1};
    rd_listener_t incoming;
    rank_t one;
    rd_id_t id;
    int fd = make_id(&id), resets = 0;

    check_now = "is reset";
    rd_listener_open(&incoming, fd, &id.creds, &id.addr, sizeof id.addr, &mine);
    begin_rank(&one, &id, 0, 1);
    for (int64_t until = rd_clock_ms() + 600; rd_clock_ms() < until || resets < 2;) {
        struct pollfd p[RD_LISTENER_POLLS];
        poll(p, (nfds_t)rd_listener_fill(&incoming, p), 20);
        rd_listener_pump(&incoming);
        for (rd_chan_t *c; (c = rd_listener_next(&incoming)); resets++) {
            setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
            rd_chan_free(c);
        }
    }
    rd_listener_close(&incoming);
    CHECK(rd_rendezvous_start(&id, fd, false, env.create_timeout_ms, 0, NULL) == RONDO_SUCCESS);
    pthread_join(one.thread, NULL);
    CHECK(one.result == RONDO_SUCCESS, "%s", rd_log_ctx_error(&one.ctx));
}

int main(void)
{
    alarm(60);
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    env.create_timeout_ms = 20000;
    rd_log_set_level(RD_LOG_NONE);
    if (rd_crypto_init(NULL) != RONDO_SUCCESS)
        return 1;
    comes_too_early();
    is_turned_away(1);
    is_turned_away(0);
    is_reset();
    printf("boot_again: %d failures\n", failures);
    return failures != 0;
}
