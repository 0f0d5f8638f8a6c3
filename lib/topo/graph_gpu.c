/* From what NVML and /sys, or a "rondo-gpus" file, tell of GPUs and network devices to NCCL's XML, and from a graph to
 * the matrix. A matrix does not say which switches there are. Devices that are a switch apart are put below one,
 * devices that are several apart below one more; such switches have addresses that no machine uses, "ffff:01:00.0" and
 * so on. */
#include "topo/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/numbers.h"
#include "topo/topo.h"

#define DEVICES (RD_GPUS_MOST + RD_NICS_MOST)

/* ---- from the matrix to XML ---- */

typedef struct writing {
    const rd_gpu_topo_t *t;
    int n;                           /* GPUs, then network devices */
    int near[DEVICES], far[DEVICES]; /* the lowest device below one switch, and below several, with this one */
    int switches;
    bool here; /* this machine: /sys knows its processor and the speed of its network devices */
    bool failed;
} writing_t;

static rd_near_t near_of(const rd_gpu_topo_t *t, int gpu, int other)
{
    return other < t->count ? t->gpu[gpu].to[other].near : t->gpu[gpu].nic[other - t->count];
}

/* Numbers the groups of devices with a way that is no farther than `most`, by the lowest device in each. */
static void group(const rd_gpu_topo_t *t, rd_near_t most, int *of)
{
    int n = t->count + t->nnics;

    for (int i = 0; i < n; i++)
        of[i] = i;
    for (int g = 0; g < t->count; g++)
        for (int i = 0; i < n; i++) {
            rd_near_t near = near_of(t, g, i);
            int a = of[g], b = of[i], low = a < b ? a : b, high = a < b ? b : a;
            if (near < RD_NEAR_PIX || near > most)
                continue;
            for (int k = 0; k < n; k++)
                of[k] = of[k] == high ? low : of[k];
        }
}

static int numa_of(const rd_gpu_topo_t *t, int device)
{
    int numa = device < t->count ? t->gpu[device].numa : t->nic[device - t->count].numa;

    return numa < 0 ? 0 : numa;
}

static void put(writing_t *w, rd_xml_t *e, const char *name, const char *text)
{
    w->failed = w->failed || !e || rd_xml_put(e, name, "%s", text) != 0;
}

static void put_number(writing_t *w, rd_xml_t *e, const char *name, long number)
{
    w->failed = w->failed || !e || rd_xml_put(e, name, "%ld", number) != 0;
}

static rd_xml_t *make(writing_t *w, rd_xml_t *parent, const char *name)
{
    rd_xml_t *e = w->failed ? NULL : rd_xml_make(parent, name);

    w->failed = w->failed || !e;
    return e;
}

static void put_link(writing_t *w, rd_xml_t *pci, int gen, int width)
{
    static const char *const speed[] = {
        "", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};

    put(w, pci, "link_speed", speed[gen < 0 ? 0 : gen > 6 ? 6 : gen]);
    put_number(w, pci, "link_width", width);
}

static void nvlink_write(writing_t *w, rd_xml_t *gpu, const char *target, int count, const char *class)
{
    rd_xml_t *e = make(w, gpu, "nvlink");

    put(w, e, "target", target);
    put_number(w, e, "count", count);
    put(w, e, "tclass", class);
}

static void gpu_write(writing_t *w, rd_xml_t *parent, int g)
{
    const rd_gpu_t *gpu = &w->t->gpu[g];
    rd_xml_t *pci = make(w, parent, "pci"), *e;

    put(w, pci, "busid", gpu->bus);
    put(w, pci, "class", "0x030200");
    put(w, pci, "vendor", "0x10de");
    put_link(w, pci, gpu->pcie_gen, gpu->pcie_width);
    e = make(w, pci, "gpu");
    put_number(w, e, "dev", g);
    put_number(w, e, "sm", gpu->major * 10 + gpu->minor);
    put_number(w, e, "rank", g);
    put_number(w, e, "gdr", 1);
    if (gpu->switched)
        nvlink_write(w, e, "fffffff:ff:ff.0", gpu->switched, "0x068000");
    for (int i = 0; i < w->t->count; i++)
        if (i != g && gpu->to[i].near == RD_NEAR_NVLINK && !(gpu->switched && w->t->gpu[i].switched))
            nvlink_write(w, e, w->t->gpu[i].bus, gpu->to[i].links, "0x030200");
}

