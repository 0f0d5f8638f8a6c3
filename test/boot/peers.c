/* What a peer says that holds the secret but is wrong all the same, or older, or broken: records of a wrong length, at
 * a wrong time, twice; ranks, slots and counts that cannot be. Each is passed over or refused, and nothing that was
 * there is changed by it. The sealed connections are real; the rooms' own functions are reached by including their
 * files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/check.h"
#include "boot/rendezvous.c"
#undef SLICE_MS
#define fail join_fail
#define check join_check
#include "boot/join.c"
#undef check
#undef fail

#define RANKS 4
#define LONGER 40 /* bytes too many */

static const rd_creds_t creds = {{1}, {2}};
static const unsigned char endpoint[RD_ENDPOINT];

/* A connection that has shaken hands: the side under test, and the other. */
typedef struct pair {
    rd_chan_t *here, *there;
} pair_t;

static pair_t connect_pair(rd_hello_t theirs)
{
    rd_hello_t mine = {.purpose = theirs.purpose};
    pair_t p;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
        exit(1);
    p.here = rd_chan_server(fds[0], &creds, endpoint, sizeof endpoint, &mine);
    p.there = rd_chan_client(fds[1], &creds, endpoint, sizeof endpoint, &theirs);
    for (int i = 0; i < 8; i++) {
        rd_chan_pump(p.there);
        rd_chan_pump(p.here);
    }
    if (p.here->state != RD_CHAN_OPEN || p.there->state != RD_CHAN_OPEN)
        exit(1);
    return p;
}

/* ---- at the rendezvous ---- */

typedef struct table {
    rd_rendezvous_t m;
    pair_t pair[RANKS];
    int n;
} table_t;

static void sit_down(table_t *t, const char *what)
{
    check_now = what;
    memset(t, 0, sizeof *t);
    t->m.listener = -1;
    t->m.timeout_ms = 60000;
}

static rd_joiner_t *arrive(table_t *t, int rank, int nranks)
{
    t->pair[t->n] = connect_pair((rd_hello_t){.purpose = RD_FOR_MEETING, .rank = rank, .nranks = nranks});
    CHECK(admit(&t->m, t->pair[t->n].here) == 0);
    return &t->m.member[t->n++];
}

static void tell(table_t *t, int member, int type, const void *data, size_t bytes)
{
    rd_chan_send(t->pair[member].there, type, data, bytes);
    rd_rendezvous_hear(&t->m, &t->m.member[member]);
}

static void get_up(table_t *t)
{
    end(&t->m);
    for (int i = 0; i < t->n; i++)
        rd_chan_free(t->pair[i].there);
}

static void members(void)
{
    unsigned char longer[sizeof(rd_fail_t) + sizeof(rd_join_t) + LONGER] = {0};
    rd_join_t join = {.near = 1, .addr = {.family = 4, .port = {8, 8}}};
    rd_fail_t said = {.code = RONDO_ERR_SYSTEM};
    rd_addr_t elsewhere = {.family = 4, .port = {9, 9}};
    table_t t;
    rd_joiner_t *g;

    sit_down(&t, "a JOIN that is too short, too long, or comes twice");
    g = arrive(&t, 0, RANKS);
    tell(&t, 0, RD_REC_JOIN, &join, sizeof join - 1);
    tell(&t, 0, RD_REC_JOIN, longer, sizeof join + 1);
    CHECK(!g->joined && t.m.njoined == 0);
    tell(&t, 0, RD_REC_JOIN, &join, sizeof join);
    tell(&t, 0, RD_REC_JOIN, &join, sizeof join);
    CHECK(g->joined && t.m.njoined == 1 && !t.m.fail.code);
    get_up(&t);

    sit_down(&t, "READY before the table, and twice");
    g = arrive(&t, 0, 1);
    tell(&t, 0, RD_REC_READY, NULL, 0);
    tell(&t, 0, RD_REC_JOIN, &join, sizeof join);
    tell(&t, 0, RD_REC_READY, NULL, 0);
    CHECK(t.m.nready == 0);
    decide(&t.m);
    tell(&t, 0, RD_REC_READY, NULL, 0);
    tell(&t, 0, RD_REC_READY, NULL, 0);
    CHECK(t.m.nready == 1);
    get_up(&t);

    sit_down(&t, "an address that was not asked for, a FAIL of another length");
    g = arrive(&t, 0, RANKS);
    tell(&t, 0, RD_REC_JOIN, &join, sizeof join);
    tell(&t, 0, RD_REC_ADDR, &elsewhere, sizeof elsewhere);
    CHECK(memcmp(&g->join.addr, &join.addr, sizeof join.addr) == 0 && t.m.nmoving == 0);
    memcpy(longer, &said, sizeof said);
    tell(&t, 0, RD_REC_FAIL, longer, sizeof said - 1);
    tell(&t, 0, RD_REC_FAIL, longer, sizeof said + LONGER);
    CHECK(!t.m.fail.code);
    get_up(&t);

    sit_down(&t, "more ranks than there can be");
    arrive(&t, 0, RD_MOST_RANKS + 1);
    tell(&t, 0, RD_REC_JOIN, &join, sizeof join);
    CHECK(t.m.fail.code == RONDO_ERR_NO_MEMORY);
    get_up(&t);
}

