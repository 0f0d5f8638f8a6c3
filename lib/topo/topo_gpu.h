/* The GPUs of a machine: how each pair reaches each other, and which NUMA node and network devices are near each.
 *
 * The words are those of `nvidia-smi topo -m`, so a machine that somebody has shown can be written down as it stands.
 * A machine comes from NVML, which is loaded when it is asked for and may be absent, and from /sys (topo_nvml.c), or
 * from a file (topo_gpu.c), so that what rondo would do is tested on machines that nobody here owns.
 */
#ifndef RD_TOPO_TOPO_GPU_H
#define RD_TOPO_TOPO_GPU_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

#define RD_GPUS_MOST 16
#define RD_NICS_MOST 32

/* From near to far. */
typedef enum {
    RD_NEAR_SELF,
    RD_NEAR_NVLINK, /* some NVLinks, by a switch where both have links to one */
    RD_NEAR_PIX,    /* one PCIe switch */
    RD_NEAR_PXB,    /* several PCIe switches, no host bridge */
    RD_NEAR_PHB,    /* one PCIe host bridge */
    RD_NEAR_NODE,   /* several host bridges of one NUMA node */
    RD_NEAR_SYS,    /* from NUMA node to NUMA node */
    RD_NEAR_UNKNOWN,
    RD_NUM_NEAR
} rd_near_t;

typedef struct rd_gpu {
    char name[64], bus[20]; /* PCI address as "0000:19:00.0" */
    int numa;               /* -1: unknown */
    int sms;                /* multiprocessors; 0: unknown */
    int memory_mb;
    int major, minor;         /* compute capability */
    int pcie_gen, pcie_width; /* the most that GPU and slot have */
    int switched;             /* NVLinks to an NVSwitch */
    struct {                  /* to GPU i */
        rd_near_t near;
        int links; /* NVLINK: how many, at least 1 */
    } to[RD_GPUS_MOST];
    rd_near_t nic[RD_NICS_MOST];
} rd_gpu_t;

typedef struct rd_gpu_topo {
    char source[96];
    int nodes; /* of this kind; 1 but for recorded machines */
    int count, nnics;
    rd_gpu_t gpu[RD_GPUS_MOST];
    struct {
        char name[32], bus[20];
        int numa;
    } nic[RD_NICS_MOST];
} rd_gpu_topo_t;

/* What the farthest pair of a set of GPUs has: it decides for all of them. */
typedef struct rd_gpu_path {
    rd_near_t near;
    int links, switched; /* NVLINK: how many, and whether by NVSwitch */
    double gbps;         /* by data sheet, one direction, GB/s; 0: unknown */
} rd_gpu_path_t;

/* `file`: a recorded machine, or "" for this one. On a machine without GPU or NVML `count` is 0. */
rondo_result_t rd_gpu_topo_read(rd_gpu_topo_t *topo, const char *file);
/* Is it a file of rd_gpu_topo_write? */
bool rd_gpu_topo_is(const char *file);
/* This machine, whose /sys is `sys`; in topo_nvml.c. RONDO_SUCCESS with count 0: `source` says why. */
rondo_result_t rd_gpu_topo_walk(rd_gpu_topo_t *topo, const char *sys);
/* Reads a file of rondo-info topo --save. */
rondo_result_t rd_gpu_topo_file(rd_gpu_topo_t *topo, const char *file);
/* As rd_gpu_topo_read reads it. */
void rd_gpu_topo_write(const rd_gpu_topo_t *topo, FILE *file);
/* For people. */
void rd_gpu_topo_print(const rd_gpu_topo_t *topo, FILE *file);

rd_gpu_path_t rd_gpu_path(const rd_gpu_topo_t *topo, int a, int b);
rd_gpu_path_t rd_gpu_farther(rd_gpu_path_t a, rd_gpu_path_t b);
/* Of the first `count` GPUs. One GPU: near is SELF. */
rd_gpu_path_t rd_gpu_farthest(const rd_gpu_topo_t *topo, int count);
/* Between the GPUs of this machine at these PCI addresses; UNKNOWN if one of them is not seen. Looks once a process. */
rd_gpu_path_t rd_gpu_farthest_here(const char *const *buses, int count);
const char *rd_gpu_path_print(rd_gpu_path_t way, char text[64]);

/* How far apart two PCI devices are, by the paths that /sys has for them (resolved). */
rd_near_t rd_pci_near(const char *path, const char *other, int same_numa);

#endif
