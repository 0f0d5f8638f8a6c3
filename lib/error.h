/* Errors: who decides first that something is wrong says it once, with what the user can do; callers only pass it on.
 */
#ifndef RD_ERROR_H
#define RD_ERROR_H

#include <rondo.h>

/* The name under which a communicator speaks, and the last thing it said. One per communicator. */
typedef struct rd_who {
    char name[64]; /* config.name, or "comm<number>" */
    int rank, nranks;
    char error[512]; /* the text of the last error here; rondo_last_error(comm) */
} rd_who_t;

/* Levels of RONDO_DEBUG. Warnings are printed unless RONDO_DEBUG=none. */
typedef enum { RD_LOG_NONE, RD_LOG_WARN, RD_LOG_INFO, RD_LOG_PLAN, RD_LOG_TRACE } rd_log_level_t;

/* Records the sentence as this thread's last error and, if `who` is not NULL, as the communicator's, prints it at
 * level warn with name, rank and host, and returns `code`. */
rondo_result_t rd_error(rd_who_t *who, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One line, by one write(2), on standard error or RONDO_DEBUG_FILE: "rondo 0.1.0 host:pid rank/nranks name: ...".
 * Both may be called from any thread and keep errno. */
void rd_log(const rd_who_t *who, rd_log_level_t level, const char *format, ...) __attribute__((format(printf, 3, 4)));
int rd_log_enabled(rd_log_level_t level);
void rd_log_set_level(rd_log_level_t level);                     /* called where the environment is read */
int rd_log_level_parse(const char *text, rd_log_level_t *level); /* "warn"; 0 or -1 */

const char *rd_thread_error(void); /* rondo_last_error(NULL) */

#endif
