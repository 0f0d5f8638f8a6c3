/* Log lines and error messages. Lines have NCCL's format (host:pid:thread NCCL INFO ...), because scripts search for
 * it. As in NCCL, they go to NCCL_DEBUG_FILE or to standard output. If NCCL_DEBUG is not set, errors go to standard
 * error, as rondo's own do. A line is written by one write(2).
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file_name.h"
#include "nccl/conf_file.h"
#include "nccl/shim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the following and every comm->error */
static char last_error[512];
static int ready, level, asked, version_said, out_fd = -1;
static unsigned subsystems;
static _Atomic unsigned shown = ~0u; /* the subsystems whose lines are printed; all, until that is known */

#define HOST_BYTES 65
static char host[HOST_BYTES];

#define SUBSYSTEMS (NC_SUBSYS_INIT | NC_SUBSYS_ENV) /* as in NCCL, if nothing is said */

/* Returns the length of the word, without the blanks around it, which NCCL does not count. */
static size_t trim(const char **word, size_t length)
{
    while (length && isspace((unsigned char)**word))
        ++*word, --length;
    while (length && isspace((unsigned char)(*word)[length - 1]))
        length--;
    return length;
}

nc_log_level_t nc_log_level(const char *text)
{
    static const struct {
        const char *name;
        nc_log_level_t level;
    } names[] = {{"NONE", NC_LOG_NONE}, {"VERSION", NC_LOG_VERSION}, {"WARN", NC_LOG_WARN},
                 {"INFO", NC_LOG_INFO}, {"ABORT", NC_LOG_WARN},      {"TRACE", NC_LOG_TRACE}};
    const size_t length = trim(&text, strlen(text));

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].name) == length && strncasecmp(text, names[i].name, length) == 0)
            return names[i].level;
    return NC_LOG_UNKNOWN;
}

/* Sets the bits of one of NCCL's subsystems; those whose lines rondo has not are 0. Returns false if there is none. */
static bool subsystem_find(const char *word, size_t length, unsigned *bits)
{
    static const char *const names[] = {"INIT", "COLL",      "ENV",     "REG",   "P2P",        "SHM",
                                        "NET",  "GRAPH",     "TUNING",  "ALLOC", "CALL",       "PROXY",
                                        "NVLS", "BOOTSTRAP", "PROFILE", "RAS",   "ALLOC_HOST", "DESTROY"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && strncasecmp(word, names[i], length) == 0) {
            *bits = i < 4 ? 1u << i : 0;
            return true;
        }
    *bits = ~0u;
    return length == 3 && strncasecmp(word, "ALL", 3) == 0;
}

/* Parses a list such as "INIT,ENV" or "^COLL". As in NCCL, of a list with another word nothing counts. */
static unsigned subsystems_parse(const char *text)
{
    const int exclude = *text == '^';
    unsigned mask = 0, bits;

    for (const char *p = text + exclude, *word; *p; p += strcspn(p, ","), p += *p == ',') {
        const size_t length = trim((word = p, &word), strcspn(p, ","));
        if (length && !subsystem_find(word, length, &bits))
            return SUBSYSTEMS;
        mask |= length ? bits : 0;
    }
    return exclude ? ~mask : mask;
}

/* Up to its first point, and with nothing in it that would be more than a name in a file's name. */
static void host_find(char name[HOST_BYTES])
{
    memset(name, 0, HOST_BYTES);
    if (gethostname(name, HOST_BYTES - 1) != 0 || !*name)
        snprintf(name, HOST_BYTES, "host");
    name[strcspn(name, ".")] = '\0';
    for (char *c = name; *c; c++)
        if (*c == '%' || *c == '/')
            *c = '-';
}

void nc_log_file(const char *pattern, char name[NC_FILE_BYTES])
{
    char own[HOST_BYTES];

    host_find(own);
    (void)rd_file_name(name, NC_FILE_BYTES, pattern, own); /* as in NCCL, a name that is too long is cut */
}

