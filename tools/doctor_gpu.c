/* rondo-info doctor, the GPUs: what NVML says of each that a job may trip over, and whether every pair moves data. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor_pairs.h"
#include "info.h"
#include "topo/nvml.h"

#define PAIR_LIMIT_MS 20000

typedef struct gpus {
    const rd_nvml_t *nvml;
    rd_gpu_topo_t topo;
    nvmlDevice_t device[RD_GPUS_MOST];
} gpus_t;

/* "0 2 5": those GPUs whose bit is set. */
static const char *list(unsigned bits, char text[64])
{
    int n = 0;

    text[0] = '\0';
    for (int g = 0; g < RD_GPUS_MOST; g++)
        if (bits >> g & 1)
            n += snprintf(text + n, 64 - (size_t)n, "%s%d", n ? " " : "", g);
    return text;
}

/* GPUs of which `ask` gives another number than `wanted`; those that cannot say count as well. */
static unsigned differing(const gpus_t *g, int (*desc)(nvmlDevice_t, unsigned *), unsigned wanted)
{
    unsigned bits = 0, value;

    for (int i = 0; i < g->topo.count; i++)
        if (desc(g->device[i], &value) == NVML_SUCCESS && value != wanted)
            bits |= 1u << i;
    return bits;
}

static void models(const gpus_t *g)
{
    const rd_gpu_t *first = &g->topo.gpu[0];
    char version[80] = "unknown", text[64];
    unsigned other = 0, links = 0;

    (void)g->nvml->SystemGetDriverVersion(version, sizeof version);
    for (int i = 1; i < g->topo.count; i++) {
        other |= (unsigned)(strcmp(g->topo.gpu[i].name, first->name) != 0) << i;
        links |= (unsigned)(g->topo.gpu[i].switched != first->switched) << i;
    }
    if (other)
        info_found(INFO_NOTE, "models", "leave the slower ones out by CUDA_VISIBLE_DEVICES: they set the pace for all",
                   "%d GPUs, driver %s, GPU 0 is a %s, and GPU %s another", g->topo.count, version, first->name,
                   list(other, text));
    else
        info_found(INFO_WELL, "models", NULL, "%d x %s, driver %s", g->topo.count, first->name, version);
    if (links)
        info_found(INFO_NOTE, "NVLinks", "nvidia-smi nvlink -s and -e show which links are down, and their errors",
                   "GPU 0 has %d links to NVSwitch, GPU %s another number", first->switched, list(links, text));
}

static void clocks(const gpus_t *g)
{
    unsigned most[2] = {0, 0}, applied[2] = {0, 0}, mhz;

    for (int i = 0; i < g->topo.count; i++) {
        if (g->nvml->DeviceGetMaxClockInfo(g->device[i], NVML_CLOCK_SM, &mhz) == NVML_SUCCESS) {
            most[0] = most[0] && most[0] < mhz ? most[0] : mhz;
            most[1] = most[1] > mhz ? most[1] : mhz;
        }
        if (g->nvml->DeviceGetApplicationsClock(g->device[i], NVML_CLOCK_SM, &mhz) == NVML_SUCCESS) {
            applied[0] = applied[0] && applied[0] < mhz ? applied[0] : mhz;
            applied[1] = applied[1] > mhz ? applied[1] : mhz;
        }
    }
    if (most[0] != most[1])
        info_found(INFO_NOTE, "clocks", "the slowest sets the pace for all", "GPUs go up to %u MHz, and up to %u MHz",
                   most[0], most[1]);
    else if (applied[0] != applied[1])
        info_found(INFO_NOTE, "clocks", "nvidia-smi -rac and -rgc, as root, take the settings back",
                   "applications get %u MHz on one GPU and %u MHz on another", applied[0], applied[1]);
    else if (most[0])
        info_found(INFO_WELL, "clocks", NULL, "alike, up to %u MHz", most[0]);
}

static int mig_now(nvmlDevice_t device, unsigned *mode)
{
    unsigned pending;
    const char *why;

    return rd_nvml(&why)->DeviceGetMigMode(device, mode, &pending);
}

static int ecc_now(nvmlDevice_t device, unsigned *mode)
{
    unsigned pending;
    const char *why;

    return rd_nvml(&why)->DeviceGetEccMode(device, mode, &pending);
}

