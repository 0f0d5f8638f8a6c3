/* NCCL's topology XML as a graph:
 *
 *     <system version="1">
 *       <cpu numaid="0" host_hash="0x..." arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
 *         <pci busid="0000:16:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">       a switch
 *           <pci busid="0000:18:00.0" class="0x030200" ...>
 *             <gpu dev="0" sm="90"> <nvlink target="0000:07:00.0" count="5" tclass="0x068000"/> <c2c bw="" count=""/>
 *           <pci busid="0000:19:00.0" class="0x020000" ...>
 *             <nic> <net name="mlx5_0" dev="0" speed="400000" rail="0"/>
 *         <nic> <net name="eth0" .../> </nic>                                                      no PCI path is known
 *
 * In a file for virtual machines GPUs and cards may be empty <pci> elements, which their class tells apart. Rates are
 * GB/s in one direction.
 */
#include "topo/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

#define LOC_GBPS 5000.0
#define DIGITS(number) #number
#define WORD(number) DIGITS(number)

typedef struct reading {
    rd_graph_t *g;
    const rd_graph_origin_t *origin;
    int cpu, host; /* that the reading is below; -1 */
    int nvs;       /* -1: there is none yet */
    int ncpus, ngpus;
    struct {
        const rd_xml_t *element; /* <pci> */
        int node;
    } gpu[RD_GRAPH_MOST];
    int nhosts;
    char hosts[RD_GRAPH_MOST][24];
    rondo_result_t result;
} reading_t;

static void wrong(reading_t *r, const rd_xml_t *e, const char *what, const char *text)
{
    if (r->result == RONDO_SUCCESS)
        r->result = rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s=%.200s, line %d, <%.30s>: %s%.60s",
                             r->origin->variable, r->origin->file, e->line, e->name, what, text);
}

static void no_memory(reading_t *r)
{
    if (r->result == RONDO_SUCCESS)
        r->result = rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the graph of a machine");
}

static long number(reading_t *r, const rd_xml_t *e, const char *name, long otherwise)
{
    bool bad = false;
    long n = rd_xml_number(e, name, otherwise, &bad);

    if (bad)
        wrong(r, e, "no number: ", name);
    return n;
}

static void join(reading_t *r, const rd_xml_t *e, int a, int b, rd_way_t way, double gbps)
{
    if (r->g->nlinks >= RD_GRAPH_LINKS)
        wrong(r, e, "a graph has at most " WORD(RD_GRAPH_LINKS) " links between NUMA nodes, switches and devices", "");
    else if (rd_graph_join(r->g, a, b, way, gbps) < 0 || rd_graph_join(r->g, b, a, way, gbps) < 0)
        no_memory(r);
}

static int add(reading_t *r, const rd_xml_t *e, rd_graph_kind_t kind, const char *name)
{
    int node = -1;

    if (r->g->nnodes >= RD_GRAPH_NODES)
        wrong(r, e, "a graph has at most " WORD(RD_GRAPH_NODES) " NUMA nodes, switches and devices", "");
    else if ((node = rd_graph_add(r->g, kind, name)) < 0)
        no_memory(r);
    if (node < 0)
        return -1;
    r->g->node[node].cpu = r->cpu;
    r->g->node[node].host = r->host;
    return node;
}

/* ---- rates ---- */

/* The number at the beginning of "2.5 GT/s PCIe"; 0: there is none. */
static double speed_of(const char *text)
{
    locale_t before = rd_numbers_begin();
    double speed = text ? strtod(text, NULL) : 0;

    rd_numbers_end(before);
    return speed;
}

/* Of a PCIe link, each lane by its speed; no speed counts as generation 3, no width as 16 lanes. */
static double pcie_gbps(reading_t *r, const rd_xml_t *e)
{
    static const double known[] = {2.5, 5, 8, 16, 32, 64};
    static const double lane[] = {0.1875, 0.375, 0.75, 1.5, 3, 6};
    double gt = speed_of(rd_xml_get(e, "link_speed")), gbps = lane[2];
    long width = number(r, e, "link_width", 16);

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (gt == known[i])
            gbps = lane[i];
    return gbps * (double)(width > 0 && width <= 32 ? width : 16);
}

