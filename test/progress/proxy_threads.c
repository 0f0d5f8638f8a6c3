/* The proxy: a client that is idle is left alone until somebody rings, one that dozes is looked at without, one that is
 * removed is never called again, and a forked child has none. Numbers of turns, no times. */
#include "progress/proxy_threads.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

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

int main(void)
{
    counted_t idle = {0, RD_PROXY_IDLE}, dozing = {0, RD_PROXY_DOZES};
    counted_t third = {0, RD_PROXY_IDLE};
    rd_proxy_client_t three = {.turn = turn, .arg = &third, .proxy = RD_PROXIES - 1};
    rd_proxy_client_t one = {.turn = turn, .arg = &idle}, two = {.turn = turn, .arg = &dozing};

    alarm(100);
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
    return failures != 0;
}