static void modes(const gpus_t *g)
{
    unsigned off = differing(g, g->nvml->DeviceGetPersistenceMode, 1), exclusive = 0, prohibited = 0, mode;
    unsigned mig = differing(g, mig_now, 0);
    char text[64];

    if (off)
        info_found(INFO_NOTE, "persistence", "nvidia-smi -pm 1, as root, or the service nvidia-persistenced",
                   "off on GPU %s: each job's first process waits seconds for the driver", list(off, text));
    else
        info_found(INFO_WELL, "persistence", NULL, "on");
    for (int i = 0; i < g->topo.count; i++)
        if (g->nvml->DeviceGetComputeMode(g->device[i], &mode) == NVML_SUCCESS) {
            exclusive |= (unsigned)(mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS) << i;
            prohibited |= (unsigned)(mode == NVML_COMPUTEMODE_PROHIBITED) << i;
        }
    if (prohibited)
        info_found(INFO_WRONG, "compute mode", "nvidia-smi -c DEFAULT, as root", "GPU %s may not be used at all",
                   list(prohibited, text));
    else if (exclusive)
        info_found(INFO_NOTE, "compute mode", "nvidia-smi -c DEFAULT, as root, or MPS, if ranks are to share a GPU",
                   "one process a GPU on GPU %s: a second rank there fails", list(exclusive, text));
    else
        info_found(INFO_WELL, "compute mode", NULL, "default");
    if (mig)
        info_found(INFO_WRONG, "MIG", "nvidia-smi -mig 0, as root: parts of a GPU reach no other one",
                   "GPU %s is divided", list(mig, text));
}

static void memory(const gpus_t *g)
{
    unsigned bad = 0, small = 0, off = differing(g, ecc_now, 1);
    unsigned long long errors;
    nvmlMemory_t bar1;
    char text[64];

    for (int i = 0; i < g->topo.count; i++) {
        if (g->nvml->DeviceGetTotalEccErrors(g->device[i], NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC,
                                             &errors) == NVML_SUCCESS)
            bad |= (unsigned)(errors != 0) << i;
        if (g->nvml->DeviceGetBAR1MemoryInfo(g->device[i], &bar1) == NVML_SUCCESS)
            small |= (unsigned)(bar1.total < (512ull << 20)) << i;
    }
    if (bad)
        info_found(INFO_WRONG, "ECC",
                   "nvidia-smi -q -d ECC says where; reset the GPU, and have it replaced if they return",
                   "errors that could not be corrected on GPU %s", list(bad, text));
    else if (off)
        info_found(INFO_NOTE, "ECC", "nvidia-smi -e 1, as root, and a restart", "off on GPU %s: wrong bits go unseen",
                   list(off, text));
    else
        info_found(INFO_WELL, "ECC", NULL, "on, no error that could not be corrected");
    if (small)
        info_found(INFO_NOTE, "BAR1", "\"Above 4G decoding\" and \"resizable BAR\" in the BIOS",
                   "less than 512 MB on GPU %s: peers on PCIe reach no more of its memory at once", list(small, text));
    else
        info_found(INFO_WELL, "BAR1", NULL, "large enough for peers on PCIe");
}

static void slots(const gpus_t *g)
{
    unsigned narrow = 0, now, most;
    char text[64];

    for (int i = 0; i < g->topo.count; i++)
        if (g->nvml->DeviceGetCurrPcieLinkWidth(g->device[i], &now) == NVML_SUCCESS &&
            g->nvml->DeviceGetMaxPcieLinkWidth(g->device[i], &most) == NVML_SUCCESS)
            narrow |= (unsigned)(now < most) << i;
    if (narrow)
        info_found(INFO_NOTE, "PCIe", "another slot, or the card or riser set anew",
                   "GPU %s has fewer lanes than it could have", list(narrow, text));
    else
        info_found(INFO_WELL, "PCIe", NULL, "every GPU has all its lanes");
}

static int any_entry(const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int any = 0;

    while (d && (e = readdir(d)))
        any |= e->d_name[0] != '.';
    if (d)
        closedir(d);
    return any;
}

