/* What a call does whose communicator has failed: RONDO_ON_ERROR_*. */
#ifndef RD_CORE_ON_ERROR_H
#define RD_CORE_ON_ERROR_H

#include "base/env.h"

/* Returns what the config says, or else the environment. */
int rd_on_error(const rondo_config_t *config, const rd_env_t *env);
/* Returns if the error is to be returned; else the process ends. */
void rd_on_error_act(int on_error, rd_log_ctx_t *ctx);

#endif
