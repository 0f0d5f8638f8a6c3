/* See net_load.h. */
#include "transport/network/net_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/no_environ.h"
#include "base/thread.h"

void *rd_net_load_open(rd_net_load_t *load)
{
    void *library = dlopen(load->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *reason = library ? NULL : dlerror();
    if (reason && (strstr(reason, "map segment") || strstr(reason, strerror(ENOMEM))))
        snprintf(load->why, sizeof load->why, "there is no memory to load %s (%s): raise `ulimit -v`", load->name,
                 reason);
    else if (!library)
        snprintf(load->why, sizeof load->why, "%s cannot be loaded (%s): %s", load->name, reason ? reason : load->file,
                 load->advice);
    return library;
}

void rd_net_load_find(rd_net_load_t *load, void *library, const char *name, void *function, size_t bytes)
{
    void *found = dlsym(library, name);
    if (!found && !*load->why)
        snprintf(load->why, sizeof load->why, "%s has no %s: %s", load->file, name, load->needs);
    memcpy(function, &found, bytes);
}

/* ---- its threads and signal handlers */

#define SIGNAL_BYTES (NSIG / 8) /* of the kernel's sets */

static void action_get(int signal, uint64_t action[8])
{
    memset(action, 0, 8 * sizeof *action);
    (void)syscall(SYS_rt_sigaction, signal, NULL, action, SIGNAL_BYTES);
}

void rd_net_quiet_begin(rd_net_quiet_t *quiet)
{
    rd_signals_block(&quiet->mask);
    rd_no_environ_begin();
    for (int i = 1; i < NSIG; i++)
        action_get(i, quiet->actions[i]);
}

void rd_net_quiet_end(const rd_net_quiet_t *quiet)
{
    uint64_t now[8];
    for (int i = 1; i < NSIG; i++) {
        action_get(i, now);
        if (memcmp(now, quiet->actions[i], sizeof now) != 0)
            (void)syscall(SYS_rt_sigaction, i, quiet->actions[i], NULL, SIGNAL_BYTES);
    }
    rd_no_environ_end();
    pthread_sigmask(SIG_SETMASK, &quiet->mask, NULL);
}

/* ---- its environment */

static bool is_of(const char *variable, const char *name)
{
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

/* Returns true if a preset takes the place of the program's variable. */
static bool is_replaced(const char *variable, const rd_net_preset_t *presets, size_t n)
{
    size_t i = 0;
    while (i < n && (presets[i].yields || !is_of(variable, presets[i].name)))
        i++;
    return i < n;
}

bool rd_net_environ_begin(rd_net_environ_t *e, const rd_net_preset_t *presets, size_t n)
{
    size_t count = 0, used = 0;
    e->program = environ;
    while (e->program && e->program[count])
        count++;
    e->made = calloc(count + n + 1, sizeof *e->made);
    if (!e->made)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(e->program[i], presets, n))
            e->made[used++] = e->program[i];
    for (size_t i = 0; i < n; i++)
        if (!presets[i].yields || !getenv(presets[i].name))
            e->made[used++] = presets[i].text;
    environ = e->made;
    return true;
}

/* A thread may have called setenv meanwhile, against all rules: its change is kept. */
void rd_net_environ_end(const rd_net_environ_t *e)
{
    if (environ == e->made)
        environ = e->program;
}
