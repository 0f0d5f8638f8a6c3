/* A proxy: a client that is idle is left alone until somebody rings, one that dozes is looked at without, one that is
 * removed is never called again, and a forked child has none. It runs on the NUMA node of its clients' devices, if they
 * have the same and the process may run there. Numbers of turns, no times. */
#define _GNU_SOURCE
#include "progress/proxy_threads.h"

#include <sched.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topo/locality.h"
#include "util/check.h"

typedef struct {
    _Atomic int turns, state;
} counted_t;

static rd_proxy_state_t turn(void *arg)
{
    counted_t *c = arg;

    atomic_fetch_add(&c->turns, 1);
    return (rd_proxy_state_t)atomic_load(&c->state);
}

/* Until it has had so many turns; 0: it has not had them in ten seconds. */
static int comes(counted_t *c, int turns)
{
    for (int i = 0; i < 100000; i++) {
        if (atomic_load(&c->turns) >= turns)
            return 1;
        usleep(100);
    }
    return 0;
}

/* No thread looks any more: a few turns may be under way. */
static int rests(counted_t *c)
{
    for (int i = 0; i < 100; i++) {
        int before = atomic_load(&c->turns);
        usleep(20000);
        if (atomic_load(&c->turns) == before)
            return 1;
    }
    return 0;
}

static void in_child(rd_proxy_client_t *client, counted_t *c)
{
    pid_t pid = fork();
    int status = 1;

    if (pid == 0) {
        rd_proxy_client_t own = {.turn = turn, .arg = c};
        rd_proxy_remove(client); /* the parent's: nothing happens */
        atomic_store(&c->turns, 0);
        _exit(rd_proxy_add(&own) != 0 || !comes(c, 3) || (rd_proxy_remove(&own), 0));
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a forked child has a proxy of its own");
}

/* ---- two NUMA nodes, of the first processor of this process and of the second one */

static char machine[] = "/tmp/rondo-proxies-XXXXXX";
static int cpu[2];

const char *rd_locality_sys(void)
{
    return machine;
}

static void node_write(const char *name, const char *format, int number)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/devices/system/node/%s", machine, name);
    for (char *c = path + sizeof machine; (c = strchr(c, '/')); *c++ = '/') {
        *c = '\0';
        mkdir(path, 0700);
    }
    if (!(f = fopen(path, "w")) || fprintf(f, format, number) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

typedef struct {
    counted_t counted;
    _Atomic int first, count; /* processors on which the thread may run */
} placed_t;

static rd_proxy_state_t placed_turn(void *arg)
{
    placed_t *p = arg;
    cpu_set_t mask;
    int first = 0;

    (void)sched_getaffinity(0, sizeof mask, &mask);
    while (first < CPU_SETSIZE && !CPU_ISSET((size_t)first, &mask))
        first++;
    atomic_store(&p->first, first);
    atomic_store(&p->count, CPU_COUNT(&mask));
    return turn(&p->counted);
}

static void looked(placed_t *p, rd_proxy_client_t *client)
{
    int before = atomic_load(&p->counted.turns);

    rd_proxy_wake(client);
    CHECK(comes(&p->counted, before + 2) || comes(&p->counted, before + 1), "a turn");
}

static void places(void)
{
    placed_t a = {{0, RD_PROXY_DOZES}, -1, 0}, b = {{0, RD_PROXY_DOZES}, -1, 0};
    rd_proxy_client_t one = {.turn = placed_turn, .arg = &a, .numa = 1};
    rd_proxy_client_t two = {.turn = placed_turn, .arg = &b, .numa = 0};
    cpu_set_t mask;
    int n = 0;

    (void)sched_getaffinity(0, sizeof mask, &mask);
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET((size_t)i, &mask))
            cpu[n++] = i;
    if (n < 2)
        return; /* there is nothing to choose */
    node_write("online", "0-%d\n", 1);
    node_write("node0/cpulist", "%d\n", cpu[0]);
    node_write("node1/cpulist", "%d\n", cpu[1]);
    CHECK(rd_proxy_add(&one) == 0, "a client");
    looked(&a, &one);
    CHECK(a.count == 1 && a.first == cpu[1], "%d processors from %d on", a.count, a.first);
    CHECK(rd_proxy_add(&two) == 0, "a client elsewhere");
    looked(&a, &one);
    CHECK(a.count == CPU_COUNT(&mask), "with devices on two NUMA nodes, %d processors", a.count);
    rd_proxy_remove(&one);
    looked(&b, &two);
    CHECK(b.count == 1 && b.first == cpu[0], "%d processors from %d on", b.count, b.first);
    rd_proxy_remove(&two);
}

int main(void)
{
    counted_t idle = {0, RD_PROXY_IDLE}, dozing = {0, RD_PROXY_DOZES};
    counted_t third = {0, RD_PROXY_IDLE};
    rd_proxy_client_t three = {.turn = turn, .arg = &third, .proxy = RD_PROXIES - 1};
    rd_proxy_client_t one = {.turn = turn, .arg = &idle}, two = {.turn = turn, .arg = &dozing};

    alarm(100);
    if (!mkdtemp(machine))
        return 1;
    CHECK(rd_proxy_add(&one) == 0 && comes(&idle, 1), "a client is looked at when it comes");
    CHECK(rests(&idle), "an idle client is left alone");
    int before = atomic_load(&idle.turns);
    rd_proxy_wake(&one);
    CHECK(comes(&idle, before + 1), "a ring wakes the proxy");
    CHECK(rests(&idle), "and it sleeps again");
    CHECK(rd_proxy_add(&two) == 0 && comes(&dozing, 20), "one that dozes is looked at unasked");
    in_child(&two, &dozing);
    rd_proxy_remove(&two);
    int others = atomic_load(&idle.turns);
    before = atomic_load(&dozing.turns);
    rd_proxy_wake(&one);
    CHECK(comes(&idle, others + 1) && atomic_load(&dozing.turns) == before, "one that is removed is not called again");
    CHECK(rests(&idle), "what is left is idle");
    CHECK(rd_proxy_add(&three) == 0 && comes(&third, 1) && rests(&third), "another proxy has clients of its own");
    others = atomic_load(&idle.turns);
    before = atomic_load(&third.turns);
    rd_proxy_wake(&three);
    CHECK(comes(&third, before + 1) && atomic_load(&idle.turns) == others, "and is woken alone");
    CHECK(rests(&third), "and sleeps again");
    before = atomic_load(&third.turns);
    rd_proxy_nudge(&three);
    CHECK(comes(&third, before + 1), "a nudge wakes it as well");
    rd_proxy_remove(&three);
    rd_proxy_remove(&one);
    CHECK(rd_proxy_add(&one) == 0, "and it begins anew");
    rd_proxy_remove(&one);
    if (!failures)
        printf("proxy: right\n");
    places();
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", machine);
    if (system(command) != 0)
        return 1;
    return failures != 0;
}
