/* The interface of NCCL's tuner plugins, versions 2 to 6: a plugin is a library that exports a struct of functions,
 * ncclTunerPlugin_v6 for the last version. Written from that interface's facts, because plugins are built against
 * NCCL's own headers.
 *
 * A plugin is shown a table of times in microseconds, of 7 algorithms by 3 protocols, and changes it: the least time is
 * taken. The table's type is float **, but what is passed are its 21 numbers in a row. -1 is a combination that there
 * is not. Version 2 has no table, and returns the two numbers. */
#ifndef RD_NCCL_TUNER_ABI_H
#define RD_NCCL_TUNER_ABI_H

#include <stddef.h>
#include <stdint.h>

#define NC_TUNER_ALGOS 7
#define NC_TUNER_PROTOS 3
#define NC_TUNER_CELLS (NC_TUNER_ALGOS * NC_TUNER_PROTOS)
#define NC_TUNER_NONE (-1.0f)

/* NCCL's way of writing log lines. */
typedef void (*nc_tuner_log_fn)(int level, unsigned long flags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

typedef struct nc_tuner_domains {
    int domains, fewest, most; /* of GPUs that reach each other by NVLink, and their ranks */
} nc_tuner_domains_t;

/* Numbers of NCCL's cost model, which a plugin may change. */
typedef struct nc_tuner_constants {
    double base[NC_TUNER_ALGOS][NC_TUNER_PROTOS];
    double links[3][NC_TUNER_ALGOS][NC_TUNER_PROTOS];
    double rates[5][4][3];
} nc_tuner_constants_t;

/* What a plugin exports. Results are 0 or an error of NCCL's. */
typedef struct nc_tuner_export {
    const char *name;
    union {
        int (*v2)(size_t nranks, size_t nnodes, nc_tuner_log_fn log, void **context); /* to version 4 */
        int (*v5)(void **context, uint64_t id, size_t nranks, size_t nnodes, nc_tuner_log_fn log,
                  nc_tuner_domains_t *domains, nc_tuner_constants_t *constants);
    } init;
    union {
        int (*v2)(void *context, int func, size_t bytes, int collnet, int nvls, int pipelined, int *algo, int *proto,
                  int *channels);
        int (*v3)(void *context, int func, size_t bytes, int pipelined, float **table, int nalgos, int nprotos,
                  int *channels);
        int (*v4)(void *context, int func, size_t bytes, int pipelined, float **table, int nalgos, int nprotos,
                  int registered, int *channels);
    } choose;
    int (*end)(void *context);
    /* Of version 6 alone; NULL: the plugin leaves the length to NCCL. */
    int (*chunk)(void *context, int func, size_t bytes, int algo, int proto, int channels, size_t *chunk);
} nc_tuner_export_t;

#endif
