/* Going to a host that is played by a network namespace (hosts.h): for the harness, whose ranks do it where
 * RONDO_TEST_HOSTS says so, and for commands (played/play.c). */
#ifndef TEST_ENTER_H
#define TEST_ENTER_H

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

/* This process, of one thread so far, joins the network namespace at `path` and has `name` as its host name; 0 or -1.
 * /sys shows the devices of whoever mounted it, and UCX looks there: so it is mounted anew, for this process alone. */
static inline int test_enter(const char *path, const char *name)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), failed = fd < 0 || setns(fd, CLONE_NEWNET) != 0;

    if (fd >= 0)
        close(fd);
    failed = failed || unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0 || sethostname(name, strlen(name)) != 0;
    failed = failed || mount("", "/", "none", MS_SLAVE | MS_REC, NULL) != 0;
    if (!failed && umount2("/sys", MNT_DETACH) == 0)
        failed = mount("sysfs", "/sys", "sysfs", 0, NULL) != 0;
    return failed ? -1 : 0;
}

/* The same for host number `host` of those that played/play has made: RONDO_TEST_PLAYED has their paths. */
static inline int test_enter_played(int host)
{
    const char *at = getenv("RONDO_TEST_PLAYED");
    char path[64], name[16];

    for (int k = 0; at && k < host; k++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    if (!at || host < 0)
        return -1;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(at, " "), at);
    snprintf(name, sizeof name, "host%d", host);
    return test_enter(path, name);
}

#endif
