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

#include <pthread.h>
#include <stdio.h>

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
 * debugger, and no thread that shows UCX's state as a file system. Its log is silent unless rondo is traced, because it
 * calls every lost connection an error, and rondo reports those itself. */
static const rd_net_preset_t presets[] = {
    {"UCX_HANDLE_ERRORS", "UCX_HANDLE_ERRORS=none", false},
    {"UCX_DEBUG_SIGNO", "UCX_DEBUG_SIGNO=0", false},
    {"UCX_VFS_ENABLE", "UCX_VFS_ENABLE=n", true},
    {"UCX_LOG_LEVEL", "UCX_LOG_LEVEL=fatal", true}, /* the last one, which a trace does without */
};
#define PRESETS (sizeof presets / sizeof presets[0])

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

static void load(void)
{
    void *library = open_quietly();
    if (!library)
        return;
#define RD_UCP_FIND(name) rd_net_load_find(&ucx, library, "ucp_" #name, &rd_ucp.name, sizeof rd_ucp.name);
    RD_UCP_FUNCTIONS(RD_UCP_FIND)
#undef RD_UCP_FIND
    rd_net_load_find(&ucx, library, "ucs_status_string", &rd_ucp.status_string, sizeof rd_ucp.status_string);
    if (!*ucx.why)
        rd_ucx_loaded(&rd_ucp);
}

const char *rd_ucx_load(void)
{
    pthread_once(&once, load);
    return *ucx.why ? ucx.why : NULL;
}
