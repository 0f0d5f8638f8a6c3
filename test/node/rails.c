/* Shares of network devices: each serves as many ranks as the others, ranks have a near one where that is possible, and
 * where nothing is known they take them in turn. A rank that moves a GPU's data has the device behind its GPU's switch,
 * whatever NUMA node it is bound to. What /sys has of devices and GPUs is played. */
#include "node/rails.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/check.h"

#define MOST 32

static int share(const int *device, int ndevices, const int *rank, int nranks, int self)
{
    rd_near_t near[MOST * MOST];

    for (int r = 0; r < nranks; r++)
        for (int d = 0; d < ndevices; d++)
            near[r * ndevices + d] = rank[r] >= 0 && rank[r] == device[d] ? RD_NEAR_NODE : RD_NEAR_SYS;
    return rd_node_share(near, ndevices, nranks, self);
}

/* `ranks` and `devices`: the NUMA node of each, a digit, or "-"; `want`: the device of each rank. */
static void shares(const char *ranks, const char *devices, const char *want)
{
    int rank[MOST], device[MOST], n = (int)strlen(ranks), d = (int)strlen(devices);
    char got[MOST + 1] = "";

    for (int i = 0; i < n; i++)
        rank[i] = ranks[i] == '-' ? -1 : ranks[i] - '0';
    for (int i = 0; i < d; i++)
        device[i] = devices[i] == '-' ? -1 : devices[i] - '0';
    for (int i = 0; i < n; i++)
        got[i] = (char)('0' + share(device, d, rank, n, i));
    CHECK(strcmp(got, want) == 0, "ranks on %s, devices on %s: %s, not %s", ranks, devices, got, want);
}

/* The second rank alone has a switch in common with a device, and the first one does not take that. */
static void nearest_first(void)
{
    static const rd_near_t near[] = {RD_NEAR_NODE, RD_NEAR_NODE, RD_NEAR_PIX, RD_NEAR_NODE};

    CHECK(rd_node_share(near, 2, 2, 0) == 1 && rd_node_share(near, 2, 2, 1) == 0, "%d %d", rd_node_share(near, 2, 2, 0),
          rd_node_share(near, 2, 2, 1));
}

/* Any machine: no device serves more ranks than another one by two, and a rank has a far device only if no near one has
 * room. */
static void random_shares(void)
{
    unsigned state = 7;

    printf("seed 7\n");
    for (int trial = 0; trial < 2000; trial++) {
        int rank[MOST], device[8], users[8] = {0}, got[MOST], n, d;
        state = state * 1664525 + 1013904223;
        n = 1 + (int)(state >> 16) % MOST;
        d = 1 + (int)(state >> 24) % 8;
        for (int i = 0; i < n + d; i++) {
            state = state * 1664525 + 1013904223;
            *(i < n ? &rank[i] : &device[i - n]) = (int)(state >> 20) % 5 - 1;
        }
        for (int i = 0; i < n; i++)
            users[got[i] = share(device, d, rank, n, i)]++;
        for (int i = 0; i < d; i++)
            CHECK(users[i] <= (n + d - 1) / d, "trial %d: device %d serves %d of %d ranks", trial, i, users[i], n);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < d && rank[i] >= 0 && device[got[i]] != rank[i]; k++)
                CHECK(device[k] != rank[i] || users[k] == (n + d - 1) / d, "trial %d: rank %d is far from device %d",
                      trial, i, got[i]);
    }
}

