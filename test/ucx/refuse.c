/* Whoever reaches the network port of a rank may send it whatever UCX carries. Nothing of a message may be used before
 * it was checked: here messages with one thing wrong each, then many with random bytes changed, go to the function that
 * UCX calls; the inbox, the counters and the stop word must stay as they were. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ucx/ucx_gdr.h"

#define SLOTS 4
#define SLOT_BYTES 64
#define GUARD 64

static rd_log_ctx_t ctx = {.name = "refuse", .rank = 0, .nranks = 3};
static rd_stop_t stop;
static rd_ucx_peer_t peers[3];
static rd_ucx_net_t net = {
    .base = {.library = &rd_ucx_library, .ctx = &ctx, .stop = &stop, .rank = 0, .nranks = 3, .peers = (char *)peers}};
static rd_counter_t counters[4];
static unsigned char inbox[GUARD + SLOTS * SLOT_BYTES + GUARD];
static rd_send_t send_side = {.tail = &counters[0], .head = &counters[1], .slots_mask = SLOTS - 1};
static rd_recv_t recv_side = {.slots = (char *)inbox + GUARD,
                              .tail = &counters[2],
                              .head = &counters[3],
                              .slots_mask = SLOTS - 1,
                              .slot_bytes = SLOT_BYTES};

/* Rank 1 is on another node and channel 2 with it is bound; rank 2 is on this node. */
static int set_up(void)
{
    static char mirror[SLOTS * SLOT_BYTES];
    for (int r = 0; r < 3; r++) {
        peers[r].base.net = &net.base;
        peers[r].base.rank = r;
    }
    memset(net.base.token, 0x5a, sizeof net.base.token);
    peers[1].base.remote = true;
    send_side.slots = mirror;
    send_side.slot_bytes = SLOT_BYTES;
    send_side.sent = 5;
    counters[1].value = 3;
    recv_side.received = 9;
    counters[2].value = 9;
    return rd_transport_ucx.bind_send(&net.base.transport, 1, 2, &send_side) ||
           rd_transport_ucx.bind_recv(&net.base.transport, 1, 2, &recv_side);
}

static const rd_net_header_t good_data = {.rank = 1, .channel = 2, .kind = RD_NET_DATA, .number = 9, .bytes = 40};
static const rd_net_header_t good_credit = {.rank = 1, .channel = 2, .kind = RD_NET_CREDIT, .number = 5};

static void arrive(const rd_net_header_t *h, size_t header_bytes, size_t bytes)
{
    static char payload[1 << 20];
    ucp_am_recv_param_t param = {0};
    memset(payload, 0xee, bytes);
    rd_ucx_arrive(&net, h, header_bytes, payload, bytes, &param);
}

/* With the header behind the data, which is cut to `whole` bytes at its end. */
static void arrive_behind(const rd_net_header_t *h, size_t whole)
{
    static char payload[1 << 10];
    ucp_am_recv_param_t param = {0};
    memset(payload, 0xee, h->bytes);
    memcpy(payload + h->bytes, h, sizeof *h);
    rd_ucx_arrive(&net, NULL, 0, payload, whole, &param);
}

static int untouched(const char *what)
{
    int touched = counters[2].value != 9 || counters[1].value != 3 || rd_stop_get(&stop) != RONDO_SUCCESS ||
                  peers[1].base.left || peers[1].base.conns[2]->claimed != NULL || net.outstanding != 0;
    for (size_t i = 0; i < sizeof inbox; i++) {
        touched |= inbox[i] != 0;
    }
    if (touched) {
        fprintf(stderr, "a message with %s was used\n", what);
    }
    return !touched;
}

static int refused(const char *what, rd_net_header_t h, size_t header_bytes, size_t bytes)
{
    uint64_t before = net.base.dropped;
    memcpy(h.token, net.base.token, RD_NET_TOKEN);
    arrive(&h, header_bytes, bytes);
    if (net.base.dropped != before + 1) {
        fprintf(stderr, "a message with %s was not counted as dropped\n", what);
        return 0;
    }
    return untouched(what);
}

