/* See metrics_file.h. */
#include "core/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "boot/sock.h"
#include "monitor/process.h"

static char path[PATH_MAX];        /* "": none yet */
static char beside[PATH_MAX + 32]; /* where it is written, before it is renamed */
static int held = -1;              /* a descriptor of what lies there, with the lock; */
static dev_t device;               /* and which file that is: */
static ino_t inode;                /* the program may have closed every descriptor */
static bool has_pid, complained;

/* ---- its name ---- */

/* Returns false if it is too long. */
static bool put(char *to, size_t *at, const char *text)
{
    size_t n = strlen(text);

    if (*at + n >= PATH_MAX)
        return false;
    memcpy(to + *at, text, n + 1);
    *at += n;
    return true;
}

/* What stands for %h, %p and %r; NULL: the text means itself. */
static const char *word_for(const char *at, const char *host, const char *pid, const char *rank)
{
    if (at[0] != '%')
        return NULL;
    return at[1] == 'h' ? host : at[1] == 'p' ? pid : at[1] == 'r' ? rank : NULL;
}

/* Returns where the ending of the last name begins, or the end. */
static const char *ending_of(const char *name)
{
    const char *last = strrchr(name, '/'), *dot = strrchr(last ? last : name, '.');

    return dot && dot != (last ? last + 1 : name) ? dot : name + strlen(name);
}

/* Ranks of a node that have one name would replace each other's files. */
bool rd_metrics_file_name(char to[PATH_MAX], const char *pattern)
{
    char host[RD_MONITOR_NAME] = "host", pid[16], rank[16];
    const char *ending = strstr(pattern, "%p") || strstr(pattern, "%r") ? NULL : ending_of(pattern);
    size_t at = 0;
    bool good = true;

    (void)gethostname(host, sizeof host - 1);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(rank, sizeof rank, "%d", rd_record_job_rank() >= 0 ? rd_record_job_rank() : (int)getpid());
    to[0] = 0;
    if (*pattern != '/' && getcwd(to, PATH_MAX)) {
        at = strlen(to);
        good = put(to, &at, "/");
    }
    for (const char *from = pattern; good; from++) {
        const char *word = word_for(from, host, pid, rank), one[2] = {*from, 0};
        if (from == ending)
            good = put(to, &at, ".") && put(to, &at, rank);
        if (!*from)
            break;
        good = good && put(to, &at, word ? word : one);
        from += word != NULL;
    }
    return good;
}

/* Puts the process number before the ending. Returns false if that is too long. */
static bool name_with_pid(char to[PATH_MAX], const char *name)
{
    const char *ending = ending_of(name);

    return snprintf(to, PATH_MAX, "%.*s.%d%s", (int)(ending - name), name, (int)getpid(), ending) < PATH_MAX;
}

/* ---- whose it is ---- */

static bool is_mine(const struct stat *file)
{
    return held >= 0 && file->st_dev == device && file->st_ino == inode;
}

/* Is it of another process that lives? Where the file system has no locks, no file is. */
static bool is_taken(const char *name)
{
    int fd = rd_fd_high(open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat file;

    if (fd < 0)
        return false;
    bool taken = fstat(fd, &file) == 0 && !is_mine(&file) && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(fd);
    return taken;
}

static void let_go(void)
{
    struct stat file;

    if (held >= 0 && fstat(held, &file) == 0 && is_mine(&file))
        rd_fd_close(held);
    held = -1;
}

/* Two jobs whose ranks have one number, or a pattern that says the same for several ranks. */
static void take_another_name(void)
{
    char other[PATH_MAX];

    if (has_pid || !name_with_pid(other, path))
        return;
    rd_log(NULL, RD_LOG_WARN,
           "another process writes the file %s of RONDO_METRICS; this one's is %s (put %%p into the name: then each "
           "process has a name of its own)",
           path, other);
    let_go();
    has_pid = true;
    memcpy(path, other, sizeof path);
}

/* ---- the file ---- */

/* Returns 0 or an error. `*kept` is a descriptor of the file, with the lock, or -1. */
static int write_beside(const rd_metrics_look_t *look, int *kept)
{
    rd_out_t out;

    snprintf(beside, sizeof beside, "%s.%d.part", path, (int)getpid());
    (void)unlink(beside); /* of a process of that number which was killed */
    int fd = rd_fd_high(open(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (fd < 0)
        return errno;
    (void)fchmod(fd, 0644); /* another user's program reads it, whatever the umask is */
    rd_out_begin(&out, fd);
    rd_metrics_write(&out, look);
    int error = rd_out_end(&out);
    *kept = flock(fd, LOCK_EX | LOCK_NB) == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, RD_FD_FIRST) : -1;
    if (close(fd) != 0 && !error) /* a file server says only here that it has no room */
        error = errno;
    return error;
}

static void keep(int fd)
{
    struct stat file;

    let_go();
    if (fd < 0 || fstat(fd, &file) != 0)
        return;
    rd_fd_fork_lock();
    held = rd_fd_keep(fd);
    rd_fd_fork_unlock();
    device = file.st_dev;
    inode = file.st_ino;
}

void rd_metrics_file_replace(const rd_metrics_look_t *look)
{
    int fd = -1;

    if (is_taken(path))
        take_another_name();
    int error = write_beside(look, &fd);
    if (!error && rename(beside, path) != 0)
        error = errno;
    if (!error) {
        keep(fd);
        return;
    }
    unlink(beside);
    if (fd >= 0)
        close(fd);
    if (!complained)
        rd_log(NULL, RD_LOG_WARN, "the file %s of RONDO_METRICS cannot be written: %s", path, rd_fd_strerror(error));
    complained = true;
}

void rd_metrics_file_begin(const char *name)
{
    rd_metrics_file_remove();
    snprintf(path, sizeof path, "%s", name);
    has_pid = complained = false;
}

/* Not another process's, which has come to that name at the same time. */
void rd_metrics_file_remove(void)
{
    struct stat file;

    if (path[0] && (held < 0 ? !is_taken(path) : stat(path, &file) == 0 && is_mine(&file)))
        unlink(path);
    let_go();
    path[0] = 0;
}

void rd_metrics_file_forget(void)
{
    held = -1; /* it is closed with all others */
    path[0] = 0;
}