static void file_open(const char *pattern)
{
    char name[NC_FILE_BYTES];

    nc_log_file(pattern, name);
    out_fd = rd_fd_high(open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
}

/* With the lock held. */
static void begin(void)
{
    const char *text = nc_env("NCCL_DEBUG"), *mask = nc_env("NCCL_DEBUG_SUBSYS"), *file = nc_env("NCCL_DEBUG_FILE");
    const nc_log_level_t parsed = text ? nc_log_level(text) : NC_LOG_UNKNOWN;

    if (ready)
        return;
    ready = 1;
    asked = parsed > NC_LOG_NONE;
    level = parsed != NC_LOG_UNKNOWN ? parsed : NC_LOG_WARN;
    subsystems = mask && *mask ? subsystems_parse(mask) : SUBSYSTEMS;
    atomic_store(&shown, level >= NC_LOG_INFO ? subsystems : 0);
    host_find(host);
    if (file && *file && parsed > NC_LOG_VERSION)
        file_open(file);
}

static void line(int fd, const char *kind, const char *text)
{
    char whole[1024];
    int n = snprintf(whole, sizeof whole - 1, "%s:%ld:%ld NCCL %s%s\n", host, (long)getpid(), (long)syscall(SYS_gettid),
                     kind, text);

    if (n < 0)
        return;
    if ((size_t)n >= sizeof whole - 1) {
        n = (int)sizeof whole - 2;
        whole[n++] = '\n';
    }
    rd_fd_write(out_fd >= 0 ? out_fd : fd, whole, (size_t)n);
}

bool nc_log_shows(nc_subsys_t subsys)
{
    return (atomic_load_explicit(&shown, memory_order_relaxed) & subsys) != 0;
}

void nc_log(nc_subsys_t subsys, const char *format, ...)
{
    char text[900];
    va_list args;

    pthread_mutex_lock(&lock);
    begin();
    if (level >= NC_LOG_INFO && (subsystems & subsys)) {
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        line(STDOUT_FILENO, "INFO ", text);
    }
    pthread_mutex_unlock(&lock);
}

void nc_log_version(void)
{
    char text[120];

    pthread_mutex_lock(&lock);
    begin();
    if (asked && !version_said) {
        version_said = 1;
        snprintf(text, sizeof text, "NCCL version %d.%d.%d served by rondo %d.%d.%d", NC_VERSION_MAJOR,
                 NC_VERSION_MINOR, NC_VERSION_PATCH, rondo_version() / 10000, rondo_version() / 100 % 100,
                 rondo_version() % 100);
        line(STDOUT_FILENO, "", text + 5); /* the prefix ends with "NCCL " already */
    }
    pthread_mutex_unlock(&lock);
}

/* With the lock held. */
static void record(ncclComm_t comm, const char *text)
{
    snprintf(last_error, sizeof last_error, "%s", text);
    if (comm)
        snprintf(comm->error, sizeof comm->error, "%s", text);
}

ncclResult_t nc_error(ncclComm_t comm, ncclResult_t code, const char *format, ...)
{
    char text[sizeof last_error];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    begin();
    record(comm, text);
    if (level >= NC_LOG_VERSION)
        line(asked ? STDOUT_FILENO : STDERR_FILENO, "WARN ", text);
    pthread_mutex_unlock(&lock);
    return code;
}

static ncclResult_t translate(rondo_result_t result)
{
    switch (result) {
    case RONDO_SUCCESS:
        return ncclSuccess;
    case RONDO_IN_PROGRESS:
        return ncclInProgress;
    case RONDO_ERR_INVALID_ARGUMENT:
        return ncclInvalidArgument;
    case RONDO_ERR_INVALID_USAGE:
    case RONDO_ERR_UNSUPPORTED:
    case RONDO_ERR_ABORTED:
    case RONDO_ERR_MISMATCH:
    case RONDO_ERR_NAN:
        return ncclInvalidUsage;
    case RONDO_ERR_NO_MEMORY:
    case RONDO_ERR_SYSTEM:
        return ncclSystemError;
    case RONDO_ERR_CUDA:
        return ncclUnhandledCudaError;
    case RONDO_ERR_REMOTE:
        return ncclRemoteError;
    case RONDO_ERR_TIMEOUT:
        return ncclTimeout;
    case RONDO_ERR_INTERNAL:
        break;
    }
    return ncclInternalError;
}

ncclResult_t nc_result(ncclComm_t comm, rondo_comm_t of, rondo_result_t result)
{
    if (result == RONDO_SUCCESS || result == RONDO_IN_PROGRESS)
        return translate(result);
    pthread_mutex_lock(&lock);
    record(comm, rondo_last_error(of));
    pthread_mutex_unlock(&lock);
    return translate(result);
}

const char *pncclGetLastError(ncclComm_t comm)
{
    static _Thread_local char copy[sizeof last_error];

    pthread_mutex_lock(&lock);
    const bool own = comm && comm->alive == NC_ALIVE && *comm->error;
    snprintf(copy, sizeof copy, "%s", own ? comm->error : last_error);
    pthread_mutex_unlock(&lock);
    return copy;
}
NC_TWIN(GetLastError);

void pncclResetDebugInit(void)
{
    pthread_mutex_lock(&lock);
    if (out_fd >= 0)
        close(out_fd);
    out_fd = -1;
    ready = 0;
    atomic_store(&shown, ~0u);
    pthread_mutex_unlock(&lock);
}
NC_TWIN(ResetDebugInit);

/* They begin with NCCL's words, which scripts look for in the logs of programs. */
const char *pncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess:
        return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error (ncclGetLastError says which)";
    case ncclSystemError:
        return "unhandled system error (ncclGetLastError says which)";
    case ncclInternalError:
        return "internal error";
    case ncclInvalidArgument:
        return "invalid argument (ncclGetLastError says which)";
    case ncclInvalidUsage:
        return "invalid usage (ncclGetLastError says why)";
    case ncclRemoteError:
        return "remote process exited or there was a network error (ncclGetLastError says which)";
    case ncclInProgress:
        return "NCCL operation in progress";
    case ncclTimeout:
        return "timeout";
    case ncclNumResults:
        break;
    }
    return "unknown result code";
}
NC_TWIN(GetErrorString);

ncclResult_t pncclGetVersion(int *version)
{
    if (!version)
        return nc_error(NULL, ncclInvalidArgument, "ncclGetVersion: version is NULL");
    *version = NCCL_VERSION(NC_VERSION_MAJOR, NC_VERSION_MINOR, NC_VERSION_PATCH);
    return ncclSuccess;
}
NC_TWIN(GetVersion);
