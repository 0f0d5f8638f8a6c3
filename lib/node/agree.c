/* The exchange at creation: see agree.h. Cores are counted by machine (boot id), not by node, because several nodes may
 * be simulated on one machine (RONDO_HOSTID) and share its cores all the same. */
#include "node/agree.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/topo.h"
#include "base/fd.h"
#include "base/hash.h"

#define TUNER_BYTES 32 /* of a tuner's name that are compared */

typedef struct {
    int32_t version;
    int16_t device, each; /* `each`: processors that a member of `cores` stands for: rd_locality_mask */
    int32_t quota;
    int32_t processor;
    rd_locality_t locality;
    uint64_t tune;
    uint64_t machine;
    rd_env_alike_t env;
    char tuner[TUNER_BYTES];
    cpu_set_t cores;
} rank_facts_t;
_Static_assert(sizeof(rank_facts_t) <= 808, /* and 40 of the record around it, and 52 of TCP and IP */
               "creation goes on where no packet of more than 900 bytes passes: that is how "
               "rondo-info doctor --network tells it from a link that is dead");

uint64_t rd_machine_number(void)
{
    char text[64] = "";
    FILE *f = rd_file_read("/proc/sys/kernel/random/boot_id");

    if (f) {
        if (!fgets(text, sizeof text, f))
            text[0] = 0;
        fclose(f);
    }
    return rd_hash(RD_HASH_EMPTY, text, strlen(text));
}

static void fill(rank_facts_t *r, const rd_team_t *team, const rd_priced_t *priced)
{
    rd_topo_t topo;

    memset(r, 0, sizeof *r);
    r->version = RONDO_VERSION;
    r->device = team->device >= 0;
    rd_env_alike(team->env, &r->env);
    rd_topo_basic(&topo);
    r->quota = (int32_t)(topo.quota > 0 && topo.quota < 1 ? 1 : topo.quota);
    r->machine = rd_machine_number();
    r->processor = priced->processor;
    r->locality = rd_locality_of_gpu(team->gpu);
    r->tune = priced->tuned;
    snprintf(r->tuner, sizeof r->tuner, "%s", team->tuner ? team->tuner : "none");
    r->each = (int16_t)rd_locality_mask(&r->cores);
}

/* Compares two ranks. Every rank finds the same first difference, and so all fail in the same way. */
static rondo_result_t same(const rank_facts_t *a, const rank_facts_t *b, int rank, const rd_team_t *team)
{
    char of_a[RD_ENV_TEXT], of_b[RD_ENV_TEXT];
    const char *what = NULL;

    if (a->version != b->version) {
        what = "rondo's version";
        snprintf(of_a, sizeof of_a, "%d", a->version);
        snprintf(of_b, sizeof of_b, "%d", b->version);
    } else if (a->device != b->device) {
        what = "the device";
        snprintf(of_a, sizeof of_a, "%s", a->device ? "CUDA" : "host memory");
        snprintf(of_b, sizeof of_b, "%s", b->device ? "CUDA" : "host memory");
    } else if ((what = rd_env_difference(&a->env, &b->env, of_a, of_b)) == NULL && a->tune != b->tune) {
        what = "the prices of RONDO_TUNE (0: not set)";
        snprintf(of_a, sizeof of_a, "%llx", (unsigned long long)a->tune);
        snprintf(of_b, sizeof of_b, "%llx", (unsigned long long)b->tune);
    } else if (!what && memcmp(a->tuner, b->tuner, sizeof a->tuner) != 0) {
        what = "the tuner";
        snprintf(of_a, sizeof of_a, "%.*s", TUNER_BYTES, a->tuner);
        snprintf(of_b, sizeof of_b, "%.*s", TUNER_BYTES, b->tuner);
    }
    if (!what)
        return RONDO_SUCCESS;
    return rd_error(team->ctx, RONDO_ERR_INVALID_USAGE, "ranks differ in %s: rank 0 (%s) has %s, rank %d (%s) has %s",
                    what, rd_boot_whois(team->boot, 0), of_a, rank, rd_boot_whois(team->boot, rank), of_b);
}

