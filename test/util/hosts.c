/* See hosts.h. */
#include "util/hosts.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "util/enter.h"

#define NETWORKS 2

static int spaces[HOSTS_MOST + 1]; /* descriptors: of the switch, then of each host */
static int nspaces;

const char *hosts_path(int host)
{
    static char path[HOSTS_MOST + 1][64];

    snprintf(path[host + 1], sizeof path[0], "/proc/%d/fd/%d", (int)getpid(), spaces[host + 1]);
    return path[host + 1];
}

void hosts_remove(void)
{
    while (nspaces > 0)
        close(spaces[--nspaces]);
}

/* A new network namespace, kept by its descriptor; this process stays where it is. */
static int space_make(void)
{
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), made = -1;

    if (home >= 0 && unshare(CLONE_NEWNET) == 0) {
        made = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (setns(home, CLONE_NEWNET) != 0)
            _exit(1); /* nothing here may go on in a stranger's network */
    }
    if (home >= 0)
        close(home);
    return made;
}

static int go(int space)
{
    return setns(spaces[space], CLONE_NEWNET);
}

int hosts_command(int host, const char *command)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (go(host + 1) != 0)
            _exit(127);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int quietly(int host, const char *command)
{
    char text[1024];

    snprintf(text, sizeof text, "{ %s; } >/dev/null 2>&1", command);
    return hosts_command(host, text);
}

/* A cable from a host to each switch, and an address at its end. */
static int connect_host(int host)
{
    char text[512];
    int bad = quietly(host, "ip link set lo up");

    for (int n = 0; n < NETWORKS && !bad; n++) {
        snprintf(text, sizeof text,
                 "ip link add h%d.%d type veth peer name eth%d netns %s && ip link set h%d.%d master br%d up", host, n,
                 n, hosts_path(host), host, n, n);
        bad = quietly(HOSTS_SWITCH, text);
        snprintf(text, sizeof text, "ip addr add 10.99.%d.%d/24 dev eth%d && ip link set eth%d up", 7 + n, host + 1, n,
                 n);
        bad = bad || quietly(host, text);
    }
    return bad;
}

/* The kernel calls an interface running only some time after both ends are up. */
static int all_running(void)
{
    struct ifaddrs *all;
    unsigned want = IFF_UP | IFF_RUNNING;
    int running = 0;

    if (getifaddrs(&all) != 0)
        return 0;
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        running += i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & want) == want;
    freeifaddrs(all);
    return running == NETWORKS + 1;
}

static int wait_running(int host)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        int tries = 0;
        for (int failed = go(host + 1); !failed && !all_running() && tries < 500; tries++)
            usleep(10000);
        _exit(tries == 500 || !all_running());
    }
    return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}

int hosts_make(int nhosts)
{
    char text[256];
    int bad = geteuid() != 0 || nhosts > HOSTS_MOST;

    for (int i = 0; i <= nhosts && !bad; i++) {
        spaces[i] = space_make();
        bad = spaces[i] < 0;
        nspaces += !bad;
    }
    bad = bad || quietly(HOSTS_SWITCH, "ip link set lo up");
    for (int n = 0; n < NETWORKS && !bad; n++) {
        snprintf(text, sizeof text,
                 "ip link add br%d type bridge && ip addr add 10.99.%d.254/24 dev br%d && ip link set br%d up", n,
                 7 + n, n, n);
        bad = quietly(HOSTS_SWITCH, text);
    }
    for (int i = 0; i < nhosts && !bad; i++)
        bad = connect_host(i);
    for (int i = HOSTS_SWITCH; i < nhosts && !bad; i++)
        bad = wait_running(i);
    if (bad)
        hosts_remove();
    return bad ? -1 : 0;
}

int hosts_enter(int host)
{
    char name[16];

    snprintf(name, sizeof name, host == HOSTS_SWITCH ? "switch" : "host%d", host);
    return test_enter(hosts_path(host), name);
}
