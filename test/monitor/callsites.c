/* RONDO_STACKS: the record has from which functions each call was made, and dumps name them. Calls that are alike but
 * come from two places are two entries, and a loop is one. When a call fails, the log of each rank has that call's
 * functions, of a call in a group, too; where there is no time for names, files and addresses alone. PyTorch's format
 * has them as frames, and so has a copy of the record that the program makes. Without the variable there is nothing of
 * this.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/value.h"
#include "monitor/obedient.h"
#include "util/check.h"
#include "util/harness.h"
#include "util/text.h"

#define RANKS 2
#define LOOP 20

enum { LOOK = 1, LAST, COPY };

static char dir[] = "/tmp/rondo-callsites-XXXXXX";

/* Functions that the linker knows, and that do not end in a jump. */
__attribute__((noinline)) rondo_result_t callsites_first(rondo_comm_t comm);
__attribute__((noinline)) rondo_result_t callsites_second(rondo_comm_t comm);
__attribute__((noinline)) rondo_result_t callsites_failing(rondo_comm_t comm);
static volatile int done;

static rondo_result_t reduce(rondo_comm_t comm)
{
    static double in[8], out[8];

    return rondo_allreduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
}

rondo_result_t callsites_first(rondo_comm_t comm)
{
    rondo_result_t result = RONDO_SUCCESS;

    for (int i = 0; i < LOOP && result == RONDO_SUCCESS; i++)
        result = reduce(comm);
    done++;
    return result;
}

rondo_result_t callsites_second(rondo_comm_t comm)
{
    rondo_result_t result = reduce(comm);

    done++;
    return result;
}

/* Two calls, of which the first one fails; after that the group ends in another function. */
rondo_result_t callsites_failing(rondo_comm_t comm)
{
    static double in[8], out[8];
    rondo_result_t result = rondo_group_start();

    if (result == RONDO_SUCCESS)
        result = rondo_broadcast(in, out, 8, RONDO_FLOAT32, 1, comm, NULL);
    done++;
    return result;
}

static rondo_result_t fail(rondo_comm_t comm)
{
    rondo_result_t result = callsites_failing(comm);

    if (result == RONDO_SUCCESS)
        result = callsites_second(comm);
    rondo_result_t ended = rondo_group_end();
    return result == RONDO_SUCCESS ? ended : result;
}

/* As a handler of a crash would. */
static rondo_result_t copy_record(int rank)
{
    char path[160];

    snprintf(path, sizeof path, "%s/raw/%d.rondo-record", dir, rank);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    rondo_result_t result = rondo_dump_fd(fd, RONDO_DUMP_RECORD);
    close(fd);
    return result;
}

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    if (what == COPY)
        return copy_record(rank);
    if (what == LAST)
        return fail(comm);
    if (what != LOOK)
        return rondo_comm_destroy(comm);
    rondo_result_t result = callsites_first(comm);
    return result == RONDO_SUCCESS ? callsites_second(comm) : result;
}

static void ras(const char *command, const char *name)
{
    char line[512];

    snprintf(line, sizeof line, command, dir, name, dir);
    int got = obedient_ras(line, strncmp(command, "dump", 4) == 0 ? obedient_job : 0);
    CHECK(got == 0, "rondo-ras %s: exit %d:\n%s", line, got, obedient_text);
}

static char *read_text(const char *name, size_t *n)
{
    static char text[1 << 20];
    char path[160];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    *n = text_read(path, text, sizeof text);
    return text;
}

/* Has the stack of that number a frame that begins so? */
static bool has_frame(const value_t *stacks, uint64_t number, const char *begin)
{
    for (size_t i = 0; i < value_items(stacks); i++) {
        const value_t *frames = value_of(value_item(stacks, i), "frames");
        if (value_amount(value_of(value_item(stacks, i), "stack")) != number)
            continue;
        for (size_t k = 0; k < value_items(frames); k++)
            if (strncmp(value_text(value_item(frames, k)), begin, strlen(begin)) == 0)
                return true;
    }
    return false;
}

