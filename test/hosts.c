/* See hosts.h. */
#include "hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char names[2][32];

static int command(const char *format, const char *a, const char *b)
{
    char text[256] = "";
    snprintf(text, sizeof(text), format, a, b);
    strncat(text, " >/dev/null 2>&1", sizeof(text) - strlen(text) - 1);
    return system(text) != 0;
}

int hosts_command(int host, const char *format)
{
    return command(format, names[host], "");
}

void hosts_remove(void)
{
    for (int i = 0; i < 2; i++)
        command("ip netns del %s", names[i], "");
}

int hosts_make(void)
{
    int bad = geteuid() != 0;
    for (int i = 0; i < 2 && !bad; i++) {
        snprintf(names[i], sizeof(names[i]), "rondo%d.%d", (int)getpid() % 100000, i);
        bad = command("ip netns add %s", names[i], "") || command("ip -n %s link set lo up", names[i], "");
    }
    bad = bad || command("ip -n %s link add eth0 type veth peer name eth0 netns %s", names[0], names[1]);
    for (int i = 0; i < 2 && !bad; i++)
        bad = command("ip -n %s addr add 10.99.7.%s/24 dev eth0", names[i], i ? "2" : "1") ||
              command("ip -n %s link set eth0 up", names[i], "");
    /* The kernel calls an interface running only some time after both ends are up. */
    for (int i = 0, tries = 0; i < 2 && !bad; i++)
        while (command("ip -n %s link show eth0 | grep -q 'state UP'", names[i], "") && !(bad = ++tries > 500))
            usleep(10000);
    if (bad)
        hosts_remove();
    return bad ? -1 : 0;
}

int hosts_enter(int host)
{
    char path[64];
    snprintf(path, sizeof(path), "/var/run/netns/%s", names[host]);
    int fd = open(path, O_RDONLY | O_CLOEXEC), failed = fd < 0 || setns(fd, CLONE_NEWNET) != 0;
    if (fd >= 0)
        close(fd);
    return failed ? -1 : 0;
}
