/* Several rings, and trees, beside NCCL's channels on the same files: machines that are public,
 * described by rules, and what the search of NCCL 2.30.7 finds on each: rings and trees of one machine, and rings of
 * several by its ports. Rondo's carry at least as many GB/s together; the trees go from one GPU, which NCCL's need not.
 * doc/notebook/gpu.md says how NCCL's figures were made, and what its logs of such machines say.
 *
 *   channels --write DIR    leaves the machines as files, for NCCL
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/machines.h"
#include "topo/pack.h"
#include "util/check.h"

/* GPUs behind switches, as many at each. */
typedef struct box {
    int sockets, switches, gpus, nets; /* switches of a socket, GPUs and ports of a switch */
    const char *speed;                 /* of PCIe */
    int mbits;                         /* of a port */
    int sm, bricks;                    /* NVLinks from GPU to GPU; below zero: so many to the NVSwitch */
    const char *cpu;
} box_t;

#define INTEL "arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\""
#define AMD "arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\""

static void bus_print(char bus[32], int sw, int slot)
{
    snprintf(bus, 32, "0000:%02x:00.0", 0x10 + 0x10 * sw + slot);
}

static void pci_begin(FILE *f, const box_t *b, int sw, int slot, const char *class)
{
    char bus[32];

    bus_print(bus, sw, slot);
    fprintf(f, "<pci busid=\"%s\" class=\"%s\" link_speed=\"%s\" link_width=\"16\">", bus, class, b->speed);
}

static void gpu_write(FILE *f, const box_t *b, int sw, int slot)
{
    const int self = sw * b->gpus + slot, all = b->sockets * b->switches * b->gpus;
    char bus[32];

    pci_begin(f, b, sw, 1 + slot, "0x030200");
    fprintf(f, "<gpu dev=\"%d\" sm=\"%d\" rank=\"%d\" gdr=\"1\">", self, b->sm, self);
    for (int k = 0; k < all && b->bricks > 0; k++) {
        bus_print(bus, k / b->gpus, 1 + k % b->gpus);
        if (k != self)
            fprintf(f, "<nvlink target=\"%s\" count=\"%d\" tclass=\"0x030200\"/>", bus, b->bricks);
    }
    if (b->bricks < 0)
        fprintf(f, "<nvlink target=\"fffffff:ff:ff.0\" count=\"%d\" tclass=\"0x068000\"/>", -b->bricks);
    fprintf(f, "</gpu></pci>\n");
}

static void box_write(FILE *f, const box_t *b)
{
    fprintf(f, "<system version=\"1\">\n");
    for (int sw = 0; sw < b->sockets * b->switches; sw++) {
        if (sw % b->switches == 0)
            fprintf(f, "<cpu numaid=\"%d\" affinity=\"ffff\" %s>\n", sw / b->switches, b->cpu);
        pci_begin(f, b, sw, 0, "0x060400");
        for (int i = 0; i < b->gpus; i++)
            gpu_write(f, b, sw, i);
        for (int i = 0; i < b->nets; i++) {
            pci_begin(f, b, sw, 1 + b->gpus + i, "0x020700");
            fprintf(f,
                    "<nic><net name=\"net%d\" dev=\"%d\" speed=\"%d\" port=\"1\" latency=\"0\" guid=\"0x%x\" "
                    "maxconn=\"1000\" gdr=\"1\"/></nic></pci>\n",
                    sw * b->nets + i, sw * b->nets + i, b->mbits, 1 + sw * b->nets + i);
        }
        fprintf(f, "</pci>\n%s", sw % b->switches == b->switches - 1 ? "</cpu>\n" : "");
    }
    fprintf(f, "</system>\n");
}

/* ---- the machines ---- */

static void dgx_h100(FILE *f)
{
    machine_nvswitch(f, 1, 8, 90);
}

