/* Errors: the function that first decides that something is wrong reports it once, with what the user can do; its
 * callers only pass the code on. */
#ifndef RD_BASE_ERROR_H
#define RD_BASE_ERROR_H

#include <rondo.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

#define RD_ERROR_BYTES 512 /* of a sentence, with its terminating zero */

#define RD_LAST_RESULT RONDO_ERR_NAN

/* Returns true for a failure that is the error of all ranks, in one sentence: it goes along with the news of it. */
static inline bool rd_error_is_common(int code)
{
    return code == RONDO_ERR_MISMATCH || code == RONDO_ERR_NAN;
}

/* The name under which a communicator logs, and its last error. There is one for each communicator. */
typedef struct rd_log_ctx {
    char name[64]; /* config.name, or "comm<number>" */
    int rank, nranks;
    char error[RD_ERROR_BYTES]; /* the last error of a call */
    const char *_Atomic last;   /* the last error of all: `error`, or a text that is never changed; NULL: none yet */
} rd_log_ctx_t;

/* Levels of RONDO_DEBUG. Warnings are printed unless RONDO_DEBUG=none. */
typedef enum { RD_LOG_NONE, RD_LOG_WARN, RD_LOG_INFO, RD_LOG_PLAN, RD_LOG_TRACE } rd_log_level_t;

/* Records the sentence as this thread's last error and, if `ctx` is not NULL, as the communicator's, prints it at level
 * warn with name, rank and host, and returns `code`. */
rondo_result_t rd_error(rd_log_ctx_t *ctx, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The two halves of rd_error, for a text that other threads may read the moment it is complete: the first formats the
 * sentence, the second records and prints a sentence that is never changed again. */
void rd_error_format(char text[RD_ERROR_BYTES], const char *format, va_list args);
rondo_result_t rd_error_stays(rd_log_ctx_t *ctx, rondo_result_t code, const char *text);
/* A later call meets the same error: makes it the last error again, of the communicator and of this thread, without
 * printing it twice. */
void rd_error_again(rd_log_ctx_t *ctx, const char *text);
/* The same of a communicator alone, for a text that does not stay, such as that of a thread which is about to end. */
void rd_error_keep(rd_log_ctx_t *ctx, const char *text);

/* Writes one line, by one write(2), to standard error or RONDO_DEBUG_FILE: "rondo 0.1.0 host:pid rank/nranks name:
 * ...". Both may be called from any thread and keep errno. */
void rd_log(const rd_log_ctx_t *ctx, rd_log_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Says that something here is slower than it could be, and what the user can do: once a process at WARN, for a user who
 * does not ask, and then, for each further communicator, at INFO. */
#define rd_log_slow(ctx, ...)                                                                                          \
    do {                                                                                                               \
        static _Atomic int said;                                                                                       \
        rd_log(ctx, atomic_exchange(&said, 1) ? RD_LOG_INFO : RD_LOG_WARN, __VA_ARGS__);                               \
    } while (0)
int rd_log_fd(void); /* the descriptor of RONDO_DEBUG_FILE, which is opened now at the latest; -1: there is none */
extern _Atomic int rd_log_level; /* -1: the environment has not been read yet */
int rd_log_level_unread(void);   /* what it is until then */
static inline bool rd_log_enabled(rd_log_level_t level)
{
    int now = atomic_load_explicit(&rd_log_level, memory_order_relaxed);
    return (int)level <= (now >= 0 ? now : rd_log_level_unread());
}

void rd_log_set_level(rd_log_level_t level);                     /* called where the environment is read */
int rd_log_level_parse(const char *text, rd_log_level_t *level); /* parses "warn" and the like; 0 or -1 */

const char *rd_thread_error(void); /* rondo_last_error(NULL) */
/* Makes a sentence that another thread has logged the last error of this thread. */
void rd_thread_error_set(const char *text);
const char *rd_log_ctx_error(const rd_log_ctx_t *ctx); /* rondo_last_error(comm) */

#endif