/* One that could not listen comes last, and says why only after a turn of the rendezvous. */
static void deaf(void)
{
    rd_join_t join = {.near = 1, .addr = {.family = 4, .port = {8, 8}}};
    rd_fail_t said = {.code = RONDO_ERR_SYSTEM, .failed_rank = 1, .text = "no descriptor"};
    table_t t;

    sit_down(&t, "a rank without a port");
    arrive(&t, 0, 2);
    arrive(&t, 1, 2);
    tell(&t, 0, RD_REC_JOIN, &join, sizeof join);
    memset(join.addr.port, 0, sizeof join.addr.port);
    tell(&t, 1, RD_REC_JOIN, &join, sizeof join);
    decide(&t.m);
    CHECK(t.m.njoined == 2 && t.m.tabled == 0 && !t.m.fail.code);
    tell(&t, 1, RD_REC_FAIL, &said, sizeof said);
    decide(&t.m);
    CHECK(t.m.fail.code == RONDO_ERR_SYSTEM && strstr(t.m.fail.text, said.text) && t.m.nnotified == 2);
    get_up(&t);
}

/* Rank 0 comes with two ids, of which this is one, rank 1 by this one alone: so may all others, and are to be told. */
static void unlike(void)
{
    const rd_roots_head_t head = {.plan = {.nroots = 2, .nranks = RANKS}, .index = 0, .from = -1};
    const rd_root_t other = {.index = 1};
    rd_join_t join = {.near = 1, .addr = {.family = 4, .port = {8, 8}}};
    unsigned char record[RD_RECORD_DATA];
    table_t t;

    sit_down(&t, "a rank that comes by one id where another one comes by two");
    t.m.id.creds = creds;
    arrive(&t, 0, RANKS);
    tell(&t, 0, RD_REC_ROOTS, record, rd_roots_seal(record, &creds, &head, &other, 1));
    tell(&t, 0, RD_REC_JOIN, &join, sizeof join);
    CHECK(t.m.roots.known && t.m.most == RANKS / 2 && !t.m.fail.code);
    t.m.roots.ask[0].done = 1; /* the other root has its ranks, and is no part of this */
    t.m.roots.expected = 0;
    for (int rank = 1; rank < RANKS; rank++) {
        arrive(&t, rank, RANKS);
        tell(&t, rank, RD_REC_JOIN, &join, sizeof join);
        decide(&t.m);
        CHECK(t.m.fail.code == RONDO_ERR_INVALID_ARGUMENT && t.m.nnotified == rank + 1);
        CHECK(is_over(&t.m) == (rank == RANKS - 1));
    }
    get_up(&t);
}

/* ---- at a rank ---- */

typedef struct room {
    rd_boot_t b;
    rd_stop_t stop;
    rd_log_ctx_t ctx;
    char whois[RANKS][RD_WHOIS];
    rd_addr_t addrs[RANKS];
    _Atomic unsigned char gone[RANKS];
    rd_joining_t j;
} room_t;

