/* With hwloc: counts of the whole machine, caches, and recorded machines (RONDO_TOPO_FILE), so that what rondo derives
 * from a machine can be tested on machines that nobody here owns.
 */
#include "topo/topo.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>

const char *rd_topo_backend(void)
{
    static const char text[] = "hwloc " HWLOC_VERSION;

    return text;
}

static int count(hwloc_topology_t h, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(h, type);

    return n > 0 ? n : 0;
}

/* The smallest cache of a kind: sizes derived from it fit everywhere. */
static size_t cache(hwloc_topology_t h, hwloc_obj_type_t type, int *threads)
{
    size_t least = 0;

    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(h, type, o));) {
        if (o->attr->cache.size == 0 || (least && o->attr->cache.size >= least))
            continue;
        least = (size_t)o->attr->cache.size;
        if (threads)
            *threads = hwloc_bitmap_weight(o->cpuset);
    }
    return least;
}

static void record(rd_topo_t *topo, hwloc_topology_t h, int recorded)
{
    hwloc_obj_t root = hwloc_get_root_obj(h);
    hwloc_obj_t package = hwloc_get_obj_by_type(h, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    const char *host = hwloc_obj_get_info_by_name(root, "HostName");

    topo->packages = count(h, HWLOC_OBJ_PACKAGE);
    topo->numa = count(h, HWLOC_OBJ_NUMANODE);
    topo->cores = count(h, HWLOC_OBJ_CORE);
    topo->threads = count(h, HWLOC_OBJ_PU);
    topo->l1d = cache(h, HWLOC_OBJ_L1CACHE, NULL);
    topo->l2 = cache(h, HWLOC_OBJ_L2CACHE, &topo->l2_threads);
    topo->l3 = cache(h, HWLOC_OBJ_L3CACHE, &topo->l3_threads);
    if (model)
        snprintf(topo->cpu, sizeof topo->cpu, "%s", model);
    if (!recorded)
        return;
    topo->allowed = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(h));
    topo->memory = (size_t)root->total_memory;
    snprintf(topo->host, sizeof topo->host, "%s", host ? host : "recorded");
}

rondo_result_t rd_topo_walk(rd_topo_t *topo, const char *file)
{
    rondo_result_t result = RONDO_SUCCESS;
    hwloc_topology_t h;

    if (hwloc_topology_init(&h) != 0)
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "hwloc cannot be initialised: there is no memory");
    /* The machine as it is, not as it is allowed: what is allowed is told apart. Devices and memory caches cost time
     * and are not looked at. */
    hwloc_topology_set_flags(h, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(h, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(h, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (*file && hwloc_topology_set_xml(h, file) != 0) {
        result =
            rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                     "RONDO_TOPO_FILE=%.200s is not a machine recorded by hwloc (lstopo machine.xml makes one)", file);
        goto destroy;
    }
    if (hwloc_topology_load(h) != 0) {
        result = rd_error(NULL, RONDO_ERR_SYSTEM, "hwloc cannot read %.200s", *file ? file : "this machine");
        goto destroy;
    }
    snprintf(topo->source, sizeof topo->source, "%s%.40s", *file ? "recorded in " : rd_topo_backend(),
             *file && strrchr(file, '/') ? strrchr(file, '/') + 1 : file);
    record(topo, h, *file != '\0');
destroy:
    hwloc_topology_destroy(h);
    return result;
}
