/* Where a process runs, by its affinity mask, on machines whose /sys is written here: one NUMA node, two packages of
 * two NUMA nodes whose numbers alternate, and one without the files; and on machines of so many processors that a plain
 * mask has no room for them. */
#define _GNU_SOURCE
#include "topo/locality.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/check.h"

static char sys[] = "/tmp/rondo-place-XXXXXX";
static bool played = true; /* or this machine */

const char *rd_locality_sys(void)
{
    return played ? sys : "/sys";
}

static void file_write(const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", sys, name);
    for (char *c = path + strlen(sys) + 1; (c = strchr(c, '/')); *c++ = '/') {
        *c = '\0';
        mkdir(path, 0700);
    }
    if (!(f = fopen(path, "w")) || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void place_is(const char *cpus, int package, int numa)
{
    rd_locality_t place;
    rd_processors_t mask;

    memset(&mask, 0, sizeof mask);
    for (const char *c = cpus; *c; c += strcspn(c, ","), c += *c == ',')
        CPU_SET_S((size_t)atoi(c), sizeof mask, mask.sets);
    place = rd_locality_of(sys, &mask);
    CHECK(place.package == package && place.numa == numa, "processors %s: package %d, NUMA node %d", cpus,
          place.package, place.numa);
}

static int count_of(int numa, int least)
{
    rd_processors_t mask;

    memset(&mask, 0, sizeof mask);
    for (size_t i = 0; i < 6; i++)
        CPU_SET_S(i, sizeof mask, mask.sets);
    bool narrower = rd_locality_narrow(sys, numa, least, &mask);
    int n = CPU_COUNT_S(sizeof mask, mask.sets);
    return narrower ? n : -n;
}

/* ---- what the kernel says: processors from `first` on are allowed, of `all` that it counts; 0: of this machine */

static size_t all, first;

int __real_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    if (!all)
        return __real_sched_getaffinity(pid, bytes, set);
    if (8 * bytes < all) {
        errno = EINVAL;
        return -1;
    }
    memset(set, 0, bytes);
    for (size_t k = first; k < all; k++)
        CPU_SET_S(k, bytes, set);
    return 0;
}

static void gpu_place_is(const char *bus, int package, int numa)
{
    const uint32_t gpu = rd_pci_number(bus);
    const rd_locality_t place = rd_locality_of_gpu(gpu);

    CHECK(place.package == package && place.numa == numa && place.gpu == gpu, "GPU %s: package %d, NUMA node %d", bus,
          place.package, place.numa);
}

/* After the four NUMA nodes have been written. */
static void devices(void)
{
    file_write("bus/pci/devices/0000:1a:00.0/numa_node", "2\n");
    file_write("bus/pci/devices/0000:1b:00.0/numa_node", "-1\n");
    CHECK(rd_locality_pci(sys, "0000:1A:00.0") == 2 && rd_locality_pci(sys, "0000:1b:00.0") == -1 &&
              rd_locality_pci(sys, "0000:1c:00.0") == -1,
          "NUMA nodes of devices");
    file_write("bus/pci/devices/0000:1d:00.0/numa_node", "3\n");
    first = 2; /* this thread is on NUMA node 1 */
    all = 4;
    gpu_place_is("0000:1A:00.0", 0, 2);
    gpu_place_is("0000:1b:00.0", 1, 1);
    gpu_place_is("0000:1d:00.0", 1, 1); /* its NUMA node has memory alone */
    gpu_place_is("", 1, 1);
    all = 0;
    CHECK(count_of(0, 1) == 2 && count_of(1, 2) == 2, "two processors of each are in the mask");
    CHECK(count_of(1, 3) == -6 && count_of(3, 1) == -6 && count_of(-1, 1) == -6 && count_of(9, 1) == -6, "left alone");
}

/* What a thread prefers, where the kernel lets it, and that it prefers nothing afterwards. */
static void memory(void)
{
    rd_locality_memory_t before;
    int mode = -1;

    rd_locality_memory_begin(&before, 0);
    if (before.changed && syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0)
        CHECK(mode == 1, "mode %d is not to prefer", mode);
    rd_locality_memory_end(&before);
    if (before.changed && syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0)
        CHECK(mode == before.mode, "mode %d stays", mode);
    rd_locality_memory_begin(&before, -1);
    CHECK(!before.changed, "no NUMA node");
    rd_locality_memory_end(&before);
    printf("a thread may %sprefer a NUMA node here\n", mode >= 0 ? "" : "not ");
}

static void mask_is(size_t allowed_first, size_t processors, int each, int members)
{
    cpu_set_t mask;

    first = allowed_first;
    all = processors;
    int got = rd_locality_mask(&mask);
    all = 0;
    CHECK(got == each && CPU_COUNT(&mask) == members, "processors %zu to %zu: %d members of %d each", allowed_first,
          processors - 1, CPU_COUNT(&mask), got);
}

static void many(void)
{
    mask_is(0, 1024, 1, 1024);
    mask_is(0, 1536, 2, 768);
    mask_is(1535, 1536, 2, 1);
    mask_is(0, 5000, 8, 625);
    mask_is(0, 2 << 20, 1, 0); /* more than anybody has */
}

/* The thread may run on those from `from` on, of 2,048: the upper half is on the other NUMA node. */
static void place_of_many_is(size_t from, int package, int numa)
{
    first = from;
    all = 2048;
    rd_locality_t place = rd_locality_here();
    all = 0;
    CHECK(place.package == package && place.numa == numa, "from processor %zu on: package %d, NUMA node %d", from,
          place.package, place.numa);
}

static void many_on_two_nodes(void)
{
    file_write("devices/system/node/online", "0-1\n");
    file_write("devices/system/node/node0/cpulist", "0-1023\n");
    file_write("devices/system/node/node1/cpulist", "1024-2047\n");
    file_write("devices/system/cpu/cpu1024/topology/physical_package_id", "1\n");
    place_of_many_is(1024, 1, 1);
    place_of_many_is(2047, 1, 1);
    place_of_many_is(1023, -1, -1);
}

int main(void)
{
    alarm(60);
    if (!mkdtemp(sys))
        return 1;
    place_is("0,1", -1, -1); /* nothing is known */
    file_write("devices/system/node/online", "0\n");
    place_is("0,1", 0, 0);
    file_write("devices/system/node/online", "0-3\n");
    file_write("devices/system/node/node0/cpulist", "0-1,16\n");
    file_write("devices/system/node/node1/cpulist", "2-3\n");
    file_write("devices/system/node/node2/cpulist", "4-5\n");
    file_write("devices/system/node/node3/cpulist", "\n"); /* memory alone */
    file_write("devices/system/cpu/cpu0/topology/physical_package_id", "0\n");
    file_write("devices/system/cpu/cpu2/topology/physical_package_id", "1\n");
    file_write("devices/system/cpu/cpu4/topology/physical_package_id", "0\n");
    place_is("0", 0, 0);
    place_is("1,16", 0, 0);
    place_is("3", 1, 1);
    place_is("5", 0, 2);
    place_is("1,4", 0, -1); /* two NUMA nodes of one package */
    place_is("1,2", -1, -1);
    place_is("0,2,4", -1, -1);
    devices();
    memory();
    many();
    many_on_two_nodes();
    played = false;
    rd_locality_t here = rd_locality_here();
    CHECK(here.package >= -1 && here.numa >= -1, "this machine");
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", sys);
    return failures != 0 || system(command) != 0;
}
