/* rondo-info --nccl: what libnccl.so.2 serves, and what becomes of NCCL's variables. */
#include <stdio.h>

#include "info.h"
#include "nccl/table.h"

static void functions(nc_status_t status, const char *title)
{
    printf("%s\n", title);
    for (int i = 0; i < nc_nfunctions; i++) {
        const nc_function_t *f = &nc_functions[i];

        if (f->status == status)
            printf("    nccl%-30s %-5s %s\n", f->name, f->since, f->note ? f->note : "");
    }
    printf("\n");
}

static void variables(void)
{
    printf("environment\n");
    for (int i = 0; i < nc_nvariables; i++) {
        const nc_variable_t *v = &nc_variables[i];
        const char *what = v->kind == NC_NO_EFFECT ? "no effect" : v->rondo ? v->rondo : "honoured";

        printf("    NCCL_%-27s %-20s %s\n", v->name, what, v->note);
    }
}

void info_nccl(void)
{
    printf("libnccl.so.2: NCCL's interface, of version 2.28.9 (each function also as pncclX)\n\n");
    functions(NC_SERVED, "served                             since");
    functions(NC_PARTLY, "served, with a difference");
    functions(NC_REFUSED, "not supported: ncclInvalidUsage");
    variables();
}
