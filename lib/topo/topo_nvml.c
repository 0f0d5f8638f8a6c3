/* The GPUs of this machine: what they are and their NVLinks from NVML, how far PCI devices are apart, and which NUMA
 * node they belong to, from the paths in /sys. */
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "topo/nvml.h"
#include "topo/topo_gpu.h"
#include "base/fd.h"

/* What is found on the way. Where each device's folder lies, resolved; "" where /sys does not show it (containers,
 * virtual machines). */
typedef struct folders {
    char gpu[RD_GPUS_MOST][PATH_MAX], nic[RD_NICS_MOST][PATH_MAX];
    bool unanswered[RD_GPUS_MOST]; /* NVML has not said what NVLinks the GPU has */
} folders_t;

static int number_read(const char *folder, const char *file)
{
    char path[PATH_MAX + 32];
    int number = -1;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!(f = rd_file_read(path)))
        return -1;
    if (fscanf(f, "%d", &number) != 1)
        number = -1;
    fclose(f);
    return number;
}

/* NVML writes eight digits of domain, everybody else four. */
static void bus_shorten(char to[20], const char *bus)
{
    size_t n = strcspn(bus, ":");

    snprintf(to, 20, "%.12s", n > 4 ? bus + n - 4 : bus);
    for (char *c = to; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'F' ? *c - 'A' + 'a' : *c);
}

/* ---- GPUs ---- */

static void gpu_ask(const rd_nvml_t *nvml, nvmlDevice_t device, rd_gpu_t *gpu)
{
    nvmlMemory_t memory = {0, 0, 0};
    nvmlPciInfo_t pci;
    unsigned number;

    memset(gpu, 0, sizeof *gpu);
    memset(&pci, 0, sizeof pci);
    if (nvml->DeviceGetName(device, gpu->name, sizeof gpu->name) != NVML_SUCCESS)
        strcpy(gpu->name, "a GPU");
    if (nvml->DeviceGetPciInfo_v3(device, &pci) == NVML_SUCCESS)
        bus_shorten(gpu->bus, pci.busId);
    if (nvml->DeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS)
        gpu->memory_mb = (int)(memory.total >> 20);
    (void)nvml->DeviceGetCudaComputeCapability(device, &gpu->major, &gpu->minor);
    if (nvml->DeviceGetMaxPcieLinkGeneration(device, &number) == NVML_SUCCESS)
        gpu->pcie_gen = (int)number;
    if (nvml->DeviceGetMaxPcieLinkWidth(device, &number) == NVML_SUCCESS)
        gpu->pcie_width = (int)number;
}

/* Returns true for an error that says nothing about the machine: the driver was busy, or another failure of the moment.
 */
static bool is_passing(int error)
{
    return error != NVML_SUCCESS && error != NVML_ERROR_INVALID_ARGUMENT && error != NVML_ERROR_NOT_SUPPORTED &&
           error != NVML_ERROR_NO_PERMISSION && error != NVML_ERROR_FUNCTION_NOT_FOUND;
}

/* What is known of one link. */
typedef struct link {
    unsigned active, type;
    char bus[20]; /* at its other end */
} link_t;

/* Returns NVML's error; NVML_SUCCESS also for a link that is not there. A driver that cannot tell what is at the other
 * end still says where a link goes. */
static int link_ask(const rd_nvml_t *nvml, nvmlDevice_t device, unsigned number, link_t *link)
{
    nvmlPciInfo_t pci;

    memset(&pci, 0, sizeof pci);
    *link = (link_t){0, NVML_NVLINK_DEVICE_TYPE_UNKNOWN, ""};
    int error = nvml->DeviceGetNvLinkState(device, number, &link->active);
    if (error != NVML_SUCCESS)
        link->active = 0;
    if (link->active && is_passing(error = nvml->DeviceGetNvLinkRemoteDeviceType(device, number, &link->type)))
        return error;
    if (link->active && link->type != NVML_NVLINK_DEVICE_TYPE_SWITCH &&
        (error = nvml->DeviceGetNvLinkRemotePciInfo_v2(device, number, &pci)) != NVML_SUCCESS)
        link->active = 0;
    bus_shorten(link->bus, pci.busId);
    return is_passing(error) ? error : NVML_SUCCESS;
}

/* NVLinks of GPU `g`: to a switch, or straight to another GPU; what is no GPU's address is a switch's. Returns false if
 * NVML fails with one of them however often it is asked: then nothing must be concluded from a link that is missing. */