static void enter(room_t *r, const char *what)
{
    check_now = what;
    memset(r, 0, sizeof *r);
    atomic_store(&r->stop.failed_rank, -1);
    r->ctx = (rd_log_ctx_t){.rank = 1, .nranks = RANKS, .name = "test"};
    r->b = (rd_boot_t){.rank = 1, .nranks = RANKS, .rounds = 2, .ctx = &r->ctx, .stop = &r->stop, .listener = -1};
    r->b.whois = r->whois;
    r->b.addrs = r->addrs;
    r->b.gone = r->gone;
    r->b.patience.ms = 3000;
    pthread_mutex_init(&r->b.lock, NULL);
    r->j = (rd_joining_t){.b = &r->b, .missing = 4};
    r->j.incoming.fd = -1;
}

static void from_rendezvous(void)
{
    static unsigned char bytes[sizeof(rd_fail_t) + 2 * sizeof(rd_contact_t) + LONGER];
    rd_fail_t said = {.code = RONDO_ERR_SYSTEM};
    room_t r;

    enter(&r, "a table of a wrong length");
    on_table(&r.j, bytes, 2 * sizeof(rd_contact_t) - 1);
    CHECK(r.j.code == RONDO_ERR_INTERNAL && !r.j.tabled);
    enter(&r, "a longer table");
    on_table(&r.j, bytes, 2 * sizeof(rd_contact_t) + 1);
    CHECK(r.j.code == RONDO_ERR_INTERNAL && !r.j.tabled);
    enter(&r, "a failure of a wrong length");
    memcpy(bytes, &said, sizeof said);
    on_fail(&r.j, bytes, sizeof said - 1);
    CHECK(r.j.code == RONDO_SUCCESS && !r.j.from_rendezvous);
}

/* Who is in by the secret, but is not the neighbour for whom there is a place. Rank 1 of 4 is waited for by 0 and 3. */
static void neighbours(void)
{
    static const struct {
        int rank, nranks, slot, wanted;
        const char *what;
    } claims[] = {{0, RANKS, -1, 0, "a neighbour with slot -1"}, {1, RANKS, 2, 0, "a neighbour with a slot too many"},
                  {2, RANKS, 0, 0, "another one's neighbour"},   {0, RANKS + 4, 0, 0, "a neighbour of another size"},
                  {0, RANKS, 0, 1, "the right neighbour"},       {0, RANKS, 0, 0, "a neighbour who is there already"}};
    room_t r;

    enter(&r, "neighbours");
    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        int missing = r.j.missing;
        pair_t p;
        check_now = claims[i].what;
        p = connect_pair((rd_hello_t){RD_FOR_NEIGHBOUR, claims[i].rank, claims[i].nranks, claims[i].slot});
        r.j.incoming.pending[r.j.incoming.npending++] = p.here;
        listener_pump(&r.j);
        CHECK(r.j.missing == missing - claims[i].wanted);
        CHECK(r.j.incoming.npending == 0);
        rd_chan_free(p.there);
    }
    rd_chan_free(r.b.to[0].chan);
}

static void farewells(void)
{
    const int32_t left[4] = {RONDO_SUCCESS, -1, 0, 0}, nobody[3] = {RONDO_ERR_REMOTE, 99, 77};
    const int32_t passed_on[3] = {RONDO_ERR_REMOTE, 1, 3 + 1};
    const int32_t mismatch[3] = {RONDO_ERR_MISMATCH, 0, 1 + 1};
    unsigned char message[sizeof mismatch + RD_ERROR_BYTES];
    rd_neighbour_t from = {.rank = 2};
    rd_boot_news_t news = {.failure.failed_rank = -1};
    room_t r;

    memcpy(message, mismatch, sizeof mismatch);
    memset(message + sizeof mismatch, 'x', RD_ERROR_BYTES);
    enter(&r, "a farewell of a wrong length");
    CHECK(rd_boot_heard(&r.b, &from, (const unsigned char *)left, 4, &news) == RONDO_SUCCESS && !from.left);
    CHECK(rd_boot_heard(&r.b, &from, (const unsigned char *)left, 8, &news) == RONDO_SUCCESS && !from.left);
    CHECK(rd_boot_heard(&r.b, &from, message, sizeof message, &news) == RONDO_SUCCESS && !from.left);
    check_now = "a farewell that blames nobody who is there";
    CHECK(rd_boot_heard(&r.b, &from, (const unsigned char *)nobody, 12, &news) == RONDO_ERR_REMOTE);
    CHECK(news.failure.failed_rank == 2 && news.failure.reporter == 2 + 1);
    check_now = "a farewell that passes on what rank 3 has found out";
    CHECK(rd_boot_heard(&r.b, &from, (const unsigned char *)passed_on, 12, &news) == RONDO_ERR_REMOTE);
    CHECK(news.failure.failed_rank == 1 && news.failure.reporter == 3 + 1 && strstr(news.failure.text, "rank 3 ") &&
          !strstr(news.failure.text, "rank 2 "));
    check_now = "a farewell over a mismatch";
    CHECK(rd_boot_heard(&r.b, &from, message, sizeof mismatch + 9, &news) == RONDO_ERR_MISMATCH && !from.left);
    CHECK(news.failure.failed_rank == 0 && news.failure.reporter == 1 + 1 &&
          strcmp(news.failure.text, "xxxxxxxxx") == 0);
    CHECK(rd_boot_heard(&r.b, &from, message, sizeof message - 1, &news) == RONDO_ERR_MISMATCH);
    CHECK(strlen(news.failure.text) == RD_ERROR_BYTES - 1);
    check_now = "a farewell over a mismatch that all find";
    CHECK(rd_boot_heard(&r.b, &from, message, sizeof mismatch, &news) == RONDO_SUCCESS && from.left);
}

