/* GPUs of a machine as text: the file of a recorded one, and the matrix for people. See topo_gpu.h.
 *
 *     rondo-gpus 1
 *     nodes 2                                           machines of this kind; 1 if the line is missing
 *     gpu 0000:07:00.0 numa 3 sms 108 cc 8.0 memory 40960 pcie 4x16 nvswitch 12 name NVIDIA A100-SXM4-40GB
 *     nic 0000:0c:00.0 numa 3 name mlx5_0
 *     near X NV12 PXB                                   a line for each GPU, in order: to every GPU, then to every nic
 */
#include "topo/topo_gpu.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/fd.h"

#define LINE 512
#define HEAD "rondo-gpus 1"
#define NODES_MOST (1 << 20)
#define LINKS_MOST 1024

static const char *const words[] = {"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS", "?"};

/* ---- ways ---- */

/* GB/s of one NVLink and direction, by generation. */
static double link_gbps(const rd_gpu_t *gpu)
{
    return gpu->major >= 10 ? 50 : gpu->major >= 7 ? 25 : 20;
}

static double pcie_gbps(const rd_gpu_t *gpu)
{
    static const double lane[] = {0, 0.25, 0.5, 0.985, 1.97, 3.94, 7.56};
    int most = (int)(sizeof lane / sizeof lane[0]) - 1, gen = gpu->pcie_gen < most ? gpu->pcie_gen : most;

    return gen > 0 ? lane[gen] * gpu->pcie_width : 0;
}

rd_gpu_path_t rd_gpu_path(const rd_gpu_topo_t *topo, int a, int b)
{
    const rd_gpu_t *one = &topo->gpu[a], *other = &topo->gpu[b];
    rd_gpu_path_t way = {one->to[b].near, one->to[b].links, 0, 0};
    double x, y;

    if (way.near == RD_NEAR_SELF || way.near == RD_NEAR_UNKNOWN)
        return way;
    way.switched = way.near == RD_NEAR_NVLINK && one->switched && other->switched;
    x = way.near == RD_NEAR_NVLINK ? way.links * link_gbps(one) : pcie_gbps(one);
    y = way.near == RD_NEAR_NVLINK ? way.links * link_gbps(other) : pcie_gbps(other);
    way.gbps = x < y ? x : y;
    return way;
}

rd_gpu_path_t rd_gpu_farther(rd_gpu_path_t a, rd_gpu_path_t b)
{
    return b.near > a.near || (b.near == a.near && b.gbps < a.gbps) ? b : a;
}

rd_gpu_path_t rd_gpu_farthest(const rd_gpu_topo_t *topo, int count)
{
    rd_gpu_path_t worst = {RD_NEAR_SELF, 0, 0, 0};

    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++)
            worst = rd_gpu_farther(worst, rd_gpu_path(topo, a, b));
    return worst;
}

static pthread_once_t here_once = PTHREAD_ONCE_INIT;
static rd_gpu_topo_t here;

static void here_read(void)
{
    if (rd_gpu_topo_walk(&here, "/sys") != RONDO_SUCCESS)
        here.count = 0;
}

static int find(const rd_gpu_topo_t *topo, const char *bus)
{
    for (int g = 0; g < topo->count; g++)
        if (strcasecmp(topo->gpu[g].bus, bus) == 0) /* CUDA writes upper case */
            return g;
    return -1;
}

rd_gpu_path_t rd_gpu_farthest_here(const char *const *buses, int count)
{
    rd_gpu_path_t worst = {RD_NEAR_SELF, 0, 0, 0}, unknown = {RD_NEAR_UNKNOWN, 0, 0, 0};

    pthread_once(&here_once, here_read);
    for (int a = 0; a < count; a++)
        for (int b = 0; b < a; b++) {
            int x = find(&here, buses[a]), y = find(&here, buses[b]);
            worst = rd_gpu_farther(worst, x < 0 || y < 0 ? unknown : rd_gpu_path(&here, x, y));
        }
    return worst;
}

