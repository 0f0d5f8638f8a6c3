/* See on_error.h. */
#include "core/on_error.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define STATUS 134 /* as of a process that has aborted */

int rd_on_error(const rondo_config_t *config, const rd_env_t *env)
{
    if (config->on_error >= 0)
        return config->on_error;
    return strcmp(env->on_error, "exit") == 0 ? RONDO_ON_ERROR_EXIT : RONDO_ON_ERROR_RETURN;
}

/* Nothing of the program's runs any more, such as functions of atexit, which might wait for a rank that is gone. */
void rd_on_error_act(int on_error, rd_log_ctx_t *ctx)
{
    if (on_error != RONDO_ON_ERROR_EXIT)
        return;
    rd_log(ctx, RD_LOG_WARN, "this process ends, with status %d (RONDO_ON_ERROR=exit)", STATUS);
    fflush(stdout);
    _exit(STATUS);
}
