/* Former names: see env_alias.h. A name stays here for a release after the one that renamed it. */
#include "base/env_alias.h"

#include <stddef.h>
#include <string.h>

static const char *const names[][2] = {
    {"RONDO_CUDA_AWAKE", "RONDO_PROXY_POLL_US"},
    {"RONDO_CUDA_CREWS", "RONDO_PROXY_THREADS"},
    {"RONDO_CUDA_ROUND", "RONDO_PROXY_ROUND"},
    {"RONDO_CUDA_STAGE", "RONDO_PROXY_BYTES"},
    {"RONDO_NET_DIRECT", "RONDO_GDR"},
    {"RONDO_NET_DIRECT_MIN", "RONDO_GDR_MIN"},
    {"RONDO_PULL", "RONDO_CMA"},
    {"RONDO_PULL_MIN", "RONDO_CMA_MIN"},
    {"RONDO_STREAM", "RONDO_NT_STORE"},
};

#define COUNT (sizeof names / sizeof names[0])

const char *rd_env_alias_now(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(names[i][0], name) == 0)
            return names[i][1];
    return name;
}

const char *rd_env_alias_old(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(names[i][1], name) == 0)
            return names[i][0];
    return NULL;
}

const char *rd_env_alias_word(const char *name, const char *word)
{
    return strcmp(name, "RONDO_PROTO") == 0 && strcmp(word, "pull") == 0 ? "cma" : word;
}
