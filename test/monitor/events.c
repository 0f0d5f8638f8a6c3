/* rondo-ras monitor on a job of this test's own: each thing that happens is a line, once, with who, and nothing is said
 * where nothing happens; every line of JSON is one; and it ends with its job, or when it is interrupted, with the
 * status of the worst that it has seen.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tools/value.h"
#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"
#include "util/text.h"

#define RANKS 3
#define SPLIT 2 /* an order: a communicator that is ended at once */
#define LINES 256

static char dir[] = "/tmp/rondo-events-XXXXXX";
static char file[64];
static char text[65536];
static pid_t monitor;

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    rondo_comm_t part;

    if (what != SPLIT)
        return obedient_reduce(what, rank, comm);
    rondo_result_t result = rondo_comm_split(comm, 0, rank, &part, NULL);
    return result == RONDO_SUCCESS ? rondo_comm_destroy(part) : result;
}

static void start(const char *format)
{
    const char *build = getenv("top_builddir");
    char number[16], program[512];

    obedient_start(RANKS, "events", obey);
    snprintf(number, sizeof number, "%d", obedient_job);
    snprintf(program, sizeof program, "%s/rondo-ras", build ? build : ".");
    (void)unlink(file);
    fflush(stdout);
    monitor = fork();
    if (monitor == 0) {
        int out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
            _exit(126);
        execl(program, "rondo-ras", "monitor", "--job", number, "--format", format, "--stall", "0", "-d", "0.7",
              (char *)NULL);
        _exit(127);
    }
}

/* Reads what it has said so far. */
static const char *said(void)
{
    text_read(file, text, sizeof text);
    return text;
}

static int times(const char *word)
{
    int n = 0;

    for (const char *at = said(); (at = strstr(at, word)); at++)
        n++;
    return n;
}

/* Waits until it has said that so often. */
#define AWAIT(word, n) await(__LINE__, word, n)

static void await(int line, const char *word, int n)
{
    for (int i = 0; i < 20000 && times(word) < n; i++)
        obedient_pause(1);
    CHECK(times(word) == n, "line %d: '%s' is said %d times, want %d:\n%s", line, word, times(word), n, text);
}

static void finish(int status)
{
    int got = 0;

    CHECK(waitpid(monitor, &got, 0) == monitor && WIFEXITED(got) && WEXITSTATUS(got) == status,
          "it ended with 0x%x, want exit %d:\n%s", got, status, said());
}

/* Reads each line. Returns how many there are; names[i] is the event of the i-th. */
static int parse(char names[LINES][32])
{
    char *rest = NULL;
    int n = 0;

    (void)said();
    for (char *line = strtok_r(text, "\n", &rest); line && n < LINES; line = strtok_r(NULL, "\n", &rest), n++) {
        values_t values = {0};
        const value_t *event = value_read_json(&values, line, strlen(line));
        CHECK(event && value_int(value_of(event, "job"), 1, INT32_MAX, -1) == obedient_job &&
                  *value_text(value_of(event, "text")) && strlen(value_text(value_of(event, "time"))) == 28,
              "%s: '%s'", values.why ? values.why : "something is missing", line);
        snprintf(names[n], sizeof names[n], "%s", value_text(value_of(event, "event")));
        value_free(&values);
    }
    return n;
}

/* A job in which nothing happens but its work. `files`: the records are. */
static void in_order(int files)
{
    static const char *const want[] = {"job_found",          "communicator_made",  "communicator_made",
                                       "communicator_ended", "communicator_ended", "job_ended"};
    static char names[LINES][32];

    start("json");
    AWAIT("\"communicator_made\"", 1);
    for (int i = 0; i < 5; i++)
        obedient_order_all(OBEDIENT_REDUCE);
    obedient_order_all(SPLIT);
    AWAIT("\"communicator_ended\"", 1); /* it was there for less than a look */
    obedient_order_all(OBEDIENT_END);
    finish(0);
    int n = parse(names);
    CHECK(n == 6, "%d lines:\n%s", n, said());
    for (int i = 0; i < n && i < 6; i++)
        CHECK(strcmp(names[i], want[i]) == 0, "event %d is %s, want %s:\n%s", i, names[i], want[i], said());
    CHECK(times("3 ranks on 1 node, 3 on this one, host memory") == 2, "%s", said());
    CHECK(times(files ? "they had 6 collectives" : "ended by 3 ranks here, after 6 collectives") == 1 &&
              times("of which 0 died in it") == 1,
          "%s", said());
    obedient_end();
}

