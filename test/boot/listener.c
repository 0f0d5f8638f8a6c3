/* The listener, one defence after the other: strangers cost places, not memory and not time. A wrong hello is shown out
 * at once, a wrong proof too, silence in time; a full listener gives up its oldest stranger, and rather one that has
 * not named this job; a flood is taken in turns; without a descriptor left a stranger's is used; a record that is
 * forged or too long ends its connection; and in all this one who holds the secret comes in. The clock is turned
 * forward by turning back when a stranger came. Last, lists
 * that are too long for poll, and a thread that has descriptors of its own, with which others listen where the process
 * has none left. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/listener.h"
#include "base/wait.h"
#include "util/check.h"

#define FLOOD 40 /* more than are let in at a time, fewer than there are places */

static rd_listener_t incoming;
static rd_addr_t addr;
static rd_creds_t creds = {{1}, {2}};
static rd_env_t env;

static void begin(const char *what)
{
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = -1};
    int fd = -1;

    check_now = what;
    addr = rd_addr_loopback(4);
    if (rd_env_read(&env) != RONDO_SUCCESS || rd_sock_listen(&fd, &addr, &env, NULL) != RONDO_SUCCESS)
        exit(1);
    rd_listener_open(&incoming, fd, &creds, &addr, sizeof addr, &mine);
}

static void end(void)
{
    int fd = incoming.fd;

    rd_listener_close(&incoming);
    rd_fd_close(fd);
}

/* Connected, and there for accept. */
static int dial(void)
{
    int fd = rd_sock_connect(&addr);
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (fd < 0 || poll(&p, 1, 5000) != 1)
        exit(1);
    return fd;
}

static void hello_of(unsigned char hello[RD_HELLO])
{
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = 1, .nranks = 4};
    rd_auth_t auth;

    rd_auth_begin(&auth, &creds, 0, &addr, sizeof addr, &mine);
    memcpy(hello, auth.hello[0], RD_HELLO);
}

