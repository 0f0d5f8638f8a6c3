/* The locality of a process, from the lists of processors that /sys has of each NUMA node. See locality.h. */
#define _GNU_SOURCE
#include "topo/locality.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "topo/topo.h"

#define LIST 32768      /* a list of 4,096 processors, every other one */
#define NODES_MOST 1024 /* NUMA nodes of Linux */
#define EACH_MOST 1024  /* a million processors */

static int count(const rd_processors_t *set)
{
    return CPU_COUNT_S(sizeof *set, set->sets);
}

/* Takes a list as "0-3,8,10-11" into a set. Returns the lowest member, or -1 if there is none. */
static int list_take(const char *c, rd_processors_t *set)
{
    long lowest = -1;
    char *end;

    while (*c) {
        long from = strtol(c, &end, 10), to = from;
        if (end == c)
            break;
        if (*end == '-')
            to = strtol(end + 1, &end, 10);
        for (long k = from; k >= 0 && k <= to && k < RD_PROCESSORS; k++)
            CPU_SET_S((size_t)k, sizeof *set, set->sets);
        lowest = lowest < 0 || from < lowest ? from : lowest;
        c = *end == ',' ? end + 1 : end;
        if (*end != ',')
            break;
    }
    return lowest < RD_PROCESSORS ? (int)lowest : -1;
}

/* The same from a file. Its text is not on the stack, because threads that make communicators may have short ones. */
static int list_read(const char *path, rd_processors_t *set)
{
    char *text = malloc(LIST);
    int lowest = -1;

    CPU_ZERO_S(sizeof *set, set->sets);
    if (text && rd_topo_line(path, text, LIST) == 0)
        lowest = list_take(text, set);
    free(text);
    return lowest;
}

static int package_of(const char *sys, int cpu)
{
    char path[256], text[32];

    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/physical_package_id", sys, cpu);
    return rd_topo_line(path, text, sizeof text) == 0 ? atoi(text) : -1;
}

rd_locality_t rd_locality_of(const char *sys, const rd_processors_t *mask)
{
    rd_locality_t found = {-1, -1, 0};
    rd_processors_t nodes, cpus;
    int left = count(mask), touched = 0, package = -1;
    char path[256];

    snprintf(path, sizeof path, "%s/devices/system/node/online", sys);
    if (list_read(path, &nodes) == 0 && count(&nodes) == 1)
        return (rd_locality_t){0, 0, 0};
    for (int node = 0; node < NODES_MOST && left > 0; node++) {
        if (!CPU_ISSET_S((size_t)node, sizeof nodes, nodes.sets))
            continue;
        snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, node);
        int first = list_read(path, &cpus);
        CPU_AND_S(sizeof cpus, cpus.sets, cpus.sets, mask->sets);
        if (first < 0 || count(&cpus) == 0)
            continue;
        left -= count(&cpus);
        int here = package_of(sys, first);
        package = touched == 0 || here == package ? here : -1;
        found.numa = (int16_t)(touched++ == 0 ? node : -1);
        if (touched > 1 && package < 0)
            break;
    }
    found.package = (int16_t)package;
    return found;
}

/* The kernel refuses a set smaller than its own, so it grows until it fits. */
int rd_locality_mask(cpu_set_t *mask)
{
    CPU_ZERO(mask);
    if (sched_getaffinity(0, sizeof *mask, mask) == 0)
        return 1;
    for (int each = 2; each <= EACH_MOST; each *= 2) {
        const size_t all = (size_t)each * CPU_SETSIZE, bytes = CPU_ALLOC_SIZE(all);
        cpu_set_t *set = CPU_ALLOC(all);
        bool known = set && sched_getaffinity(0, bytes, set) == 0;
        for (size_t k = 0; k < all && known; k++)
            if (CPU_ISSET_S(k, bytes, set))
                CPU_SET(k / (size_t)each, mask);
        if (set)
            CPU_FREE(set);
        if (known)
            return each;
    }
    return 1;
}

