/* The attacker of hostile.c: finds the ports of a job and opens connections of every kind. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/harness.h"
#include "boot/session.h"
#include "fault/hostile.h"

#define AT_ONCE 200        /* connections open at a time */
#define HELD 150           /* of them by who keeps theirs open and says nothing */
#define PATIENCE_MS 150    /* then a stranger goes by itself */
#define SHOWN_OUT_MS 10000 /* within this a wrong proof must have ended the connection */
#define PORTS 64

const char *const kind_names[NUM_KINDS] = {"scan",   "reset",     "garbage",   "http",       "half-open",
                                           "drip",   "oversize",  "other job", "other wire", "wrong proof",
                                           "replay", "reflected", "ucx-like"};

typedef struct {
    struct sockaddr_storage addr;
    socklen_t bytes;
    rd_addr_t wire;      /* the same, as it goes into a proof */
    int tries, recorded; /* handshakes by one who has the secret */
    rd_purpose_t purpose;
    unsigned char hello[RD_HELLO], proof[RD_PROOF];
} port_t;

typedef struct {
    int fd; /* -1: free */
    kind_t kind;
    phase_t phase;
    port_t port;
    int connected, answered, proven;
    int dripped;
    int64_t born_us;
} pending_t;

typedef struct {
    const trial_t *trial;
    rd_creds_t creds;
    int have_creds;
    uint64_t random;
    port_t port[PORTS];
    int nports;
    pending_t pending[AT_ONCE];
    int next_kind;
} attacker_t;

static int listens_for(pid_t pid, unsigned long inode)
{
    char path[64], want[64], link[64];
    DIR *dir;
    struct dirent *entry;
    int found = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    snprintf(want, sizeof want, "socket:[%lu]", inode);
    dir = opendir(path);
    while (dir && !found && (entry = readdir(dir)) != NULL) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        found = strcmp(link, want) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

static void add_port(attacker_t *a, uint32_t ip, unsigned number)
{
    port_t *p;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number), .sin_addr.s_addr = ip};

    if (ip == 0)
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < a->nports; i++)
        if (((struct sockaddr_in *)&a->port[i].addr)->sin_port == in.sin_port)
            return;
    if (a->nports == PORTS)
        return;
    p = &a->port[a->nports++];
    memset(p, 0, sizeof *p);
    memcpy(&p->addr, &in, sizeof in);
    p->bytes = sizeof in;
    memcpy(p->wire.ip, &in.sin_addr, 4);
    memcpy(p->wire.port, &in.sin_port, 2);
    p->wire.family = 4;
    p->purpose = RD_FOR_NEIGHBOUR;
    if (a->have_creds && memcmp(a->trial->board->id.bytes + 8, &p->wire, sizeof p->wire) == 0)
        p->purpose = RD_FOR_MEETING;
}

/* All ports on which a rank listens. What was recorded of a port that is still there is kept. */
static void find_ports(attacker_t *a)
{
    unsigned number, state;
    uint32_t ip;
    unsigned long inode;
    char line[512];
    FILE *file = fopen("/proc/net/tcp", "r");

    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, " %*d: %x:%x %*x:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", &ip, &number, &state, &inode) != 4 ||
            state != 10)
            continue;
        for (int r = 0; r < RANKS; r++) {
            pid_t pid = atomic_load(&a->trial->board->pid[r]);
            if (pid && listens_for(pid, inode)) {
                add_port(a, ip, number);
                break;
            }
        }
    }
    if (file)
        fclose(file);
}

/* A handshake by one who has the secret, as a listener on the wire would see it. The slot is one that nobody wants. */
static void record(attacker_t *a, port_t *p)
{
    rd_hello_t hello = {.purpose = p->purpose, .rank = 1, .nranks = RANKS, .slot = -1};
    int fd = rd_sock_connect(&p->wire);
    rd_chan_t *c = fd < 0 ? NULL : rd_chan_client(fd, &a->creds, &p->wire, sizeof p->wire, &hello);
    int64_t until = test_clock_us() + 200000;

    while (c && c->state != RD_CHAN_OPEN && c->state != RD_CHAN_DEAD && test_clock_us() < until) {
        rd_chan_pump(c);
        usleep(200);
    }
    if (c && c->state == RD_CHAN_OPEN) {
        memcpy(p->hello, c->auth.hello[0], RD_HELLO);
        rd_auth_prove(&c->auth, p->proof);
        p->recorded = 1;
        atomic_fetch_add(&a->trial->board->recorded, 1);
    }
    rd_chan_free(c);
}

