/* The guard that keeps descriptors below 3 from libraries that open their own: see fd.h. */
#define _GNU_SOURCE
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int guards;
static struct {
    bool taken;
    dev_t device; /* the file in its place, which is unlike any other: to know it again */
    ino_t file;
} guarded[RD_FD_FIRST];

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* The program may have put something else in the place meanwhile. */
static void give_back(void)
{
    struct stat now;

    for (int fd = 0; fd < RD_FD_FIRST; fd++) {
        if (guarded[fd].taken && fstat(fd, &now) == 0 && now.st_dev == guarded[fd].device &&
            now.st_ino == guarded[fd].file)
            close(fd);
        guarded[fd].taken = false;
    }
}

static void fork_child(void)
{
    give_back();
    guards = 0;
    pthread_mutex_unlock(&lock);
}

static const rd_fork_handlers_t at_fork = {.prepare = fork_prepare, .parent = fork_parent, .child = fork_child};

/* Nothing can be written into the placeholder, and nothing is read from it. Without one, the descriptors of other
 * libraries go where they go. */
static void take(void)
{
    int fd = memfd_create("rondo-closed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct stat placeholder;

    if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0 ||
        fstat(fd, &placeholder) != 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while (fd >= 0 && fd < RD_FD_FIRST) {
        guarded[fd].taken = true;
        guarded[fd].device = placeholder.st_dev;
        guarded[fd].file = placeholder.st_ino;
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    if (fd >= 0)
        close(fd);
}

static bool any_closed(void)
{
    for (int fd = 0; fd < RD_FD_FIRST; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            return true;
    return false;
}

void rd_fd_guard_begin(void)
{
    int saved = errno;

    rd_fork_register(RD_FORK_GUARD, &at_fork);
    pthread_mutex_lock(&lock);
    guards++;
    if (any_closed()) /* since an earlier guard, perhaps */
        take();
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void rd_fd_guard_end(void)
{
    int saved = errno;

    pthread_mutex_lock(&lock);
    if (guards > 0 && --guards == 0) /* 0 in a child that was forked meanwhile */
        give_back();
    pthread_mutex_unlock(&lock);
    errno = saved;
}
