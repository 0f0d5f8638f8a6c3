/* See obedient.h. */
#include "monitor/obedient.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/check.h"
#include "util/gate.h"

obedient_rank_t *obedient;
pid_t obedient_pids[OBEDIENT_MOST];
int obedient_job, obedient_nodes;
char obedient_text[65536];

static int nranks;

static void live(int rank, gate_t *gate, const char *name, obedient_fn obey)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_unique_id_t id = gate_wait(gate);
    rondo_comm_t comm;
    int seen = 0;

    char host[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (obedient_nodes > 1) {
        snprintf(host, sizeof host, "node%d", rank % obedient_nodes);
        setenv("RONDO_HOSTID", host, 1);
    }
    config.name = name;
    if (rondo_comm_create(&comm, nranks, &id, rank, &config) != RONDO_SUCCESS)
        _exit(1);
    obedient[rank].done = 1;
    for (;;) {
        while (obedient[rank].number == seen)
            sched_yield();
        seen = obedient[rank].number;
        int what = obedient[rank].what;
        if (obey(what, rank, comm) != RONDO_SUCCESS)
            obedient[rank].failed = 1;
        obedient[rank].done++;
        if (what == OBEDIENT_END)
            _exit(0);
    }
}

void obedient_order(int rank, int what)
{
    obedient[rank].what = what;
    obedient[rank].number++;
}

void obedient_pause(int ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&pause, NULL);
}

void obedient_stay_on(uint64_t nth)
{
    cpu_set_t may, one;
    int cpu = -1;

    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return;
    for (uint64_t left = nth % (uint64_t)CPU_COUNT(&may) + 1; left; left -= CPU_ISSET(cpu, &may) != 0)
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

int obedient_settled(int rank)
{
    for (int i = 0; i < 20000 && obedient[rank].done != obedient[rank].number + 1; i++)
        obedient_pause(1);
    return obedient[rank].done == obedient[rank].number + 1;
}

void obedient_order_all(int what)
{
    for (int r = 0; r < nranks; r++)
        obedient_order(r, what);
    for (int r = 0; r < nranks; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d did not do order %d", r, what);
}

rondo_result_t obedient_reduce(int what, int rank, rondo_comm_t comm)
{
    float in[8] = {1}, out[8];

    (void)rank;
    if (what == OBEDIENT_REDUCE)
        return rondo_allreduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    return rondo_comm_destroy(comm);
}

void obedient_start(int ranks, const char *name, obedient_fn obey)
{
    gate_t gate = gate_make();
    rondo_unique_id_t id;

    nranks = ranks;
    if (!obedient)
        obedient =
            mmap(NULL, OBEDIENT_MOST * sizeof *obedient, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (obedient == MAP_FAILED)
        exit(1);
    memset((void *)obedient, 0, OBEDIENT_MOST * sizeof *obedient);
    for (int r = 0; r < ranks; r++)
        if ((obedient_pids[r] = fork()) == 0)
            live(r, &gate, name, obey);
    obedient_job = obedient_pids[0];
    for (int r = 1; r < ranks; r++)
        obedient_job = obedient_pids[r] < obedient_job ? obedient_pids[r] : obedient_job;
    if (rondo_unique_id_create(&id) != RONDO_SUCCESS)
        exit(1);
    gate_open(&gate, &id, ranks);
    for (int r = 0; r < ranks; r++)
        if (!obedient_settled(r))
            exit(1);
}

void obedient_end(void)
{
    for (int r = 0; r < nranks; r++) {
        if (obedient_pids[r])
            kill(obedient_pids[r], SIGKILL);
        if (obedient_pids[r])
            waitpid(obedient_pids[r], NULL, 0);
        obedient_pids[r] = 0;
    }
}

void obedient_await_state(pid_t pid, char state)
{
    char path[64], line[512], now = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (int i = 0; i < 5000 && now != state; i++) {
        FILE *f = fopen(path, "r");
        if (f && fgets(line, sizeof line, f) && strrchr(line, ')'))
            now = strrchr(line, ')')[2];
        if (f)
            fclose(f);
        obedient_pause(1);
    }
    CHECK(now == state, "process %d is in state %c", (int)pid, now);
}

void obedient_state(int rank, char state)
{
    obedient_await_state(obedient_pids[rank], state);
}

int obedient_ras(const char *command, int job)
{
    char line[4096], number[32] = "";
    const char *build = getenv("top_builddir");

    if (job)
        snprintf(number, sizeof number, " --job %d", job);
    snprintf(line, sizeof line, "%s/rondo-ras %s%s 2>&1", build ? build : ".", command, number);
    FILE *f = popen(line, "r");
    size_t n = f ? fread(obedient_text, 1, sizeof obedient_text - 1, f) : 0;
    obedient_text[n] = 0;
    int status = f ? pclose(f) : -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int obedient_ras_until(const char *command, int job, int status, const char *word)
{
    for (int i = 0; i < 100; i++)
        if (obedient_ras(command, job) == status && strstr(obedient_text, word))
            return 1;
    return 0;
}
