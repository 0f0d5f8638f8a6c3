/* Where records are found: at the descriptors of this user's processes, at their sockets, and in a folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/ras_socket.h"
#include "ras.h"

#define ANSWER_MS 300 /* a process that is stopped does not answer */

static bool number(const char *text, int *value)
{
    char *end;
    long n = strtol(text, &end, 10);

    *value = (int)n;
    return *text && !*end && n > 0 && n <= INT32_MAX;
}

static bool is_record(const char *link)
{
    static const char ending[] = ".rondo-record";
    size_t n = strlen(link), e = sizeof ending - 1;

    return strncmp(link, "/memfd:" RD_MONITOR_MEMFD, sizeof "/memfd:" RD_MONITOR_MEMFD - 1) == 0 ||
           (n > e && strcmp(link + n - e, ending) == 0);
}

/* A process has its own record open, and those of its node: so those of the dead are found here, too, and it does not
 * matter whether any thread of it runs. */
static void scan_process(int pid, ras_add_fn add, void *arg)
{
    char path[64], link[512];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);

    for (struct dirent *e; d && (e = readdir(d));) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);
        if (n <= 0)
            continue;
        link[n] = 0;
        int fd = is_record(link) ? openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        if (fd >= 0)
            add(arg, fd);
    }
    if (d)
        closedir(d);
}

void ras_scan_proc(ras_add_fn add, void *arg)
{
    DIR *d = opendir("/proc");
    int pid;

    for (struct dirent *e; d && (e = readdir(d));)
        if (number(e->d_name, &pid) && pid != (int)getpid())
            scan_process(pid, add, arg);
    if (d)
        closedir(d);
}

void ras_scan_folder(const char *dir, ras_add_fn add, void *arg)
{
    DIR *d = opendir(dir);

    for (struct dirent *e; d && (e = readdir(d));) {
        int fd =
            is_record(e->d_name) ? openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
        if (fd >= 0)
            add(arg, fd);
    }
    if (d)
        closedir(d);
}

/* Connects to a socket of this name that belongs to the user in the name: anybody may take a name. */
static int connect_to(unsigned uid, int pid)
{
    struct sockaddr_un name;
    struct ucred peer;
    socklen_t bytes = rd_serve_name(&name, uid, pid), size = sizeof peer;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, bytes) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == uid)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Receives one message. Returns false if nothing more will come. */
static bool receive(int fd, ras_add_fn add, void *arg)
{
    rd_serve_answer_t answer = {0};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(RD_SERVE_MOST * sizeof(int))];
    } control;
    struct iovec io = {&answer, sizeof answer};
    struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (poll(&p, 1, ANSWER_MS) != 1)
        return false;
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    for (struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL; head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int got;
            memcpy(&got, CMSG_DATA(head) + i * sizeof(int), sizeof got);
            add(arg, got);
        }
    }
    return n == (ssize_t)sizeof answer && answer.magic == RD_SERVE_MAGIC && answer.version == RD_SERVE_VERSION &&
           answer.status == RD_SERVE_GIVEN && !answer.last;
}

void ras_scan_sockets(bool (*known)(void *arg, int pid), ras_add_fn add, void *arg)
{
    FILE *f = fopen("/proc/net/unix", "re");
    char line[512];

    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "@rondo-ras/");
        unsigned uid;
        int pid;
        if (!at || sscanf(at, "@rondo-ras/%u/%d", &uid, &pid) != 2 || (geteuid() != 0 && uid != geteuid()) ||
            known(arg, pid))
            continue;
        int fd = connect_to(uid, pid);
        for (int i = 0; fd >= 0 && i < 1024 && receive(fd, add, arg); i++)
            continue;
        if (fd >= 0)
            close(fd);
    }
    if (f)
        fclose(f);
}
