/* A creation that waits says in the log for whom, long before its deadline: who made the id says which ranks have not
 * come, and a rank that has no answer says from where. Each comes, or goes on, once it has read that; so both lines are
 * there if the communicator is made. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

typedef struct {
    volatile pid_t maker;
    const char *log;
} job_t;

static void wait_for(test_rank_t *t, const char *log, const char *what)
{
    static char text[1 << 16];

    for (;;) {
        FILE *f = fopen(log, "re");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (!f)
            test_stop(t, "no log");
        fclose(f);
        text[n] = 0;
        if (strstr(text, what))
            return;
        usleep(1000);
    }
}

static void missing(test_rank_t *t, void *arg)
{
    const job_t *j = arg;
    rondo_unique_id_t id;
    rondo_comm_t comm;

    test_id(t, &id);
    test_note(t, "rank 1 comes when it is called missing");
    if (t->rank == 1)
        wait_for(t, j->log, "of 2 ranks only 1 have come within 0.05 s to");
    if (TEST_OK(t, NULL, rondo_comm_create(&comm, t->nranks, &id, t->rank, NULL)))
        TEST_OK(t, comm, rondo_comm_destroy(comm));
    if (t->rank == 0)
        wait_for(t, j->log, "missing: 1 (RONDO_STALL_MS");
}

static void unanswered(test_rank_t *t, void *arg)
{
    job_t *j = arg;
    rondo_unique_id_t id;
    rondo_comm_t comm;

    test_id(t, &id);
    if (t->rank == 0)
        j->maker = getpid();
    test_barrier(t);
    test_note(t, "the maker is stopped until rank 1 says that it has no answer");
    pid_t child = -1;
    if (t->rank == 1) {
        kill(j->maker, SIGSTOP);
        child = fork();
    }
    if (child == 0) {
        wait_for(t, j->log, "rank 1 has no answer for 0.05 s from 127.0.0.1:");
        kill(j->maker, SIGCONT);
        _exit(0);
    }
    if (TEST_OK(t, NULL, rondo_comm_create(&comm, t->nranks, &id, t->rank, NULL)))
        TEST_OK(t, comm, rondo_comm_destroy(comm));
    if (child > 0)
        waitpid(child, NULL, 0);
}

int main(void)
{
    char log[] = "/tmp/rondo-said-XXXXXX";
    job_t *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = mkstemp(log), bad = 0;

    if (fd < 0 || j == MAP_FAILED)
        return 1;
    close(fd);
    j->log = log;
    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", log, 1);
    setenv("RONDO_STALL_MS", "50", 1);
    setenv("RONDO_IFACE", "lo", 1);
    test_begin("said_late", 60);
    bad += test_run(TEST_PROCESSES, 2, 30, missing, j) != 0;
    bad += test_run(TEST_PROCESSES, 2, 30, unanswered, j) != 0;
    unlink(log);
    return bad != 0;
}
