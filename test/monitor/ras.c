/* rondo-ras on a job of this test's own: who is late, stopped or dead is named, with its call, and nobody where nobody
 * is; all of it is read while every thread of the job is stopped; and a job without records is not there. A page of top
 * has no more lines than the terminal, of however many communicators.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"

#define RANKS 3
#define ROWS 20
#define PARTS 6
#define SPLIT 2 /* an order: another communicator is made */
#define RECV 3  /* from the rank behind it, */
#define SEND 4  /* to the rank before it */

static void start(void)
{
    obedient_start(RANKS, "ras test", obedient_reduce);
}

static int ras(const char *command)
{
    return obedient_ras(command, obedient_job);
}

#define EXPECT(command, status, word) expect(__LINE__, command, status, word)

static void expect(int line, const char *command, int status, const char *word)
{
    int got = ras(command);

    CHECK(got == status && strstr(obedient_text, word), "line %d: rondo-ras %s: exit %d, want %d and '%s':\n%s", line,
          command, got, status, word, obedient_text);
}

static void wait_for(int status, const char *word)
{
    CHECK(obedient_ras_until("who", obedient_job, status, word), "who did not come to exit %d and '%s':\n%s", status,
          word, obedient_text);
}

static void late_and_stopped(void)
{
    char word[128];

    for (int i = 0; i < 5; i++)
        obedient_order_all(OBEDIENT_REDUCE);
    EXPECT("who", 0, "nobody");
    EXPECT("status", 0, "ranks 0-2: outside, after allreduce, collective number 5 (8 float32, sum)");
    EXPECT("list --json", 0, "\"communicators\": 1");
    EXPECT("status --json", 0, "\"collectives\": {\"begun\": 5, \"ended\": 5}");
    obedient_order(0, OBEDIENT_REDUCE);
    obedient_order(2, OBEDIENT_REDUCE);
    snprintf(word, sizeof word, ":%d) is late, by 1 call: outside, after allreduce, collective number 5",
             obedient_pids[1]);
    wait_for(3, word);
    EXPECT("status -v", 0, "in allreduce, collective number 6 (8 float32, sum), waits for rank 1");
    EXPECT("top -n 1 -d 0.1", 0, "waits for rank 1");
    for (int r = 0; r < RANKS; r++)
        kill(obedient_pids[r], SIGSTOP);
    for (int r = 0; r < RANKS; r++)
        obedient_state(r, 'T');
    EXPECT("status -v", 0, "stopped, in allreduce, collective number 6");
    EXPECT("who", 4, "rank 0");
    kill(obedient_pids[0], SIGCONT);
    kill(obedient_pids[2], SIGCONT);
    obedient_state(0, 'R');
    snprintf(word, sizeof word, ":%d) is stopped", obedient_pids[1]);
    EXPECT("who", 4, word);
    kill(obedient_pids[1], SIGCONT);
    obedient_order(1, OBEDIENT_REDUCE);
    for (int r = 0; r < RANKS; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d did not go on", r);
    EXPECT("who", 0, "nobody");
}

static void dead(void)
{
    char word[128];

    obedient_order(0, OBEDIENT_REDUCE);
    obedient_order(1, OBEDIENT_REDUCE);
    wait_for(3, "rank 2");
    kill(obedient_pids[1], SIGKILL);
    obedient_state(1, 'Z');
    snprintf(word, sizeof word, ":%d) is dead: its process ended in allreduce, collective number 7", obedient_pids[1]);
    EXPECT("who", 4, word);
    waitpid(obedient_pids[1], NULL, 0); /* now nothing but the record tells of it */
    EXPECT("who", 4, word);
    EXPECT("list", 0, "dead");
    CHECK(obedient_ras("list", obedient_pids[2]) == 0 && strstr(obedient_text, "dead"),
          "another process of the job does not stand for it: %s", obedient_text);
    obedient_pids[1] = 0;
    CHECK(obedient_settled(0) && obedient[0].failed, "rank 0 does not know");
}

static void without(void)
{
    setenv("RONDO_MONITOR", "0", 1);
    start();
    obedient_order_all(OBEDIENT_REDUCE);
    EXPECT("list", 1, "there is no job");
    obedient_order_all(OBEDIENT_END);
    obedient_end();
    unsetenv("RONDO_MONITOR");
    start();
    obedient_order_all(OBEDIENT_REDUCE);
    EXPECT("list", 0, "runs");
    obedient_order_all(OBEDIENT_END);
    EXPECT("list", 1, "rondo-ras: ");
    obedient_end();
}

/* What is not there, and what cannot be written, is said. */
static void nothing(void)
{
    start();
    obedient_order_all(OBEDIENT_REDUCE);
    EXPECT("top -n 1 -d 0.1", 0, "top: 3 processes, 1 communicator");
    CHECK(obedient_ras("top -n 1 -d 0.1 --job 999999999", 0) == 1 && strstr(obedient_text, "there is no job 999999999"),
          "top: %s", obedient_text);
    CHECK(obedient_ras("list 2>&1 >/dev/full #", 0) == 1 && strstr(obedient_text, "the output could not be written"),
          "a full disk: %s", obedient_text);
    CHECK(obedient_ras("--version 2>&1 >/dev/full #", 0) == 1, "a full disk: %s", obedient_text);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

/* Reduces in the last part. */
static rondo_result_t split(int what, int rank, rondo_comm_t comm)
{
    static rondo_comm_t parts[PARTS];
    static int n;
    rondo_config_t config = RONDO_CONFIG_INIT;

    config.device = RONDO_DEVICE_HOST;
    config.name = n + 1 == PARTS ? "the last part" : "a part";
    if (what == SPLIT)
        return rondo_comm_split(comm, 0, rank, &parts[n++], &config);
    if (what == OBEDIENT_REDUCE)
        return obedient_reduce(what, rank, parts[n - 1]);
    if (what == RECV)
        return rondo_recv(&config, sizeof config, RONDO_INT8, rank + 1, comm, NULL);
    if (what == SEND)
        return rondo_send(&config, sizeof config, RONDO_INT8, rank - 1, comm, NULL);
    while (n > 0)
        rondo_comm_destroy(parts[--n]);
    return obedient_reduce(what, rank, comm);
}

/* What top writes to a terminal of so many rows and columns. */
static const char *page(int rows, int columns)
{
    static char text[16384];
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
    char command[128];
    size_t have = 0;
    int ours = posix_openpt(O_RDWR | O_NOCTTY), theirs = -1;

    memset(text, 0, sizeof text);
    if (ours >= 0 && grantpt(ours) == 0 && unlockpt(ours) == 0)
        theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
    if (theirs < 0) {
        printf("there are no pseudo terminals here\n");
        return NULL;
    }
    CHECK(ioctl(theirs, TIOCSWINSZ, &size) == 0, "a terminal without a size");
    snprintf(command, sizeof command, "top -n 1 -d 0.1 --job %d >%s && echo END >%s", obedient_job, ptsname(ours),
             ptsname(ours));
    int status = obedient_ras(command, 0);
    CHECK(status == 0, "top on a terminal: exit %d\n%s", status, obedient_text);
    for (ssize_t n = 1; status == 0 && n > 0 && !strstr(text, "END"); have += (size_t)n)
        n = read(ours, text + have, sizeof text - 1 - have);
    close(theirs);
    close(ours);
    return text;
}

/* Which part of the time, in percent, a rank has waited by the page of top; -1: that is not said. */
static int part_of(int rank)
{
    char row[32];
    int part = -1;

    snprintf(row, sizeof row, "\n%4d %8d ", rank, obedient_pids[rank]);
    obedient_ras("top -n 1 -d 0.1", obedient_job);
    const char *at = strstr(obedient_text, row);
    return at && sscanf(at + strlen(row), "%*d %*f %d%%", &part) == 1 ? part : -1;
}

/* Who waits in a message waits, too. */
static void waits_in_message(void)
{
    int part = -1;

    obedient_start(RANKS, "messages", split);
    obedient_order(0, RECV);
    for (int i = 0; i < 100 && part <= 0; i++)
        part = part_of(0);
    CHECK(part > 0, "rank 0 waits for %d %% of the time:\n%s", part, obedient_text);
    CHECK(part_of(1) == 0, "rank 1 waits for %d %% of the time:\n%s", part, obedient_text);
    obedient_order(1, SEND);
    CHECK(obedient_settled(0) && obedient_settled(1), "the message does not come");
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

/* Two communicators have one name: each page and verdict has the number of the one that is meant. */
static void told_apart(void)
{
    char dir[] = "/tmp/rondo-ras-XXXXXX", command[96];

    CHECK(mkdtemp(dir), "no folder");
    snprintf(command, sizeof command, "dump -o %s/dumps", dir);
    EXPECT(command, 0, "3 dumps");
    snprintf(command, sizeof command, "analyse %s/dumps", dir);
    CHECK(obedient_ras(command, 0) == 3 && strstr(obedient_text, "'the last part' ("), "analyse: %s", obedient_text);
    EXPECT("top -n 1 -d 0.1", 0, "'the last part' (");
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0, "cannot remove %s", dir);
}

/* Columns of the longest line but a verdict, which goes on below. */
static int widest(const char *text)
{
    int most = 0, columns = 0;
    bool verdict = false;

    for (const char *at = text; *at; at++) {
        if (*at == '\n' || *at == '\r') {
            most = columns > most && !verdict ? columns : most;
            columns = 0;
            verdict = strncmp(at + 1, "rank 1 (", 8) == 0;
        } else if (*at == '\033') {
            at += strcspn(at, "HJm");
        } else {
            columns += ((unsigned char)*at & 0xc0) != 0x80;
        }
    }
    return most;
}

/* Titles and rows end where a narrow terminal does, and the numbers of calls are whole. */
static void narrow(void)
{
    static const int widths[] = {20, 30, 40, 44, 56, 60, 65, 80};

    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        const char *text = page(ROWS, widths[i]);
        if (!text)
            return;
        CHECK(widest(text) <= widths[i] && widest(text) > 10, "%d columns of %d:\n%s", widest(text), widths[i], text);
        CHECK(widths[i] < 30 || strstr(text, " in allreduce 1"), "%d columns:\n%s", widths[i], text);
    }
}

static void pages(void)
{
    const char *text;
    int lines = 0;

    obedient_start(RANKS, "the last part", split);
    for (int i = 0; i < PARTS; i++)
        obedient_order_all(SPLIT);
    obedient_order(0, OBEDIENT_REDUCE);
    wait_for(3, "'the last part' (");
    told_apart();
    text = page(ROWS, 100);
    for (const char *at = text; at && *at; at++)
        lines += *at == '\n';
    const char *first = text ? strchr(text, '\'') : NULL;
    CHECK(!text || (lines <= ROWS && strstr(text, " more communicators") && first &&
                    strncmp(first, "'the last part'", 15) == 0),
          "%d lines for %d rows:\n%s", lines, ROWS, text);
    narrow();
    obedient_order(1, OBEDIENT_REDUCE);
    obedient_order(2, OBEDIENT_REDUCE);
    for (int r = 0; r < RANKS; r++)
        CHECK(obedient_settled(r), "rank %d does not come back", r);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

int main(void)
{
    test_begin("monitor/ras", 120);
    start();
    late_and_stopped();
    dead();
    obedient_end();
    without();
    nothing();
    waits_in_message();
    pages();
    printf("%d failures\n", failures);
    return failures != 0;
}
