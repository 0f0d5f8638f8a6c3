/* Shares network devices among the ranks of a node: see rails.h. */
#include "node/rails.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"

#define DEVICES_MOST 64

/* Where something lies in /sys, resolved, and its NUMA node. */
typedef struct seen {
    char folder[PATH_MAX]; /* "": /sys does not show it */
    int numa;              /* -1: unknown */
} seen_t;

/* ---- what /sys says ---- */

static bool see(seen_t *device, const char *path)
{
    char file[PATH_MAX + 16], text[32];

    if (!realpath(path, device->folder)) {
        device->folder[0] = '\0';
        return false;
    }
    snprintf(file, sizeof file, "%s/numa_node", device->folder);
    device->numa = rd_topo_line(file, text, sizeof text) == 0 ? atoi(text) : -1;
    return true;
}

static bool see_named(seen_t *device, const char *sys, const char *name, size_t length)
{
    static const char *const classes[] = {"infiniband", "net", "cxi"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        snprintf(path, sizeof path, "%s/class/%s/%.*s/device", sys, classes[i], (int)length, name);
        if (see(device, path))
            return true;
    }
    return false;
}

/* Finds a device by whatever name a library gives it: "mlx5_0:1", "eth0", "cxi0", "rdmap16s27-rdm" (libfabric adds the
 * kind of endpoint), or its folder. */
static void device_find(seen_t *device, const char *sys, const char *name)
{
    char path[PATH_MAX];
    size_t all = strcspn(name, ","), length = strcspn(name, ":,");

    memset(device, 0, sizeof *device);
    device->numa = -1;
    if (name[0] == '/') {
        snprintf(path, sizeof path, "%.*s", (int)all, name);
        (void)see(device, path);
        return;
    }
    if (see_named(device, sys, name, length))
        return;
    while (length > 0 && name[length] != '-')
        length--;
    if (length > 0)
        (void)see_named(device, sys, name, length);
}

static void gpu_find(seen_t *gpu, const char *sys, uint32_t number)
{
    char bus[16], path[PATH_MAX];

    memset(gpu, 0, sizeof *gpu);
    gpu->numa = -1;
    if (number == 0)
        return;
    rd_pci_print(number, bus);
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s", sys, bus);
    (void)see(gpu, path);
}

/* A GPU that /sys does not show, as in some virtual machines, is taken to be where its rank is bound to. */
static rd_near_t near_of(const seen_t *gpu, int bound, const seen_t *device)
{
    int numa = gpu->folder[0] && gpu->numa >= 0 ? gpu->numa : bound;
    bool same = numa >= 0 && device->numa == numa;

    if (gpu->folder[0] && device->folder[0])
        return rd_pci_near(gpu->folder, device->folder, same);
    return same ? RD_NEAR_NODE : RD_NEAR_SYS;
}

/* ---- the share ---- */

typedef struct sharing {
    const rd_near_t *near;
    int ndevices, nranks;
    int most;                /* ranks of a device */
    int users[DEVICES_MOST]; /* of each device, so far */
    int *device;             /* of each rank; -1: none yet */
} sharing_t;

/* Of the pairs of a rank without a device and a device with room: the nearest, then that whose device has the fewest
 * ranks, then the first. */
static void pair_next(sharing_t *s)
{
    int rank = -1, device = 0;

    for (int r = 0; r < s->nranks; r++)
        for (int d = 0; d < s->ndevices && s->device[r] < 0; d++) {
            const rd_near_t near = s->near[r * s->ndevices + d];
            const rd_near_t best = rank < 0 ? RD_NUM_NEAR : s->near[rank * s->ndevices + device];
            if (s->users[d] < s->most && (near < best || (near == best && s->users[d] < s->users[device]))) {
                rank = r;
                device = d;
            }
        }
    s->device[rank] = device;
    s->users[device]++;
}

int rd_node_share(const rd_near_t *near, int ndevices, int nranks, int self)
{
    sharing_t s = {near, ndevices, nranks, (nranks + ndevices - 1) / ndevices, {0}, NULL};
    int mine = -1;

    if (ndevices > DEVICES_MOST || !(s.device = malloc((size_t)nranks * sizeof *s.device)))
        return -1;
    for (int r = 0; r < nranks; r++)
        s.device[r] = -1;
    while (s.device[self] < 0)
        pair_next(&s);
    mine = s.device[self];
    free(s.device);
    return mine;
}

static int share_by_sys(const rd_node_t *node, const char *list, int n, const char *sys)
{
    rd_near_t *near = malloc((size_t)n * (size_t)node->nlocal * sizeof *near);
    seen_t *device = malloc(((size_t)n + 1) * sizeof *device), *gpu = device + n;
    int mine = -1;

    if (near && device) {
        const char *name = list;
        for (int d = 0; d < n; d++, name += strcspn(name, ","), name += *name == ',')
            device_find(&device[d], sys, name);
        for (int r = 0; r < node->nlocal; r++) {
            gpu_find(gpu, sys, node->at[r].gpu);
            for (int d = 0; d < n; d++)
                near[r * n + d] = near_of(gpu, node->at[r].numa, &device[d]);
        }
        mine = rd_node_share(near, n, node->nlocal, node->self);
    }
    free(near);
    free(device);
    return mine;
}

int rd_node_rail(const rd_node_t *node, const char *list, const char *sys)
{
    int n = 0, mine = -1;

    for (const char *c = list; *c && n < DEVICES_MOST; c += strcspn(c, ","), c += *c == ',')
        n++;
    if (n > 1 && node->at)
        mine = share_by_sys(node, list, n, sys);
    return mine < 0 ? node->self : mine;
}

void rd_node_rail_name(const char *list, int rail, char *name, size_t bytes)
{
    int n = 1;

    for (const char *c = list; *c; c++)
        n += *c == ',';
    for (rail %= n; rail > 0; rail--)
        list += strcspn(list, ",") + 1;
    snprintf(name, bytes, "%.*s", (int)strcspn(list, ","), list);
}
