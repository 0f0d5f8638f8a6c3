/* RONDO_RAS_ADDR: rondo-ras --host is told what rondo-ras is, by who has the secret; nobody else gets a byte of it,
 * what was recorded of a connection serves for no other, and clients that say nothing, garbage, half of it, or go away,
 * hold up nobody for long. Without a secret that is the user's alone no port is open. Its end is at once, whoever is
 * connected, so the next communicator finds the port free; a forked child does not keep it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "monitor/ports.h"
#include "util/check.h"
#include "util/harness.h"

#define RANKS 4
#define LATE 2
#define HELLO 41
#define REPLY 64
#define NO_FILES 2 /* an order: no file may be written from then on */
#define CROWD 6
#define ROUNDS 20

static char dir[] = "/tmp/rondo-ras_tcp-XXXXXX";
static char key[64], other[64];

static void write_key(const char *path, int bytes, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    for (int i = 0; i < bytes; i++)
        CHECK(write(fd, &(char){(char)(i * 37 + path[strlen(path) - 1])}, 1) == 1, "cannot write %s", path);
    CHECK(fchmod(fd, mode) == 0, "cannot change %s", path);
    close(fd);
}

static void ask(const char *command, const char *with, int status, const char *word)
{
    char line[512];

    snprintf(line, sizeof line, "%s --host 127.0.0.1:%d --key %s", command, port, with);
    int got = obedient_ras(line, 0);
    CHECK(got == status && strstr(obedient_text, word), "rondo-ras %s: exit %d, want %d and '%s':\n%s", line, got,
          status, word, obedient_text);
}

/* What a client gets that sends these bytes behind the server's greeting. */
static void hostile(const char *what, const unsigned char *reply, size_t n, int ends)
{
    static unsigned char bytes[4096];
    int fd = call();

    CHECK(fd >= 0 && drain(fd, bytes, HELLO) == HELLO, "%s: no greeting", what);
    CHECK(n == 0 || send(fd, reply, n, MSG_NOSIGNAL) == (ssize_t)n, "%s: it does not listen", what);
    if (ends)
        shutdown(fd, SHUT_WR);
    CHECK(drain(fd, bytes, sizeof bytes) == 0, "%s: it was told something", what);
    close(fd);
}

static void attacks(void)
{
    unsigned char reply[REPLY] = {9}, long_one[4096];
    int gone = call();

    close(gone); /* before its turn */
    memset(long_one, 'x', sizeof long_one);
    hostile("silence", NULL, 0, 0);
    hostile("half a reply", reply, 40, 1);
    hostile("a wrong proof", reply, REPLY, 0);
    memset(reply, 0, sizeof reply); /* agrees with every key */
    hostile("a weak key", reply, REPLY, 0);
    hostile("too much", long_one, sizeof long_one, 1);
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    const struct rlimit none = {0, 0};

    if (what == NO_FILES)
        return setrlimit(RLIMIT_FSIZE, &none) == 0 ? RONDO_SUCCESS : RONDO_ERR_SYSTEM;
    return obedient_reduce(what, rank, comm);
}

static void set_address(const char *with)
{
    char address[64];

    port = free_port();
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    setenv("RONDO_RAS_ADDR", address, 1);
    setenv("RONDO_RAS_KEY", with, 1);
}

static void start(const char *with)
{
    set_address(with);
    obedient_start(RANKS, "a job", obey);
    unsetenv("RONDO_RAS_ADDR");
    unsetenv("RONDO_RAS_KEY");
}

static void without_secret(const char *what, const char *with)
{
    start(with);
    CHECK(!is_open(), "%s: the port is open", what);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

/* Clients that come together are all answered, though each answer takes its time, and more come than are served at
 * once.
 */
static void crowd(void)
{
    char line[512];
    FILE *all[CROWD];

    snprintf(line, sizeof line, "%s/rondo-ras who --host 127.0.0.1:%d --key %s 2>&1",
             getenv("top_builddir") ? getenv("top_builddir") : ".", port, key);
    for (int i = 0; i < CROWD; i++)
        all[i] = popen(line, "r");
    for (int i = 0; i < CROWD; i++) {
        size_t n = all[i] ? fread(obedient_text, 1, sizeof obedient_text - 1, all[i]) : 0;
        obedient_text[n] = 0;
        int status = all[i] ? pclose(all[i]) : -1;
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3, "client %d of a crowd: 0x%x\n%s", i, status,
              obedient_text);
    }
}

