/* Where on its machine a process runs: the package and the NUMA node that its affinity mask is bound to. */
#ifndef RD_TOPO_LOCALITY_H
#define RD_TOPO_LOCALITY_H

#include <sched.h>
#include <stdint.h>

typedef struct rd_locality {
    int16_t package, numa; /* -1: it may run on several */
} rd_locality_t;

/* Of this thread. Some microseconds on a machine with one NUMA node, and some for each of several. */
rd_locality_t rd_locality_here(void);
/* Of a mask, on the machine whose /sys is `sys`. */
rd_locality_t rd_locality_of(const char *sys, const cpu_set_t *mask);

#endif