static void around(const gpus_t *g)
{
    const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
    rd_gpu_path_t far = rd_gpu_farthest(&g->topo, g->topo.count);
    char control[300];

    snprintf(control, sizeof control, "%.250s/control", pipe && *pipe ? pipe : "/tmp/nvidia-mps");
    if (access(control, F_OK) == 0)
        info_found(INFO_NOTE, "MPS",
                   "where each rank has a GPU of its own it is not needed, and one client that crashes "
                   "may take others with it",
                   "it runs (%s)", control);
    if (far.near > RD_NEAR_NVLINK && far.near < RD_NEAR_UNKNOWN && any_entry("/sys/class/iommu"))
        info_found(INFO_NOTE, "IOMMU", "if pairs below fail: iommu=pt on the kernel's command line, or off in the BIOS",
                   "on, and GPUs reach each other over PCIe");
}

/* ---- pairs ---- */

typedef struct sum {
    int tried, well;
    double least, most; /* GB/s */
} sum_t;

static const char *remedy(pair_verdict_t verdict)
{
    switch (verdict) {
    case PAIR_NO_ACCESS:
        return "nvidia-smi topo -p2p rw says why; in a virtual machine or container both must be given to it whole";
    case PAIR_CORRUPT:
    case PAIR_HANGS:
        return "ACS or the IOMMU sends PCIe traffic a wrong way: switch ACS off on the bridges above both GPUs "
               "(setpci), "
               "boot with iommu=pt or off; over NVLink: nvidia-smi nvlink -e, and the fabric manager's log";
    case PAIR_KERNELS:
        return "send the output of rondo-info and of RONDO_DEBUG=info with a report";
    default:
        return "nvidia-smi and the kernel's log (dmesg | grep -i xid) say more";
    }
}

static void tried(void *arg, const pair_t *pair)
{
    static const char *const words[] = {"",      "has no peer access", "delivers wrong data",
                                        "hangs", "adds up wrong",      "fails"};
    sum_t *sum = arg;
    char name[32];

    sum->tried++;
    if (pair->verdict == PAIR_WELL) {
        sum->least = sum->well && sum->least < pair->gbps ? sum->least : pair->gbps;
        sum->most = sum->most > pair->gbps ? sum->most : pair->gbps;
        sum->well++;
        return;
    }
    snprintf(name, sizeof name, "GPU%d to GPU%d", pair->from, pair->to);
    info_found(INFO_WRONG, name, remedy(pair->verdict), "%s%s%s (%s to %s)", words[pair->verdict],
               *pair->text ? ": " : "", pair->text, pair->bus[0], pair->bus[1]);
}

static void pairs(int gpus)
{
    sum_t sum = {0, 0, 0, 0};
    char why[160];
    int devices = doctor_pairs(PAIR_LIMIT_MS, tried, &sum, why);

    if (devices < 0 && gpus)
        info_found(INFO_WRONG, "CUDA",
                   strstr(why, "not yet initialized")
                       ? "the fabric manager of this driver's version must run: systemctl "
                         "start nvidia-fabricmanager"
                   : strstr(why, "built without") ? "configure rondo with --with-cuda, or use host memory"
                                                  : "CUDA_VISIBLE_DEVICES, the container's devices, dmesg",
                   "it cannot be used: %s", why);
    else if (devices == 1)
        info_found(INFO_WELL, "pairs", NULL, "one GPU: there are none");
    else if (devices > 1 && sum.well == sum.tried)
        info_found(INFO_WELL, "pairs", NULL, "%d GPUs, all move data right, copies of %.1f to %.1f GB/s", devices,
                   sum.least, sum.most);
}

void info_doctor_gpu(const rd_env_t *env)
{
    const char *why = NULL;
    gpus_t g;

    (void)env;
    memset(&g, 0, sizeof g);
    g.nvml = rd_nvml(&why);
    if (!g.nvml || rd_gpu_topo_read(&g.topo, "") != RONDO_SUCCESS || g.topo.count == 0) {
        info_found(INFO_WELL, "GPUs", NULL, "none is known (%s): communicators are of host memory",
                   g.nvml ? g.topo.source : why);
        pairs(0);
        return;
    }
    int n = 0;
    for (unsigned i = 0; n < g.topo.count; i++)
        n += g.nvml->DeviceGetHandleByIndex_v2(i, &g.device[n]) == NVML_SUCCESS;
    models(&g);
    clocks(&g);
    modes(&g);
    memory(&g);
    slots(&g);
    around(&g);
    pairs(g.topo.count);
}