static void text_write(const char *sys, const char *file, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", sys, file);
    for (char *c = path + 1; (c = strchr(c, '/')); *c++ = '/') {
        *c = '\0';
        mkdir(path, 0700);
    }
    if (!(f = fopen(path, "w")) || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

/* A PCI device below a switch of NUMA node `numa`, and what /sys calls it: a link to its folder. */
static void device_make(const char *sys, int numa, int bridge, int bus, const char *link)
{
    char folder[128], file[160], text[8], path[256];

    snprintf(folder, sizeof folder, "devices/pci0000:%d0/0000:%d0:0%d.0/0000:%02x:00.0", numa, numa, bridge, bus);
    snprintf(file, sizeof file, "%s/numa_node", folder);
    snprintf(text, sizeof text, "%d\n", numa);
    text_write(sys, file, text);
    snprintf(file, sizeof file, "%s/x", link);
    text_write(sys, file, ""); /* for the folders above the link */
    snprintf(path, sizeof path, "%s/%s", sys, file);
    remove(path);
    snprintf(path, sizeof path, "%s/%s", sys, link);
    snprintf(file, sizeof file, "%s/%s", sys, folder);
    if (rmdir(path) != 0 || symlink(file, path) != 0) {
        perror(path);
        exit(1);
    }
}

static void gone(const char *sys)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", sys);
    if (system(command) != 0)
        exit(1);
}

static void names(void)
{
    char sys[] = "/tmp/rondo-rails-XXXXXX";
    rd_locality_t at[] = {{0, 1, 0}, {0, 0, 0}, {0, 1, 0}, {-1, -1, 0}};
    rd_node_t node = {.nlocal = 4, .at = at};

    if (!mkdtemp(sys))
        exit(1);
    text_write(sys, "class/infiniband/mlx5_0/device/numa_node", "0\n");
    text_write(sys, "class/infiniband/mlx5_1/device/numa_node", "1\n");
    text_write(sys, "class/net/eth1/device/numa_node", "-1\n");
    for (node.self = 0; node.self < 4; node.self++)
        CHECK(rd_node_rail(&node, "mlx5_0:1,mlx5_1:1", sys) == "1010"[node.self] - '0', "rank %d: %d", node.self,
              rd_node_rail(&node, "mlx5_0:1,mlx5_1:1", sys));
    node.self = 3;
    CHECK(rd_node_rail(&node, "eth0,eth1", sys) == 1, "in turn");
    CHECK(rd_node_rail(&node, "", sys) == 3 && rd_node_rail(&node, "eth0", sys) == 3, "nothing to share");
    node.at = NULL;
    CHECK(rd_node_rail(&node, "mlx5_0,mlx5_1", sys) == 3, "nobody has said where ranks are");
    gone(sys);
}

/* Four switches on two NUMA nodes, with a GPU and two devices below each, whose names are not in their order; ranks are
 * bound to the other NUMA node. */
static void gpus(void)
{
    static const char *const names = "rdmap1s0-rdm,rdmap2s0-rdm,rdmap3s0-rdm,rdmap4s0-rdm,rdmap5s0,rdmap6s0,rdmap7s0:1,"
                                     "rdmap8s0";
    char sys[] = "/tmp/rondo-rails-XXXXXX", link[96], folders[8 * 160] = "";
    rd_locality_t at[4];
    rd_node_t node = {.nlocal = 4, .at = at};

    if (!mkdtemp(sys))
        exit(1);
    for (int i = 0; i < 4; i++) {
        snprintf(link, sizeof link, "bus/pci/devices/0000:a%d:00.0", i);
        device_make(sys, i / 2, i % 2 + 1, 0xa0 + i, link);
        at[i] = (rd_locality_t){0, (int16_t)(1 - i / 2), rd_pci_number(link + strlen("bus/pci/devices/"))};
    }
    for (int d = 0; d < 8; d++) { /* the first two below the last switch */
        int below = 3 - d / 2;
        size_t used = strlen(folders);
        snprintf(link, sizeof link, "class/infiniband/rdmap%ds0/device", d + 1);
        device_make(sys, below / 2, below % 2 + 1, 0xb0 + d, link);
        snprintf(folders + used, sizeof folders - used, "%s%s/%s", d > 0 ? "," : "", sys, link);
    }
    for (node.self = 0; node.self < 4; node.self++) {
        const int want = 2 * (3 - node.self), got = rd_node_rail(&node, names, sys);
        CHECK(got == want, "rank %d: device %d, not %d", node.self, got, want);
        CHECK(rd_node_rail(&node, folders, sys) == want, "rank %d by folders: device %d, not %d", node.self,
              rd_node_rail(&node, folders, sys), want);
    }
    at[0].gpu = rd_pci_number("0000:EE:00.0"); /* /sys does not show it: the rank is bound to NUMA node 1 */
    node.self = 0;
    CHECK(rd_node_rail(&node, names, sys) == 1, "device %d", rd_node_rail(&node, names, sys));
    gone(sys);
}

static void addresses(void)
{
    char text[16];

    rd_pci_print(rd_pci_number("0001:1A:1f.7"), text);
    CHECK(strcmp(text, "0001:1a:1f.7") == 0, "%s", text);
    CHECK(rd_pci_number("") == 0 && rd_pci_number("mlx5_0:1") == 0 && rd_pci_number("10000:01:00.0") == 0);
}

int main(void)
{
    alarm(60);
    shares("0011", "01", "0011");
    shares("0101", "01", "0101");
    shares("1100", "01", "1100");
    shares("0000", "01", "0011"); /* both are used */
    shares("----", "01", "0101"); /* as if nothing was known */
    shares("0123", "--", "0101");
    shares("00112233", "3210", "33221100");
    shares("00000111", "0011", "01013232"); /* uneven */
    shares("012", "0", "000");
    shares("11111", "011", "12120");
    nearest_first();
    random_shares();
    names();
    gpus();
    addresses();
    return failures != 0;
}
