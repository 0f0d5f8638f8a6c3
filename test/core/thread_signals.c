/* Every thread that rondo or its network library starts blocks all signals: a handler of the program runs in the
 * program's threads. Ranks on one node, and on two. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/harness.h"

#define BLOCKABLE 0x7ffbfeffull /* 1 to 31 but SIGKILL and SIGSTOP */

/* Returns the mask of blocked signals of a thread, and its name. */
static unsigned long long blocked(const char *task, char name[32])
{
    char path[300], line[128];
    unsigned long long mask = ~0ull;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "Name: %31s", name);
        sscanf(line, "SigBlk: %llx", &mask);
    }
    if (f)
        fclose(f);
    return mask;
}

static void body(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm, part = NULL;
    char host[32];
    snprintf(host, sizeof host, "node%d", t->rank % *(int *)arg);
    if (*(int *)arg > 1)
        setenv("RONDO_HOSTID", host, 1);
    config.device = RONDO_DEVICE_HOST;
    comm = test_comm(t, &config);
    TEST_OK(t, comm, rondo_comm_split(comm, 0, 0, &part, &config));
    DIR *d = opendir("/proc/self/task");
    int others = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[32] = "";
        if (e->d_name[0] == '.' || atoi(e->d_name) == getpid())
            continue;
        others++;
        if ((blocked(e->d_name, name) & BLOCKABLE) != BLOCKABLE)
            test_fail(t, "thread %s of %d nodes blocks %llx", name, *(int *)arg, blocked(e->d_name, name));
    }
    if (d)
        closedir(d);
    TEST_TRUE(t, others > 0);
    if (part)
        rondo_comm_destroy(part);
    rondo_comm_destroy(comm);
}

int main(void)
{
    int bad = 0;
    test_begin("thread_signals", 120);
    for (int nodes = 1; nodes <= 2; nodes++)
        bad += test_run(TEST_PROCESSES, 3, 50, body, &nodes);
    return bad != 0;
}