const char *rd_gpu_path_print(rd_gpu_path_t way, char text[64])
{
    static const char *const sentences[RD_NUM_NEAR] = {"the same GPU",       "",
                                                       "one PCIe switch",    "several PCIe switches",
                                                       "a PCIe host bridge", "several host bridges of a NUMA node",
                                                       "two NUMA nodes",     "an unknown way"};

    if (way.near == RD_NEAR_NVLINK)
        snprintf(text, 64, "%d NVLink%s%s", way.links, way.links > 1 ? "s" : "", way.switched ? " by NVSwitch" : "");
    else
        snprintf(text, 64, "%s", sentences[way.near]);
    return text;
}

/* Bridges between the two, by where their paths part: "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0". */
rd_near_t rd_pci_near(const char *path, const char *other, int same_numa)
{
    size_t same = 0, bridges = 0;

    for (size_t i = 0; path[i] && path[i] == other[i]; i++)
        if (path[i] == '/')
            same = i;
    if (strcmp(path, other) == 0)
        return RD_NEAR_SELF;
    const char *root = strstr(path, "/pci");
    if (!root || same <= (size_t)(root - path))
        return same_numa ? RD_NEAR_NODE : RD_NEAR_SYS;
    if (!memchr(root + 1, '/', (size_t)(path + same - root - 1)))
        return RD_NEAR_PHB; /* nothing in common but the host bridge */
    for (const char *p = path + same + 1; (p = strchr(p, '/')); p++)
        bridges++;
    for (const char *p = other + same + 1; (p = strchr(p, '/')); p++)
        bridges++;
    return bridges <= 2 ? RD_NEAR_PIX : RD_NEAR_PXB; /* a switch has a port, itself a bridge, for each of the two */
}

/* ---- reading ---- */

typedef struct reader {
    rd_gpu_topo_t *topo;
    int rows; /* of the matrix that have been read */
} reader_t;

static int near_parse(const char *word, rd_near_t *near, int *links)
{
    *links = 0;
    if (strncmp(word, "NV", 2) == 0) {
        *near = RD_NEAR_NVLINK;
        *links = atoi(word + 2);
        return *links > 0 && *links <= LINKS_MOST ? 0 : -1;
    }
    for (int i = 0; i < RD_NUM_NEAR; i++)
        if (i != RD_NEAR_NVLINK && strcmp(word, words[i]) == 0) {
            *near = (rd_near_t)i;
            return 0;
        }
    return -1;
}

/* Returns true if a GPU may have these numbers. What is reckoned with them does not overflow then. */
static bool is_possible(const rd_gpu_t *gpu)
{
    const struct {
        int number, least, most;
    } all[] = {{gpu->numa, -1, 65535},   {gpu->sms, 0, 65535},          {gpu->memory_mb, 0, INT_MAX},
               {gpu->major, 0, 999},     {gpu->minor, 0, 999},          {gpu->pcie_gen, 0, 99},
               {gpu->pcie_width, 0, 99}, {gpu->switched, 0, LINKS_MOST}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].number < all[i].least || all[i].number > all[i].most)
            return false;
    return true;
}

/* "name" takes the rest of the line, every other word the next one. */
static int gpu_parse(rd_gpu_t *gpu, char *rest)
{
    char *bus = strtok_r(rest, " ", &rest), *key, *value;

    if (!bus)
        return -1;
    memset(gpu, 0, sizeof *gpu);
    gpu->numa = -1;
    snprintf(gpu->bus, sizeof gpu->bus, "%s", bus);
    while ((key = strtok_r(NULL, " ", &rest))) {
        int n = 0;

        if (strcmp(key, "name") == 0) {
            snprintf(gpu->name, sizeof gpu->name, "%s", rest);
            return *gpu->name && is_possible(gpu) ? 0 : -1;
        }
        if (!(value = strtok_r(NULL, " ", &rest)))
            return -1;
        if (strcmp(key, "numa") == 0)
            n = sscanf(value, "%d", &gpu->numa);
        else if (strcmp(key, "sms") == 0)
            n = sscanf(value, "%d", &gpu->sms);
        else if (strcmp(key, "memory") == 0)
            n = sscanf(value, "%d", &gpu->memory_mb);
        else if (strcmp(key, "nvswitch") == 0)
            n = sscanf(value, "%d", &gpu->switched);
        else if (strcmp(key, "cc") == 0)
            n = sscanf(value, "%d.%d", &gpu->major, &gpu->minor) == 2;
        else if (strcmp(key, "pcie") == 0)
            n = sscanf(value, "%dx%d", &gpu->pcie_gen, &gpu->pcie_width) == 2;
        if (n != 1)
            return -1;
    }
    return -1;
}

