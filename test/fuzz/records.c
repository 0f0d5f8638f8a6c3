/* Fuzz target: control records of one who holds the secret and sends nonsense: what the rendezvous takes from its
 * members, what a rank takes from the rendezvous, and farewells between neighbours. The sealed connections are real;
 * the rooms' own functions are reached by including their files.
 *
 * An input is a row of {member, type, two bytes of length, payload}. */
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "boot/rendezvous.c"
#undef SLICE_MS
#define fail join_fail
#define check join_check
#include "boot/join.c"
#undef check
#undef fail

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define RANKS 4
#define GUESTS 6

static const rd_creds_t creds = {{1}, {2}};
static const unsigned char endpoint[RD_ENDPOINT];

typedef struct pair {
    rd_chan_t *server, *client;
} pair_t;

static void connect_pair(pair_t *p, int rank, int nranks)
{
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = rank, .nranks = nranks}, its = {.purpose = RD_FOR_MEETING};
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
        abort();
    p->server = rd_chan_server(fds[0], &creds, endpoint, sizeof endpoint, &its);
    p->client = rd_chan_client(fds[1], &creds, endpoint, sizeof endpoint, &mine);
    for (int i = 0; i < 8; i++) {
        rd_chan_pump(p->client);
        rd_chan_pump(p->server);
    }
    if (p->server->state != RD_CHAN_OPEN || p->client->state != RD_CHAN_OPEN)
        abort();
}

/* ---- the rendezvous ---- */

static void rendezvous_fuzz(const uint8_t *data, size_t bytes)
{
    static const int claimed[GUESTS] = {0, 1, 2, 3, 3, -7};
    pair_t pair[GUESTS];
    rd_rendezvous_t m;

    memset(&m, 0, sizeof m);
    m.listener = -1;
    m.timeout_ms = 60000;
    for (int i = 0; i < GUESTS; i++) {
        connect_pair(&pair[i], claimed[i], i == 5 ? RD_MOST_RANKS + 1 : RANKS);
        if (admit(&m, pair[i].server) != 0)
            abort();
    }
    while (bytes >= 4 && !is_over(&m)) {
        size_t length = data[2] | (size_t)data[3] << 8;
        int member = data[0] % GUESTS, type = data[1];
        data += 4;
        bytes -= 4;
        length = length < bytes ? length : bytes;
        if (type == RD_REC_JOIN && length < sizeof(rd_join_t)) { /* a whole one, beginning so */
            rd_join_t join;
            memset(&join, 0, sizeof join);
            memcpy(&join, data, length);
            rd_chan_send(pair[member].client, type, &join, sizeof join);
        } else {
            rd_chan_send(pair[member].client, type, data, length);
        }
        data += length;
        bytes -= length;
        if (pair[member].server->state == RD_CHAN_OPEN)
            rd_rendezvous_hear(&m, &m.member[member]);
        decide(&m);
        for (int i = 0; i < GUESTS; i++) { /* what they are told is read, lest it pile up */
            const unsigned char *said;
            size_t n;
            int what;
            rd_chan_pump(pair[i].client);
            while (rd_chan_next(pair[i].client, &what, &said, &n))
                ;
        }
    }
    if (m.fail.code && strnlen(m.fail.text, sizeof m.fail.text) == sizeof m.fail.text)
        abort();
    end(&m);
    for (int i = 0; i < GUESTS; i++)
        rd_chan_free(pair[i].client);
}

/* ---- a rank ---- */

static void rank_fuzz(const uint8_t *data, size_t bytes)
{
    rd_stop_t stop = {.failed_rank = -1};
    rd_log_ctx_t ctx = {.rank = 1, .nranks = RANKS, .name = "fuzz"};
    char whois[RANKS][RD_WHOIS] = {"a:1", "b:2", "c:3", "d:4"};
    rd_addr_t addrs[RANKS];
    rd_boot_t b = {.rank = 1, .nranks = RANKS, .rounds = 2, .ctx = &ctx, .stop = &stop, .listener = -1};
    rd_joining_t j = {.b = &b, .missing = 4};
    rd_neighbour_t neighbour = {.rank = 2};
    _Atomic unsigned char gone[RANKS] = {0};

    b.gone = gone;
    b.whois = whois;
    memset(addrs, 0, sizeof addrs);
    b.addrs = addrs;
    for (; bytes >= 4;) {
        size_t length = data[2] | (size_t)data[3] << 8;
        int type = data[1] % 4;
        rd_boot_news_t news = {.failure.failed_rank = -1};
        data += 4;
        bytes -= 4;
        length = length < bytes ? length : bytes;
        if (type == 0) {
            on_table(&j, data, length);
        } else if (type == 1) {
            unsigned char table[2 * sizeof(rd_contact_t)] = {0};
            memcpy(table, data, length < sizeof table ? length : sizeof table);
            on_table(&j, table, sizeof table);
        } else if (type == 2) {
            rd_fail_t said;
            memset(&said, 'x', sizeof said);
            memcpy(&said, data, length < sizeof said ? length : sizeof said);
            on_fail(&j, (unsigned char *)&said, sizeof said);
            on_fail(&j, data, length);
        } else {
            unsigned char said[12] = {0};
            memcpy(said, data, length < sizeof said ? length : sizeof said);
            rd_boot_heard(&b, &neighbour, said, sizeof said, &news);
            rd_boot_heard(&b, &neighbour, data, length, &news);
            if (news.failure.failed_rank < -1 || news.failure.failed_rank >= RANKS || news.failure.reporter < 0 ||
                news.failure.reporter > RANKS)
                abort();
        }
        data += length;
        bytes -= length;
    }
    if (strnlen(j.text, sizeof j.text) == sizeof j.text)
        abort();
    for (int r = 0; r < RANKS; r++)
        if (strnlen(whois[r], RD_WHOIS) == RD_WHOIS)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int ready;

    if (!ready && rd_crypto_init(NULL) != RONDO_SUCCESS)
        abort();
    ready = 1;
    if (bytes < 1)
        return 0;
    if (data[0] & 1)
        rank_fuzz(data + 1, bytes - 1);
    else
        rendezvous_fuzz(data + 1, bytes - 1);
    return 0;
}
