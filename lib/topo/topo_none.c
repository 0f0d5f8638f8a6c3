/* Without hwloc: the machine as /sys/devices/system tells it. An object (package, core, cache) is counted at its lowest
 * thread, so that no table of what was seen is needed.
 */
#include "topo/topo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS "/sys/devices/system/cpu"
#define PATH_TEXT 192
#define LIST_TEXT 4096

const char *rd_topo_backend(void)
{
    return "/sys";
}

/* A file with a list such as "0-3,8,10-11": how many members (0: no such file), and the lowest. */
static int list_read(const char *path, int *lowest)
{
    char text[LIST_TEXT], *list = text;
    int count = 0, from, to, n;

    *lowest = -1;
    if (rd_topo_line(path, text, sizeof text) != 0)
        return 0;
    while (sscanf(list, "%d%n", &from, &n) == 1) {
        list += n;
        to = from;
        if (*list == '-' && sscanf(list, "-%d%n", &to, &n) == 1)
            list += n;
        if (*lowest < 0)
            *lowest = from;
        count += to - from + 1;
        if (*list++ != ',')
            break;
    }
    return count;
}

static void cache_read(rd_topo_t *topo, int cpu)
{
    for (int i = 0; i < 8; i++) {
        char path[PATH_TEXT], type[32], text[32];
        unsigned long long bytes;
        int level, lowest, threads;
        size_t *cache;

        snprintf(path, sizeof path, CPUS "/cpu%d/cache/index%d/type", cpu, i);
        if (rd_topo_line(path, type, sizeof type) != 0)
            return;
        snprintf(path, sizeof path, CPUS "/cpu%d/cache/index%d/level", cpu, i);
        if (strncmp(type, "Instruction", 11) == 0 || rd_topo_line(path, text, sizeof text) != 0)
            continue;
        level = atoi(text);
        snprintf(path, sizeof path, CPUS "/cpu%d/cache/index%d/size", cpu, i);
        if (rd_topo_line(path, text, sizeof text) != 0 || sscanf(text, "%llu", &bytes) != 1)
            continue;
        bytes *= strchr(text, 'K') ? 1024 : strchr(text, 'M') ? 1 << 20 : 1;
        snprintf(path, sizeof path, CPUS "/cpu%d/cache/index%d/shared_cpu_list", cpu, i);
        threads = list_read(path, &lowest);
        cache = level == 1 ? &topo->l1d : level == 2 ? &topo->l2 : level == 3 ? &topo->l3 : NULL;
        if (!cache || (*cache && *cache <= bytes && (level == 1 || topo->l2_threads)))
            continue;
        *cache = bytes;
        if (level == 2)
            topo->l2_threads = threads;
        if (level == 3)
            topo->l3_threads = threads;
    }
}

rondo_result_t rd_topo_walk(rd_topo_t *topo, const char *file)
{
    char path[PATH_TEXT];
    int lowest, online, most;

    if (*file)
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED,
                        "RONDO_TOPO_FILE=%.200s: recorded machines need hwloc, without which this rondo was built",
                        file);
    snprintf(topo->source, sizeof topo->source, "%s", rd_topo_backend());
    topo->l1d = topo->l2 = topo->l3 = 0;
    online = list_read(CPUS "/online", &lowest);
    most = online > 0 ? online * 8 + 64 : 0; /* numbers may have gaps */
    for (int cpu = 0, seen = 0; cpu < most && seen < online; cpu++) {
        snprintf(path, sizeof path, CPUS "/cpu%d/topology/core_cpus_list", cpu);
        if (!list_read(path, &lowest))
            continue;
        seen++;
        topo->cores += lowest == cpu;
        snprintf(path, sizeof path, CPUS "/cpu%d/topology/package_cpus_list", cpu);
        topo->packages += list_read(path, &lowest) > 0 && lowest == cpu;
        if (seen == 1)
            cache_read(topo, cpu);
    }
    topo->threads = online > 0 ? online : topo->threads;
    topo->numa = list_read("/sys/devices/system/node/online", &lowest);
    return RONDO_SUCCESS;
}