static int one_thing_wrong(void)
{
    rd_net_header_t d = good_data, c = good_credit;
    size_t whole = sizeof d;
    int good = 1;
#define WRONG(from, field, wrong, bytes)                                                                               \
    do {                                                                                                               \
        rd_net_header_t h = from;                                                                                      \
        h.field = wrong;                                                                                               \
        good &= refused(#field " = " #wrong, h, whole, bytes);                                                         \
    } while (0)
    WRONG(d, rank, 0, 40);
    WRONG(d, rank, 2, 40);
    WRONG(d, rank, 3, 40);
    WRONG(d, rank, UINT32_MAX, 40);
    WRONG(d, channel, 1, 40);
    WRONG(d, channel, 3, 40);
    WRONG(d, channel, UINT16_MAX, 40);
    WRONG(d, kind, 0, 40);
    WRONG(d, kind, 77, 40);
    WRONG(d, zero, 1, 40);
    WRONG(d, number, 8, 40);
    WRONG(d, number, 9 + SLOTS, 40);
    WRONG(d, number, UINT64_MAX, 40);
    WRONG(d, bytes, 41, 40);
    WRONG(d, bytes, SLOT_BYTES + 1, SLOT_BYTES + 1);
    WRONG(d, bytes, 1 << 20, 1 << 20);
    WRONG(d, credit, 6, 40);
    WRONG(d, credit, UINT64_MAX, 40);
    WRONG(c, number, 6, 0);
    WRONG(c, number, UINT64_MAX, 0);
    WRONG(c, bytes, 1, 0);
    WRONG(c, bytes, 1, 1);
    WRONG(c, kind, RD_NET_BYE, 1);
    WRONG(d, kind, RD_NET_GDR, 40); /* not announced */
#undef WRONG
    good &= refused("a short header", d, whole - 1, 40);
    good &= refused("no header", d, 0, 40);
    good &= refused("a long header", d, whole + 1, 40);
    rd_net_header_t bye = {.rank = 1, .kind = RD_NET_BYE, .number = RD_LAST_RESULT + 1};
    good &= refused("a farewell of no known code", bye, whole, 0);
    bye.number = RONDO_ERR_REMOTE;
    bye.bytes = 4;
    good &= refused("a farewell that blames a rank out of range", bye, whole, 0);
    return good;
}

/* Every bit of the token counts. */
static int wrong_tokens(void)
{
    for (int bit = 0; bit < 8 * RD_NET_TOKEN; bit++) {
        for (int kind = RD_NET_DATA; kind <= RD_NET_ACK; kind++) {
            rd_net_header_t h = kind == RD_NET_DATA ? good_data : good_credit;
            h.kind = (uint8_t)kind;
            memcpy(h.token, net.base.token, RD_NET_TOKEN);
            h.token[bit / 8] ^= (unsigned char)(1 << bit % 8);
            arrive(&h, sizeof h, h.bytes);
            if (!untouched("a wrong token")) {
                return 0;
            }
        }
    }
    return 1;
}

/* Random ones that a stranger might send; that they carry the token by chance does not happen. */
static int random_bytes(unsigned seed)
{
    srand(seed);
    for (int i = 0; i < 100000; i++) {
        unsigned char h[2 * sizeof(rd_net_header_t)];
        memcpy(h, i & 1 ? &good_data : &good_credit, sizeof good_data);
        for (size_t b = 0; b < sizeof h; b++) {
            h[b] = i & 2 || b >= sizeof good_data ? (unsigned char)rand() : h[b];
        }
        arrive((const rd_net_header_t *)h, (size_t)rand() % sizeof h, (size_t)rand() % 256);
        if (!untouched("random bytes")) {
            fprintf(stderr, "seed %u, number %d\n", seed, i);
            return 0;
        }
    }
    return 1;
}

/* Headers that lie behind the data are looked at as closely. */
static int behind_wrong(void)
{
    rd_net_header_t h = good_data;
    memcpy(h.token, net.base.token, RD_NET_TOKEN);
    for (size_t whole = 0; whole < 40 + sizeof h; whole++) {
        arrive_behind(&h, whole);
        if (!untouched("its header cut short")) {
            return 0;
        }
    }
    h.bytes = 41;
    arrive_behind(&h, 40 + sizeof h);
    h.token[3] ^= 1;
    h.bytes = 40;
    arrive_behind(&h, 40 + sizeof h);
    return untouched("a header behind the data that is wrong");
}

static ucs_status_t announce(uint64_t number, size_t says, size_t bytes)
{
    rd_net_header_t h = {.rank = 1, .kind = RD_NET_GDR, .number = number, .bytes = says};
    ucp_am_recv_param_t param = {.recv_attr = UCP_AM_RECV_ATTR_FLAG_RNDV};
    static char word[64]; /* stands for UCX's */
    memcpy(h.token, net.base.token, RD_NET_TOKEN);
    return rd_ucx_arrive(&net, &h, sizeof h, word, bytes, &param);
}

/* What goes past connections is kept only if it is announced as it should be, and once. */
static int announced(void)
{
    uint64_t before = net.base.dropped;
    int wrong = announce(2 * RD_GDR_MOST, 1000, 1000) != UCS_OK || announce(UINT64_MAX, 1000, 1000) != UCS_OK ||
                announce(0, 1000, 1001) != UCS_OK || net.base.dropped != before + 3;
    int right = announce(1, 1000, 1000) == UCS_INPROGRESS && announce(0, 1000, 1000) == UCS_INPROGRESS;
    wrong |= announce(0, 1000, 1000) != UCS_OK || announce(1, 999, 999) != UCS_OK || net.base.dropped != before + 5;
    if (wrong || !right) {
        fprintf(stderr, "announced: wrong ones kept %d, right ones kept %d\n", wrong, right);
    }
    return !wrong && right && untouched("an announcement");
}

/* A list of `n` messages from number `from` on, at the end of memory, so that to read on is seen; `cut`: its last bytes
 * are missing; `keys`: how long the keys are said to be, of which 32 bytes each are there. */
static uint64_t rts(uint64_t from, uint64_t n, uint64_t says, size_t cut, uint32_t keys, uint32_t zero)
{
    struct {
        uint64_t address, bytes;
        uint32_t key, zero;
        unsigned char packed[32];
    } item = {1 << 20, 1000, keys, zero, {0xab}};
    size_t each = keys != 0 ? sizeof item : sizeof item - sizeof item.packed, bytes = n * each - cut;
    char *page = mmap(NULL, 2 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rd_net_header_t h = {.rank = 1, .kind = RD_NET_RTS, .number = from, .bytes = says};
    ucp_am_recv_param_t param = {0};
    uint64_t before = net.base.dropped;
    memcpy(h.token, net.base.token, RD_NET_TOKEN);
    mprotect(page + 65536, 65536, PROT_NONE);
    for (size_t at = 0; at < bytes; at += each) {
        memcpy(page + 65536 - bytes + at, &item, at + each > bytes ? bytes - at : each);
    }
    rd_ucx_arrive(&net, &h, sizeof h, page + 65536 - bytes, bytes, &param);
    munmap(page, 2 * 65536);
    return net.base.dropped - before;
}

static uint64_t tell_taken(uint64_t number, uint64_t places, size_t bytes)
{
    rd_net_header_t h = {.rank = 1, .kind = RD_NET_ACK, .number = number, .bytes = places};
    uint64_t before = net.base.dropped;
    memcpy(h.token, net.base.token, RD_NET_TOKEN);
    arrive(&h, sizeof h, bytes);
    return net.base.dropped - before;
}

/* Messages that are offered in a list are kept if all of it is right, and none of them if anything is not. */
static int offered(void)
{
    int wrong = 0, right;
    wrong |= rts(2, 0, 0, 0, 32, 0) != 1;          /* none */
    wrong |= rts(2, 2, 1, 0, 32, 0) != 1;          /* more than it says */
    wrong |= rts(2, 2, 3, 0, 32, 0) != 1;          /* and less */
    wrong |= rts(2, 2, UINT64_MAX, 0, 32, 0) != 1; /* and far less */
    wrong |= rts(2, RD_UCX_OFFERS + 1, RD_UCX_OFFERS + 1, 0, 32, 0) != 1;
    wrong |= rts(2, 2, 2, 0, 0, 0) != 1;  /* the first one has no key */
    wrong |= rts(2, 1, 1, 0, 33, 0) != 1; /* a key beyond the end */
    wrong |= rts(2, 1, 1, 0, UINT32_MAX, 0) != 1;
    wrong |= rts(2, 2, 2, 0, 32, 1) != 1;                   /* what is no zero */
    wrong |= rts(2 * RD_GDR_MOST + 1, 1, 1, 0, 32, 0) != 1; /* not due yet, */
    wrong |= rts(2 * RD_GDR_MOST - 1, 2, 2, 0, 32, 0) != 1; /* the second one, for the first has come, */
    wrong |= rts(UINT64_MAX, 1, 1, 0, 32, 0) != 1;          /* or ever */
    wrong |= rts(0, 1, 1, 0, 32, 0) != 1;                   /* announced, see above */
    for (size_t cut = 1; cut < 2 * 56; cut++) {
        wrong |= rts(2, 2, 2, cut, 32, 0) != 1;
    }
    wrong |= tell_taken(0, 1, 0) != 1 || tell_taken(1, 0, 0) != 1 || tell_taken(0, UINT64_MAX, 0) != 1 ||
             tell_taken(0, 0, 1) != 1;
    for (int i = 2; i < RD_UCX_GDR_SLOTS; i++) {
        wrong |= peers[1].gdr->recvs[i].key != NULL;
    }
    wrong |= peers[1].gdr->keys != NULL;
    right = rts(2, 3, 3, 0, 32, 0) == 0 && peers[1].gdr->recvs[4].key != NULL;
    right &= peers[1].gdr->keys != NULL && peers[1].gdr->keys->users == 3;
    wrong |= rts(2, 3, 3, 0, 32, 0) != 1 || rts(4, 2, 2, 0, 32, 0) != 1; /* again, some of it */
    wrong |= announce(2, 1000, 1000) != UCS_OK;
    if (wrong || !right) {
        fprintf(stderr, "offered: wrong ones kept %d, right ones kept %d\n", wrong, right);
    }
    return !wrong && right && untouched("an offer");
}

/* And a right one is taken, once. */
static int right_ones(void)
{
    rd_net_header_t h = good_data;
    uint64_t before = net.base.dropped;
    memcpy(h.token, net.base.token, RD_NET_TOKEN);
    h.number = 10;
    arrive(&h, sizeof h, h.bytes);
    arrive(&h, sizeof h, h.bytes); /* again, while the first waits for its turn */
    int early = counters[2].value == 9 && net.base.dropped == ++before;
    h.number = 9;
    h.credit = 4;
    arrive(&h, sizeof h, h.bytes);
    int carried = counters[1].value == 4;
    int both = counters[2].value == 11 && inbox[GUARD + SLOT_BYTES] == 0xee && inbox[GUARD + SLOT_BYTES + 40] == 0;
    int replayed = net.base.dropped == before;
    arrive(&h, sizeof h, h.bytes);
    replayed &= net.base.dropped == before + 1 && counters[2].value == 11;
    h = good_credit;
    memcpy(h.token, net.base.token, RD_NET_TOKEN);
    arrive(&h, sizeof h, 0);
    int credited = counters[1].value == 5;
    h = good_data;
    memcpy(h.token, net.base.token, RD_NET_TOKEN);
    h.number = 11;
    arrive_behind(&h, 40 + sizeof h);
    both &= counters[2].value == 12;
    if (!early || !both || !replayed || !credited || !carried) {
        fprintf(stderr, "right messages: out of order %d, in order %d, replayed %d, credit %d, with data %d\n", early,
                both, replayed, credited, carried);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 1;
    alarm(30);
    rd_log_set_level(RD_LOG_NONE);
    if (rd_ucx_load() || set_up()) {
        return 1;
    }
    int good = one_thing_wrong() && wrong_tokens() && behind_wrong() && announced() && offered() && random_bytes(seed);
    return !(good && right_ones());
}
