/* The exchange at creation: see agree.h. Cores are counted by machine (boot id), not by node, because several nodes may
 * be played on one machine (RONDO_HOSTID) and share its cores all the same.
 */
#include "agree.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo.h"

typedef struct {
    int32_t version, device, check, slots, quota;
    uint64_t slot_bytes, slice_bytes, ll_max, pull_min, machine;
    char algo[sizeof((rd_env_t *)0)->algo], proto[32], transport[32];
    cpu_set_t cores;
} record_t;

static uint64_t machine_number(void)
{
    char text[64] = "";
    uint64_t h = 0xcbf29ce484222325u;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (f) {
        if (!fgets(text, sizeof text, f))
            text[0] = 0;
        fclose(f);
    }
    for (const char *c = text; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3u;
    return h;
}

static void fill(record_t *r, int device, const rd_env_t *env)
{
    rd_topo_t topo;

    memset(r, 0, sizeof *r);
    r->version = RONDO_VERSION;
    r->device = device >= 0;
    r->check = env->check;
    r->slots = env->slots;
    r->slot_bytes = env->slot_bytes;
    r->slice_bytes = env->slice_bytes;
    r->ll_max = env->ll_max;
    r->pull_min = env->pull_min;
    rd_topo_quick(&topo);
    r->quota = (int32_t)(topo.quota > 0 && topo.quota < 1 ? 1 : topo.quota);
    r->machine = machine_number();
    memcpy(r->algo, env->algo, sizeof r->algo);
    memcpy(r->proto, env->proto, sizeof r->proto);
    memcpy(r->transport, env->transport, sizeof r->transport);
    if (sched_getaffinity(0, sizeof r->cores, &r->cores) != 0)
        CPU_ZERO(&r->cores);
}

#define COMPARE(field, name, form, ...)                                                                                \
    if (memcmp(&a->field, &b->field, sizeof a->field) != 0)                                                            \
    return rd_error(                                                                                                   \
        who, RONDO_ERR_INVALID_USAGE, "ranks differ in %s: rank 0 (%s) has " form ", rank %d (%s) has " form, name,    \
        rd_boot_whois(boot, 0), __VA_ARGS__ a->field, rank, rd_boot_whois(boot, rank), __VA_ARGS__ b->field)

/* Every rank finds the same first difference, and so fails alike. */
static rondo_result_t same(const record_t *a, const record_t *b, int rank, rd_boot_t *boot, rd_who_t *who)
{
    COMPARE(version, "rondo's version", "%d", (int));
    COMPARE(device, "the device (0 host memory, 1 CUDA)", "%d", (int));
    COMPARE(check, "RONDO_CHECK", "%d", (int));
    COMPARE(slots, "RONDO_SLOTS", "%d", (int));
    COMPARE(slot_bytes, "RONDO_SLOT_BYTES", "%llu", (unsigned long long));
    COMPARE(slice_bytes, "RONDO_SLICE_BYTES", "%llu", (unsigned long long));
    COMPARE(ll_max, "RONDO_LL_MAX", "%llu", (unsigned long long));
    COMPARE(pull_min, "RONDO_PULL_MIN", "%llu", (unsigned long long));
    COMPARE(algo, "RONDO_ALGO", "'%s'", (const char *));
    COMPARE(proto, "RONDO_PROTO", "'%s'", (const char *));
    COMPARE(transport, "RONDO_TRANSPORT", "'%s'", (const char *));
    return RONDO_SUCCESS;
}

/* Ranks and usable cores of the machine on which rank `of` runs. */
static void machine_load(const record_t *all, int nranks, int of, int *ranks, int *cores)
{
    cpu_set_t together;

    CPU_ZERO(&together);
    *ranks = 0;
    for (int r = 0; r < nranks; r++) {
        if (all[r].machine != all[of].machine)
            continue;
        CPU_OR(&together, &together, &all[r].cores);
        ++*ranks;
    }
    *cores = CPU_COUNT(&together);
    /* A cgroup's quota may allow fewer than the mask shows; a rank that is bound to few cores does not. */
    if (all[of].quota > 0 && all[of].quota < CPU_COUNT(&all[of].cores) && all[of].quota < *cores)
        *cores = all[of].quota;
    if (*cores < 1)
        *cores = 1;
}

rondo_result_t rd_agree(rd_agreed_t *agreed, rd_boot_t *boot, int rank, int nranks, int device, const rd_env_t *env,
                        rd_who_t *who)
{
    record_t *all = calloc((size_t)nranks, sizeof *all);
    rondo_result_t result;

    if (!all)
        return rd_error(who, RONDO_ERR_NO_MEMORY, "no memory for the records of %d ranks", nranks);
    fill(&all[rank], device, env);
    result = rd_boot_allgather(boot, all, sizeof *all);
    for (int r = 1; r < nranks && result == RONDO_SUCCESS; r++)
        result = same(&all[0], &all[r], r, boot, who);
    agreed->cores = CPU_SETSIZE;
    for (int r = 0; r < nranks && result == RONDO_SUCCESS; r++) {
        int ranks, cores;
        machine_load(all, nranks, r, &ranks, &cores);
        if (cores < agreed->cores)
            agreed->cores = cores;
        if (r == rank)
            agreed->crowded = ranks > cores;
    }
    free(all);
    return result;
}
