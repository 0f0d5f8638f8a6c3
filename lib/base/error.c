/* Errors and log lines. Every line is formatted in one buffer and written by one write(2), so that lines of many
 * processes on one terminal, and of many threads in one process, do not mix. Text that came from outside (names, peers)
 * cannot break a line: control characters are replaced. */
#include "base/error.h"
#include "base/fd.h"
#include "base/file_name.h"
#include "base/fork.h"
#include "base/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024

static _Thread_local char thread_error[RD_ERROR_BYTES];
static pthread_mutex_t ctx_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the writers of any ctx->error */
_Atomic int rd_log_level = -1;

static pthread_once_t output_once = PTHREAD_ONCE_INIT;
static int output_fd = STDERR_FILENO;
static atomic_bool stderr_closed; /* what has its number later on is not where messages go */
static char host_name[64];

int rd_log_level_parse(const char *text, rd_log_level_t *level)
{
    static const char *const names[] = {"none", "warn", "info", "plan", "trace"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *level = (rd_log_level_t)i;
            return 0;
        }
    }
    return -1;
}

/* A value that is not one of the names is refused when the environment is read; until then it means `warn`. */
int rd_log_level_unread(void)
{
    const char *text = getenv("RONDO_DEBUG");
    rd_log_level_t parsed = RD_LOG_WARN;

    if (text && *text && rd_log_level_parse(text, &parsed) != 0)
        parsed = RD_LOG_WARN;
    return (int)parsed;
}

void rd_log_set_level(rd_log_level_t level)
{
    atomic_store_explicit(&rd_log_level, (int)level, memory_order_relaxed);
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
        atomic_store_explicit(&stderr_closed, true, memory_order_relaxed);
}

static void output_open(void)
{
    char name[512] = "", line[LINE_BYTES], kept[RD_SETTING_BYTES];
    const char *pattern = rd_setting_text("RONDO_DEBUG_FILE", kept);
    int fd, n;

    if (gethostname(host_name, sizeof host_name - 1) != 0 || !host_name[0])
        snprintf(host_name, sizeof host_name, "host");
    if (!pattern || !*pattern)
        return;
    fd = rd_file_name(name, sizeof name, pattern, host_name) == 0
             ? rd_fd_high(open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666))
             : -1;
    if (fd >= 0) {
        output_fd = fd;
        return;
    }
    n = snprintf(line, sizeof line, "rondo: RONDO_DEBUG_FILE=%.200s cannot be opened: %s; messages go to stderr\n",
                 pattern, strerror(errno));
    rd_fd_write(STDERR_FILENO, line, (size_t)n);
}

int rd_log_fd(void)
{
    pthread_once(&output_once, output_open);
    return output_fd == STDERR_FILENO ? -1 : output_fd;
}

static void text_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = *text == '\n' || *text == '\t' ? ' ' : '?';
}

static void text_format(char *text, size_t bytes, const char *format, va_list args)
{
    int n = vsnprintf(text, bytes, format, args);

    if (n < 0)
        snprintf(text, bytes, "(a message that could not be formatted: %s)", format);
    else if ((size_t)n >= bytes)
        memcpy(text + bytes - 4, "...", 4);
    text_clean(text);
}

void rd_error_format(char text[RD_ERROR_BYTES], const char *format, va_list args)
{
    text_format(text, RD_ERROR_BYTES, format, args);
}

static void line_write(const rd_log_ctx_t *ctx, const char *text)
{
    char line[LINE_BYTES], speaker[96] = "";
    int n;

    pthread_once(&output_once, output_open);
    if (ctx) {
        snprintf(speaker, sizeof speaker, " %d/%d %s", ctx->rank, ctx->nranks, ctx->name);
        text_clean(speaker);
    }
    n = snprintf(line, sizeof line - 1, "rondo %d.%d.%d %s:%ld%s: %s", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR,
                 RONDO_VERSION_PATCH, host_name, (long)getpid(), speaker, text);
    if (n < 0)
        return;
    if ((size_t)n > sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (output_fd != STDERR_FILENO || !atomic_load_explicit(&stderr_closed, memory_order_relaxed))
        rd_fd_write(output_fd, line, (size_t)n);
}

/* A thread that the child does not have may have held the lock. */
static void fork_child(void)
{
    pthread_mutex_init(&ctx_lock, NULL);
}

static const rd_fork_handlers_t at_fork = {.child = fork_child};

rondo_result_t rd_error(rd_log_ctx_t *ctx, rondo_result_t code, const char *format, ...)
{
    char text[RD_ERROR_BYTES]; /* the arguments may be an earlier error's text */
    int saved = errno;
    va_list args;

    va_start(args, format);
    rd_error_format(text, format, args);
    va_end(args);
    memcpy(thread_error, text, sizeof text);
    if (ctx) {
        rd_fork_register(RD_FORK_ERROR, &at_fork);
        pthread_mutex_lock(&ctx_lock);
        memcpy(ctx->error, text, sizeof text);
        atomic_store_explicit(&ctx->last, ctx->error, memory_order_release);
        pthread_mutex_unlock(&ctx_lock);
    }
    if (rd_log_enabled(RD_LOG_WARN))
        line_write(ctx, text);
    errno = saved;
    return code;
}

void rd_error_again(rd_log_ctx_t *ctx, const char *text)
{
    if (text != thread_error)
        snprintf(thread_error, sizeof thread_error, "%s", text);
    if (ctx)
        atomic_store_explicit(&ctx->last, text, memory_order_release);
}

/* To print into what another thread may be reading would make it empty for a moment. */
void rd_error_keep(rd_log_ctx_t *ctx, const char *text)
{
    char whole[RD_ERROR_BYTES] = "";

    snprintf(whole, sizeof whole, "%s", text);
    rd_fork_register(RD_FORK_ERROR, &at_fork);
    pthread_mutex_lock(&ctx_lock);
    memcpy(ctx->error, whole, sizeof whole);
    atomic_store_explicit(&ctx->last, ctx->error, memory_order_release);
    pthread_mutex_unlock(&ctx_lock);
}

rondo_result_t rd_error_stays(rd_log_ctx_t *ctx, rondo_result_t code, const char *text)
{
    int saved = errno;

    rd_error_again(ctx, text);
    if (rd_log_enabled(RD_LOG_WARN))
        line_write(ctx, text);
    errno = saved;
    return code;
}

void rd_log(const rd_log_ctx_t *ctx, rd_log_level_t level, const char *format, ...)
{
    char text[LINE_BYTES - 192]; /* leaves space for the name, rank and host */
    int saved = errno;
    va_list args;

    if (!rd_log_enabled(level))
        return;
    va_start(args, format);
    text_format(text, sizeof text, format, args);
    va_end(args);
    line_write(ctx, text);
    errno = saved;
}

void rd_thread_error_set(const char *text)
{
    snprintf(thread_error, sizeof thread_error, "%s", text);
}

const char *rd_thread_error(void)
{
    return thread_error;
}

const char *rd_log_ctx_error(const rd_log_ctx_t *ctx)
{
    const char *last = atomic_load_explicit(&ctx->last, memory_order_acquire);

    return last ? last : "";
}
