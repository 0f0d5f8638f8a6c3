/* What every backend needs: the few questions that the system answers at once. */
#include "topo/topo.h"

#include "topo/graph.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"

/* glibc knows the caches without reading files; where it does not, sysconf(-1) says so. */
#ifdef _SC_LEVEL2_CACHE_SIZE
#define SC_L1D _SC_LEVEL1_DCACHE_SIZE
#define SC_L2 _SC_LEVEL2_CACHE_SIZE
#define SC_L3 _SC_LEVEL3_CACHE_SIZE
#else
#define SC_L1D (-1)
#define SC_L2 (-1)
#define SC_L3 (-1)
#endif

int rd_topo_line(const char *path, char *text, size_t bytes)
{
    FILE *f = rd_file_read(path);
    char *got;

    if (!f)
        return -1;
    got = fgets(text, (int)bytes, f);
    fclose(f);
    if (!got)
        return -1;
    text[strcspn(text, "\n")] = '\0';
    return 0;
}

/* Bytes in a "Name:   123 kB" line of /proc/meminfo or an alike; 0: not there. */
static size_t meminfo(const char *name)
{
    FILE *f = rd_file_read("/proc/meminfo");
    unsigned long long kib = 0;
    char line[128];
    size_t length = strlen(name);

    if (!f)
        return 0;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            break;
        else
            line[0] = '\0';
    fclose(f);
    return line[0] && sscanf(line + length + 1, "%llu", &kib) == 1 ? (size_t)kib * 1024 : 0;
}

/* The word in brackets: "always [madvise] never". */
static void choice_read(const char *path, char *word, size_t bytes)
{
    char line[128], *begin, *end;

    if (rd_topo_line(path, line, sizeof line) != 0 || !(begin = strchr(line, '[')) || !(end = strchr(begin, ']')))
        return;
    *end = '\0';
    snprintf(word, bytes, "%s", begin + 1);
}

/* One group's own limit in cores; 0: none. Version 2 writes "max 100000" or "150000 100000", version 1 two files. */
static double group_quota(const char *directory)
{
    char path[1200], text[64];
    double quota, period;

    snprintf(path, sizeof path, "%s/cpu.max", directory);
    if (rd_topo_line(path, text, sizeof text) == 0)
        return sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
    if (rd_topo_line(path, text, sizeof text) != 0 || (quota = atof(text)) <= 0)
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    if (rd_topo_line(path, text, sizeof text) != 0 || (period = atof(text)) <= 0)
        return 0;
    return quota / period;
}

/* The limits of a group and of all above it hold together. */
static double path_quota(const char *mount, const char *controller, const char *group)
{
    char path[1024];
    size_t root = (size_t)snprintf(path, sizeof path, "%s%s", mount, controller);
    double least = 0;

    if (root >= sizeof path || (size_t)snprintf(path + root, sizeof path - root, "%s", group) >= sizeof path - root)
        return 0;
    for (;;) {
        double quota = group_quota(path);
        char *slash;

        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        if (strlen(path) <= root || !(slash = strrchr(path + root, '/')))
            return least;
        *slash = '\0';
    }
}

static bool names_cpu(const char *controllers)
{
    for (const char *c = controllers; *c; c += strcspn(c, ","), c += *c == ',')
        if (strcspn(c, ",") == 3 && memcmp(c, "cpu", 3) == 0)
            return true;
    return false;
}

double rd_topo_quota(const char *self, const char *mount)
{
    FILE *f = rd_file_read(self);
    char line[1024];
    double least = 0;

    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':'), *group;
        double quota = 0;

        line[strcspn(line, "\n")] = '\0';
        if (!controllers || !(group = strchr(controllers + 1, ':')))
            continue;
        *group++ = '\0';
        controllers++;
        if (*controllers == '\0') /* version 2: "0::/group" */
            quota = path_quota(mount, "", group);
        else if (names_cpu(controllers)) /* version 1: "4:cpu,cpuacct:/group" */
            quota = path_quota(mount, "/cpu", group);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
    }
    fclose(f);
    return least;
}