static void noise(attacker_t *a, unsigned char *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)test_random(&a->random);
}

/* The hello of a rank, which who listens on the wire knows but for the nonce. */
static void right_hello(attacker_t *a, const port_t *p, unsigned char hello[RD_HELLO])
{
    rd_auth_t auth;
    rd_hello_t mine = {.purpose = p->purpose, .rank = (int)test_below(&a->random, RANKS), .nranks = RANKS};

    rd_auth_begin(&auth, &a->creds, 0, &p->wire, sizeof p->wire, &mine);
    memcpy(hello, auth.hello[0], RD_HELLO);
}

static void say(pending_t *s, const void *data, size_t bytes)
{
    ssize_t n = send(s->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)n; /* if the other side has closed, the next read says so */
}

/* The first words of each kind. */
static void greet(attacker_t *a, pending_t *s)
{
    static const char http[] = "GET /status HTTP/1.1\r\nHost: localhost\r\nUser-Agent: scanner\r\n\r\n";
    unsigned char bytes[4096], hello[RD_HELLO];
    size_t n = 1 + test_below(&a->random, sizeof bytes);

    noise(a, bytes, sizeof bytes);
    right_hello(a, &s->port, hello);
    switch (s->kind) {
    case GARBAGE:
        say(s, bytes, n);
        break;
    case HTTP:
        say(s, http, sizeof http - 1);
        break;
    case HALF_OPEN:
        if (n & 1)
            say(s, hello, n % RD_HELLO);
        break;
    case OTHER_JOB:
        hello[8 + n % 16] ^= 1;
        say(s, hello, RD_HELLO);
        break;
    case OTHER_WIRE:
        hello[4]++;
        say(s, hello, RD_HELLO);
        break;
    case OVERSIZE:
    case WRONG_PROOF:
        say(s, hello, RD_HELLO);
        break;
    case REPLAY:
        say(s, s->port.recorded ? s->port.hello : hello, RD_HELLO);
        break;
    case UCX_LIKE:
        memcpy(bytes, "\x78\x56\x34\x12\xbe\xba\xfe\xcb", 8); /* its magic number, one bit off */
        say(s, bytes, n + 8 <= sizeof bytes ? n + 8 : n);
        break;
    default:
        break;
    }
}

/* The server has answered: the second words. */
static void answer(attacker_t *a, pending_t *s, const unsigned char *heard, size_t bytes)
{
    unsigned char proof[RD_PROOF], huge[RD_RECORD_HEAD] = {0xff, 0xff, 0xff, 0xff, 1};

    if (s->kind == REFLECT)
        say(s, heard, bytes);
    if (s->answered || bytes < RD_HELLO)
        return;
    s->answered = 1;
    atomic_fetch_add(&a->trial->board->answered, 1);
    noise(a, proof, sizeof proof);
    if (s->kind == OVERSIZE) {
        say(s, huge, sizeof huge);
        say(s, proof, sizeof proof);
    }
    s->proven = s->kind == WRONG_PROOF || s->kind == REPLAY;
    if (s->proven)
        atomic_fetch_add(&a->trial->board->proofs, 1);
    if (s->kind == WRONG_PROOF)
        say(s, proof, sizeof proof);
    if (s->kind == REPLAY)
        say(s, s->port.recorded ? s->port.proof : proof, sizeof proof);
}

static void leave(attacker_t *a, pending_t *s)
{
    struct linger reset = {1, 0};

    if (s->kind == RESET)
        setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (s->proven)
        atomic_fetch_add(&a->trial->board->shown_out, 1);
    close(s->fd);
    s->fd = -1;
    atomic_fetch_add(&a->trial->board->done[s->phase][s->kind], 1);
}