static const struct {
    const char *name;
    void (*write)(FILE *); /* or the box */
    box_t box;
    double rings, trees, ports; /* NCCL's: GB/s on one machine, and of several; 0: no ports */
} machines[] = {
    {"dgx-1v", machine_dgx1v, {0}, 120, 120, 48},
    {"dgx-h100", dgx_h100, {0}, 360, 360, 384},
    {"pcie-uneven", machine_uneven, {0}, 12, 12, 3},
    {"dgx-a100", NULL, {4, 1, 2, 2, "16.0 GT/s PCIe", 200000, 80, -12, AMD}, 240, 240, 192},
    {"v100-4", NULL, {2, 1, 2, 1, "8.0 GT/s PCIe", 100000, 70, 2, INTEL}, 120, 120, 24},
    {"a100-4", NULL, {4, 1, 1, 1, "16.0 GT/s PCIe", 200000, 80, 4, AMD}, 240, 240, 96},
    {"rtx4090-8", NULL, {2, 1, 4, 0, "16.0 GT/s PCIe", 0, 89, 0, INTEL}, 10, 10, 0},
    {"pcie-2-roots", NULL, {2, 1, 1, 0, "16.0 GT/s PCIe", 0, 80, 0, INTEL}, 10, 10, 0},
    {"pcie-4-ethernet", NULL, {2, 1, 2, 2, "8.0 GT/s PCIe", 10000, 70, 0, INTEL}, 10, 10, 4.8},
    {"mi100-4p3l", NULL, {1, 4, 1, 0, "8.0 GT/s PCIe", 0, 80, 1, INTEL}, 60, 60, 0},
    {"pcie-8-4-nets", NULL, {2, 2, 2, 1, "16.0 GT/s PCIe", 100000, 80, 0, AMD}, 15, 15, 16},
};
#define MACHINES ((int)(sizeof machines / sizeof machines[0]))

static void machine_write(FILE *f, int which)
{
    if (machines[which].write)
        machines[which].write(f);
    else
        box_write(f, &machines[which].box);
}

static double packed(const rd_graph_t *g, rd_pack_kind_t kind)
{
    rd_pack_t pack;

    if (rd_pack_search(&pack, g, g->gpu, g->ngpus, kind) != RONDO_SUCCESS) {
        CHECK(0, "%s", rd_thread_error());
        exit(1);
    }
    double gbps = pack.gbps;
    CHECK(gbps <= pack.bound * 1.00001 && gbps > 0.999 * pack.bound, "%g GB/s of %g", gbps, pack.bound);
    rd_pack_free(&pack);
    return gbps;
}

static void compare(const char *folder, int which)
{
    char file[128];
    rd_graph_t g;
    double crossed = 0, ports = 0;

    snprintf(file, sizeof file, "%s/%s.xml", folder, machines[which].name);
    if (rd_graph_get(&g, file, "RONDO_TOPO_FILE") != RONDO_SUCCESS) {
        CHECK(0, "%s", rd_thread_error());
        return;
    }
    const double rings = packed(&g, RD_PACK_RINGS), trees = packed(&g, RD_PACK_TREES);
    if (g.nnets > 0) {
        ports = packed(&g, RD_PACK_PORTS);
        crossed = packed(&g, RD_PACK_CROSSED);
    }
    CHECK(crossed >= 0.9999 * ports, "%s: %g GB/s crossed, %g by ports", machines[which].name, crossed, ports);
    printf("%-16s rings %.1f (NCCL %.1f), trees %.1f (%.1f), by ports %.1f, crossed %.1f (%.1f)\n",
           machines[which].name, rings, machines[which].rings, trees, machines[which].trees, ports, crossed,
           machines[which].ports);
    CHECK(rings > 0.9999 * machines[which].rings, "%s: rings", machines[which].name);
    CHECK(trees > 0.9999 * machines[which].trees, "%s: trees", machines[which].name);
    CHECK(ports >= 0.9999 * machines[which].ports && (machines[which].ports > 0) == (g.nnets > 0), "%s: by ports",
          machines[which].name);
    rd_graph_free(&g);
}

static void all_write(const char *folder)
{
    for (int i = 0; i < MACHINES; i++) {
        char file[1000];
        snprintf(file, sizeof file, "%s/%s.xml", folder, machines[i].name);
        FILE *f = fopen(file, "w");
        if (!f) {
            perror(file);
            exit(1);
        }
        machine_write(f, i);
        fclose(f);
    }
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/rondo-channels-XXXXXX";

    alarm(100);
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        all_write(argv[2]);
        return 0;
    }
    if (!mkdtemp(dir))
        return 1;
    all_write(dir);
    for (int i = 0; i < MACHINES; i++) {
        char file[128];
        compare(dir, i);
        snprintf(file, sizeof file, "%s/%s.xml", dir, machines[i].name);
        unlink(file);
    }
    CHECK(rmdir(dir) == 0, "a file was left in %s", dir);
    return failures != 0;
}
