/* See env_unknown.c. */
#ifndef RD_BASE_ENV_UNKNOWN_H
#define RD_BASE_ENV_UNKNOWN_H

/* Warns once in each process: a misspelt variable would otherwise be lost in silence, and a renamed one would stay in
 * scripts. */
void rd_env_unknown_warn(void);

#endif
