/* Opening the library of a transport: it is not linked, but found by name when it is first needed. A job on one node
 * has no use for it, and loading it changes a process. It stays loaded until the process ends, because its threads and
 * its exit handlers do. If the program or its MPI has loaded it before, that very one is used, as the program has set
 * it up. */
#ifndef RD_TRANSPORT_NETWORK_NET_LOAD_H
#define RD_TRANSPORT_NETWORK_NET_LOAD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rd_net_load {
    const char *file;   /* "libucp.so.0" */
    const char *name;   /* "UCX" */
    const char *needs;  /* behind "... has no ucp_init: " */
    const char *advice; /* behind "UCX cannot be loaded (...): " */
    char why[512];      /* what is wrong; "": nothing */
} rd_net_load_t;

void *rd_net_load_open(rd_net_load_t *load);
/* Sets *function, which is a pointer of any function's type. */
void rd_net_load_find(rd_net_load_t *load, void *library, const char *name, void *function, size_t bytes);

/* A variable that a library is to find in its environment, which it may read once and never again. */
typedef struct rd_net_preset {
    const char *name;
    char *text;  /* "NAME=value" */
    bool yields; /* what the user has set takes precedence */
} rd_net_preset_t;

/* An environment of its own for a library: one array with the program's variables and a few more, which takes the place
 * of the program's for a time. Unlike setenv, this moves nothing that another thread may be reading. The struct is
 * static, and what it points to is never freed, because another thread may be reading it. */
typedef struct rd_net_environ {
    char **program, **made;
} rd_net_environ_t;

bool rd_net_environ_begin(rd_net_environ_t *e, const rd_net_preset_t *presets, size_t n); /* false: no memory */
void rd_net_environ_end(const rd_net_environ_t *e);

/* From begin to end all signals are blocked, which threads inherit that a library starts, and signal handlers that it
 * installs (psm2 and shm of libfabric do) are taken back at the end. A program without any environment has an empty one
 * meanwhile. To be put around every call that may start something. */
typedef struct rd_net_quiet {
    sigset_t mask;
    uint64_t actions[NSIG][8]; /* as the kernel has them: the C library would add to one that it sets */
} rd_net_quiet_t;
void rd_net_quiet_begin(rd_net_quiet_t *quiet);
void rd_net_quiet_end(const rd_net_quiet_t *quiet);

#endif
