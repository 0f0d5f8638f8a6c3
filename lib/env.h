/* Every tunable, in one table (env.c): name, type, default, range, one line of help. `rondo-info --env` prints it.
 * Read once for each communicator when it is made; a bad value is an error that names the variable and the range. */
#ifndef RD_ENV_H
#define RD_ENV_H

#include <stdio.h>

#include "error.h"

typedef struct rd_env {
    int debug;          /* RONDO_DEBUG: rd_log_level_t */
    char hostid[64];    /* RONDO_HOSTID: ranks with different values are treated as on different nodes; "" : unset */
    char algo[32];      /* RONDO_ALGO: "" = chosen by cost */
    char proto[32];     /* RONDO_PROTO: "", "ll" or "simple" */
    char transport[32]; /* RONDO_TRANSPORT: "", "shm" or "ucx" */
    char iface[64];     /* RONDO_IFACE: interface name or address to listen on */
    int port_first, port_last; /* RONDO_PORTS=first-last; 0: any */
    int64_t timeout_ms;        /* RONDO_TIMEOUT_MS: 0 never */
    int64_t create_timeout_ms; /* RONDO_CREATE_TIMEOUT_MS: how long creation waits for late ranks */
    int check;                 /* RONDO_CHECK */
    int spin;                  /* RONDO_SPIN: polls before the first yield; -1: by local ranks and allowed cores */
    size_t slot_bytes;         /* RONDO_SLOT_BYTES: of a Simple slot; 0: by rank count and caches */
    int slots;                 /* RONDO_SLOTS: slots a connection, 1 to 64, a power of two; 0: by rank count */
    size_t slice_bytes;        /* RONDO_SLICE_BYTES: what one message carries at most; 0: by cost; at most a slot */
    size_t ll_max;             /* RONDO_LL_MAX: chunks up to this many bytes may go by LL */
    int huge_pages;            /* RONDO_HUGE_PAGES */
} rd_env_t;

rondo_result_t rd_env_read(rd_env_t *env);
void rd_env_print(FILE *file); /* the table with today's values */

#endif
