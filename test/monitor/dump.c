/* rondo-ras dump on a job of this test's own: each process has a file, also one that is dead, which holds every call
 * that it has made, and whom it waits for; what is in there is what the parent has ordered. A strict parser reads it
 * (dump.py), where there is a python3.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"
#include "util/text.h"

#define RANKS 4

enum { SAME = 1, CAST, MESSAGE, LAST, GO_ON };

static char dir[] = "/tmp/rondo-dump-XXXXXX";

/* In a group, where the two go at the same time. */
static rondo_result_t send_both(rondo_comm_t comm)
{
    static double in[3];
    rondo_result_t result = rondo_group_start();

    for (int to = 1; to < 3 && result == RONDO_SUCCESS; to++)
        result = rondo_send(in, 3, RONDO_FLOAT64, to, comm, NULL);
    return result == RONDO_SUCCESS ? rondo_group_end() : result;
}

/* Calls and messages until the parent ends the job. They pause now and then: ranks with a core each would have gone
 * round their records before the last of them is looked at, and there would be no call that all of them still have. */
static rondo_result_t go_on(int rank, rondo_comm_t comm)
{
    static double in[100], out[100];
    rondo_result_t result = RONDO_SUCCESS;

    for (size_t i = 0; result == RONDO_SUCCESS; i++) {
        result = rondo_allreduce(in, out, 8 + i / 1000 % 2, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        if (result == RONDO_SUCCESS && rank == 0)
            result = rondo_send(in, 9, RONDO_FLOAT64, 1, comm, NULL);
        else if (result == RONDO_SUCCESS && rank == 1)
            result = rondo_recv(out, 9, RONDO_FLOAT64, 0, comm, NULL);
        if (i % 100 == 99)
            obedient_pause(1);
    }
    return result;
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    static double in[1000], out[1000];
    rondo_result_t result = RONDO_SUCCESS;

    switch (what) {
    case SAME:
        for (int i = 0; i < 20 && result == RONDO_SUCCESS; i++)
            result = rondo_allreduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        return result;
    case CAST:
        return rondo_broadcast(in, out, 100, RONDO_INT32, 2, comm, NULL);
    case MESSAGE:
        return rank == 0  ? send_both(comm)
               : rank < 3 ? rondo_recv(out, 3, RONDO_FLOAT64, 0, comm, NULL)
                          : RONDO_SUCCESS;
    case LAST:
        return rondo_allreduce(in, out, 1000, RONDO_FLOAT64, RONDO_MAX, comm, NULL);
    case GO_ON:
        return go_on(rank, comm);
    default:
        return rondo_comm_destroy(comm);
    }
}

static void ras(const char *command, int status, const char *word)
{
    char line[512];

    snprintf(line, sizeof line, command, dir);
    int got = obedient_ras(line, obedient_job);
    CHECK(got == status && strstr(obedient_text, word), "rondo-ras %s: exit %d, want %d and '%s':\n%s", line, got,
          status, word, obedient_text);
}

/* Of files alone. */
static void ras_files(const char *command, int status, const char *word)
{
    char line[512];

    snprintf(line, sizeof line, command, dir, dir);
    int got = obedient_ras(line, 0);
    CHECK(got == status && strstr(obedient_text, word), "rondo-ras %s: exit %d, want %d and '%s':\n%s", line, got,
          status, word, obedient_text);
}

/* Returns true if there is a python3 and it has looked. */
static int look(const char *what, const char *path)
{
    char line[1024];
    const char *top = getenv("top_srcdir");

    if (system("command -v python3 >/dev/null 2>&1") != 0)
        return 0;
    snprintf(line, sizeof line, "python3 %s/test/monitor/dump.py %s %s/%s", top ? top : ".", what, dir, path);
    CHECK(system(line) == 0, "dump.py %s %s is not content", what, path);
    return 1;
}

static void same(const char *one, const char *other)
{
    char line[1024];

    snprintf(line, sizeof line, "cmp %s/%s %s/%s", dir, one, dir, other);
    CHECK(system(line) == 0, "%s is not what %s is", other, one);
}

/* Nothing of a dump is lost when it is read. */
static void convert(void)
{
    char line[512];

    ras_files("convert %s/alive %s/again", 0, "4 dumps in");
    for (int r = 0; r < RANKS; r++) {
        char one[64], other[64];
        snprintf(one, sizeof one, "alive/rondo_dump_%d.json", r);
        snprintf(other, sizeof other, "again/rondo_dump_%d.json", r);
        same(one, other);
    }
    ras_files("convert --format chrome %s/alive %s/alive.trace", 0, "");
    look("chrome", "alive.trace");
    ras_files("convert --format fr %s/alive %s/alive.fr", 0, "4 dumps in");
    look("fr", "alive.fr");
    ras_files("convert %s/fr %s/from.fr", 0, "4 dumps in");
    look("from_fr", "from.fr");
    ras_files("convert --format chrome %s/alive/rondo_dump_2.json %s/one", 0, "");
    ras_files("convert %s/none %s/there", 1, "No such file");
    snprintf(line, sizeof line,
             "mkdir %s/empty && echo '{}' >%s/trace.7 && printf '\\200\\002cos\\nsystem\\n.' >%s/bad.7", dir, dir, dir);
    CHECK(system(line) == 0, "no files");
    ras_files("convert %s/empty %s/there", 1, "there is no dump in it");
    ras_files("convert %s/trace.7 %s/there", 1, "no dump of rondo's");
    ras_files("convert %s/bad.7 %s/there", 1, "would make an object");
    ras_files("convert --format xml %s/alive %s/there", 2, "json, fr or chrome");
    ras_files("convert %s/alive", 2, "IN OUT");
}

/* Whoever reads while the file is replaced finds it whole. */
static void metrics_while_read(void)
{
    char path[128], line[512];
    static char text[65536];
    int reads = 0;

    snprintf(path, sizeof path, "%s/metrics.prom", dir);
    pid_t writer = fork();
    if (writer == 0) {
        snprintf(line, sizeof line, "metrics -d 0.01 -n 8 -o %s", path);
        _exit(obedient_ras(line, obedient_job));
    }
    int status = 0;
    for (; waitpid(writer, &status, WNOHANG) == 0; reads++) {
        const size_t n = text_read(path, text, sizeof text);
        CHECK(n > 500 && text[n - 1] == '\n' && strstr(text, "rondo_blamed_rank{"), "%zu bytes after %d reads", n,
              reads);
        obedient_pause(1);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "metrics ended with %x", (unsigned)status);
    snprintf(line, sizeof line, "ls %s | grep -q part", dir);
    CHECK(system(line) != 0, "a part of a file is left");
}

static void alive(void)
{
    char path[128];

    ras("dump -o %s/alive", 0, "4 dumps in");
    for (int r = 0; r < RANKS; r++) {
        struct stat st;
        snprintf(path, sizeof path, "%s/alive/rondo_dump_%d.json", dir, r);
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "%s is not there, or others may read it", path);
    }
    ras("trace -o %s/trace.json", 0, "");
    ras("trace -o %s/trace.json", 0, ""); /* which replaces the first one */
    look("chrome", "trace.json");
    ras("dump --format fr -o %s/fr", 0, "4 dumps in");
    look("fr", "fr");
    ras("dump --format xml -o %s/xml", 2, "json, fr or chrome");
    ras("metrics -o %s/metrics.prom", 0, "");
    struct stat metrics;
    snprintf(path, sizeof path, "%s/metrics.prom", dir);
    CHECK(stat(path, &metrics) == 0 && (metrics.st_mode & 0777) == 0644, "others may not read %s", path);
    look("metrics", "metrics.prom");
    metrics_while_read();
    if (!look("json", "alive"))
        printf("no python3: what is in the dumps is not looked at\n");
    ras("dump -o %s/alive", 1, "of an earlier dump");
    ras("dump -o %s/none/there", 1, "No such file");
    ras("dump", 2, "-o DIR");
    convert();
    ras("dump --from %s/alive -o from", 1, "there is no record in");
    ras("dump --from %s/nowhere -o from", 1, "nowhere cannot be read: No such file");
}

