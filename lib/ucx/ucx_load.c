/* Opens UCX when it is first needed.
 *
 * A program whose ranks share a node has no use for UCX, and would notice it: libucs installs signal handlers as it is
 * loaded, and takes the place of the program's `sigaction` and `signal` if it is linked. So librondo is not linked with
 * it, but finds the functions of ucx_load.h by name. (This is a table and no module of rondo's that is linked with UCX:
 * there is no second file to be installed and found, and librondo.a works in the same way.) A path that configure was
 * given by --with-ucx is in the run path of librondo, which dlopen follows. If the program or its MPI has loaded UCX
 * before, dlopen returns that very UCX, as the program has set it up.
 *
 * libucs reads what to do with signals from the environment while it is loaded, and never again. It gets an environment
 * of its own for that: one array in which a few variables are added, put into the place of the program's for the time
 * of dlopen. Unlike setenv, this moves nothing that another thread may be reading. UCX stays loaded until the process
 * ends, because its threads and its exit handlers do. */
#define _GNU_SOURCE
#include "ucx/ucx_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"

#define LIBRARY "libucp.so.0"

rd_ucp_t rd_ucp;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[512]; /* "": it is loaded */

__attribute__((weak)) void rd_ucx_loaded(rd_ucp_t *ucp)
{
    (void)ucp;
}

/* The settings that UCX is loaded with: no handlers for signals that are errors, none for SIGHUP, which would start a
 * debugger, and no thread that shows UCX's state as a file system. Its log is silent unless rondo is traced, because it
 * calls every lost connection an error, and rondo reports those itself. */
typedef struct preset {
    const char *name;
    char *text;  /* "NAME=value" */
    bool yields; /* what the user has set takes precedence */
} preset_t;

static const preset_t presets[] = {
    {"UCX_HANDLE_ERRORS", "UCX_HANDLE_ERRORS=none", false},
    {"UCX_DEBUG_SIGNO", "UCX_DEBUG_SIGNO=0", false},
    {"UCX_VFS_ENABLE", "UCX_VFS_ENABLE=n", true},
    {"UCX_LOG_LEVEL", "UCX_LOG_LEVEL=fatal", true},
};
#define PRESETS (sizeof presets / sizeof presets[0])

/* Returns true if the variable is the user's or UCX's own affair. */
static bool is_left(const preset_t *t)
{
    bool traced = strcmp(t->name, "UCX_LOG_LEVEL") == 0 && rd_log_enabled(RD_LOG_TRACE);
    return t->yields && (traced || getenv(t->name));
}

static bool is_preset(const char *variable)
{
    for (size_t i = 0; i < PRESETS; i++) {
        size_t length = strlen(presets[i].name);
        if (!presets[i].yields && strncmp(variable, presets[i].name, length) == 0 && variable[length] == '=')
            return true;
    }
    return false;
}

/* Returns the program's environment with what UCX is told; NULL: there is no memory. It is never freed, because another
 * thread may be reading it: most programs' has room here. */
static char **environment_for_ucx(char *const *program)
{
    static char *room[1000], **kept;
    size_t n = 0, used = 0;
    while (program && program[n])
        n++;
    if (n + PRESETS < sizeof room / sizeof room[0])
        kept = room;
    else
        kept = calloc(n + PRESETS + 1, sizeof *kept);
    for (size_t i = 0; kept && i < n; i++) {
        if (!is_preset(program[i]))
            kept[used++] = program[i];
    }
    for (size_t i = 0; kept && i < PRESETS; i++) {
        if (!is_left(&presets[i]))
            kept[used++] = presets[i].text;
    }
    return kept;
}

/* The threads that a part of UCX may start as it is loaded block all signals. */
static void *open_quietly(void)
{
    char **program = environ, **made = environment_for_ucx(program);
    sigset_t before;
    if (!made) {
        snprintf(why, sizeof why, "there is no memory to load UCX");
        return NULL;
    }
    rd_signals_block(&before);
    environ = made;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (environ == made) /* or a thread has called setenv meanwhile, against all rules: its change is kept */
        environ = program;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    const char *reason = library ? NULL : dlerror();
    if (reason && (strstr(reason, "map segment") || strstr(reason, strerror(ENOMEM)))) {
        snprintf(why, sizeof why, "there is no memory to load UCX (%s): raise `ulimit -v`", reason);
    } else if (!library) {
        snprintf(why, sizeof why,
                 "UCX cannot be loaded (%s): install it (libucx0 in Debian and Ubuntu, ucx in Fedora and RHEL) or name "
                 "its folder in LD_LIBRARY_PATH, or start all ranks on one node with one RONDO_HOSTID",
                 reason ? reason : LIBRARY);
    }
    return library;
}

/* Sets *function, which is a pointer of any function's type. */
static void find(void *library, const char *name, void *function, size_t bytes)
{
    void *found = dlsym(library, name);
    if (!found && !*why)
        snprintf(why, sizeof why, LIBRARY " has no %s: it is too old, rondo needs UCX 1.11 or newer", name);
    memcpy(function, &found, bytes);
}

static void load(void)
{
    void *library = open_quietly();
    if (!library)
        return;
#define RD_UCP_FIND(name) find(library, "ucp_" #name, &rd_ucp.name, sizeof rd_ucp.name);
    RD_UCP_FUNCTIONS(RD_UCP_FIND)
#undef RD_UCP_FIND
    find(library, "ucs_status_string", &rd_ucp.status_string, sizeof rd_ucp.status_string);
    if (!*why)
        rd_ucx_loaded(&rd_ucp);
}

const char *rd_ucx_load(void)
{
    pthread_once(&once, load);
    return *why ? why : NULL;
}