static double nvlink_gbps(int sm)
{
    return sm >= 100 ? 40.1 : sm >= 90 ? 20.6 : sm == 86 ? 12 : sm >= 70 ? 20 : sm >= 60 ? 18 : 20;
}

/* Between two NUMA nodes, by the processor. */
static double system_gbps(reading_t *r, const rd_xml_t *cpu)
{
    const char *arch = rd_xml_get(cpu, "arch"), *vendor = rd_xml_get(cpu, "vendor");
    long family = number(r, cpu, "familyid", 0), model = number(r, cpu, "modelid", 0);

    if (arch && (strcmp(arch, "arm64") == 0 || strcmp(arch, "aarch64") == 0))
        return 6;
    if (arch && strncmp(arch, "ppc64", 5) == 0)
        return 32;
    if (vendor && strcmp(vendor, "GenuineIntel") == 0)
        return family != 6 || model < 0x55 ? 6 : model < 0x8f ? 10 : model < 0xad ? 22 : 40;
    if (vendor && strcmp(vendor, "AuthenticAMD") == 0)
        return family >= 0xbf ? 32 : family >= 0xaf ? 24 : 16;
    return 16;
}

/* ---- elements ---- */

/* Addresses are compared in lower case, and with a domain of four digits. */
static void bus_copy(char to[40], const char *bus)
{
    snprintf(to, 40, "%s%.30s", strlen(bus) == 7 ? "0000:" : "", bus);
    for (char *c = to; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'F' ? *c - 'A' + 'a' : *c);
}

static const rd_xml_t *child(const rd_xml_t *e, const char *name)
{
    for (const rd_xml_t *c = e->first; c; c = c->next)
        if (rd_xml_named(c, name))
            return c;
    return NULL;
}

static rd_graph_kind_t kind_of(const rd_xml_t *pci)
{
    const char *class = rd_xml_get(pci, "class");

    if (child(pci, "gpu"))
        return RD_GRAPH_GPU;
    if (child(pci, "nic"))
        return RD_GRAPH_NIC;
    if (class && !child(pci, "pci") && (strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0))
        return RD_GRAPH_GPU;
    return class && !child(pci, "pci") && strncmp(class, "0x02", 4) == 0 ? RD_GRAPH_NIC : RD_GRAPH_PCI;
}

static void net_read(reading_t *r, const rd_xml_t *e, int nic)
{
    const char *name = rd_xml_get(e, "name");
    long speed = number(r, e, "speed", 10000);
    int node = add(r, e, RD_GRAPH_NET, name ? name : "");

    if (node < 0)
        return;
    r->g->node[node].number = (int)number(r, e, "dev", -1);
    r->g->node[node].rail = (int)number(r, e, "rail", -1);
    join(r, e, nic, node, RD_WAY_LOC, (double)(speed > 0 ? speed : 10000) / 8000);
}

static void nets_read(reading_t *r, const rd_xml_t *nic, int node)
{
    for (const rd_xml_t *c = nic->first; c; c = c->next)
        if (rd_xml_named(c, "net"))
            net_read(r, c, node);
}

static void gpu_read(reading_t *r, const rd_xml_t *pci, int node)
{
    const rd_xml_t *gpu = child(pci, "gpu");

    if (r->ngpus == RD_GRAPH_MOST) {
        wrong(r, pci, "it has more than 1024 GPUs", "");
        return;
    }
    r->gpu[r->ngpus].element = pci;
    r->gpu[r->ngpus++].node = node;
    if (!gpu)
        return;
    r->g->node[node].number = (int)number(r, gpu, "dev", -1);
    if (r->g->node[node].number >= RD_GRAPH_MOST)
        wrong(r, gpu, "the number of a device is less than 1024", "");
    r->g->node[node].sm = (int)number(r, gpu, "sm", 0);
    for (const rd_xml_t *c = gpu->first; c; c = c->next)
        if (rd_xml_named(c, "c2c"))
            join(r, c, node, r->cpu, RD_WAY_C2C,
                 (double)number(r, c, "bw", 0) * (double)number(r, c, "count", 1) / 1000);
}