/* Reads lines until there is this one. */
static int has_line(FILE *f, const char *wanted)
{
    char line[512];

    while (f && fgets(line, sizeof line, f))
        if (strcmp(line, wanted) == 0)
            return 1;
    return 0;
}

/* Metrics of a job that ends go on, without it. */
static void metrics_after(rondo_comm_t comm)
{
    char line[512];

    snprintf(line, sizeof line, "%s/rondo-ras metrics -d 0.05 --host 127.0.0.1:%d --key %s 2>/dev/null",
             getenv("top_builddir") ? getenv("top_builddir") : ".", port, key);
    FILE *f = popen(line, "r");
    CHECK(has_line(f, "rondo_processes 1\n"), "no metrics of a job");
    destroy(comm);
    CHECK(has_line(f, "rondo_processes 0\n"), "no metrics after a job");
    if (f)
        pclose(f); /* what it writes then ends it */
}

/* Of two jobs that listen, the one that is asked for is shown, and no other. */
static void one_job(void)
{
    const int first = port;
    char line[512];

    set_address(key);
    rondo_comm_t other_job = create();
    snprintf(line, sizeof line, "status --host 127.0.0.1:%d,127.0.0.1:%d --key %s", first, port, key);
    int got = obedient_ras(line, (int)getpid());
    snprintf(line, sizeof line, "job %d, ", (int)getpid());
    CHECK(got == 0 && strstr(obedient_text, line) == obedient_text && !strstr(obedient_text, "a job") &&
              !strstr(obedient_text, "rondo-ras: "),
          "one job of two: exit %d\n%s", got, obedient_text);
    metrics_after(other_job);
    unsetenv("RONDO_RAS_ADDR");
    unsetenv("RONDO_RAS_KEY");
    port = first;
}

static int listen_at(int at)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)at), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CHECK(bind(fd, (struct sockaddr *)&name, sizeof name) == 0 && listen(fd, 4) == 0, "nobody can listen at %d", at);
    return fd;
}

/* Hosts are asked at once: one that says nothing keeps none from being asked, though the client waits for it. */
static void at_once(void)
{
    const int first = port;
    struct pollfd p[2] = {{.events = POLLIN}, {.events = POLLIN}};
    char line[512];

    p[0].fd = listen_at(first);
    port = free_port();
    p[1].fd = listen_at(port);
    snprintf(line, sizeof line, "%s/rondo-ras who --host 127.0.0.1:%d,127.0.0.1:%d --key %s 2>&1",
             getenv("top_builddir") ? getenv("top_builddir") : ".", first, port, key);
    FILE *f = popen(line, "r");
    CHECK(f && poll(p, 2, 30000) > 0, "no host is asked");
    const int one = p[0].revents ? 0 : 1, asked = accept(p[one].fd, NULL, NULL);
    struct pollfd next[2] = {p[1 - one], {.fd = asked, .events = POLLIN}};
    CHECK(poll(next, 2, 30000) > 0 && next[0].revents, "the other host is not asked while one is waited for");
    close(asked);
    close(p[0].fd);
    close(p[1].fd);
    size_t n = f ? fread(obedient_text, 1, sizeof obedient_text - 1, f) : 0;
    obedient_text[n] = 0;
    int status = f ? pclose(f) : -1;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1, "hosts that say nothing: 0x%x\n%s", status, obedient_text);
}

/* ---- in this process ---- */

static void bad_address(const char *address, const char *why)
{
    setenv("RONDO_RAS_ADDR", address, 1);
    (void)!truncate(log_file, 0);
    destroy(create());
    CHECK(strstr(logged(), why), "RONDO_RAS_ADDR=%s: the log says '%s'", address, logged());
}

static void bad_addresses(void)
{
    setenv("RONDO_RAS_KEY", key, 1);
    bad_address("127.0.0.1:0", "no number from 1 to 65535");
    bad_address("127.0.0.1:65536", "no number from 1 to 65535");
    bad_address("127.0.0.1:12x", "no number from 1 to 65535");
    bad_address("127.0.0.1:", "no number from 1 to 65535");
    bad_address("127.0.0.1", "not ADDRESS:PORT");
    bad_address("[::1:4567", "not ADDRESS:PORT");
    bad_address("nobody:4567", "not ADDRESS:PORT");
}

