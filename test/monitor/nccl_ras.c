/* RONDO_RAS_NCCL: NCCL's RAS client is answered in NCCL's words, a line for a line, and told what rondo-ras would say,
 * as text and as JSON. What is no command is refused and does no harm, other hosts cannot ask, and a port that is taken
 * is not shared.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../../tools/value.h"
#include "monitor/obedient.h"
#include "monitor/ports.h"
#include "util/harness.h"

#define RANKS 4
#define LATE 2
#define DEAD 3

static char dir[] = "/tmp/rondo-nccl_ras-XXXXXX";
static char text[65536];

/* Says something on a connection, and returns what comes back: up to the end of a line, or, with `all`, to the end. */
static const char *say(int fd, const char *what, int all)
{
    size_t n = 0;

    if (send(fd, what, strlen(what), MSG_NOSIGNAL) != (ssize_t)strlen(what))
        return "it does not listen";
    while (n < sizeof text - 1 && drain(fd, (unsigned char *)text + n, 1) == 1)
        if (text[n++] == '\n' && !all)
            break;
    text[n] = 0;
    return text;
}

#define REPLY(fd, what, want) reply(__LINE__, fd, what, want)

static void reply(int line, int fd, const char *what, const char *want)
{
    const char *got = say(fd, what, 0);

    CHECK(strncmp(got, want, strlen(want)) == 0, "line %d: '%s' is answered '%s'", line, what, got);
}

#define STATUS(what, word) status(__LINE__, what, word)

static void status(int line, const char *what, const char *word)
{
    int fd = call();
    const char *got = say(fd, what, 1);

    CHECK(strstr(got, word), "line %d: '%s' is answered without '%s':\n%s", line, what, word, got);
    close(fd);
}

static void handshake(void)
{
    int fd = call();

    REPLY(fd, "CLIENT PROTOCOL 2\n", "SERVER PROTOCOL 2\n");
    REPLY(fd, "client protocol 77\r\n", "SERVER PROTOCOL 2\n");
    REPLY(fd, "TIMEOUT 5\n", "OK\n");
    REPLY(fd, "TIMEOUT 0\n", "OK\n");
    REPLY(fd, "TIMEOUT -1\n", "ERROR: ");
    REPLY(fd, "TIMEOUT 5s\n", "ERROR: ");
    REPLY(fd, "TIMEOUT \n", "ERROR: ");
    REPLY(fd, "TIMEOUT 99999999999999999999\n", "ERROR: ");
    REPLY(fd, "SET FORMAT xml\n", "ERROR: ");
    REPLY(fd, "MONITOR some\n", "ERROR: there are the groups");
    REPLY(fd, "MONITOR trace,\n", "OK\n"); /* it is as if nothing followed */
    close(fd);
    fd = call();
    REPLY(fd, "MONITORS\n", "ERROR: there is no such command");
    REPLY(fd, "\n", "ERROR: ");
    REPLY(fd, "STATUS please\n", "ERROR: ");
    REPLY(fd, "set format JSON\n", "OK\n");
    REPLY(fd, "SET FORMAT text\n", "OK\n");
    CHECK(strncmp(say(fd, "STATUS\n", 1), "rondo ", 6) == 0, "STATUS is answered '%s'", text);
    close(fd);
}

/* ---- JSON ---- */

static const value_t *of(const value_t *v, const char *name)
{
    const value_t *member = v ? value_of(v, name) : NULL;

    CHECK(member, "there is no member %s in\n%s", name, text);
    return member;
}

static int number(const value_t *v, const char *name)
{
    return value_int(of(v, name), INT32_MIN, INT32_MAX, -99);
}

static const value_t *item(const value_t *list, size_t i)
{
    const value_t *found = i < value_items(list) ? value_item(list, i) : NULL;

    CHECK(found, "there is no item %zu in\n%s", i, text);
    return found;
}

