/* The functions of libnccl.so.2 and the NCCL_ variables that it honours: one table that the library, rondo-info --nccl
 * and the tests read. Plain data.
 */
#ifndef RD_NCCL_TABLE_H
#define RD_NCCL_TABLE_H

typedef enum {
    NC_SERVED,  /* does what NCCL's does */
    NC_PARTLY,  /* does the work, with a difference that `note` names */
    NC_REFUSED, /* ncclInvalidUsage (or what comes nearest to it) and one line that says so */
} nc_status_t;

typedef struct nc_function {
    const char *name;  /* without "nccl" */
    const char *since; /* NCCL's version that has it first */
    nc_status_t status;
    const char *note; /* or NULL */
} nc_function_t;

extern const nc_function_t nc_functions[];
extern const int nc_nfunctions;

typedef enum {
    NC_TO_RONDO,  /* handed on as the variable `rondo` */
    NC_HERE,      /* read by libnccl.so.2 itself */
    NC_NO_EFFECT, /* known; there is nothing in rondo that it could steer */
} nc_variable_kind_t;

typedef struct nc_variable {
    const char *name; /* without "NCCL_" */
    nc_variable_kind_t kind;
    const char *rondo; /* or NULL */
    const char *note;
} nc_variable_t;

extern const nc_variable_t nc_variables[];
extern const int nc_nvariables;

#endif