typedef struct machine_rank {
    uint64_t machine;
    int rank;
} machine_rank_t;

static int by_machine(const void *a, const void *b)
{
    const machine_rank_t *x = a, *y = b;

    if (x->machine != y->machine)
        return x->machine < y->machine ? -1 : 1;
    return x->rank - y->rank;
}

/* Returns the cores that `count` ranks of one machine may use together, by the tightest limit of any of them. A
 * cgroup's quota may allow fewer than the masks show; that one rank is bound to few cores does not limit the others. */
static int machine_cores(const rank_facts_t *all, const machine_rank_t *ranks, int count)
{
    cpu_set_t together;
    int cores, each = 1;

    CPU_ZERO(&together);
    for (int i = 0; i < count; i++) {
        const rank_facts_t *r = &all[ranks[i].rank];
        CPU_OR(&together, &together, &r->cores);
        each = r->each > each ? r->each : each; /* of one that could not tell it is 1 */
    }
    cores = CPU_COUNT(&together) * each;
    for (int i = 0; i < count; i++) {
        const rank_facts_t *r = &all[ranks[i].rank];
        if (r->quota > 0 && r->quota < CPU_COUNT(&r->cores) * r->each && r->quota < cores)
            cores = r->quota;
    }
    return cores < 1 ? 1 : cores;
}

static void load_find(rd_agreed_t *agreed, const rank_facts_t *all, machine_rank_t *ranks, int rank, int nranks)
{
    for (int r = 0; r < nranks; r++)
        ranks[r] = (machine_rank_t){all[r].machine, r};
    qsort(ranks, (size_t)nranks, sizeof *ranks, by_machine);
    agreed->cores = INT_MAX;
    agreed->sharing = agreed->oversubscribed = 0;
    for (int first = 0, count; first < nranks; first += count) {
        for (count = 1; first + count < nranks && ranks[first + count].machine == ranks[first].machine; count++)
            continue;
        int cores = machine_cores(all, &ranks[first], count);
        agreed->cores = cores < agreed->cores ? cores : agreed->cores;
        agreed->sharing = count > agreed->sharing ? count : agreed->sharing;
        if (all[rank].machine == ranks[first].machine)
            agreed->oversubscribed = count > cores;
    }
}

static int lowest_processor(const rank_facts_t *all, int nranks)
{
    int number = all[0].processor;

    for (int r = 1; r < nranks; r++)
        number = all[r].processor < number ? all[r].processor : number;
    return number;
}

rondo_result_t rd_agree(rd_agreed_t *agreed, const rd_team_t *team, const rd_priced_t *priced)
{
    size_t nranks = (size_t)team->nranks;
    rank_facts_t *all = calloc(nranks, sizeof *all);
    machine_rank_t *ranks = malloc(nranks * sizeof *ranks);
    rd_locality_t *localities = malloc(nranks * sizeof *localities);
    rondo_result_t result = RONDO_ERR_NO_MEMORY;

    agreed->localities = NULL;
    if (!all || !ranks || !localities) {
        rd_error(team->ctx, result, "no memory for the records of %d ranks", team->nranks);
        goto free_both;
    }
    fill(&all[team->rank], team, priced);
    result = rd_boot_allgather(team->boot, all, sizeof *all);
    for (int r = 1; r < team->nranks && result == RONDO_SUCCESS; r++)
        if ((result = same(&all[0], &all[r], r, team)) != RONDO_SUCCESS)
            rd_boot_farewell_alike(team->boot);
    if (result == RONDO_SUCCESS) {
        load_find(agreed, all, ranks, team->rank, team->nranks);
        agreed->processor = lowest_processor(all, team->nranks);
        for (size_t r = 0; r < nranks; r++)
            localities[r] = all[r].locality;
        agreed->localities = localities;
        localities = NULL;
    }
free_both:
    free(localities);
    free(ranks);
    free(all);
    return result;
}
