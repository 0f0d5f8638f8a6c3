/* Opens libfabric when it is first needed, for the reasons that ucx/ucx_load.c gives for UCX: a job on one node has no
 * use for it, and loading it changes a process. A path that configure was given by --with-libfabric is in the run path
 * of librondo, which dlopen follows. If the program or its MPI has loaded libfabric before, that very one is used.
 *
 * libfabric looks for its providers in the first call of fi_getinfo, so that is as quiet as loading it is. It is never
 * unloaded. */
#define _GNU_SOURCE
#include "ofi/ofi_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"

#define LIBRARY "libfabric.so.1"

rd_fi_t rd_fi;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[512]; /* "": it is loaded */

#define SIGNAL_BYTES (NSIG / 8) /* of the kernel's sets */

static void action_get(int signal, uint64_t action[8])
{
    memset(action, 0, 8 * sizeof *action);
    (void)syscall(SYS_rt_sigaction, signal, NULL, action, SIGNAL_BYTES);
}

void rd_ofi_quiet_begin(rd_ofi_quiet_t *quiet)
{
    rd_signals_block(&quiet->mask);
    for (int i = 1; i < NSIG; i++)
        action_get(i, quiet->actions[i]);
}

void rd_ofi_quiet_end(const rd_ofi_quiet_t *quiet)
{
    uint64_t now[8];
    for (int i = 1; i < NSIG; i++) {
        action_get(i, now);
        if (memcmp(now, quiet->actions[i], sizeof now) != 0)
            (void)syscall(SYS_rt_sigaction, i, quiet->actions[i], NULL, SIGNAL_BYTES);
    }
    pthread_sigmask(SIG_SETMASK, &quiet->mask, NULL);
}

static void *open_quietly(void)
{
    rd_ofi_quiet_t quiet;
    rd_ofi_quiet_begin(&quiet);
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    rd_ofi_quiet_end(&quiet);
    const char *reason = library ? NULL : dlerror();
    if (reason && (strstr(reason, "map segment") || strstr(reason, strerror(ENOMEM))))
        snprintf(why, sizeof why, "there is no memory to load libfabric (%s): raise `ulimit -v`", reason);
    else if (!library)
        snprintf(
            why, sizeof why,
            "libfabric cannot be loaded (%s): install it (libfabric1 in Debian and Ubuntu, libfabric in Fedora and "
            "RHEL) or name its folder in LD_LIBRARY_PATH, or unset RONDO_TRANSPORT to go by UCX",
            reason ? reason : LIBRARY);
    return library;
}

/* Sets *function, which is a pointer of any function's type. */
static void find(void *library, const char *name, void *function, size_t bytes)
{
    void *found = dlsym(library, name);
    if (!found && !*why)
        snprintf(why, sizeof why, LIBRARY " has no %s: rondo needs libfabric 1.11 or newer", name);
    memcpy(function, &found, bytes);
}

/* tcp's providers put short messages into a buffer of their own where the socket is full, and call them sent; the rest
 * goes out when this rank polls again, which may be never. They read at their first use that they are to have no such
 * buffer: out of an array that takes the place of the program's environment for that time, for the reasons that
 * ucx/ucx_load.c gives. What the user has set takes precedence. */
static void begin_unstaged(void)
{
    static char tcp[] = "FI_TCP_STAGING_SBUF_SIZE=0", net[] = "FI_NET_STAGING_SBUF_SIZE=0";
    char **program = environ, **made;
    struct fi_info *all = NULL;
    rd_ofi_quiet_t quiet;
    size_t n = 0, used = 0;
    while (program && program[n])
        n++;
    made = calloc(n + 3, sizeof *made); /* it is never freed: another thread may be reading it */
    if (!made)
        return;
    made[used++] = getenv("FI_TCP_STAGING_SBUF_SIZE") ? program[0] : tcp;
    if (!getenv("FI_NET_STAGING_SBUF_SIZE"))
        made[used++] = net;
    if (n != 0)
        memcpy(made + used, program, n * sizeof *made);
    rd_ofi_quiet_begin(&quiet);
    environ = made;
    if (rd_fi.getinfo(RD_OFI_VERSION, NULL, NULL, 0, NULL, &all) == 0)
        rd_fi.freeinfo(all);
    if (environ == made)
        environ = program;
    rd_ofi_quiet_end(&quiet);
}

static void load(void)
{
    void *library = open_quietly();
    if (!library)
        return;
#define RD_FI_FIND(name) find(library, "fi_" #name, &rd_fi.name, sizeof rd_fi.name);
    RD_FI_FUNCTIONS(RD_FI_FIND)
#undef RD_FI_FIND
    if (*why)
        return;
    uint32_t version = rd_fi.version();
    if (version < RD_OFI_VERSION)
        snprintf(why, sizeof why, "libfabric %u.%u is too old: rondo needs 1.11 or newer", FI_MAJOR(version),
                 FI_MINOR(version));
    else
        begin_unstaged();
}

const char *rd_ofi_load(void)
{
    pthread_once(&once, load);
    return *why ? why : NULL;
}

const char *rd_ofi_strerror(long error)
{
    return rd_fi.strerror((int)(error < 0 ? -error : error));
}
