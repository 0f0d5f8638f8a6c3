/* rondo-ras on a job of this test's own: who is late, stopped or dead is named, with its call, and nobody where nobody
 * is; all of it is read while every thread of the job is stopped; and a job without records is not there. The ranks do
 * what the parent tells them through shared memory, so it knows where each is.
 */
#include <errno.h>
#include <rondo.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/check.h"
#include "util/gate.h"
#include "util/harness.h"

#define RANKS 3

enum { REDUCE = 1, DESTROY };

typedef struct told {
    _Alignas(64) _Atomic int what, number; /* the order, and how many there were */
    _Atomic int done;                      /* orders carried out */
    _Atomic int failed;
} told_t;

static told_t *told;
static pid_t pids[RANKS];
static int job; /* the lowest of them */
static char text[65536];

/* ---- a rank ---- */

static rondo_result_t obey(int what, rondo_comm_t comm)
{
    float in[8] = {1}, out[8];

    if (what == REDUCE)
        return rondo_allreduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    return rondo_comm_destroy(comm);
}

static void live(int rank, gate_t *gate)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id = gate_wait(gate);
    rondo_comm_t comm;
    int seen = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    config.name = "ras test";
    if (rondo_comm_create(&comm, RANKS, &id, rank, &config) != RONDO_SUCCESS)
        _exit(1);
    told[rank].done = 1;
    for (;;) {
        while (told[rank].number == seen)
            sched_yield();
        seen = told[rank].number;
        int what = told[rank].what;
        if (obey(what, comm) != RONDO_SUCCESS)
            told[rank].failed = 1;
        told[rank].done++;
        if (what == DESTROY)
            _exit(0);
    }
}

/* ---- the parent ---- */

static void tell(int rank, int what)
{
    told[rank].what = what;
    told[rank].number++;
}

static void pause_ms(int ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&pause, NULL);
}

/* All orders of the rank are carried out. */
static int settled(int rank)
{
    for (int i = 0; i < 20000 && told[rank].done != told[rank].number + 1; i++)
        pause_ms(1);
    return told[rank].done == told[rank].number + 1;
}

static void start(void)
{
    gate_t gate = gate_make();
    rondo_unique_id_t id;

    memset(told, 0, RANKS * sizeof *told);
    for (int r = 0; r < RANKS; r++)
        if ((pids[r] = fork()) == 0)
            live(r, &gate);
    job = pids[0];
    for (int r = 1; r < RANKS; r++)
        job = pids[r] < job ? pids[r] : job;
    if (rondo_unique_id_create(&id) != RONDO_SUCCESS)
        exit(1);
    gate_open(&gate, &id, RANKS);
    for (int r = 0; r < RANKS; r++)
        if (!settled(r))
            exit(1);
}

static void end(void)
{
    for (int r = 0; r < RANKS; r++) {
        if (pids[r])
            kill(pids[r], SIGKILL);
        if (pids[r])
            waitpid(pids[r], NULL, 0);
        pids[r] = 0;
    }
}

/* Runs rondo-ras on this job; `text` is what it prints. Returns its exit status. */
static int ras(const char *command)
{
    char line[1024];
    const char *build = getenv("top_builddir");

    snprintf(line, sizeof line, "%s/rondo-ras %s --job %d 2>&1", build ? build : ".", command, job);
    FILE *f = popen(line, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    int status = f ? pclose(f) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define EXPECT(command, status, word) expect(__LINE__, command, status, word)

static void expect(int line, const char *command, int status, const char *word)
{
    int got = ras(command);

    CHECK(got == status && strstr(text, word), "line %d: rondo-ras %s: exit %d, want %d and '%s':\n%s", line, command,
          got, status, word, text);
}

/* A rank has published that it waits, which it does at its first slow miss: asks until `who` sees it. */
static void wait_for(int status, const char *word)
{
    for (int i = 0; i < 100; i++)
        if (ras("who") == status && strstr(text, word))
            return;
    CHECK(0, "who did not come to exit %d and '%s':\n%s", status, word, text);
}

static void state_of(int rank, char state)
{
    char path[64], line[512], now = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", pids[rank]);
    for (int i = 0; i < 5000 && now != state; i++) {
        FILE *f = fopen(path, "r");
        if (f && fgets(line, sizeof line, f) && strrchr(line, ')'))
            now = strrchr(line, ')')[2];
        if (f)
            fclose(f);
        pause_ms(1);
    }
    CHECK(now == state, "rank %d is in state %c", rank, now);
}

static void all(int what)
{
    for (int r = 0; r < RANKS; r++)
        tell(r, what);
    for (int r = 0; r < RANKS; r++)
        CHECK(settled(r) && !told[r].failed, "rank %d did not do it", r);
}

static void late_and_stopped(void)
{
    char word[128];

    for (int i = 0; i < 5; i++)
        all(REDUCE);
    EXPECT("who", 0, "nobody");
    EXPECT("status", 0, "rank 0-2: outside, after allreduce, collective number 5 (8 float32, sum)");
    EXPECT("list --json", 0, "\"communicators\": 1");
    EXPECT("status --json", 0, "\"collectives\": {\"begun\": 5, \"ended\": 5}");
    tell(0, REDUCE);
    tell(2, REDUCE);
    snprintf(word, sizeof word, ":%d) is late, by 1 call: outside, after allreduce, collective number 5", pids[1]);
    wait_for(3, word);
    EXPECT("status -v", 0, "in allreduce, collective number 6 (8 float32, sum), waits for rank 1");
    EXPECT("top -n 1 -d 0.1", 0, "waits for rank 1");
    for (int r = 0; r < RANKS; r++)
        kill(pids[r], SIGSTOP);
    for (int r = 0; r < RANKS; r++)
        state_of(r, 'T');
    EXPECT("status -v", 0, "stopped, in allreduce, collective number 6");
    EXPECT("who", 4, "rank 0");
    kill(pids[0], SIGCONT);
    kill(pids[2], SIGCONT);
    state_of(0, 'R');
    snprintf(word, sizeof word, ":%d) is stopped", pids[1]);
    EXPECT("who", 4, word);
    kill(pids[1], SIGCONT);
    tell(1, REDUCE);
    for (int r = 0; r < RANKS; r++)
        CHECK(settled(r) && !told[r].failed, "rank %d did not go on", r);
    EXPECT("who", 0, "nobody");
}

static void dead(void)
{
    char word[128];

    tell(0, REDUCE);
    tell(1, REDUCE);
    wait_for(3, "rank 2");
    kill(pids[1], SIGKILL);
    state_of(1, 'Z');
    snprintf(word, sizeof word, ":%d) is dead: its process ended in allreduce, collective number 7", pids[1]);
    EXPECT("who", 4, word);
    waitpid(pids[1], NULL, 0); /* now nothing but the record tells of it */
    EXPECT("who", 4, word);
    EXPECT("list", 0, "dead");
    pids[1] = 0;
    CHECK(settled(0) && told[0].failed, "rank 0 does not know");
}

static void without(void)
{
    setenv("RONDO_MONITOR", "0", 1);
    start();
    all(REDUCE);
    EXPECT("list", 1, "there is no job");
    all(DESTROY);
    end();
    unsetenv("RONDO_MONITOR");
    start();
    all(REDUCE);
    EXPECT("list", 0, "runs");
    all(DESTROY);
    EXPECT("list", 1, "rondo-ras: ");
    end();
}

int main(void)
{
    test_begin("monitor/ras", 120);
    told = mmap(NULL, RANKS * sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 1;
    start();
    late_and_stopped();
    dead();
    end();
    without();
    printf("%d failures\n", failures);
    return failures != 0;
}