/* `dead` ranks are missing, DEAD the first of them. */
static void json(int verdict, int dead)
{
    values_t values = {0};
    int fd = call();
    const char *got = say(fd, "SET FORMAT json\nSTATUS\n", 1);

    CHECK(strncmp(got, "OK\n", 3) == 0, "SET FORMAT is answered '%s'", got);
    const value_t *all = value_read_json(&values, got + 3, strlen(got + 3));
    CHECK(all, "it is no JSON: %s\n%s", values.why, got);
    if (all) {
        const value_t *comms = of(all, "communicators"), *comm = item(comms, 0);
        const value_t *ranks = of(comm, "ranks"), *missing = of(comm, "missing_ranks");
        CHECK(number(all, "communicators_count") == 1 && value_items(comms) == 1, "not one communicator:\n%s", got);
        CHECK(number(comm, "size") == RANKS && number(comm, "ranks_count") == RANKS - dead &&
                  (int)value_items(ranks) == RANKS - dead && number(comm, "missing_ranks_count") == dead &&
                  (int)value_items(missing) == dead && number(comm, "ranks_elsewhere_count") == 0,
              "other numbers of ranks:\n%s", got);
        CHECK(number(comm, "verdict_status") == verdict, "another verdict:\n%s", got);
        CHECK(number(item(ranks, 0), "pid") == obedient_pids[0], "another process:\n%s", got);
        CHECK(number(of(item(ranks, 0), "status"), "async_error") == (dead ? 6 : 0), "another error:\n%s", got);
        CHECK(number(of(item(ranks, 1), "collective_counts"), "Collectives") == 4, "another count:\n%s", got);
        CHECK(number(of(all, "ras"), "timeouts_count") == 0, "there were timeouts:\n%s", got);
        if (dead)
            CHECK(number(item(missing, 0), "rank") == DEAD && number(item(missing, 0), "pid") == obedient_pids[DEAD],
                  "another rank is missing:\n%s", got);
    }
    value_free(&values);
    close(fd);
}

/* ---- clients that are none ---- */

static void hostile(void)
{
    char line[1001];
    int fd = call();

    memset(line, 'S', sizeof line - 1);
    line[sizeof line - 1] = 0;
    CHECK(strncmp(say(fd, line, 1), "ERROR: a line has 255 bytes", 26) == 0, "a long line is answered '%s'", text);
    close(fd);
    fd = call();
    CHECK(send(fd, "STAT", 4, MSG_NOSIGNAL) == 4 && shutdown(fd, SHUT_WR) == 0, "it does not listen");
    CHECK(drain(fd, (unsigned char *)text, sizeof text) == 0, "half a command is answered");
    close(fd);
    fd = call();
    int n = 0;
    while (n < 1000 && strcmp(say(fd, "TIMEOUT 1\n", 0), "OK\n") == 0)
        n++;
    CHECK(n == 64, "%d commands are answered", n);
    close(fd);
    fd = call();
    CHECK(send(fd, "STATUS\n", 7, MSG_NOSIGNAL) == 7, "it does not listen");
    close(fd); /* before the answer */
    STATUS("STATUS\nand this is not read\n", "RUNNING");
}

/* ---- in this process ---- */

static void refused(const char *address, const char *why)
{
    setenv("RONDO_RAS_NCCL", address, 1);
    (void)!truncate(log_file, 0);
    destroy(create());
    CHECK(strstr(logged(), why), "RONDO_RAS_NCCL=%s: the log says '%s'", address, logged());
}

static void addresses(const char *taken)
{
    char address[64];

    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", log_file, 1);
    refused(taken, "the port is taken, perhaps by another job");
    refused("0.0.0.0:28028", "served on loopback alone");
    refused("[::]:28028", "served on loopback alone");
    refused("192.0.2.1:28028", "served on loopback alone");
    refused("localhost:0", "no number from 1 to 65535");
    refused("nobody:28028", "not ADDRESS:PORT");
    snprintf(address, sizeof address, "localhost:%d", port = free_port());
    setenv("RONDO_RAS_NCCL", address, 1);
    rondo_comm_t comm = create();
    STATUS("status\n", "Nobody.");
    destroy(comm);
    CHECK(!is_open(), "the port is open after the communicator");
    unsetenv("RONDO_RAS_NCCL");
    unsetenv("RONDO_DEBUG_FILE");
}

