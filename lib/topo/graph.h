/* The graph of a machine: GPUs, PCIe switches, NVSwitches, NUMA nodes and network devices, and the links between them,
 * each with its rate in either direction. It is plain data, of any size, and what the search for rings works on
 * (topo/search.h).
 *
 * It is read from NCCL's files of topologies (graph_read.c). What NVML, /sys or a "rondo-gpus" file tell of a machine
 * is first written as such XML (graph_gpu.c), so there is one way into the graph. Rates are those that NCCL reckons
 * with, so that both say the same of one file.
 */
#ifndef RD_TOPO_GRAPH_H
#define RD_TOPO_GRAPH_H

#include "topo/topo_gpu.h"
#include "topo/xml.h"

#define RD_GRAPH_MOST 1024 /* GPUs, and network devices, of one graph */
/* Of a file: several times what 1024 GPUs have. The search holds the ways from each GPU to every node, a hundred
 * megabytes at most, and walks over all links for each GPU. */
#define RD_GRAPH_NODES 8192
#define RD_GRAPH_LINKS 131072 /* directions, before several alike become one */

typedef enum {
    RD_GRAPH_GPU,
    RD_GRAPH_PCI, /* a PCIe switch */
    RD_GRAPH_NVS, /* all NVSwitches of the machine together */
    RD_GRAPH_CPU, /* a NUMA node */
    RD_GRAPH_NIC, /* a network card; */
    RD_GRAPH_NET  /* a port of it, as a transport names it */
} rd_graph_kind_t;

/* What a link, and what the worst link of a path, is; from near to far. The words are NCCL's. */
typedef enum {
    RD_WAY_LOC, /* inside a device */
    RD_WAY_NVL, /* NVLink */
    RD_WAY_C2C, /* NVLink to the processor's chip */
    RD_WAY_PIX, /* PCIe: a switch at most */
    RD_WAY_PXB, /* from PCIe switch to PCIe switch */
    RD_WAY_PHB, /* a PCIe host bridge */
    RD_WAY_SYS, /* from NUMA node to NUMA node */
    RD_WAY_NONE
} rd_way_t;

typedef struct rd_graph_node {
    rd_graph_kind_t kind;
    char name[40];    /* PCI address in lower case, or what a port is called; "" */
    int number;       /* GPU, NET: the device's number; CPU: the NUMA node's */
    int sm;           /* GPU: compute capability, as 90; 0: unknown */
    int cpu;          /* the NUMA node above it; -1: none */
    int host;         /* several machines may share their NVSwitches */
    int rail;         /* NET: -1: not said */
    int first, count; /* its links */
} rd_graph_node_t;

/* One direction of a link. Several alike between two nodes are one. */
typedef struct rd_graph_link {
    int from, to;
    rd_way_t way;
    double gbps;
} rd_graph_link_t;

typedef struct rd_graph {
    int nnodes, nlinks;
    rd_graph_node_t *node;
    rd_graph_link_t *link; /* sorted by `from` */
    int ngpus, nnets;
    int *gpu, *net; /* node numbers, in the order of the devices' PCI addresses and names */
} rd_graph_t;

/* The way from one node to another. */
typedef struct rd_graph_path {
    unsigned char way; /* rd_way_t */
    short hops;
    int via; /* the last link; -1: none */
    float gbps;
} rd_graph_path_t;

/* What a file says is wrong names the variable, the file and the line. The graph is filled on success alone, and freed
 * by rd_graph_free. */
typedef struct rd_graph_origin {
    const char *variable, *file;
} rd_graph_origin_t;
rondo_result_t rd_graph_read(rd_graph_t *graph, const rd_xml_t *system, const rd_graph_origin_t *origin);
void rd_graph_free(rd_graph_t *graph);

/* Building: both return -1 if there is no memory, else the number. After the last link, rd_graph_finish. */
int rd_graph_add(rd_graph_t *graph, rd_graph_kind_t kind, const char *name);
int rd_graph_join(rd_graph_t *graph, int from, int to, rd_way_t way, double gbps); /* one direction */
rondo_result_t rd_graph_finish(rd_graph_t *graph);

/* The ways from one node to all others, into path[nnodes]: the nearest kind of way, then the fewest links, then the
 * most GB/s. No way leads through a GPU or a port. Returns 0, or -1 if there is no memory. */
int rd_graph_paths(const rd_graph_t *graph, int from, rd_graph_path_t *path);
const char *rd_way_name(rd_way_t way);

/* Is it an NCCL topology file? And is it one of hwloc's? By the first element. */
bool rd_graph_is(const char *file);
bool rd_graph_is_hwloc(const char *file);
/* What a recorded machine or this one (file "") is as XML, which the caller frees. A file of NCCL's is kept as it is.
 */
rondo_result_t rd_graph_xml(rd_xml_t **system, const char *file, const char *variable);
/* The same as a graph. */
rondo_result_t rd_graph_get(rd_graph_t *graph, const char *file, const char *variable);
/* GPUs and network devices as a matrix. More than it has room for are an error. */
rondo_result_t rd_graph_matrix(rd_gpu_topo_t *topo, const rd_graph_t *graph, const rd_graph_origin_t *origin);

#endif