static int nic_parse(rd_gpu_topo_t *topo, const char *rest)
{
    int i = topo->nnics++;

    return sscanf(rest, "%19s numa %d name %31s", topo->nic[i].bus, &topo->nic[i].numa, topo->nic[i].name) == 3 ? 0
                                                                                                                : -1;
}

static int row_parse(reader_t *r, char *rest)
{
    rd_gpu_topo_t *t = r->topo;
    char *word = strtok_r(rest, " ", &rest);
    rd_gpu_t *gpu = &t->gpu[r->rows];
    int links;

    if (r->rows++ >= t->count)
        return -1;
    for (int i = 0; i < t->count + t->nnics; i++, word = strtok_r(NULL, " ", &rest)) {
        rd_near_t near;
        if (!word || near_parse(word, &near, &links) != 0 || (near == RD_NEAR_SELF) != (i == r->rows - 1) ||
            (i >= t->count && links))
            return -1;
        if (i >= t->count) {
            gpu->nic[i - t->count] = near;
            continue;
        }
        gpu->to[i].near = near;
        gpu->to[i].links = links;
    }
    return word ? -1 : 0;
}

static int line_parse(reader_t *r, char *line)
{
    char *word = strtok_r(line, " ", &line);

    if (!word)
        return 0;
    if (strcmp(word, "nodes") == 0)
        return sscanf(line, "%d", &r->topo->nodes) == 1 && r->topo->nodes > 0 && r->topo->nodes <= NODES_MOST ? 0 : -1;
    if (strcmp(word, "gpu") == 0 && r->rows == 0 && r->topo->count < RD_GPUS_MOST)
        return gpu_parse(&r->topo->gpu[r->topo->count++], line);
    if (strcmp(word, "nic") == 0 && r->rows == 0 && r->topo->nnics < RD_NICS_MOST)
        return nic_parse(r->topo, line);
    return strcmp(word, "near") == 0 ? row_parse(r, line) : -1;
}

/* Lines of comments may stand before the first one that counts. */
static int head_read(FILE *f, char *line)
{
    while (fgets(line, LINE, f)) {
        line[strcspn(line, "#\r\n")] = '\0';
        if (*line)
            return strcmp(line, HEAD) == 0 ? 0 : -1;
    }
    return -1;
}

bool rd_gpu_topo_is(const char *file)
{
    FILE *f = rd_file_read(file);
    char line[LINE];
    bool is = f && head_read(f, line) == 0;

    if (f)
        fclose(f);
    return is;
}

/* The matrix says of a pair the same from both sides. */
static bool is_whole(const reader_t *r)
{
    const rd_gpu_topo_t *t = r->topo;

    if (r->rows != t->count)
        return false;
    for (int a = 0; a < t->count; a++)
        for (int b = 0; b < a; b++)
            if (t->gpu[a].to[b].near != t->gpu[b].to[a].near || t->gpu[a].to[b].links != t->gpu[b].to[a].links)
                return false;
    return true;
}

rondo_result_t rd_gpu_topo_file(rd_gpu_topo_t *topo, const char *file)
{
    const char *slash = strrchr(file, '/');
    reader_t r = {topo, 0};
    FILE *f = rd_file_read(file);
    char line[LINE], text[64] = "";
    int number = 1, good;

    if (!f)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "RONDO_TOPO_FILE=%s: %s", file, strerror(errno));
    topo->nodes = 1;
    snprintf(topo->source, sizeof topo->source, "recorded in %.40s", slash ? slash + 1 : file);
    for (good = head_read(f, line) == 0; good && fgets(line, sizeof line, f); number++) {
        line[strcspn(line, "#\r\n")] = '\0';
        snprintf(text, sizeof text, "%.60s", line);
        good = line_parse(&r, line) == 0;
    }
    fclose(f);
    if (!good)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "RONDO_TOPO_FILE=%s, line %d after its head, \"%s\", cannot be read: rondo-info topo --save "
                        "writes such files",
                        file, number - 1, text);
    if (!is_whole(&r))
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                        "RONDO_TOPO_FILE=%s: every GPU needs a line \"near\", and the lines of two GPUs must agree "
                        "about their link",
                        file);
    return RONDO_SUCCESS;
}