/* ---- events ---- */

/* Reads on until that is said. */
static void await(int fd, const char *word)
{
    size_t n = 0;

    text[0] = 0;
    while (n < sizeof text - 1 && !strstr(text, word) && drain(fd, (unsigned char *)text + n, 1) == 1)
        text[++n] = 0;
    CHECK(strstr(text, word), "it is not said: '%s', but\n%s", word, text);
}

static int monitor(const char *command)
{
    int fd = call();

    REPLY(fd, command, "OK\n");
    return fd;
}

int main(void)
{
    char address[64], line[128];

    test_begin("monitor/nccl_ras", 120);
    if (!mkdtemp(dir))
        return 1;
    setenv("RONDO_DEBUG", "none", 1);
    snprintf(log_file, sizeof log_file, "%s/log", dir);
    snprintf(address, sizeof address, "127.0.0.1:%d", port = free_port());
    setenv("RONDO_RAS_NCCL", address, 1);
    obedient_start(RANKS, "a job", obedient_reduce);
    for (int i = 0; i < 3; i++)
        obedient_order_all(OBEDIENT_REDUCE);
    handshake();
    STATUS("STATUS\n", "OK                 a job");
    for (int r = 0; r < RANKS; r++)
        if (r != LATE)
            obedient_order(r, OBEDIENT_REDUCE);
    CHECK(obedient_ras_until("who", obedient_job, 3, "rank 2"), "rank 2 is not waited for:\n%s", obedient_text);
    STATUS("status\r\n", "is late, by 1 call: outside, after allreduce, collective number 3");
    STATUS("STATUS\n", "ranks have begun 3 to 4 collectives; 1 of the 4 here have begun fewer, the first is rank 2");
    STATUS("VERBOSE STATUS\n", "RUNNING, 4 collectives, 0 sends, 0 recvs; in allreduce, collective number 4");
    json(3, 0);
    hostile();
    int kept = port;
    addresses(address);
    port = kept;
    int lives = monitor("MONITOR\n"), all = monitor("set format json\nmonitor lifecycle,trace\n");
    REPLY(all, "", "OK\n");
    int third = monitor("monitor all\n"), fourth = call();
    REPLY(fourth, "MONITOR\n", "ERROR: no more clients may monitor");
    close(fourth);
    STATUS("STATUS\n", "a job"); /* three who stay leave room for one who asks */
    close(third);
    obedient_pause(2000); /* each has looked, and there is nothing to be said */
    kill(obedient_pids[DEAD], SIGKILL);
    waitpid(obedient_pids[DEAD], NULL, 0);
    for (int r = 0; r < DEAD; r++)
        if (r != LATE)
            CHECK(obedient_settled(r) && obedient[r].failed, "rank %d does not find that another one is dead", r);
    STATUS("STATUS\n", "INCOMPLETE,ERROR,MISMATCH");
    json(4, 1);
    snprintf(line, sizeof line, "] PEER_DEAD: rank %d (", DEAD);
    await(lives, line);
    CHECK(text[0] == '[' && !strstr(text, "STALLED"), "something else is said:\n%s", text);
    obedient_pause(2500);
    ssize_t more = recv(lives, text, sizeof text - 1, MSG_DONTWAIT);
    text[more > 0 ? more : 0] = 0;
    CHECK(!strstr(text, "PEER_DEAD"), "it is said again:\n%s", text);
    await(all, "\"event\": \"STALLED\",");
    await(all, "\"details\": \"'a job': rank 3 (");
    CHECK(!strstr(text, "COMM_MADE"), "something else is said:\n%s", text);
    close(all);
    obedient_pids[DEAD] = 0;
    obedient_end();
    close(lives);
    CHECK(!is_open(), "the port is open after the job");
    snprintf(line, sizeof line, "rm -r %s", dir);
    CHECK(system(line) == 0, "cannot remove %s", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