__attribute__((weak)) rd_locality_t rd_locality_here(void)
{
    rd_processors_t mask;

    if (sched_getaffinity(0, sizeof mask, mask.sets) != 0)
        return (rd_locality_t){-1, -1, 0};
    return rd_locality_of(rd_locality_sys(), &mask);
}

__attribute__((weak)) const char *rd_locality_sys(void)
{
    return "/sys";
}

static bool has_one_node(const char *sys)
{
    char path[256];
    rd_processors_t nodes;

    snprintf(path, sizeof path, "%s/devices/system/node/online", sys);
    return list_read(path, &nodes) < 0 || count(&nodes) == 1;
}

uint32_t rd_pci_number(const char *bus)
{
    unsigned domain, number, device, function;

    if (sscanf(bus, "%x:%x:%x.%x", &domain, &number, &device, &function) != 4 || domain > 0xffff || number > 0xff ||
        device > 0x1f || function > 7)
        return 0;
    return domain << 16 | number << 8 | device << 3 | function;
}

void rd_pci_print(uint32_t number, char bus[16])
{
    snprintf(bus, 16, "%04x:%02x:%02x.%x", number >> 16, number >> 8 & 0xff, number >> 3 & 0x1f, number & 7);
}

int rd_locality_pci(const char *sys, const char *bus)
{
    char path[256], text[32], lower[32];
    size_t i;

    for (i = 0; bus[i] && i < sizeof lower - 1; i++)
        lower[i] = (char)(bus[i] >= 'A' && bus[i] <= 'F' ? bus[i] - 'A' + 'a' : bus[i]);
    lower[i] = '\0';
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/numa_node", sys, lower);
    if (has_one_node(sys) || rd_topo_line(path, text, sizeof text) != 0)
        return -1;
    return atoi(text) < NODES_MOST ? atoi(text) : -1;
}

/* A NUMA node that has memory alone tells nothing about packages. */
static bool gpu_find(const char *sys, uint32_t gpu, rd_locality_t *found)
{
    char bus[16], path[256];
    rd_processors_t cpus;

    rd_pci_print(gpu, bus);
    const int numa = gpu ? rd_locality_pci(sys, bus) : -1;
    snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, numa);
    if (numa < 0 || list_read(path, &cpus) < 0)
        return false;
    *found = rd_locality_of(sys, &cpus);
    return true;
}

rd_locality_t rd_locality_of_gpu(uint32_t gpu)
{
    rd_locality_t found;

    if (!gpu_find(rd_locality_sys(), gpu, &found))
        found = rd_locality_here();
    found.gpu = gpu;
    return found;
}

bool rd_locality_narrow(const char *sys, int numa, int least, rd_processors_t *mask)
{
    char path[256];
    rd_processors_t cpus;

    snprintf(path, sizeof path, "%s/devices/system/node/node%d/cpulist", sys, numa);
    if (numa < 0 || has_one_node(sys) || list_read(path, &cpus) < 0)
        return false;
    CPU_AND_S(sizeof cpus, cpus.sets, cpus.sets, mask->sets);
    if (count(&cpus) < least || CPU_EQUAL_S(sizeof cpus, cpus.sets, mask->sets))
        return false;
    *mask = cpus;
    return true;
}

enum { PREFERRED = 1, WORD = 8 * sizeof(unsigned long) }; /* MPOL_PREFERRED of linux/mempolicy.h */

void rd_locality_memory_begin(rd_locality_memory_t *before, int numa)
{
    unsigned long nodes[16] = {0};

    memset(before, 0, sizeof *before);
    if (numa < 0 || numa >= (int)sizeof nodes * 8 ||
        syscall(SYS_get_mempolicy, &before->mode, before->nodes, sizeof nodes * 8, NULL, 0) != 0)
        return;
    nodes[numa / WORD] = 1ul << numa % WORD;
    before->changed = syscall(SYS_set_mempolicy, PREFERRED, nodes, sizeof nodes * 8) == 0;
}

void rd_locality_memory_end(const rd_locality_memory_t *before)
{
    if (before->changed)
        (void)syscall(SYS_set_mempolicy, before->mode, before->nodes, sizeof before->nodes * 8);
}
