/* See net_load.h. */
#include "transport/network/net_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
