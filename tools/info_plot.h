/* The pictures of rondo-info. */
#ifndef RD_INFO_PLOT_H
#define RD_INFO_PLOT_H

#include "plan/choose.h"
#include "topo/topo.h"
#include "topo/topo_gpu.h"

typedef struct info_plot {
    rd_choose_args_t args; /* but for the bytes */
    size_t blocks;         /* of one rank's message in the whole operation: 1, or a block for every rank */
    const char *prices;    /* whose they are */
    const char *file;
    const char *record; /* whose rows become dots; NULL: none */
} info_plot_t;

/* Returns rondo-info's exit status, and has said why it failed. */
int info_plan_plot(const info_plot_t *plot);
/* A `host` without cores (a record of GPUs alone) shows NUMA nodes without them. */
int info_topo_draw(const rd_topo_t *host, const rd_gpu_topo_t *gpus, const char *file);

#endif
