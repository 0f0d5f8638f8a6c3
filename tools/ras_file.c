/* Files that rondo-ras writes: whole, or not there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ras.h"

static int complain(const char *what, int error)
{
    fprintf(stderr, "rondo-ras: cannot write %s: %s%s\n", what, strerror(error),
            error == EEXIST ? "; it is there already, of an earlier dump" : "");
    return RAS_NOTHING;
}

int ras_make_folder(const char *dir)
{
    return mkdir(dir, 0700) == 0 || errno == EEXIST ? 0 : complain(dir, errno);
}

/* Returns 0 or an error. */
static int fill(int fd, ras_writer_fn write_it, void *arg)
{
    rd_out_t out;

    rd_out_begin(&out, fd);
    bool good = write_it(&out, arg);
    int error = rd_out_end(&out);
    return error ? error : good ? 0 : ENOMEM;
}

/* `final`: the name that the file gets when it is whole; NULL: it has it. */
static int make(const char *path, const char *final, int mode, ras_writer_fn write_it, void *arg)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd < 0)
        return complain(path, errno);
    (void)fchmod(fd, (mode_t)mode); /* the umask may have taken some of it */
    int error = fill(fd, write_it, arg);
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && final && rename(path, final) != 0)
        error = errno;
    if (!error)
        return 0;
    unlink(path); /* half a file would only mislead */
    return complain(final ? final : path, error);
}

int ras_make_file(const char *path, ras_writer_fn write_it, void *arg)
{
    return make(path, NULL, 0600, write_it, arg);
}

int ras_replace_file(const char *path, int mode, ras_writer_fn write_it, void *arg)
{
    char beside[4096];

    if (strcmp(path, "-") == 0) {
        int error = fill(STDOUT_FILENO, write_it, arg);
        return error ? complain("the output", error) : 0;
    }
    if ((size_t)snprintf(beside, sizeof beside, "%s.%d.part", path, (int)getpid()) >= sizeof beside)
        return complain(path, ENAMETOOLONG);
    return make(beside, path, mode, write_it, arg);
}