static int held(const attacker_t *a)
{
    int n = 0;

    for (int i = 0; i < AT_ONCE; i++)
        n += a->pending[i].fd >= 0 && a->pending[i].kind == HALF_OPEN;
    return n;
}

static void come(attacker_t *a, pending_t *s)
{
    int phase = atomic_load(&a->trial->board->phase);

    memset(s, 0, sizeof *s);
    s->fd = -1;
    s->kind = (kind_t)(a->trial->kind < NUM_KINDS ? a->trial->kind : a->next_kind++ % NUM_KINDS);
    if (phase >= OVER || a->nports == 0 || (s->kind == HALF_OPEN && held(a) >= HELD))
        return;
    s->phase = (phase_t)phase;
    s->port = a->port[test_below(&a->random, (unsigned)a->nports)];
    s->born_us = test_clock_us();
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return;
    if (connect(s->fd, (struct sockaddr *)&s->port.addr, s->port.bytes) != 0 && errno != EINPROGRESS) {
        close(s->fd);
        s->fd = -1;
    }
}

/* What is to be done with one stranger now. */
static void tend(attacker_t *a, pending_t *s, short events)
{
    unsigned char heard[512];
    ssize_t n;
    int64_t age_ms = (test_clock_us() - s->born_us) / 1000;

    if (!s->connected && (events & (POLLOUT | POLLERR | POLLHUP))) {
        s->connected = 1;
        if (s->kind == SCAN || s->kind == RESET) {
            leave(a, s);
            return;
        }
        greet(a, s);
    }
    if (s->kind == DRIP && s->connected && s->dripped < RD_HELLO) {
        unsigned char hello[RD_HELLO];
        right_hello(a, &s->port, hello);
        say(s, hello + s->dripped++, 1);
    }
    if (events & (POLLIN | POLLERR | POLLHUP)) {
        n = recv(s->fd, heard, sizeof heard, MSG_DONTWAIT);
        if (n > 0)
            answer(a, s, heard, (size_t)n);
        else if (n == 0 || errno != EAGAIN) {
            leave(a, s);
            return;
        }
    }
    if (s->kind == HALF_OPEN ? age_ms > 40 * PATIENCE_MS : age_ms > PATIENCE_MS && !s->proven) {
        leave(a, s);
    } else if (s->proven && age_ms > SHOWN_OUT_MS) {
        atomic_fetch_add(&a->trial->board->kept, 1);
        leave(a, s);
    }
}

static void attack_turn(attacker_t *a)
{
    struct pollfd p[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++) {
        pending_t *s = &a->pending[i];
        if (s->fd < 0)
            come(a, s);
        p[i] = (struct pollfd){.fd = s->fd, .events = s->connected ? POLLIN : POLLOUT};
    }
    poll(p, AT_ONCE, 1);
    for (int i = 0; i < AT_ONCE; i++)
        if (a->pending[i].fd >= 0)
            tend(a, &a->pending[i], p[i].revents);
}

void attack(const trial_t *trial)
{
    static attacker_t attacker;
    attacker_t *a = &attacker;
    int64_t looked = 0;

    a->trial = trial;
    a->random = trial->seed;
    for (int i = 0; i < AT_ONCE; i++)
        a->pending[i].fd = -1;
    while (!atomic_load(&trial->board->attack_over)) {
        rd_id_t id;
        if (!a->have_creds && atomic_load(&trial->board->known) && !rd_id_unpack(&id, &trial->board->id, NULL)) {
            a->creds = id.creds;
            a->have_creds = 1;
        }
        if (a->have_creds && test_clock_us() - looked > 50000) {
            find_ports(a);
            for (int i = 0; i < a->nports; i++)
                if (!a->port[i].recorded && a->port[i].tries++ < 3 && atomic_load(&trial->board->phase) == MAKING)
                    record(a, &a->port[i]);
            looked = test_clock_us();
        }
        if (a->have_creds)
            attack_turn(a);
        else
            usleep(1000);
    }
    exit(0);
}
