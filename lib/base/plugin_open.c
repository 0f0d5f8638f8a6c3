/* See plugin_open.h. */
#include "base/plugin_open.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_short(const char *name)
{
    size_t length = strlen(name);

    return !strchr(name, '/') &&
           !(length >= 6 && strncmp(name, "lib", 3) == 0 && strcmp(name + length - 3, ".so") == 0);
}

static void *open_file(const char *name, char why[RD_PLUGIN_WHY])
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *reason = library ? NULL : dlerror();

    if (!library)
        snprintf(why, RD_PLUGIN_WHY, "%s", reason ? reason : "?");
    return library;
}

void *rd_plugin_open(const char *prefix, const char *name, char why[RD_PLUGIN_WHY])
{
    char whole[512];
    void *library = open_file(strcasecmp(name, "STATIC_PLUGIN") == 0 ? NULL : name, why);

    if (library || !is_short(name))
        return library;
    snprintf(whole, sizeof whole, "%s-%s.so", prefix, name);
    return open_file(whole, why);
}