static void say(int fd, const void *data, size_t bytes)
{
    if (send(fd, data, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
        exit(1);
}

/* Pumps until that many are in the listener; what was sent over loopback is there at once, or very soon. */
static int pumped(int pending)
{
    for (int i = 0; i < 2000; i++) {
        rd_listener_pump(&incoming);
        if (incoming.npending == pending)
            return 1;
        usleep(1000);
    }
    return 0;
}

static rd_chan_t *come(int fd)
{
    rd_hello_t mine = {.purpose = RD_FOR_MEETING, .rank = 1, .nranks = 4};

    return rd_chan_client(fd, &creds, &addr, sizeof addr, &mine);
}

/* One with the secret comes in, by many turns of both sides, before two seconds can have passed for the strangers. */
static rd_chan_t *member(rd_chan_t *client)
{
    rd_chan_t *in = NULL;

    for (int i = 0; i < 2000 && !in; i++) {
        rd_chan_pump(client);
        rd_listener_pump(&incoming);
        in = rd_listener_next(&incoming);
        for (int k = 0; k < incoming.npending; k++)
            incoming.pending[k]->since_ms += 2; /* no time passes for them */
        if (!in)
            usleep(1000);
    }
    return in;
}

static void wrong_hello(void)
{
    unsigned char hello[RD_HELLO];
    int fd[4];

    begin("a wrong hello, whole or begun");
    hello_of(hello);
    for (int i = 0; i < 4; i++) {
        static const int at[] = {0, 4, 5, 8}; /* form, version, purpose, job */
        fd[i] = dial();
        CHECK(pumped(1));
        hello[at[i]] ^= 1;
        say(fd[i], hello, i % 2 ? RD_HELLO : 9); /* so much shows it */
        hello[at[i]] ^= 1;
        CHECK(pumped(0));
        rd_fd_close(fd[i]);
    }
    end();
}

static void wrong_proof(void)
{
    unsigned char hello[RD_HELLO], proof[RD_PROOF] = {0};
    int fd;

    begin("a wrong proof");
    hello_of(hello);
    fd = dial();
    say(fd, hello, RD_HELLO);
    CHECK(pumped(1));
    CHECK(incoming.pending[0]->in == incoming.pending[0]->early); /* no memory before the proof */
    say(fd, proof, RD_PROOF);
    CHECK(pumped(0));
    CHECK(rd_listener_next(&incoming) == NULL);
    rd_fd_close(fd);
    end();
}

static void silence(void)
{
    unsigned char hello[RD_HELLO];
    int fd[3];

    begin("silence");
    hello_of(hello);
    for (int i = 0; i < 3; i++)
        fd[i] = dial();
    say(fd[1], hello, RD_HELLO / 2);
    say(fd[2], hello, RD_HELLO);
    CHECK(pumped(3));
    for (int i = 0; i < incoming.npending; i++)
        incoming.pending[i]->since_ms -= RD_LISTENER_MS + 1;
    rd_listener_pump(&incoming);
    CHECK(incoming.npending == 1 && incoming.pending[0]->state == RD_CHAN_PROOF); /* perhaps a rank */
    incoming.pending[0]->since_ms -= RD_LISTENER_PROOF_MS - RD_LISTENER_MS;
    rd_listener_pump(&incoming);
    CHECK(incoming.npending == 0);
    for (int i = 0; i < 3; i++)
        rd_fd_close(fd[i]);
    end();
}

/* The first has named the job; it keeps its place, the others lose theirs, and a member comes in all the same. */
static void full(void)
{
    unsigned char hello[RD_HELLO];
    int fd[RD_LISTENER_MOST + FLOOD];
    rd_chan_t *client, *in;

    begin("a full listener");
    hello_of(hello);
    fd[0] = dial();
    say(fd[0], hello, RD_HELLO);
    for (int i = 0; i < 2000 && !(incoming.npending && incoming.pending[0]->state == RD_CHAN_PROOF); i++, usleep(1000))
        rd_listener_pump(&incoming);
    for (int i = 1; i < RD_LISTENER_MOST + FLOOD; i++) {
        fd[i] = dial();
        for (int k = 0; k < 20; k++)
            rd_listener_pump(&incoming);
        CHECK(incoming.npending <= RD_LISTENER_MOST);
        for (int k = 0; k < incoming.npending; k++)
            incoming.pending[k]->since_ms = rd_clock_ms();
    }
    CHECK(incoming.npending == RD_LISTENER_MOST);
    CHECK(incoming.pending[0]->state == RD_CHAN_PROOF);
    client = come(rd_sock_connect(&addr));
    in = member(client);
    CHECK(in != NULL);
    CHECK(incoming.npending == RD_LISTENER_MOST - 1);
    rd_chan_free(in);
    rd_chan_free(client);
    for (int i = 0; i < RD_LISTENER_MOST + FLOOD; i++)
        rd_fd_close(fd[i]);
    end();
}

static void flood(void)
{
    int fd[FLOOD];

    begin("a flood");
    for (int i = 0; i < FLOOD; i++)
        fd[i] = dial();
    rd_listener_pump(&incoming);
    CHECK(incoming.npending > 0 && incoming.npending < FLOOD);
    CHECK(pumped(FLOOD));
    for (int i = 0; i < FLOOD; i++)
        rd_fd_close(fd[i]);
    end();
}

static void no_descriptor(void)
{
    struct rlimit all, none;
    rd_chan_t *client, *in;
    int fd = -1, next;

    begin("no descriptor left");
    fd = dial();
    CHECK(pumped(1));
    client = come(rd_sock_connect(&addr));
    next = dup(fd); /* the lowest free one */
    close(next);
    getrlimit(RLIMIT_NOFILE, &all);
    none = (struct rlimit){(rlim_t)next, all.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    in = member(client);
    setrlimit(RLIMIT_NOFILE, &all);
    CHECK(in != NULL);
    rd_chan_free(in);
    rd_chan_free(client);
    rd_fd_close(fd);
    end();
}

/* A list of more than the process may have descriptors: what is ready is found in it, and where no list at all may be
 * polled, all is taken for it. */
static void polled_beyond_limit(void)
{
    struct pollfd p[4] = {{.fd = -1}, {.events = POLLIN}, {.fd = -1}, {.events = POLLIN}};
    struct rlimit all, few;
    int quiet[2], ready[2];

    check_now = "a list that is too long for poll";
    getrlimit(RLIMIT_NOFILE, &all);
    if (pipe(quiet) != 0 || pipe(ready) != 0 || write(ready[1], "", 1) != 1)
        exit(1);
    p[1].fd = quiet[0];
    p[3].fd = ready[0];
    few = (struct rlimit){3, all.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    CHECK(poll(p, 4, 0) < 0 && errno == EINVAL);
    CHECK(rd_sock_poll(p, 4, -1) && !p[1].revents && p[3].revents == POLLIN);
    CHECK(rd_sock_poll(p + 1, 3, 0) && p[3].revents == POLLIN);
    few.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &few);
    CHECK(rd_sock_poll(p, 4, -1) && !p[0].revents && p[1].revents == POLLIN && p[3].revents == POLLIN);
    setrlimit(RLIMIT_NOFILE, &all);
    for (int i = 0; i < 2; i++) {
        close(quiet[i]);
        close(ready[i]);
    }
}

/* Of one who is in: a forged record, and one that says it is too long. */
static void records(void)
{
    for (int kind = 0; kind < 2; kind++) {
        unsigned char bytes[RD_RECORD_HEAD + 8 + RD_PROOF] = {0};
        const unsigned char *data;
        rd_chan_t *client, *in;
        size_t length;
        int type;

        begin(kind ? "a record that is too long" : "a forged record");
        client = come(rd_sock_connect(&addr));
        in = member(client);
        CHECK(in != NULL);
        if (!in)
            return;
        memset(bytes, 0xff, kind ? 4 : 0);
        bytes[0] = kind ? 0xff : 8;
        for (int i = 0; i < 2000 && client->state != RD_CHAN_OPEN; i++, usleep(1000))
            rd_chan_pump(client);
        say(client->fd, bytes, sizeof bytes);
        for (int i = 0; i < 2000 && in->state == RD_CHAN_OPEN; i++, usleep(1000)) {
            rd_chan_pump(in);
            CHECK(!rd_chan_next(in, &type, &data, &length));
        }
        CHECK(in->state == RD_CHAN_DEAD && in->error == EPROTO);
        rd_chan_free(in);
        rd_chan_free(client);
        end();
    }
}

static void *say_by_own_table(void *arg)
{
    (void)arg;
    if (rd_fd_own_table(NULL, 0) == 0)
        rd_error(NULL, RONDO_ERR_SYSTEM, "the thread says that");
    return NULL;
}

/* What a thread with a table of its own says is in RONDO_DEBUG_FILE, too. */
static void log_is_kept(void)
{
    char path[] = "/tmp/rondo-log-XXXXXX", said[1024] = "";
    int fd = mkstemp(path);
    pid_t child = fd < 0 ? -1 : fork();
    pthread_t thread;

    if (child == 0) {
        setenv("RONDO_DEBUG_FILE", path, 1);
        rd_log_set_level(RD_LOG_WARN);
        rd_error(NULL, RONDO_ERR_SYSTEM, "the process says this");
        _exit(pthread_create(&thread, NULL, say_by_own_table, NULL) != 0 || pthread_join(thread, NULL) != 0);
    }
    check_now = "RONDO_DEBUG_FILE in a table of descriptors of a thread's own";
    CHECK(child > 0 && waitpid(child, NULL, 0) == child && read(fd, said, sizeof said - 1) > 0);
    CHECK(strstr(said, "the process says this"));
    CHECK(strstr(said, "the thread says that"));
    close(fd);
    unlink(path);
}

int main(void)
{
    alarm(60);
    if (rd_crypto_init(NULL) != RONDO_SUCCESS)
        return 1;
    wrong_hello();
    wrong_proof();
    silence();
    full();
    flood();
    no_descriptor();
    polled_beyond_limit();
    records();
    log_is_kept();
    return failures != 0;
}
