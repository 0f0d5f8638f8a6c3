/* rondo_dump and rondo_dump_fd: what the record says, when the program asks. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "core/dumps.h"
#include "core/hooks.h"
#include "monitor/dump.h"
#include "monitor/held.h"
#include "monitor/raw.h"
#include "monitor/verdict.h"

/* Writes to an open descriptor. Returns 0 or an error. */
static int write_process(const rd_dump_t *dump, int process, int fd)
{
    rd_out_t out;

    rd_out_begin(&out, fd);
    rd_dump_json(&out, dump, process);
    return rd_out_end(&out);
}

/* Returns 0 or an error. */
static int write_file(const rd_dump_t *dump, int process, const char *path)
{
    int fd = rd_fd_high(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));

    if (fd < 0)
        return errno;
    int error = write_process(dump, process, fd);
    if (close(fd) != 0 && !error)
        error = errno;
    if (error)
        unlink(path); /* half a dump would only mislead */
    return error;
}

static int write_folder(const rd_dump_t *dump, const char *folder)
{
    int error = mkdir(folder, 0700) == 0 || errno == EEXIST ? 0 : errno;
    char path[512];

    for (int i = 0; i < dump->view->nprocesses && !error; i++) {
        snprintf(path, sizeof path, "%s/rondo_dump_%d.json", folder, dump->numbers[i]);
        error = rd_dump_has(dump, i) ? write_file(dump, i, path) : 0;
    }
    return error;
}

/* Looks twice, as `rondo-ras who` does, so that verdicts are its. Returns 0 or an error. */
static int look(rd_view_t *view)
{
    const struct timespec between = {0, RD_VERDICT_MS * 1000000};

    if (!rd_held_view(view) || !rd_view_look(view, 0))
        return ENOMEM;
    if (!view->nprocesses)
        return ENODATA;
    nanosleep(&between, NULL);
    return rd_view_look(view, 0) ? 0 : ENOMEM;
}

/* This process is the first of the view. Returns 0 or an error. */
static int dump_to(const char *path, int fd, int flags)
{
    rd_view_t view = {0};
    rd_dump_t dump = {0};
    int error = look(&view);

    if (!error && !rd_dump_read(&dump, &view, view.processes[0].job))
        error = ENOMEM;
    if (!error)
        error = fd >= 0                   ? write_process(&dump, 0, fd)
                : flags & RONDO_DUMP_NODE ? write_folder(&dump, path)
                                          : write_file(&dump, 0, path);
    if (dump.view)
        rd_dump_free(&dump);
    rd_view_free(&view);
    return error;
}

static rondo_result_t result_of(int error, const char *call, const char *to)
{
    if (!error)
        return RONDO_SUCCESS;
    if (error == ENODATA)
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED, "%s: this process has no record", call);
    return rd_error(NULL, error == ENOMEM ? RONDO_ERR_NO_MEMORY : RONDO_ERR_SYSTEM, "%s: %s%s%s", call, to,
                    *to ? ": " : "", rd_fd_strerror(error));
}

/* One of its own in RONDO_DUMP_DIR. */
static rondo_result_t name_path(char *path, size_t room)
{
    static _Atomic unsigned serial;
    rd_env_t env;
    rondo_result_t result = rd_env_read(&env);

    if (result != RONDO_SUCCESS)
        return result;
    if (!env.dump_dir[0])
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "rondo_dump: path is NULL, and RONDO_DUMP_DIR is not set");
    snprintf(path, room, "%s/rondo_dump.%d.%u", env.dump_dir, (int)getpid(), atomic_fetch_add(&serial, 1));
    return RONDO_SUCCESS;
}

static void said(rd_log_level_t level, const char *path)
{
    rd_log(NULL, level, "the last calls are in %s", path);
    rd_hooks_post(RONDO_HOOK_DUMPED, NULL, RONDO_SUCCESS, path);
}

static rondo_result_t dump(const char *path, int flags, rd_log_level_t level)
{
    rondo_result_t result = RONDO_SUCCESS;
    char own[400];

    if (flags & ~RONDO_DUMP_NODE)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_dump: flags is %d: 0 or RONDO_DUMP_NODE", flags);
    if (!path)
        result = name_path(own, sizeof own - sizeof ".json");
    if (result != RONDO_SUCCESS)
        return result;
    if (!path && !(flags & RONDO_DUMP_NODE))
        snprintf(own + strlen(own), sizeof ".json", ".json");
    path = path ? path : own;
    result = result_of(dump_to(path, -1, flags), "rondo_dump", path);
    if (result == RONDO_SUCCESS)
        said(level, path);
    return result;
}

rondo_result_t rondo_dump(const char *path, int flags)
{
    return dump(path, flags, RD_LOG_INFO);
}

rondo_result_t rd_dump_asked(void)
{
    return dump(NULL, 0, RD_LOG_WARN);
}

/* In a signal handler no sentence can be made. */
rondo_result_t rondo_dump_fd(int fd, int format)
{
    int saved = errno, error;

    if (format == RONDO_DUMP_JSON)
        return fd < 0 ? rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_dump_fd: fd is %d", fd)
                      : result_of(dump_to(NULL, fd, 0), "rondo_dump_fd", "");
    if (format != RONDO_DUMP_RECORD)
        return RONDO_ERR_INVALID_ARGUMENT;
    error = rd_raw_copy(fd);
    errno = saved;
    return !error ? RONDO_SUCCESS : error == ENOENT ? RONDO_ERR_UNSUPPORTED : RONDO_ERR_SYSTEM;
}
