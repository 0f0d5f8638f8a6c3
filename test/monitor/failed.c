/* RONDO_DUMP_DIR: when a communicator fails, one process of the node leaves the last calls there, of whom RONDO_DUMP
 * says, also of the rank that was killed; rondo-ras analyse names it. Nothing is left where nothing has failed, and
 * where nothing can be left, calls fail as ever. RONDO_DUMP_FORMAT: other formats, and several. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"

#define RANKS 4

static char dir[] = "/tmp/rondo-failed-XXXXXX";
static char folder[512]; /* of the last failure; "": there is none */

/* Returns how many names a folder has that begin so, of which `path` is the last. */
static int count(const char *in, const char *prefix, char *path, size_t room)
{
    DIR *d = opendir(in);
    int n = 0;

    path[0] = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0 && ++n)
            snprintf(path, room, "%s/%s", in, e->d_name);
    if (d)
        closedir(d);
    return n;
}

/* Kills rank 2 while the others wait for it, and waits until they have their error. */
static void fail(void)
{
    obedient_start(RANKS, "a job", obedient_reduce);
    for (int i = 0; i < 3; i++)
        obedient_order_all(OBEDIENT_REDUCE);
    for (int r = 0; r < RANKS; r++)
        if (r != 2)
            obedient_order(r, OBEDIENT_REDUCE);
    CHECK(obedient_ras_until("who", obedient_job, 3, "rank 2"), "rank 2 is not waited for:\n%s", obedient_text);
    kill(obedient_pids[2], SIGKILL);
    for (int r = 0; r < RANKS; r++)
        CHECK(r == 2 || (obedient_settled(r) && obedient[r].failed), "rank %d has no error", r);
}

/* `ranks`: bits of those that must have a dump; `any`: of those that may, as one of them may have written. */
static void dumps(const char *dump, const char *where, unsigned ranks, unsigned any)
{
    char path[768];
    struct stat st;
    unsigned found = 0;

    setenv("RONDO_DUMP", dump, 1);
    setenv("RONDO_DUMP_DIR", where, 1);
    fail();
    unsetenv("RONDO_DUMP_DIR"); /* and what is run below is not this job */
    int n = count(where, "a_job-", folder, sizeof folder);
    CHECK(n == (ranks != 0), "RONDO_DUMP=%s: %d folders", dump, n);
    for (int r = 0; n && r < RANKS; r++) {
        snprintf(path, sizeof path, "%s/rondo_dump_%d.json", folder, r);
        found |= stat(path, &st) == 0 ? 1u << r : 0;
    }
    CHECK((found & ranks) == ranks && !(found & ~(ranks | any)), "RONDO_DUMP=%s: ranks %x", dump, found);
}

static void analyse(void)
{
    char line[640];

    snprintf(line, sizeof line, "analyse %s", folder);
    int status = obedient_ras(line, 0);
    CHECK(status == 4 && strstr(obedient_text, "rank 2 (") && strstr(obedient_text, "is dead: its process ended") &&
              strstr(obedient_text, "a call has failed: rank 2"),
          "exit %d of %s:\n%s", status, line, obedient_text);
}

/* A dump was cut short by the end of the process that wrote it: the others are judged all the same. */
static void analyse_without_one(void)
{
    char path[768];

    snprintf(path, sizeof path, "%s/rondo_dump_1.json", folder);
    CHECK(truncate(path, 100) == 0, "cannot cut %s short", path);
    analyse();
}

/* Returns 1 if the folder of the failure has the file, which begins so. */
static int begins(const char *file, const char *with)
{
    char path[768], bytes[16] = {0};

    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    if (f)
        fclose(f);
    return n > 0 && strncmp(bytes, with, strlen(with)) == 0;
}

static void remove_all(void)
{
    char line[64];

    snprintf(line, sizeof line, "rm -rf %s/*", dir);
    CHECK(system(line) == 0, "cannot remove what is in %s", dir);
}