static void check_dump(const char *name)
{
    static const char *const functions[] = {"callsites_first+0x", "callsites_second+0x"};
    static const int calls[] = {LOOP, 1};
    values_t values = {0};
    size_t n;
    const char *text = read_text(name, &n);
    const value_t *dump = value_read_json(&values, text, n), *list = value_of(dump, "calls");

    CHECK(value_items(list) == 2, "%s: %zu entries", name, value_items(list));
    for (size_t i = 0; i < 2; i++) {
        const value_t *call = value_item(list, i);
        const uint64_t stack = value_amount(value_of(call, "stack"));
        CHECK(value_int(value_of(call, "calls"), 0, 1000, 0) == calls[i], "%s: entry %zu is no run of %d", name, i,
              calls[i]);
        CHECK(has_frame(value_of(dump, "stacks"), stack, functions[i]) &&
                  has_frame(value_of(dump, "stacks"), stack, "rondo_allreduce+0x") &&
                  has_frame(value_of(dump, "stacks"), stack, "main+0x") &&
                  !has_frame(value_of(dump, "stacks"), stack, functions[1 - i]),
              "%s: entry %zu is not called by %s:\n%s", name, i, functions[i], text);
    }
    value_free(&values);
}

/* While the job lives, and of its dump again, which loses nothing, and of copies of the records. */
static void dumps(void)
{
    char raw[160];
    size_t n;

    ras("dump -o %s/%s", "one");
    check_dump("one/rondo_dump_0.json");
    ras("convert --format json %s/%s %s/two", "one");
    check_dump("two/rondo_dump_1.json");
    ras("convert --format fr %s/%s %s/fr", "one");
    const char *pickle = read_text("fr/rondo_trace_0", &n);
    CHECK(memmem(pickle, n, "callsites_second+0x", 19) && memmem(pickle, n, "filename", 8), "no frames for PyTorch");
    snprintf(raw, sizeof raw, "%s/raw", dir);
    CHECK(mkdir(raw, 0700) == 0, "cannot make %s", raw);
    obedient_order_all(COPY);
    ras("dump --from %s/%s -o %s/three", "raw");
    check_dump("three/rondo_dump_1.json");
}

/* Rank 1 dies, and rank 0's call fails. Its log must have all of these words, and not that one. */
static void fails(const char *wait_ms, const char *one, const char *two, const char *other)
{
    char log[160];
    size_t n;

    snprintf(log, sizeof log, "%s/log", dir);
    (void)unlink(log);
    setenv("RONDO_DEBUG_FILE", log, 1);
    setenv("RONDO_DUMP_WAIT_MS", wait_ms, 1);
    obedient_start(RANKS, "callsites", obey);
    unsetenv("RONDO_DEBUG_FILE");
    obedient_order_all(LOOK);
    if (strcmp(wait_ms, "0") != 0 && one[0])
        dumps();
    obedient_order(0, LAST);
    CHECK(obedient_ras_until("who", obedient_job, 3, "rank 1 "), "rank 1 is not waited for:\n%s", obedient_text);
    kill(obedient_pids[1], SIGKILL);
    for (int i = 0; i < 20000 && !obedient[0].failed; i++)
        obedient_pause(1);
    const char *text = read_text("log", &n);
    CHECK(obedient[0].failed && strstr(text, one) && strstr(text, two), "the log lacks '%s' or '%s':\n%s", one, two,
          text);
    CHECK(!strstr(text, other), "the log has '%s':\n%s", other, text);
    obedient_end();
}

int main(void)
{
    char line[128];

    test_begin("callsites", 120);
    if (!mkdtemp(dir)) {
        perror("mkdtemp");
        return 1;
    }
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_STACKS", "1", 1);
    fails("20000", "the call that has failed, broadcast, collective number 22 (8 float32)", "callsites_failing+0x",
          "callsites_second+0x");
    fails("0", "the call that has failed, broadcast", "callsites+0x", "callsites_failing");
    setenv("RONDO_STACKS", "0", 1);
    fails("20000", "", "", "has failed, broadcast");
    snprintf(line, sizeof line, "rm -r %s", dir);
    CHECK(system(line) == 0, "%s", line);
    return failures != 0;
}
