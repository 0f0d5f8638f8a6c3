/* Where on its machine a process runs: the package and the NUMA node that its affinity mask is bound to, and the GPU
 * whose data it moves; and what follows for threads and memory that serve a device. All of that is for speed alone:
 * where the kernel refuses, things stay as they were. */
#ifndef RD_TOPO_LOCALITY_H
#define RD_TOPO_LOCALITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rd_locality {
    int16_t package, numa; /* -1: it may run on several */
    uint32_t gpu;          /* the PCI address of the GPU whose data it moves (rd_pci_number); 0: none */
} rd_locality_t;

/* Processors, or NUMA nodes, by number. A cpu_set_t has room for 1,024, and Linux counts up to 8,192: the functions of
 * sched.h that end in _S take `sets` and the size of all. */
#define RD_PROCESSORS 16384
typedef struct rd_processors {
    cpu_set_t sets[RD_PROCESSORS / CPU_SETSIZE];
} rd_processors_t;

/* A PCI address as "0000:1A:00.0" in one number, by which ranks tell each other of devices; 0: it is none. */
uint32_t rd_pci_number(const char *bus);
/* The address in lower case, as /sys has it. */
void rd_pci_print(uint32_t number, char bus[16]);

/* Sets `mask` to the processors on which this thread may run, and returns 1. Where the kernel counts more processors
 * than the mask has room for, each member stands for several neighbouring ones, of which there is one; returns how
 * many. The mask is empty if the kernel does not tell. */
int rd_locality_mask(cpu_set_t *mask);
/* Of this thread. Some microseconds on a machine with one NUMA node, and some for each of several. */
rd_locality_t rd_locality_here(void);
/* Of the GPU with this number (rd_pci_number), on whose NUMA node the pinned memory for its data lies, and the threads
 * that move it run, wherever this thread is bound to; 0, or one whose NUMA node is not known: of this thread. */
rd_locality_t rd_locality_of_gpu(uint32_t gpu);
/* Of a mask, on the machine whose /sys is `sys`. */
rd_locality_t rd_locality_of(const char *sys, const rd_processors_t *mask);

/* The NUMA node of a PCI device, by its address in any case of letters; -1: not known, or there is only one. */
int rd_locality_pci(const char *sys, const char *bus);
/* Takes all processors of other NUMA nodes out of a mask. Returns false, and leaves it, if fewer than `least` are left,
 * or none would go. */
bool rd_locality_narrow(const char *sys, int numa, int least, rd_processors_t *mask);

/* From the first call to the second, pages that this thread is the first to use come on a NUMA node, as long as it has
 * any; -1: as before. */
typedef struct rd_locality_memory {
    bool changed;
    int mode;
    unsigned long nodes[16];
} rd_locality_memory_t;
void rd_locality_memory_begin(rd_locality_memory_t *before, int numa);
void rd_locality_memory_end(const rd_locality_memory_t *before);

const char *rd_locality_sys(void); /* "/sys"; a weak function, in whose place tests put one with a machine of theirs */

#endif