/* Its record is what the others hold. */
static void dead(void)
{
    kill(obedient_pids[3], SIGKILL);
    obedient_state(3, 'Z');
    waitpid(obedient_pids[3], NULL, 0);
    obedient_pids[3] = 0;
    ras("metrics", 0, "rondo_verdict");
    CHECK(strstr(obedient_text, "} 4\n") && strstr(obedient_text, "rondo_processes 4"), "no word of the dead:\n%s",
          obedient_text);
    ras("dump -o %s/dead", 0, "4 dumps in");
    look("dead", "dead");
}

/* Its ranks are not looked at in the same moment, and nobody may be accused because of that. */
static void running(void)
{
    obedient_start(RANKS, "goes on", obey);
    for (int r = 0; r < RANKS; r++)
        obedient_order(r, GO_ON);
    ras("dump --format fr -o %s/running", 0, "4 dumps in");
    look("running", "running");
    ras("dump -o %s/running.json", 0, "4 dumps in");
    ras_files("convert --format fr %s/running.json %s/running.too", 0, "4 dumps in");
    look("running", "running.too");
    obedient_end();
}

/* Records that a job has left as files, when all of it was killed. */
static void remains(void)
{
    char folder[128];

    snprintf(folder, sizeof folder, "%s/records", dir);
    CHECK(mkdir(folder, 0700) == 0, "no %s", folder);
    setenv("RONDO_MONITOR_DIR", folder, 1);
    obedient_start(RANKS, "dump \"test\"", obey);
    unsetenv("RONDO_MONITOR_DIR");
    obedient_order_all(SAME);
    obedient_end();
    ras_files("dump --from %s/records -o %s/remains", 0, "4 dumps in");
    ras_files("analyse %s/remains", 4,
              "is dead: its process ended outside of calls, after allreduce, collective number 20");
    ras_files("trace --from %s/records -o %s/remains.trace", 0, "");
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/half\033[2J.rondo-record");
    FILE *half = fopen(folder, "w");
    CHECK(half && fputs("half", half) >= 0 && fclose(half) == 0, "no %s", folder);
    ras_files("dump --from %s/records -o %s/some", 0, "4 dumps in");
    CHECK(strstr(obedient_text, "rondo-ras: half?[2J.rondo-record cannot be read: "), "no word of it:\n%s",
          obedient_text);
}

/* How many collectives had begun between the two looks of a dump; -1: it has not both of them. */
static long between(const char *name)
{
    static const char word[] = "\"collectives\": {\"begun\": ";
    static char text[65536];
    char path[256];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    text_read(path, text, sizeof text);
    const char *first = strstr(text, word), *second = first ? strstr(first + 1, word) : NULL;
    return second ? atol(second + sizeof word - 1) - atol(first + sizeof word - 1) : -1;
}

/* Records that are files are read at both looks, by rondo-ras and by the process itself. A look may come to a moment in
 * which the machine did something else: then there is another one. */
static void looks_at_files(void)
{
    char folder[128], own[160], name[96];
    long tool = 0, process = 0;

    snprintf(folder, sizeof folder, "%s/files", dir);
    snprintf(own, sizeof own, "%s/own", dir);
    CHECK(mkdir(folder, 0700) == 0 && mkdir(own, 0700) == 0, "no %s", folder);
    setenv("RONDO_MONITOR_DIR", folder, 1);
    setenv("RONDO_DUMP_DIR", own, 1);
    setenv("RONDO_DUMP_SIGNAL", "USR1", 1);
    obedient_start(RANKS, "files", obey);
    unsetenv("RONDO_MONITOR_DIR");
    unsetenv("RONDO_DUMP_DIR");
    unsetenv("RONDO_DUMP_SIGNAL");
    for (int r = 0; r < RANKS; r++)
        obedient_order(r, GO_ON);
    for (int i = 0; i < 10 && (tool <= 0 || process <= 0); i++) {
        kill(obedient_pids[0], SIGUSR1);
        snprintf(name, sizeof name, "dump -o %%s/file%d", i);
        ras(name, 0, "4 dumps in");
        snprintf(name, sizeof name, "file%d/rondo_dump_0.json", i);
        tool = tool > 0 ? tool : between(name);
        snprintf(name, sizeof name, "own/rondo_dump.%d.%d.json", (int)obedient_pids[0], i);
        for (int ms = 0; ms < 20000 && between(name) < 0; ms++)
            obedient_pause(1);
        process = process > 0 ? process : between(name);
    }
    CHECK(tool > 0 && process > 0, "of files there is but one look: %ld and %ld calls between two", tool, process);
    obedient_end();
}

int main(void)
{
    char line[128];

    test_begin("monitor/dump", 120);
    umask(077);
    if (!mkdtemp(dir))
        return 1;
    obedient_start(RANKS, "dump \"test\"", obey);
    for (int i = 0; i < 5; i++)
        obedient_order_all(SAME);
    obedient_order_all(CAST);
    obedient_order_all(MESSAGE);
    for (int r = 0; r < RANKS; r++)
        if (r != 1)
            obedient_order(r, LAST);
    CHECK(obedient_ras_until("who", obedient_job, 3, "rank 1"), "rank 1 is not late:\n%s", obedient_text);
    alive();
    dead();
    obedient_end();
    remains();
    running();
    looks_at_files();
    snprintf(line, sizeof line, "rm -rf %s", dir);
    CHECK(system(line) == 0, "%s is still there", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
