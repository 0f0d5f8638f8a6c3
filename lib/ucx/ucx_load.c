/* Opens UCX when it is first needed (transport/network/net_load.h says why, and how).
 *
 * libucs installs signal handlers as it is loaded, and takes the place of the program's `sigaction` and `signal` if it
 * is linked. So librondo is not linked with it, but finds the functions of ucx_load.h by name. (This is a table and no
 * module of rondo's that is linked with UCX: there is no second file to be installed and found, and librondo.a works in
 * the same way.) A path that configure was given by --with-ucx is in the run path of librondo, which dlopen follows.
 *
 * libucs reads what to do with signals from the environment while it is loaded, and never again: it gets an environment
 * of its own for that. */
#define _GNU_SOURCE
#include "ucx/ucx_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/thread.h"
#include "transport/network/net_load.h"

rd_ucp_t rd_ucp;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static rd_net_load_t ucx = {
    .file = "libucp.so.0",
    .name = "UCX",
    .needs = "it is too old, rondo needs UCX 1.11 or newer",
    .advice =
        "install it (libucx0 in Debian and Ubuntu, ucx in Fedora and RHEL) or name its folder in LD_LIBRARY_PATH, "
        "or start all ranks on one node with one RONDO_HOSTID",
};

__attribute__((weak)) void rd_ucx_loaded(rd_ucp_t *ucp)
{
    (void)ucp;
}

/* The settings that UCX is loaded with: no handlers for signals that are errors, none for SIGHUP, which would start a
 * debugger, and no thread that shows UCX's state as a file system. Its log is silent unless rondo is traced or the user
 * has asked for it, because it calls every lost connection an error, and rondo reports those itself: `hear` takes the
 * errors. */
static const rd_net_preset_t presets[] = {
    {"UCX_HANDLE_ERRORS", "UCX_HANDLE_ERRORS=none", false},
    {"UCX_DEBUG_SIGNO", "UCX_DEBUG_SIGNO=0", false},
    {"UCX_VFS_ENABLE", "UCX_VFS_ENABLE=n", true},
    {"UCX_LOG_LEVEL", "UCX_LOG_LEVEL=error", true}, /* the last one, which a trace does without */
};
#define PRESETS (sizeof presets / sizeof presets[0])

/* ---- what it calls an error
 *
 * A user who sets UCX_LOG_LEVEL below "error" hides that from rondo, too. */

static bool silent; /* nobody has asked for UCX's lines, and it was rondo that loaded it */
static _Thread_local bool listens, heard;

static ucs_log_func_rc_t hear(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                              const ucs_log_component_config_t *component, const char *message, va_list args)
{
    (void)file, (void)line, (void)function, (void)component, (void)message, (void)args;
    heard |= listens && level == UCS_LOG_LEVEL_ERROR;
    return silent && level != UCS_LOG_LEVEL_FATAL ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
}

/* UCX stays loaded until the process ends, and so must what it calls. */
static void hear_all(void)
{
    Dl_info own;
    if (dladdr((const void *)(uintptr_t)hear, &own) != 0)
        (void)dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    rd_ucp.log_push_handler(hear);
}

void rd_ucx_errors_begin(void)
{
    heard = false;
    listens = true;
}

bool rd_ucx_errors_end(void)
{
    listens = false;
    return heard;
}

/* The threads that a part of UCX may start as it is loaded block all signals. */
static void *open_quietly(void)
{
    static rd_net_environ_t its;
    sigset_t before;
    if (!rd_net_environ_begin(&its, presets, PRESETS - rd_log_enabled(RD_LOG_TRACE))) {
        snprintf(ucx.why, sizeof ucx.why, "there is no memory to load UCX");
        return NULL;
    }
    rd_signals_block(&before);
    void *library = rd_net_load_open(&ucx);
    rd_net_environ_end(&its);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return library;
}

/* Returns true if the program, or another library of it, has UCX already. */
static bool is_loaded(void)
{
    void *library = dlopen(ucx.file, RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

static void load(void)
{
    bool foreign = is_loaded();
    void *library = open_quietly();
    if (!library)
        return;
#define RD_UCP_FIND(name) rd_net_load_find(&ucx, library, "ucp_" #name, &rd_ucp.name, sizeof rd_ucp.name);
    RD_UCP_FUNCTIONS(RD_UCP_FIND)
#undef RD_UCP_FIND
    rd_net_load_find(&ucx, library, "ucs_status_string", &rd_ucp.status_string, sizeof rd_ucp.status_string);
    rd_net_load_find(&ucx, library, "ucs_log_push_handler", &rd_ucp.log_push_handler, sizeof rd_ucp.log_push_handler);
    if (*ucx.why)
        return;
    silent = !foreign && !rd_log_enabled(RD_LOG_TRACE) && !getenv("UCX_LOG_LEVEL");
    hear_all();
    rd_ucx_loaded(&rd_ucp);
    rd_ucx_guard(&rd_ucp);
}

const char *rd_ucx_load(void)
{
    pthread_once(&once, load);
    return *ucx.why ? ucx.why : NULL;
}