/* Mbit/s, of a line as "2.5 Gb/sec (1X SDR)"; 0: it does not begin with a number. */
static long rate_of(const char *text)
{
    locale_t before = rd_numbers_begin();
    double gbit = strtod(text, NULL);

    rd_numbers_end(before);
    return gbit > 0 && gbit < 1e6 ? (long)(gbit * 1000) : 0;
}

/* Mbit/s; 0: nothing says it. */
static long speed_find(const char *name)
{
    char path[160], text[64];
    long rate;

    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/rate", name);
    if (rd_topo_line(path, text, sizeof text) == 0 && (rate = rate_of(text)) > 0)
        return rate;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", name);
    return rd_topo_line(path, text, sizeof text) == 0 && atol(text) > 0 ? atol(text) : 0;
}

static void nic_write(writing_t *w, rd_xml_t *parent, int i)
{
    rd_xml_t *pci = make(w, parent, "pci"), *net;
    long speed = w->here ? speed_find(w->t->nic[i].name) : 0;

    put(w, pci, "busid", w->t->nic[i].bus);
    put(w, pci, "class", "0x020000");
    put_link(w, pci, 0, 0);
    net = make(w, make(w, pci, "nic"), "net");
    put(w, net, "name", w->t->nic[i].name);
    put_number(w, net, "dev", i);
    if (speed > 0)
        put_number(w, net, "speed", speed);
    put_number(w, net, "port", 1);
}

static void device_write(writing_t *w, rd_xml_t *parent, int device)
{
    if (device < w->t->count)
        gpu_write(w, parent, device);
    else
        nic_write(w, parent, device - w->t->count);
}

/* A switch, with the fastest link of the devices below it. */
static rd_xml_t *switch_write(writing_t *w, rd_xml_t *parent, const int *of, int group)
{
    rd_xml_t *pci = make(w, parent, "pci");
    int gen = 0, width = 0;
    char bus[20];

    for (int g = 0; g < w->t->count; g++)
        if (of[g] == group && w->t->gpu[g].pcie_gen * w->t->gpu[g].pcie_width > gen * width) {
            gen = w->t->gpu[g].pcie_gen;
            width = w->t->gpu[g].pcie_width;
        }
    snprintf(bus, sizeof bus, "ffff:%02x:00.0", ++w->switches & 0xff);
    put(w, pci, "busid", bus);
    put(w, pci, "class", "0x060400");
    put_link(w, pci, gen, width);
    return pci;
}

static int members(const int *of, int n, int group)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += of[i] == group;
    return count;
}

/* The devices that a switch, or several of them, join to device `first`, below the NUMA node. */
static void group_write(writing_t *w, rd_xml_t *cpu, int first)
{
    bool several = members(w->far, w->n, first) > members(w->near, w->n, first);
    rd_xml_t *above = several ? switch_write(w, cpu, w->far, first) : cpu;

    for (int i = first; i < w->n; i++) {
        if (w->far[i] != first || w->near[i] != i)
            continue;
        rd_xml_t *below = several || members(w->near, w->n, i) > 1 ? switch_write(w, above, w->near, i) : above;
        for (int k = i; k < w->n; k++)
            if (w->near[k] == i)
                device_write(w, below, k);
    }
}

/* The processor of this machine, in the words of NCCL's files. */
static void processor_write(writing_t *w, rd_xml_t *cpu)
{
    char line[256], vendor[64] = "";
    int family = 0, model = 0;
    FILE *f = w->here ? rd_file_read("/proc/cpuinfo") : NULL;

    while (f && fgets(line, sizeof line, f) && *line != '\n') {
        (void)sscanf(line, "vendor_id : %63s", vendor);
        (void)sscanf(line, "cpu family : %d", &family);
        (void)sscanf(line, "model : %d", &model);
    }
    if (f)
        fclose(f);
    if (!*vendor)
        return;
    put(w, cpu, "arch", "x86_64");
    put(w, cpu, "vendor", vendor);
    /* NCCL takes the family from CPUID's two fields side by side, which gives 0xaf for 0x19. */
    put_number(w, cpu, "familyid", family > 15 ? 15 | (family - 15) << 4 : family);
    put_number(w, cpu, "modelid", model);
}