/* A <pci> below `parent`, which is a NUMA node or a switch, and all below it. */
static void pci_read(reading_t *r, const rd_xml_t *e, int parent)
{
    const char *bus = rd_xml_get(e, "busid");
    rd_graph_kind_t kind = kind_of(e);
    bool host = r->g->node[parent].kind == RD_GRAPH_CPU;
    char name[40];
    int node;

    if (!bus || !*bus) {
        wrong(r, e, "it has no ", "busid");
        return;
    }
    bus_copy(name, bus);
    if ((node = add(r, e, kind, name)) < 0)
        return;
    join(r, e, node, parent, host ? RD_WAY_PHB : kind == RD_GRAPH_PCI ? RD_WAY_PXB : RD_WAY_PIX, pcie_gbps(r, e));
    if (kind == RD_GRAPH_GPU)
        gpu_read(r, e, node);
    for (const rd_xml_t *c = e->first; c && r->result == RONDO_SUCCESS; c = c->next)
        if (rd_xml_named(c, "pci") && kind == RD_GRAPH_PCI)
            pci_read(r, c, node);
        else if (rd_xml_named(c, "nic") && kind == RD_GRAPH_NIC)
            nets_read(r, c, node);
}

static int host_find(reading_t *r, const rd_xml_t *cpu)
{
    const char *hash = rd_xml_get(cpu, "host_hash");
    int i;

    for (i = 0; i < r->nhosts; i++)
        if (strncmp(r->hosts[i], hash ? hash : "", sizeof r->hosts[i] - 1) == 0)
            return i;
    if (i == RD_GRAPH_MOST) {
        wrong(r, cpu, "too many machines in one file", "");
        return 0;
    }
    snprintf(r->hosts[i], sizeof r->hosts[i], "%s", hash ? hash : "");
    return r->nhosts++;
}

static void cpu_read(reading_t *r, const rd_xml_t *e)
{
    int node, nic;
    double gbps = system_gbps(r, e);

    r->cpu = -1;
    r->host = host_find(r, e);
    if (r->ncpus++ == RD_GRAPH_MOST) {
        wrong(r, e, "it has more than 1024 NUMA nodes", "");
        return;
    }
    if ((node = r->cpu = add(r, e, RD_GRAPH_CPU, "")) < 0)
        return;
    r->g->node[node].number = (int)number(r, e, "numaid", -1);
    for (int i = 0; i < node && r->result == RONDO_SUCCESS; i++)
        if (r->g->node[i].kind == RD_GRAPH_CPU && r->g->node[i].host == r->host)
            join(r, e, i, node, RD_WAY_SYS, gbps);
    for (const rd_xml_t *c = e->first; c && r->result == RONDO_SUCCESS; c = c->next)
        if (rd_xml_named(c, "pci")) {
            pci_read(r, c, node);
        } else if (rd_xml_named(c, "nic") && (nic = add(r, c, RD_GRAPH_NIC, "")) >= 0) {
            join(r, c, nic, node, RD_WAY_PHB, LOC_GBPS);
            nets_read(r, c, nic);
        }
}

/* ---- NVLinks, when all GPUs are known ---- */

static int bus_find(const reading_t *r, const char *bus, int host)
{
    char name[40];

    bus_copy(name, bus);
    for (int i = 0; i < r->ngpus; i++) {
        const rd_graph_node_t *node = &r->g->node[r->gpu[i].node];
        if (node->host == host && strcmp(node->name, name) == 0)
            return r->gpu[i].node;
    }
    return -1;
}

/* Links to a GPU that the file does not have are left out. Each end of a link between GPUs names the other one, so one
 * direction is added for each. */