/* Late, stopped, dead. */
static void trouble(void)
{
    static char names[LINES][32];
    char word[128];

    start("json");
    AWAIT("\"communicator_made\"", 1);
    obedient_order_all(OBEDIENT_REDUCE);
    obedient_order(0, OBEDIENT_REDUCE);
    obedient_order(2, OBEDIENT_REDUCE);
    AWAIT("\"rank\": 1, \"status\": 3, \"text\": \"a call waits for ", 1);
    obedient_pause(2500); /* for some looks more, which say nothing */
    obedient_order(1, OBEDIENT_REDUCE);
    AWAIT("\"goes_on\"", 1);
    kill(obedient_pids[2], SIGSTOP);
    AWAIT("\"rank\": 2, \"status\": 4, \"text\": \"rank 2 (", 1);
    kill(obedient_pids[2], SIGCONT);
    AWAIT("\"goes_on\"", 2);
    CHECK(times("\"stalled\"") == 2, "%s", said());
    obedient_order(0, OBEDIENT_REDUCE);
    obedient_order(2, OBEDIENT_REDUCE);
    kill(obedient_pids[1], SIGKILL);
    waitpid(obedient_pids[1], NULL, 0);
    snprintf(word, sizeof word, "\"event\": \"rank_died\", \"job\": %d, \"communicator\": \"events\", ", obedient_job);
    AWAIT(word, 1);
    snprintf(word, sizeof word, "\"rank\": 1, \"pid\": %d, ", obedient_pids[1]);
    AWAIT(word, 1);
    obedient_pids[1] = 0;
    for (int r = 0; r < RANKS; r += 2)
        CHECK(obedient_settled(r) && obedient[r].failed, "rank %d does not find that another one is dead", r);
    for (int i = 0; i < 20000 && !strstr(said(), "has failed on 2 ranks") && times("has failed on 1 rank,") < 2; i++)
        obedient_pause(1); /* in one look, or in two */
    CHECK(strstr(said(), rondo_result_string(RONDO_ERR_REMOTE)), "the failure is not said:\n%s", said());
    obedient_end();
    finish(4);
    (void)parse(names);
    CHECK(times("has ended after the failure") == 2 && times("has died (") == 1, "%s", said());
    CHECK(times("\"job_ended\"") == 1 && times("3 processes, of which 1 died in it") == 1, "%s", said());
    CHECK(times("\"communicator_ended\"") == 0, "%s", said());
}

static void interrupted(int by)
{
    start("text");
    AWAIT("'events': made: 3 ranks on 1 node", 1);
    kill(monitor, by);
    finish(0);
    CHECK(times("\n") == 2 && text[strlen(text) - 1] == '\n', "%s", said());
    obedient_order_all(OBEDIENT_REDUCE);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

#define EXPECT(command, status, word) expect(__LINE__, command, status, word)

static void expect(int line, const char *command, int status, const char *word)
{
    int got = obedient_ras(command, 0);

    CHECK(got == status && strstr(obedient_text, word), "line %d: rondo-ras %s: exit %d, want %d and '%s':\n%s", line,
          command, got, status, word, obedient_text);
}

int main(void)
{
    char line[128], records[64];

    test_begin("monitor/events", 180);
    if (!mkdtemp(dir))
        return 1;
    setenv("RONDO_DEBUG", "none", 1);
    snprintf(file, sizeof file, "%s/said", dir);
    snprintf(records, sizeof records, "%s/records", dir);
    CHECK(mkdir(records, 0700) == 0, "cannot make %s", records);
    in_order(0);
    trouble();
    setenv("RONDO_MONITOR_DIR", records, 1);
    in_order(1);
    trouble();
    unsetenv("RONDO_MONITOR_DIR");
    interrupted(SIGINT);
    interrupted(SIGTERM);
    EXPECT("monitor --job 2147483647", 1, "there is no job 2147483647");
    EXPECT("monitor --format xml", 2, "text and json");
    EXPECT("monitor -d 0.1", 2, "each 0.7 s at most");
    EXPECT("monitor --stall x", 2, "--stall needs");
    EXPECT("monitor --host 127.0.0.1:1", 2, "this host alone");
    EXPECT("monitor more", 2, "nothing more to say");
    snprintf(line, sizeof line, "rm -r %s", dir);
    CHECK(system(line) == 0, "cannot remove %s", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
