/* RONDO_METRICS: each process has a file of its own, which says what its rank has called and for whom it waits, also
 * where the program goes to another working directory, and where several processes come to one name; whoever reads
 * while it is replaced finds it whole; and it is gone with the last communicator, and in exit. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/obedient.h"
#include "util/check.h"
#include "util/comma.h"
#include "util/harness.h"
#include "util/text.h"

#define RANKS 4
#define LATE 2
#define READS 2000

enum { REDUCE = OBEDIENT_REDUCE, CAST, MOVE, EXIT };

static char dir[] = "/tmp/rondo-metrics-XXXXXX";
static char text[65536];

static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    static int values[100];

    if (what == EXIT)
        exit(0);
    if (what == MOVE)
        return chdir("/proc") == 0 ? RONDO_SUCCESS : RONDO_ERR_SYSTEM; /* where no file can be made */
    return what == CAST ? rondo_broadcast(values, values, 100, RONDO_INT32, 1, comm, NULL)
                        : obedient_reduce(what, rank, comm);
}

static void read_file(int rank)
{
    char path[128];

    snprintf(path, sizeof path, "%s/rondo.%d.prom", dir, (int)obedient_pids[rank]);
    text_read(path, text, sizeof text);
}

static bool says(int rank, const char *words)
{
    read_file(rank);
    return strstr(text, words) != NULL;
}

static void expect(int rank, const char *words)
{
    for (int ms = 0; ms < 20000; ms++) {
        if (says(rank, words))
            return;
        obedient_pause(1);
    }
    CHECK(0, "rank %d never says %s:\n%s", rank, words, text);
}

/* One of the ranks that wait says who is late, for all of its node: the first that comes to it. */
static void expect_one(const char *words)
{
    for (int ms = 0; ms < 20000; ms++) {
        for (int r = 0; r < RANKS; r++)
            if (r != LATE && says(r, words))
                return;
        obedient_pause(1);
    }
    CHECK(0, "no rank ever says %s:\n%s", words, text);
}

/* The last series is the last one of a whole file. */
static void while_replaced(void)
{
    for (int i = 0; i < READS && !failures; i++) {
        read_file(0);
        size_t n = strlen(text);
        CHECK(strncmp(text, "# HELP rondo_up ", 16) == 0 && strstr(text, "\nrondo_calls_untimed_total{") &&
                  text[n - 1] == '\n',
              "%zu bytes at read %d:\n%s", n, i, text);
    }
}

/* The ranks' LC_NUMERIC says a comma, where there is such a locale. */
static void no_commas(void)
{
    read_file(0);
    char *sum = strstr(text, "\nrondo_call_seconds_sum{"), *end = sum ? strchr(sum + 1, '\n') : NULL;
    if (end)
        *end = 0;
    CHECK(end && strrchr(sum, ' ') && strchr(strrchr(sum, ' '), '.') && !strchr(strrchr(sum, ' '), ','), "%s",
          sum ? sum : text);
}

static void look(void)
{
    char line[1024];
    const char *top = getenv("top_srcdir");

    if (system("command -v python3 >/dev/null 2>&1") != 0)
        return;
    for (int r = 0; r < RANKS; r++) {
        snprintf(line, sizeof line, "python3 %s/test/monitor/dump.py own_metrics %s/rondo.%d.prom", top ? top : ".",
                 dir, (int)obedient_pids[r]);
        CHECK(system(line) == 0, "dump.py is not content with rank %d", r);
    }
}

/* Others may read it, whatever the umask is. */
static void has_mode(void)
{
    char path[128];
    struct stat file;

    snprintf(path, sizeof path, "%s/rondo.%d.prom", dir, (int)obedient_pids[0]);
    CHECK(stat(path, &file) == 0 && (file.st_mode & 0777) == 0644, "%s has mode %o", path, (unsigned)file.st_mode);
}

static int is_empty(void)
{
    char line[128];

    snprintf(line, sizeof line, "test -z \"$(ls %s)\"", dir);
    return system(line) == 0;
}

/* Their name is relative: the working directory is that of the communicator's creation. */
static void make_job(void)
{
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (here < 0 || chdir(dir) != 0)
        exit(1);
    obedient_start(RANKS, "metrics \"job\"", obey);
    if (fchdir(here) != 0)
        exit(1);
    close(here);
}

static void start(void)
{
    make_job();
    obedient_order_all(MOVE);
    for (int i = 0; i < 3; i++)
        obedient_order_all(REDUCE);
    obedient_order_all(CAST);
    for (int r = 0; r < RANKS; r++)
        if (r != LATE)
            obedient_order(r, REDUCE);
    expect_one("rondo_late_rank{id");
    for (int r = 0; r < RANKS; r++)
        expect(r, r == LATE ? "kind=\"collective\"} 4\n" : "kind=\"collective\"} 5\n");
}

static void come(void)
{
    obedient_order(LATE, REDUCE);
    for (int r = 0; r < RANKS; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d does not come back", r);
}

/* Of how many processes is there a file? */
static int count_files(void)
{
    char line[160];
    int n = -1;

    snprintf(line, sizeof line, "cat %s/rondo.0.prom %s/rondo.0.*.prom 2>/dev/null | grep -c ^rondo_up{", dir, dir);
    FILE *f = popen(line, "r");
    if (!f || fscanf(f, "%d", &n) != 1)
        n = -1;
    if (f)
        pclose(f);
    return n;
}

/* Processes of several jobs have one number; and what a process left that was killed is nobody's. */
static void one_name(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/rondo.0.prom", dir);
    FILE *f = fopen(path, "w");
    if (!f)
        exit(1);
    fprintf(f, "left\n");
    fclose(f);
    setenv("RANK", "0", 1);
    make_job();
    unsetenv("RANK");
    for (int ms = 0; ms < 20000 && count_files() != RANKS; ms += 10)
        obedient_pause(10);
    CHECK(count_files() == RANKS, "%d processes have a file", count_files());
    text_read(path, text, sizeof text);
    CHECK(strncmp(text, "# HELP", 6) == 0, "what was left is not replaced: %s", text);
    obedient_order_all(OBEDIENT_END);
    CHECK(is_empty(), "something is left where names were one");
    obedient_end();
}

int main(void)
{
    test_begin("monitor/metrics", 90);
    umask(077);
    for (char *name = "RANK\0PMIX_RANK\0PMI_RANK\0SLURM_PROCID\0OMPI_COMM_WORLD_RANK\0"; *name;
         name += strlen(name) + 1)
        unsetenv(name);
    if (!mkdtemp(dir))
        return 1;
    setenv("RONDO_METRICS", "rondo.prom", 1);
    setenv("RONDO_METRICS_MS", "1", 1);
    setenv("RONDO_STALL_MS", "300", 1);
    setenv("RONDO_DEBUG", "none", 1);
    (void)comma_set();
    start();
    while_replaced();
    no_commas();
    look();
    has_mode();
    come();
    obedient_order_all(OBEDIENT_END);
    CHECK(is_empty(), "something is left of communicators that were destroyed");
    obedient_end();
    start();
    come();
    for (int r = 0; r < RANKS; r++)
        obedient_order(r, EXIT);
    for (int r = 0; r < RANKS; r++)
        obedient_state(r, 'Z');
    CHECK(is_empty(), "something is left of processes that have called exit");
    obedient_end();
    one_name();
    CHECK(rmdir(dir) == 0, "%s is not empty", dir);
    printf("%d failures\n", failures);
    return failures != 0;
}
