/* The parts of rondo-info. Each returns the program's exit code: 0 good, 1 failed, 2 usage. */
#ifndef RD_INFO_H
#define RD_INFO_H

#include "env.h"

void info_nccl(void);
int info_machine(const rd_env_t *env);
/* `argv` begins after "plan". */
int info_plan(const rd_env_t *env, int argc, char **argv);
/* `argv` begins after "scale". */
int info_scale(const rd_env_t *env, int argc, char **argv);

#endif
