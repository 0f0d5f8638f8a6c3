/* rondo_dump and rondo_dump_fd: what the record says, when the program asks. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "base/fpenv.h"
#include "core/dump_files.h"
#include "core/dump_wait.h"
#include "core/dumps.h"
#include "core/hooks.h"
#include "monitor/held.h"
#include "monitor/raw.h"
#include "monitor/stacks.h"
#include "monitor/verdict.h"

#define NAMES_MS 1000 /* within which functions get names, or none */

/* Writes to an open descriptor. Returns 0 or an error. */
static int write_process(const rd_dump_t *dump, int process, int fd)
{
    rd_out_t out;

    rd_out_begin(&out, fd);
    rd_dump_json(&out, dump, process);
    return rd_out_end(&out);
}

/* Where a dump goes. */
typedef struct target {
    const char *path; /* of the file, or of the folder */
    int fd;           /* >= 0: there instead, as JSON */
    int flags;
    const char *formats; /* a list: of a folder, or of files with names of rondo's own */
    int serial;          /* >= 0: `path` is a folder in which the files of this process have a name of their own */
    char first[480];     /* out: what was written */
} target_t;

/* Of the first process alone, or of all. Returns 0 or an error. */
static int write_format(target_t *target, const rd_dump_t *dump, const rd_streams_t *streams, rd_dump_format_t format)
{
    int n = target->flags & RONDO_DUMP_NODE && format != RD_DUMP_AS_CHROME ? dump->view->nprocesses : 1, error = 0;
    char path[480];

    for (int i = 0; i < n && !error; i++) {
        if (!rd_dump_has(dump, i))
            continue;
        if (target->serial < 0)
            rd_dump_file_path(path, sizeof path, target->path, format, dump->numbers[i]);
        else
            rd_dump_own_path(path, sizeof path, target->path, format, target->serial, dump, i);
        error = rd_dump_file(path, format, dump, streams, i);
        if (!error && !target->first[0])
            snprintf(target->first, sizeof target->first, "%s", target->serial < 0 ? target->path : path);
    }
    return error;
}

static int write_formats(target_t *target, const rd_dump_t *dump)
{
    rd_streams_t streams = {0};
    int error = 0;

    if (rd_dump_format_wanted(target->formats, RD_DUMP_AS_FR) && !rd_streams_find(&streams, dump))
        return ENOMEM;
    for (int format = 0; format < RD_DUMP_FORMATS && !error; format++)
        if (rd_dump_format_wanted(target->formats, (rd_dump_format_t)format))
            error = write_format(target, dump, &streams, (rd_dump_format_t)format);
    rd_streams_free(&streams, dump);
    return error;
}

static int write_target(target_t *target, const rd_dump_t *dump)
{
    if (target->fd >= 0)
        return write_process(dump, 0, target->fd);
    if (target->flags & RONDO_DUMP_NODE && mkdir(target->path, 0700) != 0 && errno != EEXIST)
        return errno;
    if (target->flags & RONDO_DUMP_NODE || target->serial >= 0)
        return write_formats(target, dump);
    snprintf(target->first, sizeof target->first, "%s", target->path);
    return rd_dump_file(target->path, RD_DUMP_AS_JSON, dump, NULL, 0);
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
    if (!rd_held_again(view) || !rd_view_look(view, 0))
        return ENOMEM;
    return view->nprocesses && view->processes[0].reader.head.pid == (int32_t)getpid() ? 0 : ENODATA;
}

/* This process is the first of the view. Returns 0 or an error. */
static int dump_to(target_t *target)
{
    rd_view_t view = {0};
    rd_dump_t dump = {0};
    fenv_t program;
    rd_fpenv_begin(&program);
    int error = look(&view);

    if (!error)
        rd_stacks_read(&view, NAMES_MS);
    if (!error && !rd_dump_read(&dump, &view, view.processes[0].job))
        error = ENOMEM;
    if (!error)
        error = write_target(target, &dump);
    if (dump.view)
        rd_dump_free(&dump);
    rd_view_free(&view);
    rd_fpenv_end(&program);
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

/* One of its own in RONDO_DUMP_DIR: files, or a folder of that name, which `path` has room for. */
static rondo_result_t name_target(target_t *target, const rd_env_t *env, char *path, size_t room)
{
    static _Atomic int serial;

    if (!env->dump_dir[0])
        return rd_error(NULL, RONDO_ERR_INVALID_USAGE, "rondo_dump: path is NULL, and RONDO_DUMP_DIR is not set");
    int number = atomic_fetch_add(&serial, 1);
    target->path = env->dump_dir;
    target->serial = number;
    if (!(target->flags & RONDO_DUMP_NODE))
        return RONDO_SUCCESS;
    rd_dump_own_folder(path, room, env->dump_dir, number);
    target->path = path;
    target->serial = -1;
    return RONDO_SUCCESS;
}

static rondo_result_t dump_in(target_t *target, const rd_env_t *env, rd_log_level_t level)
{
    rd_dump_wait_begin(env->dump_wait_ms);
    rondo_result_t result = result_of(dump_to(target), "rondo_dump", target->path);
    rd_dump_wait_end();

    if (result != RONDO_SUCCESS)
        return result;
    rd_log(NULL, level, "the last calls are in %s", target->first);
    rd_hooks_post(RONDO_HOOK_DUMPED, NULL, RONDO_SUCCESS, target->first);
    return RONDO_SUCCESS;
}

static rondo_result_t dump(const char *path, int flags, rd_log_level_t level)
{
    target_t target = {.path = path, .fd = -1, .flags = flags, .serial = -1};
    char own[400];
    rd_env_t env;

    if (flags & ~RONDO_DUMP_NODE)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_dump: flags is %d: 0 or RONDO_DUMP_NODE", flags);
    rondo_result_t result = rd_env_read(&env);
    if (result == RONDO_SUCCESS && !path)
        result = name_target(&target, &env, own, sizeof own);
    if (result != RONDO_SUCCESS)
        return result;
    target.formats = env.dump_format;
    return dump_in(&target, &env, level);
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
    target_t target = {.fd = fd};

    if (format == RONDO_DUMP_JSON)
        return fd < 0 ? rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "rondo_dump_fd: fd is %d", fd)
                      : result_of(dump_to(&target), "rondo_dump_fd", "");
    if (format != RONDO_DUMP_RECORD)
        return RONDO_ERR_INVALID_ARGUMENT;
    error = rd_raw_copy(fd);
    errno = saved;
    return !error ? RONDO_SUCCESS : error == ENOENT ? RONDO_ERR_UNSUPPORTED : RONDO_ERR_SYSTEM;
}
