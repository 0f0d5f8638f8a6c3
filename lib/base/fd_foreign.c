/* Descriptors that another library leaves open to the programs that this one starts: see fd.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

#define FOLDER "/proc/self/fd"

static int next_of(DIR *d)
{
    struct dirent *e;

    while ((e = readdir(d)))
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d))
            return atoi(e->d_name);
    return -1;
}

void rd_fd_note(rd_fd_noted_t *noted)
{
    DIR *d = opendir(FOLDER);
    int size = 0;

    *noted = (rd_fd_noted_t){0};
    for (int fd; d && (fd = next_of(d)) >= 0;)
        size = fd >= size ? fd + 1 : size;
    noted->open = d ? calloc((size_t)size + 1, 1) : NULL;
    if (noted->open) {
        noted->size = size;
        rewinddir(d);
        for (int fd; (fd = next_of(d)) >= 0;)
            if (fd < size)
                noted->open[fd] = 1;
    }
    if (d)
        closedir(d);
}

/* What a network library opens: sockets over IP, and what events are waited for with. Files, and pipes that block, are
 * those of another thread of the program, which may want to pass them on. */
static bool is_of_network(int fd, bool pairs)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    char link[40], to[32] = "";

    if (getsockname(fd, (struct sockaddr *)&at, &bytes) == 0)
        return at.ss_family == AF_INET || at.ss_family == AF_INET6 ||
               (pairs && at.ss_family == AF_UNIX && bytes == sizeof at.ss_family);
    snprintf(link, sizeof link, FOLDER "/%d", fd);
    if (readlink(link, to, sizeof to - 1) < 0)
        return false;
    return strncmp(to, "anon_inode:[", 12) == 0 || (strncmp(to, "pipe:[", 6) == 0 && fcntl(fd, F_GETFL) & O_NONBLOCK);
}

void rd_fd_close_on_exec(rd_fd_noted_t *noted, bool pairs)
{
    DIR *d = noted->open ? opendir(FOLDER) : NULL;

    for (int fd; d && (fd = next_of(d)) >= 0;)
        if ((fd >= noted->size || !noted->open[fd]) && is_of_network(fd, pairs))
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (d)
        closedir(d);
    free(noted->open);
    noted->open = NULL;
}