static int allowed_threads(void)
{
    /* The kernel refuses a set smaller than its own, so it grows until it fits. */
    for (int most = 1024; most <= 1 << 20; most *= 2) {
        cpu_set_t *set = CPU_ALLOC(most);
        int count = 0;

        if (!set)
            break;
        if (sched_getaffinity(0, CPU_ALLOC_SIZE(most), set) == 0)
            count = CPU_COUNT_S(CPU_ALLOC_SIZE(most), set);
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    return 1;
}

static size_t sysconf_bytes(int name)
{
    long value = sysconf(name);

    return value > 0 ? (size_t)value : 0;
}

static void usable_set(rd_topo_t *t)
{
    t->usable = t->allowed;
    /* 1.5 cores of quota run two threads some of the time: counted as one, waiting must not burn the quota. */
    if (t->quota > 0 && t->quota < t->usable)
        t->usable = (int)t->quota;
    if (t->usable < 1)
        t->usable = 1;
}

void rd_topo_basic(rd_topo_t *topo)
{
    char text[64];

    memset(topo, 0, sizeof *topo);
    snprintf(topo->source, sizeof topo->source, "system");
    if (gethostname(topo->host, sizeof topo->host - 1) != 0)
        snprintf(topo->host, sizeof topo->host, "?");
    topo->allowed = allowed_threads();
    topo->quota = rd_topo_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    usable_set(topo);
    topo->threads = (int)sysconf_bytes(_SC_NPROCESSORS_ONLN);
    topo->page = sysconf_bytes(_SC_PAGESIZE);
    topo->memory = sysconf_bytes(_SC_PHYS_PAGES) * topo->page;
    topo->l1d = sysconf_bytes(SC_L1D);
    topo->l2 = sysconf_bytes(SC_L2);
    topo->l3 = sysconf_bytes(SC_L3);
    if (rd_topo_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text) == 0)
        topo->huge_page = (size_t)strtoull(text, NULL, 10);
    choice_read("/sys/kernel/mm/transparent_hugepage/enabled", topo->huge_anonymous, sizeof topo->huge_anonymous);
    choice_read("/sys/kernel/mm/transparent_hugepage/shmem_enabled", topo->huge_shared, sizeof topo->huge_shared);
}

static void model_read(rd_topo_t *topo)
{
    FILE *f = rd_file_read("/proc/cpuinfo");
    char line[256];

    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');

        if (!colon || (strncmp(line, "model name", 10) != 0 && strncmp(line, "Model", 5) != 0))
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(topo->cpu, sizeof topo->cpu, "%.63s", colon + 1 + strspn(colon + 1, " \t"));
        break;
    }
    fclose(f);
}

rondo_result_t rd_topo_file_there(const char *file)
{
    FILE *f = rd_file_read(file);

    if (!f)
        return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "RONDO_TOPO_FILE=%.200s: %s", file, strerror(errno));
    fclose(f);
    return RONDO_SUCCESS;
}

rondo_result_t rd_topo_read(rd_topo_t *topo, const char *file)
{
    rd_topo_t new;
    rondo_result_t result = *file ? rd_topo_file_there(file) : RONDO_SUCCESS;
    char text[64];

    if (result != RONDO_SUCCESS)
        return result;
    rd_topo_basic(&new);
    if (*file && (rd_gpu_topo_is(file) || rd_graph_is(file))) /* it has GPUs alone: the processors are this machine's */
        file = "";
    if (*file) { /* only the size of a page is taken from here: the rest is the recorded machine's */
        size_t page = new.page;

        memset(&new, 0, sizeof new);
        new.page = page;
    } else {
        model_read(&new);
        if (!new.huge_page)
            new.huge_page = meminfo("Hugepagesize");
        if (rd_topo_line("/proc/sys/vm/nr_hugepages", text, sizeof text) == 0)
            new.huge_reserved = atoi(text);
    }
    result = rd_topo_walk(&new, file);
    if (result != RONDO_SUCCESS)
        return result;
    usable_set(&new);
    *topo = new;
    return RONDO_SUCCESS;
}