static rondo_result_t xml_make(rd_xml_t **system, const rd_gpu_topo_t *t, bool here)
{
    writing_t w = {.t = t, .n = t->count + t->nnics, .here = here};
    rd_xml_t *root = make(&w, NULL, "system");
    bool done[DEVICES] = {false};

    put(&w, root, "version", "1");
    group(t, RD_NEAR_PIX, w.near);
    group(t, RD_NEAR_PXB, w.far);
    for (int first = 0; first < w.n && !w.failed; first++) {
        int numa = numa_of(t, first);
        if (done[first])
            continue;
        rd_xml_t *cpu = make(&w, root, "cpu");
        put_number(&w, cpu, "numaid", numa);
        processor_write(&w, cpu);
        for (int i = first; i < w.n; i++)
            if (w.far[i] == i && numa_of(t, i) == numa) {
                group_write(&w, cpu, i);
                for (int k = i; k < w.n; k++)
                    done[k] = done[k] || w.far[k] == i;
            }
        done[first] = true;
    }
    if (w.failed) {
        rd_xml_free(root);
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the topology of a machine");
    }
    *system = root;
    return RONDO_SUCCESS;
}

/* ---- from a file, or this machine ---- */

/* The name of the file's first element; "" if it has none within its first 4096 bytes. */
static void first_element(const char *file, char name[32])
{
    char text[4097];
    FILE *f = rd_file_read(file);
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    const char *c = text;

    *name = '\0';
    if (f)
        fclose(f);
    text[n] = '\0';
    if (n >= 3 && memcmp(c, "\xef\xbb\xbf", 3) == 0)
        c += 3;
    for (;;) {
        c += strspn(c, " \t\r\n");
        if (strncmp(c, "<!--", 4) == 0)
            c = strstr(c, "-->") ? strstr(c, "-->") + 3 : "";
        else if (strncmp(c, "<?", 2) == 0 || strncmp(c, "<!", 2) == 0)
            c = strchr(c, '>') ? strchr(c, '>') + 1 : "";
        else
            break;
    }
    if (*c == '<')
        snprintf(name, 32, "%.*s", (int)strcspn(c + 1, " \t\r\n/>"), c + 1);
}

bool rd_graph_is(const char *file)
{
    char name[32];

    first_element(file, name);
    return strcmp(name, "system") == 0;
}

bool rd_graph_is_hwloc(const char *file)
{
    char name[32];

    first_element(file, name);
    return strcmp(name, "topology") == 0 || strcmp(name, "root") == 0;
}

rondo_result_t rd_graph_xml(rd_xml_t **system, const char *file, const char *variable)
{
    rd_gpu_topo_t *t;
    rondo_result_t result;

    if (*file && rd_graph_is(file))
        return rd_xml_read(system, file, variable);
    if (!(t = malloc(sizeof *t)))
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the list of GPUs");
    result = rd_gpu_topo_read(t, file);
    if (result == RONDO_SUCCESS)
        result = xml_make(system, t, !*file);
    free(t);
    return result;
}

rondo_result_t rd_graph_get(rd_graph_t *graph, const char *file, const char *variable)
{
    const rd_graph_origin_t origin = {variable, *file ? file : "this machine"};
    rd_xml_t *system;
    rondo_result_t result = rd_graph_xml(&system, file, variable);

    if (result != RONDO_SUCCESS)
        return result;
    result = system->first || *file ? rd_graph_read(graph, system, &origin) : RONDO_SUCCESS;
    rd_xml_free(system);
    return result;
}

/* ---- from the graph to the matrix ---- */

static rd_near_t near_by(rd_way_t way)
{
    static const rd_near_t near[] = {RD_NEAR_SELF, RD_NEAR_NVLINK, RD_NEAR_PHB, RD_NEAR_PIX,
                                     RD_NEAR_PXB,  RD_NEAR_PHB,    RD_NEAR_SYS, RD_NEAR_UNKNOWN};

    return near[way];
}

/* GB/s over NVLink as a number of links of this GPU. */
static int links_of(const rd_graph_node_t *gpu, double gbps)
{
    double each = gpu->sm >= 100 ? 40.1 : gpu->sm >= 90 ? 20.6 : gpu->sm == 86 ? 12 : gpu->sm && gpu->sm < 70 ? 18 : 20;
    int links = (int)(gbps / each + 0.5);

    return links > 0 ? links : 1;
}