/* All that are asked for, and nothing else; analyse takes each process once, and PyTorch's format as well. */
static void formats(void)
{
    char path[512], name[64];

    setenv("RONDO_DUMP_FORMAT", "fr,chrome,rondo", 1);
    dumps("all", dir, 15, 0);
    for (int r = 0; r < RANKS; r++) {
        snprintf(name, sizeof name, "rondo_trace_%d", r);
        CHECK(begins(name, "\x80\x02"), "there is no %s", name);
    }
    CHECK(begins("rondo_dump_0.trace", "{\"displayTime"), "there is no trace");
    CHECK(count(folder, "rondo_", path, sizeof path) == 2 * RANKS + 1, "there are other files than these");
    analyse();
    CHECK(!strstr(obedient_text, "cannot read"), "analyse reads what is no dump:\n%s", obedient_text);
    obedient_end();
    remove_all();
    setenv("RONDO_DUMP_FORMAT", "fr", 1);
    setenv("RONDO_DUMP_DIR", dir, 1);
    fail();
    unsetenv("RONDO_DUMP_DIR");
    CHECK(count(dir, "a_job-", folder, sizeof folder) == 1, "there is no folder");
    CHECK(count(folder, "rondo_", path, sizeof path) == RANKS && strstr(path, "rondo_trace_"), "other files: %s", path);
    snprintf(path, sizeof path, "analyse %.400s", folder);
    CHECK(obedient_ras(path, 0) == 3 && strstr(obedient_text, "rank 2 "), "analyse of fr:\n%s", obedient_text);
    obedient_end();
    remove_all();
    unsetenv("RONDO_DUMP_FORMAT");
}

/* ---- a time limit, and nobody is to blame ---- */

enum { RECEIVE = 2, SHRINK };

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    static float in[8];

    if (what == SHRINK) {
        rondo_comm_t smaller;
        rondo_result_t made = rondo_comm_shrink(comm, NULL, RONDO_SURVIVORS, &smaller, NULL);
        return made == RONDO_SUCCESS ? rondo_comm_abort(smaller) : made;
    }
    if (what != RECEIVE)
        return obedient_reduce(what, rank, comm);
    rondo_result_t result = rondo_group_start();
    if (result == RONDO_SUCCESS)
        result = rondo_recv(in, 8, RONDO_FLOAT32, 1 - rank, comm, NULL);
    const rondo_result_t ended = rondo_group_end();
    return result == RONDO_SUCCESS ? ended : result;
}

/* Two wait for each other, and neither is said to be late. */
static void in_a_circle(void)
{
    setenv("RONDO_TIMEOUT_MS", "2500", 1);
    obedient_start(2, "circle", obey);
    unsetenv("RONDO_TIMEOUT_MS");
    for (int r = 0; r < 2; r++)
        obedient_order(r, RECEIVE);
    for (int r = 0; r < 2; r++)
        CHECK(obedient_settled(r) && obedient[r].failed, "rank %d has no error", r);
    int status = obedient_ras("who", obedient_job);
    CHECK(status == 5 &&
              strstr(obedient_text, "who is late or stopped is unknown: ranks wait for each other in a circle"),
          "exit %d:\n%s", status, obedient_text);
    obedient_order(0, SHRINK); /* it waits for the other one */
    CHECK(obedient_ras_until("status -v", obedient_job, 0, "failed, in comm_shrink since"), "it shrinks:\n%s",
          obedient_text);
    obedient_order(1, SHRINK);
    for (int r = 0; r < 2; r++)
        CHECK(obedient_settled(r), "rank %d has not shrunk", r);
    obedient_ras("status -v", obedient_job);
    CHECK(!strstr(obedient_text, "in comm_shrink"), "it shrinks no more:\n%s", obedient_text);
    obedient_end();
}

int main(void)
{
    char path[64];

    test_begin("monitor/failed", 120);
    if (!mkdtemp(dir))
        return 1;
    setenv("RONDO_DUMP_DIR", dir, 1);
    obedient_start(RANKS, "a job", obedient_reduce);
    obedient_order_all(OBEDIENT_REDUCE);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
    CHECK(count(dir, "", path, sizeof path) == 0, "a good job has left %s", path);
    dumps("blamed", dir, 1 << 0 | 1 << 2, 1 << 1 | 1 << 3);
    analyse();
    obedient_end();
    remove_all();
    dumps("all", dir, 15, 0);
    analyse();
    analyse_without_one();
    obedient_end();
    remove_all();
    formats();
    dumps("none", dir, 0, 0);
    obedient_end();
    dumps("all", "/nowhere/to/be/found", 0, 0);
    obedient_end();
    in_a_circle();
    CHECK(rmdir(dir) == 0, "%s is not empty", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
