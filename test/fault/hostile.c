/* Strangers at every port of a job, while its communicator is made, used and shrunk.
 *
 * Ranks are processes on one node, then on two played nodes. Another process finds the TCP ports on which they listen,
 * as a port scanner would (but by /proc), and opens connections of every kind below, many at a time, without end. The
 * last rank joins only when that has gone on for a while. No rank may fail, hang, give a wrong result or keep a
 * descriptor; and who sends a wrong or a replayed proof must be shown out.
 *
 *   hostile [--count N] [--seed S] [--nodes 1|2] [--kind NAME] [--verbose]
 *                                    N connections of each kind, in each phase
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness.h"
#include "boot_chan.h"
#include "net.h"

#define RANKS 4
#define AT_ONCE 200        /* connections open at a time */
#define HELD 150           /* of them by who keeps theirs open and says nothing */
#define PATIENCE_MS 150    /* then a stranger goes by itself */
#define SHOWN_OUT_MS 10000 /* within this a wrong proof must have ended the connection */
#define PORTS 64

typedef enum {
    SCAN,        /* connects and closes */
    RESET,       /* connects and resets */
    GARBAGE,     /* random bytes */
    HTTP,        /* a web client */
    HALF_OPEN,   /* says nothing, or half a hello, and stays */
    DRIP,        /* a right hello, byte by byte */
    OVERSIZE,    /* a right hello, then a record of 4 GiB instead of a proof */
    OTHER_JOB,   /* a right hello of another job */
    OTHER_WIRE,  /* of another version */
    WRONG_PROOF, /* a right hello, a random proof */
    REPLAY,      /* hello and proof as recorded from one who has the secret */
    REFLECT,     /* whatever comes goes back */
    UCX_LIKE,    /* nearly what UCX's tcp begins with, then garbage: who knows the right beginning is let in by UCX */
    NUM_KINDS
} kind_t;
static const char *const kind_names[NUM_KINDS] = {"scan",   "reset",     "garbage",   "http",       "half-open",
                                                  "drip",   "oversize",  "other job", "other wire", "wrong proof",
                                                  "replay", "reflected", "ucx-like"};

typedef enum { MAKING, RUNNING, SHRINKING, OVER } phase_t;

/* Between ranks, attacker and parent. */
typedef struct {
    _Atomic int phase;
    _Atomic int known; /* the id lies here */
    rondo_unique_id_t id;
    _Atomic pid_t pid[RANKS];
    _Atomic int ready;                    /* ranks that have done with a phase */
    _Atomic long done[OVER][NUM_KINDS];   /* connections that have come and gone */
    _Atomic long answered, recorded;      /* got a hello; genuine handshakes, to be replayed */
    _Atomic long proofs, shown_out, kept; /* wrong proofs sent; ended for it; not within the limit */
    _Atomic int attack_over;
} board_t;

typedef struct {
    long count;
    uint64_t seed;
    int verbose, nodes;
    int kind; /* only this one; NUM_KINDS: all */
    board_t *board;
} trial_t;

/* ---- the attacker ---- */

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
} stranger_t;

typedef struct {
    const trial_t *trial;
    rd_creds_t creds;
    int have_creds;
    uint64_t random;
    port_t port[PORTS];
    int nports;
    stranger_t stranger[AT_ONCE];
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

static void say(stranger_t *s, const void *data, size_t bytes)
{
    ssize_t n = send(s->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)n; /* if the other side has closed, the next read says so */
}

/* The first words of each kind. */
static void greet(attacker_t *a, stranger_t *s)
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
static void answer(attacker_t *a, stranger_t *s, const unsigned char *heard, size_t bytes)
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

static void leave(attacker_t *a, stranger_t *s)
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
        n += a->stranger[i].fd >= 0 && a->stranger[i].kind == HALF_OPEN;
    return n;
}

static void come(attacker_t *a, stranger_t *s)
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
static void tend(attacker_t *a, stranger_t *s, short events)
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
        stranger_t *s = &a->stranger[i];
        if (s->fd < 0)
            come(a, s);
        p[i] = (struct pollfd){.fd = s->fd, .events = s->connected ? POLLIN : POLLOUT};
    }
    poll(p, AT_ONCE, 1);
    for (int i = 0; i < AT_ONCE; i++)
        if (a->stranger[i].fd >= 0)
            tend(a, &a->stranger[i], p[i].revents);
}