static bool links_ask(const rd_nvml_t *nvml, nvmlDevice_t device, rd_gpu_topo_t *t, int g)
{
    const struct timespec millisecond = {0, 1000000};

    for (unsigned number = 0; number < NVML_NVLINK_MAX_LINKS; number++) {
        bool known = false;
        link_t link;

        int error = link_ask(nvml, device, number, &link);
        for (int again = 0; again < 5 && error != NVML_SUCCESS; again++) {
            nanosleep(&millisecond, NULL);
            error = link_ask(nvml, device, number, &link);
        }
        if (error != NVML_SUCCESS)
            return false;
        if (!link.active)
            continue;
        for (int i = 0; i < t->count; i++)
            if (i != g && strcmp(t->gpu[i].bus, link.bus) == 0) {
                t->gpu[g].to[i].links++;
                known = true;
            }
        t->gpu[g].switched +=
            !known && (link.type == NVML_NVLINK_DEVICE_TYPE_SWITCH || link.type == NVML_NVLINK_DEVICE_TYPE_UNKNOWN);
    }
    return true;
}

/* ---- network devices ---- */

static void nic_add(rd_gpu_topo_t *t, folders_t *at, const char *folder, const char *name)
{
    char link[PATH_MAX], device[PATH_MAX];
    const char *bus;

    snprintf(link, sizeof link, "%s/%s/device", folder, name);
    if (t->nnics == RD_NICS_MOST || !realpath(link, device))
        return;
    bus = strrchr(device, '/') + 1;
    if (!strchr(bus, ':') || strlen(bus) >= sizeof t->nic[0].bus) /* no PCI device: a bridge, a virtio port */
        return;
    for (int i = 0; i < t->nnics; i++)
        if (strcmp(t->nic[i].bus, bus) == 0) /* its other name */
            return;
    strcpy(at->nic[t->nnics], device);
    snprintf(t->nic[t->nnics].bus, sizeof t->nic[0].bus, "%s", bus);
    snprintf(t->nic[t->nnics].name, sizeof t->nic[0].name, "%.31s", name);
    t->nic[t->nnics++].numa = number_read(device, "numa_node");
}

/* In the order of their names: directories have none. */
static void nics_find(rd_gpu_topo_t *t, folders_t *at, const char *sys, const char *class)
{
    char folder[PATH_MAX - 300];
    struct dirent **entries;
    int n;

    snprintf(folder, sizeof folder, "%s/class/%s", sys, class);
    n = scandir(folder, &entries, NULL, versionsort);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.')
            nic_add(t, at, folder, entries[i]->d_name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

/* ---- both ---- */

static rd_near_t near_of(const char *a, int numa_a, const char *b, int numa_b)
{
    return *a && *b ? rd_pci_near(a, b, numa_a == numa_b) : RD_NEAR_UNKNOWN;
}

static void distances(rd_gpu_topo_t *t, const folders_t *at)
{
    for (int g = 0; g < t->count; g++) {
        rd_gpu_t *gpu = &t->gpu[g];

        for (int i = 0; i < t->count; i++) {
            const rd_gpu_t *other = &t->gpu[i];
            int switched = gpu->switched < other->switched ? gpu->switched : other->switched;

            if (i != g && gpu->to[i].links == 0)
                gpu->to[i].links = switched;
            gpu->to[i].near = i == g             ? RD_NEAR_SELF
                              : gpu->to[i].links ? RD_NEAR_NVLINK
                              : at->unanswered[g] || at->unanswered[i]
                                  ? RD_NEAR_UNKNOWN
                                  : near_of(at->gpu[g], gpu->numa, at->gpu[i], other->numa);
        }
        for (int i = 0; i < t->nnics; i++)
            gpu->nic[i] = near_of(at->gpu[g], gpu->numa, at->nic[i], t->nic[i].numa);
    }
}

rondo_result_t rd_gpu_topo_walk(rd_gpu_topo_t *t, const char *sys)
{
    const char *why = NULL;
    const rd_nvml_t *nvml = rd_nvml(&why);
    nvmlDevice_t device[RD_GPUS_MOST];
    char link[PATH_MAX];
    unsigned count = 0;
    folders_t *at;

    if (!nvml || nvml->DeviceGetCount_v2(&count) != NVML_SUCCESS || count == 0) {
        snprintf(t->source, sizeof t->source, "NVML: %.80s", nvml ? "it names no GPU" : why);
        return RONDO_SUCCESS;
    }
    if (!(at = calloc(1, sizeof *at)))
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the list of GPUs");
    snprintf(t->source, sizeof t->source, "NVML and /sys");
    for (unsigned i = 0; i < count && t->count < RD_GPUS_MOST; i++)
        if (nvml->DeviceGetHandleByIndex_v2(i, &device[t->count]) == NVML_SUCCESS) {
            gpu_ask(nvml, device[t->count], &t->gpu[t->count]);
            t->count++;
        }
    for (int g = 0; g < t->count; g++) {
        at->unanswered[g] = !links_ask(nvml, device[g], t, g);
        snprintf(link, sizeof link, "%s/bus/pci/devices/%s", sys, t->gpu[g].bus);
        if (!realpath(link, at->gpu[g]))
            at->gpu[g][0] = '\0';
        t->gpu[g].numa = number_read(at->gpu[g], "numa_node");
    }
    nics_find(t, at, sys, "infiniband");
    nics_find(t, at, sys, "net");
    distances(t, at);
    free(at);
    return RONDO_SUCCESS;
}