static void silent_clients(void)
{
    unsigned char bytes[HELLO];

    set_address(key);
    (void)!truncate(log_file, 0);
    for (int i = 0; i < ROUNDS; i++) {
        rondo_comm_t comm = create();
        int silent = call(), waits = call();
        CHECK(silent >= 0 && drain(silent, bytes, HELLO) == HELLO, "round %d: no greeting", i);
        destroy(comm);
        CHECK(!is_open(), "round %d: the port is open after the communicator", i);
        CHECK(drain(silent, bytes, sizeof bytes) == 0, "round %d: the connection goes on", i);
        close(silent);
        close(waits);
    }
    CHECK(!*logged(), "%s", logged());
}

/* A child has neither the port nor the connection. It makes a communicator while its parent listens, which goes on
 * without, and one afterwards, which has the port. */
static void fork_while_up(void)
{
    unsigned char bytes[HELLO];
    int go[2], status = -1;

    set_address(key);
    rondo_comm_t comm = create();
    int silent = call();
    CHECK(pipe(go) == 0 && silent >= 0 && drain(silent, bytes, HELLO) == HELLO, "no greeting");
    pid_t child = fork();
    if (child == 0) {
        close(silent);
        close(go[1]);
        (void)!truncate(log_file, 0);
        destroy(create());
        CHECK(strstr(logged(), "the port is taken"), "the log says '%s'", logged());
        CHECK(read(go[0], bytes, 1) == 0, "the parent says something");
        comm = create();
        CHECK(is_open(), "the port is not open in a child");
        destroy(comm);
        fflush(stdout);
        _exit(failures != 0);
    }
    for (int i = 0; i < 20000 && strstr(logged(), "the port is taken") == NULL; i++)
        obedient_pause(1);
    CHECK(is_open(), "the port is gone with a child's communicator");
    destroy(comm);
    CHECK(drain(silent, bytes, sizeof bytes) == 0, "a child has the connection");
    CHECK(!is_open(), "a child has the port");
    close(silent);
    close(go[0]);
    close(go[1]);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with 0x%x", status);
}

static void alone(void)
{
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", log_file, 1);
    bad_addresses();
    silent_clients();
    fork_while_up();
    unsetenv("RONDO_DEBUG_FILE");
}

int main(void)
{
    char line[128];

    test_begin("monitor/ras_tcp", 120);
    if (!mkdtemp(dir))
        return 1;
    setenv("RONDO_DEBUG", "none", 1);
    snprintf(key, sizeof key, "%s/key", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    snprintf(log_file, sizeof log_file, "%s/log", dir);
    write_key(key, 32, 0600);
    write_key(other, 32, 0600);
    start(key);
    for (int i = 0; i < 3; i++)
        obedient_order_all(OBEDIENT_REDUCE);
    for (int r = 0; r < RANKS; r++)
        if (r != LATE)
            obedient_order(r, OBEDIENT_REDUCE);
    CHECK(obedient_ras_until("who", obedient_job, 3, "rank 2"), "rank 2 is not waited for:\n%s", obedient_text);
    ask("who", key, 3, "'a job': rank 2 (");
    ask("status -v", key, 0, "a job");
    ask("who", other, 1, "its RONDO_RAS_KEY is another one");
    ask("top", key, 2, "this host alone");
    attacks();
    ask("who", key, 3, "is late, by 1 call");
    crowd();
    kill(obedient_pids[LATE], SIGSTOP);
    ask("who", key, 4, "is stopped");
    kill(obedient_pids[LATE], SIGCONT);
    obedient_order(LATE, OBEDIENT_REDUCE);
    for (int r = 0; r < RANKS; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d does not come back", r);
    obedient_order_all(NO_FILES);
    ask("status -v", key, 0, "rank 3");
    ask("who", key, 0, "nobody is waited for");
    one_job();
    obedient_order_all(OBEDIENT_END);
    CHECK(!is_open(), "the port is open after the job");
    obedient_end();
    at_once();
    without_secret("no file", "/nowhere/to/be/found");
    write_key(key, 31, 0600);
    without_secret("a short secret", key);
    write_key(key, 32, 0644);
    without_secret("a file that others may read", key);
    ask("who", key, 1, "mode 0600");
    write_key(key, 32, 0600);
    alone();
    snprintf(line, sizeof line, "rm -r %s", dir);
    CHECK(system(line) == 0, "cannot remove %s", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
