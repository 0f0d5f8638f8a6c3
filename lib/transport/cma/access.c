/* See cma.h. */
#include "transport/cma/cma.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static ssize_t copy(int32_t thread, const struct iovec *here, const struct iovec *there, bool write)
{
    return write ? process_vm_writev(thread, here, 1, there, 1, 0) : process_vm_readv(thread, here, 1, there, 1, 0);
}

/* Where there is no other thread either, or none can be found, errno is ESRCH. */
static ssize_t by_other_threads(int32_t pid, const struct iovec *here, const struct iovec *there, bool write)
{
    char path[32];
    ssize_t done = -1;
    int error = ESRCH;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    for (struct dirent *e; threads && error == ESRCH && (e = readdir(threads));) {
        int thread = atoi(e->d_name); /* 0 for "." and ".." */
        if (thread == 0 || thread == pid)
            continue;
        done = copy(thread, here, there, write);
        error = done < 0 ? errno : 0;
    }
    if (threads)
        closedir(threads);
    errno = error;
    return done;
}

ssize_t rd_cma_copy(int32_t pid, const struct iovec *here, const struct iovec *there, bool write)
{
    ssize_t done = copy(pid, here, there, write);
    return done < 0 && errno == ESRCH ? by_other_threads(pid, here, there, write) : done;
}