/* By what the GPU's own link carries: 12 GB/s are PCIe 3 with 16 lanes. */
static void pcie_set(rd_gpu_t *gpu, const rd_graph_t *g, int node)
{
    for (int l = g->node[node].first; l < g->node[node].first + g->node[node].count; l++) {
        double lane = g->link[l].gbps / 16;
        if (g->link[l].way < RD_WAY_PIX)
            continue;
        gpu->pcie_width = 16;
        for (gpu->pcie_gen = 1; gpu->pcie_gen < 6 && lane > 0.19 * (1 << (gpu->pcie_gen - 1)); gpu->pcie_gen++)
            continue;
    }
}

/* NCCL's files do not say it: that of the usual GPU of a kind; 0: unknown. */
static int multiprocessors_of(int sm)
{
    return sm == 70 ? 80 : sm == 80 ? 108 : sm == 86 ? 84 : sm == 90 ? 132 : sm >= 100 && sm < 110 ? 148 : 0;
}

static void gpu_fill(rd_gpu_t *gpu, const rd_graph_t *g, int node)
{
    const rd_graph_node_t *from = &g->node[node];

    snprintf(gpu->bus, sizeof gpu->bus, "%.19s", from->name);
    snprintf(gpu->name, sizeof gpu->name, "GPU of sm %d", from->sm);
    gpu->numa = from->cpu >= 0 ? g->node[from->cpu].number : -1;
    gpu->sms = multiprocessors_of(from->sm);
    gpu->major = from->sm / 10;
    gpu->minor = from->sm % 10;
    pcie_set(gpu, g, node);
    for (int l = from->first; l < from->first + from->count; l++)
        if (g->node[g->link[l].to].kind == RD_GRAPH_NVS)
            gpu->switched = links_of(from, g->link[l].gbps);
}

static void row_fill(rd_gpu_topo_t *t, const rd_graph_t *g, int row, const rd_graph_path_t *path)
{
    rd_gpu_t *gpu = &t->gpu[row];

    for (int i = 0; i < t->count; i++) {
        const rd_graph_path_t *to = &path[g->gpu[i]];
        gpu->to[i].near = near_by((rd_way_t)to->way);
        gpu->to[i].links = to->way == RD_WAY_NVL ? links_of(&g->node[g->gpu[row]], to->gbps) : 0;
    }
    for (int i = 0; i < t->nnics; i++)
        gpu->nic[i] = near_by((rd_way_t)path[g->net[i]].way);
}

rondo_result_t rd_graph_matrix(rd_gpu_topo_t *t, const rd_graph_t *g, const rd_graph_origin_t *origin)
{
    rd_graph_path_t *path = malloc((size_t)g->nnodes * sizeof *path);

    memset(t, 0, sizeof *t);
    t->nodes = 1;
    snprintf(t->source, sizeof t->source, "NCCL's topology %.60s", origin->file);
    if (!path)
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the ways between GPUs");
    if (g->ngpus > RD_GPUS_MOST || g->nnets > RD_NICS_MOST) {
        free(path);
        return rd_error(
            NULL, RONDO_ERR_UNSUPPORTED,
            "%s=%.200s: it has %d GPUs and %d ports of network devices, and what is asked for needs a matrix "
            "of at most %d and %d",
            origin->variable, origin->file, g->ngpus, g->nnets, RD_GPUS_MOST, RD_NICS_MOST);
    }
    t->count = g->ngpus;
    t->nnics = g->nnets;
    for (int i = 0; i < g->nnets; i++) {
        const rd_graph_node_t *net = &g->node[g->net[i]];
        const rd_graph_node_t *nic = net->count > 0 ? &g->node[g->link[net->first].to] : net;
        snprintf(t->nic[i].name, sizeof t->nic[i].name, "%.31s", net->name);
        snprintf(t->nic[i].bus, sizeof t->nic[i].bus, "%.19s", nic->name);
        t->nic[i].numa = net->cpu >= 0 ? g->node[net->cpu].number : -1;
    }
    for (int i = 0; i < g->ngpus; i++) {
        (void)rd_graph_paths(g, g->gpu[i], path);
        gpu_fill(&t->gpu[i], g, g->gpu[i]);
        row_fill(t, g, i, path);
    }
    free(path);
    return RONDO_SUCCESS;
}