static void nvlink_read(reading_t *r, const rd_xml_t *e, int gpu)
{
    const char *target = rd_xml_get(e, "target"), *class = rd_xml_get(e, "tclass");
    long count = number(r, e, "count", 1);
    double gbps = (double)count * nvlink_gbps(r->g->node[gpu].sm);
    int peer = target ? bus_find(r, target, r->g->node[gpu].host) : -1;

    if (!target || count < 1 || count > 1024) {
        wrong(r, e, target ? "its count must be 1 to 1024" : "it has no target", "");
        return;
    }
    if (peer == gpu)
        wrong(r, e, "the GPU itself is its target", "");
    else if (peer >= 0 && rd_graph_join(r->g, gpu, peer, RD_WAY_NVL, gbps) < 0)
        no_memory(r);
    if (peer >= 0 || !class || strncmp(class, "0x03", 4) == 0)
        return;
    if (strncmp(class, "0x068001", 8) == 0) {
        join(r, e, gpu, r->g->node[gpu].cpu, RD_WAY_NVL, gbps);
        return;
    }
    if (r->nvs < 0 && (r->nvs = add(r, e, RD_GRAPH_NVS, "")) < 0)
        return;
    join(r, e, gpu, r->nvs, RD_WAY_NVL, gbps);
}

static void nvlinks_read(reading_t *r)
{
    for (int i = 0; i < r->ngpus; i++) {
        const rd_xml_t *gpu = child(r->gpu[i].element, "gpu");
        for (const rd_xml_t *c = gpu ? gpu->first : NULL; c && r->result == RONDO_SUCCESS; c = c->next)
            if (rd_xml_named(c, "nvlink"))
                nvlink_read(r, c, r->gpu[i].node);
    }
}

static bool twice(const rd_graph_t *g, char name[40])
{
    for (int i = 1; i < g->ngpus; i++) {
        const rd_graph_node_t *a = &g->node[g->gpu[i - 1]], *b = &g->node[g->gpu[i]];
        if (a->host == b->host && strcmp(a->name, b->name) == 0) {
            memcpy(name, a->name, 40);
            return true;
        }
    }
    return false;
}

/* GPUs without a number get the lowest free ones, in the order of their addresses. */
static void number_gpus(rd_graph_t *g)
{
    bool used[RD_GRAPH_MOST] = {false};
    int next = 0;

    for (int i = 0; i < g->ngpus; i++)
        if (g->node[g->gpu[i]].number >= 0)
            used[g->node[g->gpu[i]].number] = true;
    for (int i = 0; i < g->ngpus; i++) {
        while (next < RD_GRAPH_MOST - 1 && used[next])
            next++;
        if (g->node[g->gpu[i]].number < 0) {
            g->node[g->gpu[i]].number = next;
            used[next] = true;
        }
    }
}

rondo_result_t rd_graph_read(rd_graph_t *graph, const rd_xml_t *system, const rd_graph_origin_t *origin)
{
    rd_graph_t new = {0};
    reading_t *r = calloc(1, sizeof *r);
    rondo_result_t result;
    char name[40];

    if (!r)
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the graph of a machine");
    *r = (reading_t){.g = &new, .origin = origin, .cpu = -1, .nvs = -1};
    if (!rd_xml_named(system, "system"))
        wrong(r, system, "a topology of NCCL's begins with <system>", "");
    for (const rd_xml_t *c = system->first; c && r->result == RONDO_SUCCESS; c = c->next)
        if (rd_xml_named(c, "cpu"))
            cpu_read(r, c);
    r->cpu = -1;
    if (r->result == RONDO_SUCCESS)
        nvlinks_read(r);
    if (r->result == RONDO_SUCCESS && new.nnodes == 0)
        wrong(r, system, "it has no <cpu>", "");
    if (r->result == RONDO_SUCCESS)
        r->result = rd_graph_finish(&new);
    if (r->result == RONDO_SUCCESS && twice(&new, name))
        wrong(r, system, "two GPUs have the address ", name);
    if ((result = r->result) == RONDO_SUCCESS) {
        number_gpus(&new);
        *graph = new;
    } else {
        rd_graph_free(&new);
    }
    free(r);
    return result;
}