static void attack(const trial_t *trial)
{
    static attacker_t attacker;
    attacker_t *a = &attacker;
    int64_t looked = 0;

    a->trial = trial;
    a->random = trial->seed;
    for (int i = 0; i < AT_ONCE; i++)
        a->stranger[i].fd = -1;
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

/* ---- the ranks ---- */

static int enough(const trial_t *trial, phase_t phase)
{
    for (int k = 0; k < NUM_KINDS; k++)
        if ((trial->kind == k || (trial->kind == NUM_KINDS && k != HALF_OPEN)) &&
            atomic_load(&trial->board->done[phase][k]) < trial->count)
            return 0;
    return 1;
}

/* Allreduces until rank 0 has seen enough strangers in this phase. */
static void use(test_rank_t *t, const trial_t *trial, rondo_comm_t comm, phase_t phase)
{
    static int64_t in[20000], out[20000];
    uint64_t random = trial->seed;
    int size = 0, rank = 0, over = 0, calls = 0;

    rondo_comm_size(comm, &size);
    rondo_comm_rank(comm, &rank);
    while (!over) {
        size_t count = 1 + (calls % 8 ? test_below(&random, 64) : test_below(&random, 20000));
        test_note(t, "phase %d, call %d", phase, ++calls);
        in[0] = rank == 0 && enough(trial, phase);
        for (size_t i = 1; i < count; i++)
            in[i] = (int64_t)i * (rank + 1) + calls;
        if (!TEST_OK(t, comm, rondo_allreduce(in, out, count, RONDO_INT64, RONDO_SUM, comm, NULL)))
            test_stop(t, "cannot go on");
        for (size_t i = 1; i < count; i++)
            if (out[i] != (int64_t)i * size * (size + 1) / 2 + (int64_t)calls * size)
                test_stop(t, "element %zu of %zu is %lld", i, count, (long long)out[i]);
        over = out[0] != 0;
        usleep(500); /* the strangers need the cores too */
    }
}

static void next_phase(test_rank_t *t, const trial_t *trial, phase_t phase)
{
    test_barrier(t);
    if (t->rank == 0)
        atomic_store(&trial->board->phase, phase);
}

/* Until enough have come, and those who were to be shown out have been: the rendezvous ends soon after the last rank
 * has come, and all connections with it. */
static void wait_for_strangers(const trial_t *trial)
{
    board_t *b = trial->board;
    long proofs;

    while (!enough(trial, MAKING))
        usleep(1000);
    proofs = atomic_load(&b->proofs);
    while (atomic_load(&b->shown_out) < proofs && atomic_load(&b->kept) == 0)
        usleep(1000);
}

static void body(test_rank_t *t, void *arg)
{
    const trial_t *trial = arg;
    board_t *b = trial->board;
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm, smaller;
    char host[32];
    int before, last = RANKS - 1;

    snprintf(host, sizeof host, "played%d", t->rank % trial->nodes);
    setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    before = test_count_entries("/proc/self/fd");
    atomic_store(&b->pid[t->rank], getpid());
    test_id(t, &b->id); /* the same bytes from all */
    atomic_store(&b->known, 1);
    test_note(t, "create");
    if (t->rank == last)
        wait_for_strangers(trial);
    if (!TEST_OK(t, NULL, rondo_comm_create(&comm, RANKS, &b->id, t->rank, &config)))
        test_stop(t, "cannot go on");
    next_phase(t, trial, RUNNING);
    use(t, trial, comm, RUNNING);
    next_phase(t, trial, SHRINKING);
    if (t->rank != last) {
        test_note(t, "shrink");
        if (!TEST_OK(t, comm, rondo_comm_shrink(comm, &last, 1, &smaller, &config)))
            test_stop(t, "cannot go on");
        use(t, trial, smaller, SHRINKING);
        TEST_OK(t, smaller, rondo_comm_destroy(smaller));
    }
    next_phase(t, trial, OVER);
    TEST_OK(t, comm, rondo_comm_destroy(comm));
    for (int i = 0; i < 100 && test_count_entries("/proc/self/fd") > before; i++)
        usleep(10000);
    if (test_count_entries("/proc/self/fd") > before)
        test_fail(t, "%d descriptors are left", test_count_entries("/proc/self/fd") - before);
}

/* ---- one trial ---- */

static int judge(const trial_t *trial)
{
    board_t *b = trial->board;
    long all = 0;
    int bad = 0;

    for (int k = 0; k < NUM_KINDS; k++) {
        long n = 0;
        for (int p = 0; p < OVER; p++)
            n += atomic_load(&b->done[p][k]);
        if (trial->verbose)
            printf("    %-12s %8ld while made, %8ld while used, %8ld while shrunk\n", kind_names[k], b->done[MAKING][k],
                   b->done[RUNNING][k], b->done[SHRINKING][k]);
        all += n;
    }
    printf("hostile: %d node%s: %ld connections, %ld got a hello, %ld genuine handshakes were replayed\n", trial->nodes,
           trial->nodes > 1 ? "s" : "", all, b->answered, b->recorded);
    if (b->kept) {
        printf("hostile: FAILED: %ld wrong or replayed proofs did not end the connection\n", b->kept);
        bad = 1;
    }
    if (trial->kind == NUM_KINDS && (!b->answered || !b->recorded)) {
        printf("hostile: FAILED: the strangers never reached a door: the trial shows nothing\n");
        bad = 1;
    }
    return bad;
}

static int run(trial_t trial)
{
    pid_t attacker;
    int bad, status;

    trial.board = mmap(NULL, sizeof *trial.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (trial.board == MAP_FAILED)
        return 1;
    attacker = fork();
    if (attacker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        attack(&trial);
    }
    bad = test_run(TEST_PROCESSES, RANKS, 500, body, &trial);
    atomic_store(&trial.board->attack_over, 1);
    if (waitpid(attacker, &status, 0) != attacker || status != 0) {
        printf("hostile: FAILED: the attacker ended with %x\n", status);
        bad++;
    }
    bad += judge(&trial);
    munmap(trial.board, sizeof *trial.board);
    return bad;
}

static int kind_find(const char *name)
{
    for (int k = 0; k < NUM_KINDS; k++)
        if (strcmp(kind_names[k], name) == 0)
            return k;
    fprintf(stderr, "hostile: no kind is called %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"count", required_argument, NULL, 'n'}, {"seed", required_argument, NULL, 's'},
        {"nodes", required_argument, NULL, 'N'}, {"kind", required_argument, NULL, 'k'},
        {"verbose", no_argument, NULL, 'v'},     {NULL, 0, NULL, 0}};
    trial_t trial = {.count = 170, .seed = 1, .kind = NUM_KINDS};
    int bad = 0, c, nodes = 0;

    while ((c = getopt_long(argc, argv, "n:s:N:k:v", options, NULL)) != -1) {
        if (c == 'n')
            trial.count = atol(optarg);
        else if (c == 's')
            trial.seed = strtoull(optarg, NULL, 0);
        else if (c == 'N')
            nodes = atoi(optarg);
        else if (c == 'k')
            trial.kind = kind_find(optarg);
        else if (c == 'v')
            trial.verbose = 1;
        else
            return 2;
    }
    test_begin("hostile", 600);
    if (setenv("UCX_LOG_LEVEL", "fatal", 0) == 0 && !getenv("RONDO_TEST_AGAIN")) { /* UCX speaks of each stranger */
        setenv("RONDO_TEST_AGAIN", "1", 1); /* and has read its settings by now */
        execv("/proc/self/exe", argv);
    }
    setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
    if (rd_crypto_init(NULL) != RONDO_SUCCESS)
        return 1;
    printf("hostile: seed %llu, %ld of each kind in each phase\n", (unsigned long long)trial.seed, trial.count);
    for (trial.nodes = 1; trial.nodes <= (rd_net_built() ? 2 : 1); trial.nodes++)
        if (nodes == 0 || nodes == trial.nodes)
            bad += run(trial);
    return bad != 0;
}