/* A neighbour says who has died, and who has left. */
static void gone(void)
{
    static const struct {
        int type;
        int32_t rank;
        size_t bytes;
        int dead, left, lost; /* who is then; -1: nobody */
        const char *what;
    } said[] = {{RD_REC_DEATH, 2, 3, -1, -1, -1, "a death that is too short"},
                {RD_REC_DEATH, 2, 8, -1, -1, -1, "a death that is too long"},
                {RD_REC_DEATH, -1, 4, -1, -1, -1, "the death of rank -1"},
                {RD_REC_DEATH, RANKS, 4, -1, -1, -1, "the death of a rank too many"},
                {RD_REC_DEATH, INT32_MAX, 4, -1, -1, -1, "the death of a huge rank"},
                {RD_REC_DEATH, 1, 4, -1, -1, -1, "the death of this rank"},
                {RD_REC_LOST, RANKS, 4, -1, -1, -1, "the loss of a rank too many"},
                {RD_REC_LEFT, RANKS, 4, -1, -1, -1, "the leave of a rank too many"},
                {RD_REC_LEFT, 1, 4, -1, -1, -1, "the leave of this rank"},
                {RD_REC_LEFT, 2, 4, -1, 2, -1, "the leave of rank 2"},
                {RD_REC_DEATH, 2, 4, 2, -1, -1, "the death of rank 2"},
                {RD_REC_DEATH, 2, 4, 2, -1, -1, "the same death again"},
                {RD_REC_LEFT, 2, 4, 2, -1, -1, "its leave after that"},
                {RD_REC_LOST, 2, 4, 2, -1, 2, "that it had failed before it died"},
                {RD_REC_DEATH, 2, 4, 2, -1, 2, "the death again, from one who does not know that"}};
    room_t r;

    enter(&r, "gone");
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        unsigned char bytes[8] = {0};
        check_now = said[i].what;
        memcpy(bytes, &said[i].rank, sizeof said[i].rank);
        rd_boot_heard_gone(&r.b, said[i].type, bytes, said[i].bytes);
        for (int k = 0; k < RANKS; k++) {
            CHECK(rd_boot_is_dead(&r.b, k) == (k == said[i].dead));
            CHECK(rd_boot_is_left(&r.b, k) == (k == said[i].left));
            CHECK(rd_boot_is_lost(&r.b, k) == (k == said[i].lost));
        }
    }
}

