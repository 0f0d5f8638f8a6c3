/* Tables of the functions of libnccl.so.2 and of the NCCL_ variables that it reads. The library, rondo-info --nccl and
 * the tests use them.
 */
#ifndef RD_NCCL_TABLE_H
#define RD_NCCL_TABLE_H

typedef enum {
    NC_SERVED,  /* does what NCCL's does */
    NC_PARTLY,  /* does the same, with a difference that `note` describes */
    NC_REFUSED, /* returns ncclInvalidUsage, or the most similar code, and logs why */
} nc_status_t;

typedef struct nc_function {
    const char *name;  /* without "nccl" */
    const char *since; /* the first version of NCCL that has it */
    nc_status_t status;
    const char *note; /* NULL: there is none */
} nc_function_t;

extern const nc_function_t nc_functions[];
extern const int nc_nfunctions;

typedef enum {
    NC_TO_RONDO,  /* passed on as the variable `rondo` */
    NC_HERE,      /* read by libnccl.so.2 itself */
    NC_NO_EFFECT, /* known, but rondo has nothing that it could control */
} nc_variable_kind_t;

typedef struct nc_variable {
    const char *name; /* without "NCCL_" */
    nc_variable_kind_t kind;
    const char *rondo; /* NULL: there is none */
    const char *note;
} nc_variable_t;

extern const nc_variable_t nc_variables[];
extern const int nc_nvariables;

#endif
