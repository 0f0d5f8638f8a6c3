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
    int32_t version, device, check, slots, quota, cuda_channels, cuda_spare, cuda_fifos, cuda_blocks, cuda_crews,
        net_direct;
    int32_t processor; /* number of the built-in prices for it */
    uint64_t tune;     /* RONDO_TUNE's prices; 0: none */
    uint64_t slot_bytes, slice_bytes, ll_max, pull_min, cuda_bank, cuda_stage, cuda_round, cuda_copy, cuda_long,
        net_direct_min, machine;
    char algo[sizeof((rd_env_t *)0)->algo], proto[32], transport[32];
    cpu_set_t cores;
} record_t;

uint64_t rd_machine_number(void)
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

static void fill(record_t *r, int device, const rd_env_t *env, const rd_prices_t *prices)
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
    r->cuda_bank = env->cuda_bank;
    r->cuda_stage = env->cuda_stage;
    r->cuda_channels = env->cuda_channels;
    r->cuda_spare = env->cuda_spare;
    r->cuda_long = env->cuda_long;
    r->cuda_round = env->cuda_round;
    r->cuda_copy = env->cuda_copy;
    r->cuda_crews = env->cuda_crews;
    r->net_direct = env->net_direct;
    r->net_direct_min = env->net_direct_min;
    r->cuda_fifos = env->cuda_fifos;
    r->cuda_blocks = env->cuda_blocks;
    rd_topo_quick(&topo);
    r->quota = (int32_t)(topo.quota > 0 && topo.quota < 1 ? 1 : topo.quota);
    r->machine = rd_machine_number();
    r->processor = rd_prices_here();
    r->tune = env->tune[0] ? rd_prices_hash(prices) : 0;
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
    COMPARE(cuda_bank, "RONDO_CUDA_BANK", "%llu", (unsigned long long));
    COMPARE(cuda_stage, "RONDO_CUDA_STAGE", "%llu", (unsigned long long));
    COMPARE(cuda_channels, "RONDO_CUDA_CHANNELS", "%d", (int));
    COMPARE(cuda_spare, "RONDO_CUDA_SPARE", "%d", (int));
    COMPARE(cuda_long, "RONDO_CUDA_LONG", "%llu", (unsigned long long));
    COMPARE(cuda_round, "RONDO_CUDA_ROUND", "%llu", (unsigned long long));
    COMPARE(cuda_copy, "RONDO_CUDA_COPY", "%llu", (unsigned long long));
    COMPARE(cuda_crews, "RONDO_CUDA_CREWS", "%d", (int));
    COMPARE(net_direct, "RONDO_NET_DIRECT", "%d", (int));
    COMPARE(net_direct_min, "RONDO_NET_DIRECT_MIN", "%llu", (unsigned long long));
    COMPARE(cuda_fifos, "RONDO_CUDA_FIFOS", "%d", (int));
    COMPARE(cuda_blocks, "RONDO_CUDA_BLOCKS", "%d", (int));
    COMPARE(tune, "the prices of RONDO_TUNE (0: not set)", "%llx", (unsigned long long));
    COMPARE(algo, "RONDO_ALGO", "'%s'", (const char *));
    COMPARE(proto, "RONDO_PROTO", "'%s'", (const char *));
    COMPARE(transport, "RONDO_TRANSPORT", "'%s'", (const char *));
    return RONDO_SUCCESS;
}

typedef struct place {
    uint64_t machine;
    int rank;
} place_t;

static int by_machine(const void *a, const void *b)
{
    const place_t *x = a, *y = b;

    if (x->machine != y->machine)
        return x->machine < y->machine ? -1 : 1;
    return x->rank - y->rank;
}

/* Cores that `count` ranks of one machine may use together, as the tightest of them sees it. A cgroup's quota may allow
 * fewer than the mask shows; a rank that is bound to few cores does not. */
static int machine_cores(const record_t *all, const place_t *places, int count)
{
    cpu_set_t together;
    int cores;

    CPU_ZERO(&together);
    for (int i = 0; i < count; i++)
        CPU_OR(&together, &together, &all[places[i].rank].cores);
    cores = CPU_COUNT(&together);
    for (int i = 0; i < count; i++) {
        const record_t *r = &all[places[i].rank];
        if (r->quota > 0 && r->quota < CPU_COUNT(&r->cores) && r->quota < cores)
            cores = r->quota;
    }
    return cores < 1 ? 1 : cores;
}

static void load_find(rd_agreed_t *agreed, const record_t *all, place_t *places, int rank, int nranks)
{
    for (int r = 0; r < nranks; r++)
        places[r] = (place_t){all[r].machine, r};
    qsort(places, (size_t)nranks, sizeof *places, by_machine);
    agreed->cores = CPU_SETSIZE;
    agreed->sharing = agreed->crowded = 0;
    for (int first = 0, count; first < nranks; first += count) {
        for (count = 1; first + count < nranks && places[first + count].machine == places[first].machine; count++)
            continue;
        int cores = machine_cores(all, &places[first], count);
        agreed->cores = cores < agreed->cores ? cores : agreed->cores;
        agreed->sharing = count > agreed->sharing ? count : agreed->sharing;
        if (all[rank].machine == places[first].machine)
            agreed->crowded = count > cores;
    }
}

/* Where processors differ, all take the first of their tables. */
static void prices_find(rd_agreed_t *agreed, const record_t *all, int nranks, const rd_prices_t *own)
{
    int number = all[0].processor;

    for (int r = 1; r < nranks; r++)
        number = all[r].processor < number ? all[r].processor : number;
    agreed->prices = all[0].tune ? *own : *rd_prices_builtin(number);
}

rondo_result_t rd_agree(rd_agreed_t *agreed, rd_boot_t *boot, int rank, int nranks, int device, const rd_env_t *env,
                        rd_who_t *who)
{
    record_t *all = calloc((size_t)nranks, sizeof *all);
    place_t *places = malloc((size_t)nranks * sizeof *places);
    rondo_result_t result = RONDO_ERR_NO_MEMORY;
    rd_prices_t prices;
    int number;

    if (!all || !places) {
        rd_error(who, result, "no memory for the records of %d ranks", nranks);
        goto free_both;
    }
    result = rd_prices_find(&prices, &number, env->tune, who);
    if (result != RONDO_SUCCESS)
        goto free_both;
    fill(&all[rank], device, env, &prices);
    result = rd_boot_allgather(boot, all, sizeof *all);
    for (int r = 1; r < nranks && result == RONDO_SUCCESS; r++)
        if ((result = same(&all[0], &all[r], r, boot, who)) != RONDO_SUCCESS)
            rd_boot_farewell_alike(boot);
    if (result == RONDO_SUCCESS)
        load_find(agreed, all, places, rank, nranks);
    if (result == RONDO_SUCCESS)
        prices_find(agreed, all, nranks, &prices);
free_both:
    free(places);
    free(all);
    return result;
}