/* A neighbour says who a rank is. */
static void names(void)
{
    static const int32_t none[] = {-1, RANKS, INT32_MAX};
    char row[1 + RANKS + 1][RD_WHOIS] = {{0}}, same[sizeof row / sizeof row[0]][RD_WHOIS] = {{0}};
    struct {
        int32_t rank;
        char whois[RD_WHOIS + LONGER];
    } said = {.rank = 2};
    const size_t bytes = sizeof said.rank + RD_WHOIS;
    room_t r;

    enter(&r, "a name of a wrong length");
    r.b.whois = row + 1;
    memset(said.whois, 'x', sizeof said.whois);
    rd_boot_heard_name(&r.b, (const unsigned char *)&said, bytes - 1);
    rd_boot_heard_name(&r.b, (const unsigned char *)&said, bytes + 1);
    CHECK(memcmp(row, same, sizeof row) == 0);
    check_now = "the name of a rank that is none";
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        said.rank = none[i];
        rd_boot_heard_name(&r.b, (const unsigned char *)&said, bytes);
        CHECK(memcmp(row, same, sizeof row) == 0);
    }
    check_now = "a name without an end";
    said.rank = 2;
    rd_boot_heard_name(&r.b, (const unsigned char *)&said, bytes);
    CHECK(strlen(rd_boot_whois(&r.b, 2)) == RD_WHOIS - 1);
    check_now = "another name of that rank";
    said.whois[0] = 'y';
    rd_boot_heard_name(&r.b, (const unsigned char *)&said, bytes);
    CHECK(rd_boot_whois(&r.b, 2)[0] == 'x');
}

/* Of two ranks the other sends more than is due. */
static void exchange(void)
{
    static const unsigned char bytes[LONGER];
    pair_t from, to;
    int32_t all[2] = {0, 1};
    room_t r;

    enter(&r, "more bytes than an exchange has");
    r.b.nranks = 2;
    r.b.rounds = 1;
    from = connect_pair((rd_hello_t){.purpose = RD_FOR_NEIGHBOUR});
    to = connect_pair((rd_hello_t){.purpose = RD_FOR_NEIGHBOUR});
    r.b.from[0] = (rd_neighbour_t){.chan = from.here};
    r.b.to[0] = (rd_neighbour_t){.chan = to.here};
    rd_chan_send(from.there, RD_REC_DATA, bytes, sizeof bytes);
    CHECK(rd_boot_allgather(&r.b, all, sizeof all[0]) == RONDO_ERR_INTERNAL);
    CHECK(atomic_load(&r.stop.failed_rank) == 0);
    rd_chan_free(from.here);
    rd_chan_free(from.there);
    rd_chan_free(to.here);
    rd_chan_free(to.there);
}

static void note_call(void *called, bool unread)
{
    *(int *)called += unread;
}

/* One neighbour's word ends an exchange, while another one's lies in its socket. That raises no edge any more, so
 * whoever waits for edges is told to read. */
static void unread(void)
{
    const int32_t failed[3] = {RONDO_ERR_REMOTE, 2, 2 + 1}, dead = 0;
    rd_boot_news_t news;
    int32_t all[RANKS] = {0};
    int called = 0;
    pair_t pair[4];
    room_t r;

    enter(&r, "what a neighbour has said before an exchange failed by another one's word");
    for (int k = 0; k < 4; k++) {
        pair[k] = connect_pair((rd_hello_t){.purpose = RD_FOR_NEIGHBOUR});
        *(k % 2 ? &r.b.to[k / 2] : &r.b.from[k / 2]) = (rd_neighbour_t){.chan = pair[k].here};
    }
    r.b.from[0].rank = 2;
    r.b.from[1].rank = r.b.to[1].rank = 3;
    rd_boot_on_letter(&r.b, note_call, &called);
    rd_chan_send(pair[0].there, RD_REC_FAREWELL, failed, sizeof failed);
    rd_chan_send(pair[2].there, RD_REC_DEATH, &dead, sizeof dead);
    CHECK(rd_boot_allgather(&r.b, all, sizeof all[0]) == RONDO_ERR_REMOTE && rd_stop_get(&r.stop) == RONDO_ERR_REMOTE);
    CHECK(called && !rd_boot_is_dead(&r.b, 0), "called %d times", called);
    CHECK(rd_boot_socket_ready(&r.b, pair[2].here->fd, &news) == RONDO_SUCCESS && rd_boot_is_dead(&r.b, 0));
    for (int k = 0; k < 4; k++) {
        rd_chan_free(pair[k].here);
        rd_chan_free(pair[k].there);
    }
}

int main(void)
{
    alarm(30);
    setenv("RONDO_DEBUG", "none", 0);
    if (rd_crypto_init(NULL) != RONDO_SUCCESS)
        return 1;
    members();
    deaf();
    unlike();
    from_rendezvous();
    neighbours();
    farewells();
    gone();
    names();
    exchange();
    unread();
    return failures != 0;
}