/* ---- writing ---- */

static void row_write(const rd_gpu_topo_t *t, int g, int width, FILE *file)
{
    char cell[16];

    for (int i = 0; i < t->count + t->nnics; i++) {
        rd_near_t near = i < t->count ? t->gpu[g].to[i].near : t->gpu[g].nic[i - t->count];
        if (near == RD_NEAR_NVLINK)
            snprintf(cell, sizeof cell, "NV%d", t->gpu[g].to[i].links);
        else
            snprintf(cell, sizeof cell, "%s", words[near]);
        fprintf(file, " %*s", width, cell);
    }
    fputc('\n', file);
}

void rd_gpu_topo_write(const rd_gpu_topo_t *t, FILE *file)
{
    fprintf(file, "%s\n", HEAD);
    if (t->nodes > 1)
        fprintf(file, "nodes %d\n", t->nodes);
    for (int g = 0; g < t->count; g++) {
        const rd_gpu_t *gpu = &t->gpu[g];
        fprintf(file, "gpu %s numa %d sms %d cc %d.%d memory %d pcie %dx%d nvswitch %d name %s\n", gpu->bus, gpu->numa,
                gpu->sms, gpu->major, gpu->minor, gpu->memory_mb, gpu->pcie_gen, gpu->pcie_width, gpu->switched,
                gpu->name);
    }
    for (int i = 0; i < t->nnics; i++)
        fprintf(file, "nic %s numa %d name %s\n", t->nic[i].bus, t->nic[i].numa, t->nic[i].name);
    for (int g = 0; g < t->count; g++) {
        fputs("near", file);
        row_write(t, g, 4, file);
    }
}

void rd_gpu_topo_print(const rd_gpu_topo_t *t, FILE *file)
{
    rd_gpu_path_t far = rd_gpu_farthest(t, t->count);
    char name[16], way[64];

    fprintf(file, "%d GPU%s", t->count, t->count == 1 ? "" : "s");
    if (t->nodes > 1)
        fprintf(file, " on each of %d nodes", t->nodes);
    fprintf(file, "   [%s]\n", t->source);
    for (int g = 0; g < t->count; g++) {
        const rd_gpu_t *gpu = &t->gpu[g];
        fprintf(file, "  GPU%-2d %s  %s, %d multiprocessors, %d MB, PCIe %d x%d, NUMA node %d", g, gpu->bus, gpu->name,
                gpu->sms, gpu->memory_mb, gpu->pcie_gen, gpu->pcie_width, gpu->numa);
        if (gpu->switched)
            fprintf(file, ", %d links to NVSwitch", gpu->switched);
        fputc('\n', file);
    }
    for (int i = 0; i < t->nnics; i++)
        fprintf(file, "  NIC%-2d %s  %s, NUMA node %d\n", i, t->nic[i].bus, t->nic[i].name, t->nic[i].numa);
    if (t->count == 0)
        return;
    fprintf(file, "\n     ");
    for (int i = 0; i < t->count + t->nnics; i++) {
        snprintf(name, sizeof name, "%s%d", i < t->count ? "GPU" : "NIC", i < t->count ? i : i - t->count);
        fprintf(file, " %5s", name);
    }
    fputc('\n', file);
    for (int g = 0; g < t->count; g++) {
        fprintf(file, "GPU%-2d", g);
        row_write(t, g, 5, file);
    }
    fprintf(file,
            "NV#: so many NVLinks; PIX, PXB: one or several PCIe switches; PHB: a host bridge; NODE: a NUMA node;\n"
            "SYS: from NUMA node to NUMA node\n");
    if (t->count > 1)
        fprintf(file, "\nthe farthest pair has %s, %.0f GB/s each way by the data sheet\n", rd_gpu_path_print(far, way),
                far.gbps);
}
