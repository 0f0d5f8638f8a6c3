/* See hosts.h. */
#include "hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
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

/* A cable, and an address at each end. */
static int join(const char *device, const char *net)
{
    char text[128];
    int bad = 0, tries = 0;
    snprintf(text, sizeof(text), "ip -n %%s link add %s type veth peer name %s netns %%s", device, device);
    bad = command(text, names[0], names[1]);
    for (int i = 0; i < 2 && !bad; i++) {
        snprintf(text, sizeof(text), "ip -n %%s addr add %s.%d/24 dev %s", net, i + 1, device);
        bad = command(text, names[i], "");
        snprintf(text, sizeof(text), "ip -n %%s link set %s up", device);
        bad = bad || command(text, names[i], "");
    }
    /* The kernel calls an interface running only some time after both ends are up. */
    snprintf(text, sizeof(text), "ip -n %%s link show %s | grep -q 'state UP'", device);
    for (int i = 0; i < 2 && !bad; i++)
        while (command(text, names[i], "") && !(bad = ++tries > 500))
            usleep(10000);
    return bad;
}

int hosts_make(void)
{
    int bad = geteuid() != 0;
    for (int i = 0; i < 2 && !bad; i++) {
        snprintf(names[i], sizeof(names[i]), "rondo%d.%d", (int)getpid() % 100000, i);
        bad = command("ip netns add %s", names[i], "") || command("ip -n %s link set lo up", names[i], "");
    }
    bad = bad || join("eth0", "10.99.7") || join("eth1", "10.99.8");
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
    /* As `ip netns exec` does: /sys shows the devices of whoever mounted it, and UCX looks there. */
    failed = failed || unshare(CLONE_NEWNS) != 0 || mount("", "/", "none", MS_SLAVE | MS_REC, NULL) != 0;
    if (!failed && umount2("/sys", MNT_DETACH) == 0)
        failed = mount("sysfs", "/sys", "sysfs", 0, NULL) != 0;
    return failed ? -1 : 0;
}
