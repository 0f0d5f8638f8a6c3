/* The machine under this process: what the sizes and the cost model are derived from, and what rondo-info shows.
 *
 * Two depths. rd_topo_basic asks the system a handful of cheap questions (tens of microseconds) and is what making a
 * communicator uses. rd_topo_read also walks the whole machine: by hwloc where it is built in (topo_hwloc.c, which can
 * replay a recorded machine as well), by /sys where it is not (topo_none.c).
 */
#ifndef RD_TOPO_TOPO_H
#define RD_TOPO_TOPO_H

#include "base/error.h"

typedef struct rd_topo {
    char source[64]; /* who said so: "hwloc 2.9.0", "/sys", a file's name */
    char host[64];
    char cpu[64];                       /* model */
    int packages, numa, cores, threads; /* of the machine; 0: unknown */
    int allowed;                        /* hardware threads in this process's affinity mask */
    double quota;                       /* cores that the control group pays for; 0: no limit */
    int usable;                         /* threads that can really run at once: of allowed and quota, at least 1 */
    size_t l1d, l2, l3;                 /* bytes of one cache (the smallest, where they differ); 0: none or unknown */
    int l2_threads, l3_threads;         /* hardware threads that share one; 0: unknown */
    size_t page, huge_page;             /* bytes; huge_page 0: none */
    size_t memory;                      /* bytes of the machine */
    int huge_reserved;                  /* pages of huge_page bytes set aside (nr_hugepages) */
    char huge_anonymous[16];            /* "always", "madvise", "never" or "" */
    char huge_shared[16];               /* the same for shared memory (memfd) */
} rd_topo_t;

void rd_topo_basic(rd_topo_t *topo);

/* `file`: a recorded machine, or "" for this one, whose processors are also those of a file of GPUs. Fills `topo` on
 * success alone. */
rondo_result_t rd_topo_read(rd_topo_t *topo, const char *file);
/* Says why a recorded machine cannot be opened, so that what reads it need not. */
rondo_result_t rd_topo_file_there(const char *file);

/* What differs by backend: packages to threads, caches, and for a file `allowed`. Called by rd_topo_read. */
rondo_result_t rd_topo_walk(rd_topo_t *topo, const char *file);
/* For the backends: the first line of a small file, without its end. 0 or -1. */
int rd_topo_line(const char *path, char *text, size_t bytes);
const char *rd_topo_backend(void); /* "hwloc 2.9.0" or "/sys" */

/* The tightest limit on processor time on the way from the group named in `self` (a file like /proc/self/cgroup) up to
 * its root, under `mount` (like /sys/fs/cgroup), version 1 or 2; in cores, 0: none. */
double rd_topo_quota(const char *self, const char *mount);

#endif
