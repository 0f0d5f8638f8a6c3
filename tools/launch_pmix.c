/* The ranks of a job by PMIx, which Open MPI's and Slurm's daemons serve: what ranks tell each other goes by the
 * launcher's own connections, so it arrives where a firewall stands between the nodes and an MPI could not start. The
 * library is loaded when it is needed. Its structs are those of the PMIx standard, whose layout is fixed from version 2
 * on. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch_int.h"

#define RANKS_MOST 128 /* every word that is exchanged stays in the daemons' memory until the job ends */

enum { PMIX_BOOL = 1, PMIX_UINT32 = 14, PMIX_BYTE_OBJECT = 27, PMIX_GLOBAL = 3 };
#define PMIX_RANK_WILDCARD (UINT32_MAX - 1)

typedef struct proc {
    char space[256];
    uint32_t rank;
} proc_t;

typedef struct value {
    uint16_t type;
    union {
        bool flag;
        uint32_t number;
        struct {
            char *bytes;
            size_t size;
        } object;
        uint64_t room[6]; /* no member is larger */
    } data;
} value_t;

typedef struct info {
    char key[512];
    uint32_t flags;
    value_t value;
} info_t;

static struct {
    int (*init)(proc_t *, info_t *, size_t);
    int (*finalize)(const info_t *, size_t);
    int (*put)(uint8_t, const char *, value_t *);
    int (*commit)(void);
    int (*fence)(const proc_t *, size_t, const info_t *, size_t);
    int (*get)(const proc_t *, const char *, const info_t *, size_t, value_t **);
    proc_t self, *members;
    int n, gathers;
} pmix;

static bool load(void)
{
    void *library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);

    return library && launch_find(library, "PMIx_Init", &pmix.init) &&
           launch_find(library, "PMIx_Finalize", &pmix.finalize) && launch_find(library, "PMIx_Put", &pmix.put) &&
           launch_find(library, "PMIx_Commit", &pmix.commit) && launch_find(library, "PMIx_Fence", &pmix.fence) &&
           launch_find(library, "PMIx_Get", &pmix.get);
}

static int job_size(void)
{
    proc_t job = pmix.self;
    value_t *size = NULL;

    job.rank = PMIX_RANK_WILDCARD;
    if (pmix.get(&job, "pmix.job.size", NULL, 0, &size) != 0 || size->type != PMIX_UINT32)
        return -1;
    int n = (int)size->data.number;
    free(size);
    return n;
}

/* An MPI cannot start any more in a process that PMIx has been ended in, so what speaks against it is asked before. */
static bool start(int *rank, int *nranks)
{
    const char *open = getenv("OMPI_COMM_WORLD_SIZE"), *slurm = getenv("SLURM_STEP_NUM_TASKS");

    if (!getenv("PMIX_RANK") || (open && atoi(open) > RANKS_MOST) || (!open && slurm && atoi(slurm) > RANKS_MOST))
        return false;
    if (!load() || pmix.init(&pmix.self, NULL, 0) != 0)
        return false;
    pmix.n = job_size();
    pmix.members = pmix.n > 0 ? calloc((size_t)pmix.n, sizeof *pmix.members) : NULL;
    if (!pmix.members)
        return false;
    for (int r = 0; r < pmix.n; r++) {
        pmix.members[r] = pmix.self;
        pmix.members[r].rank = (uint32_t)r;
    }
    *rank = (int)pmix.self.rank;
    *nranks = pmix.n;
    return true;
}

/* Each time under another key, because a value that has been read once may be kept. */
static int gather(const void *mine, void *all, size_t bytes)
{
    value_t own = {.type = PMIX_BYTE_OBJECT, .data.object = {(char *)(size_t)mine, bytes}}, *value;
    info_t collect = {.key = "pmix.collect", .value = {.type = PMIX_BOOL, .data.flag = true}};
    char key[64];

    snprintf(key, sizeof key, "rondo.doctor.%d", pmix.gathers++);
    if (pmix.put(PMIX_GLOBAL, key, &own) != 0 || pmix.commit() != 0 ||
        pmix.fence(pmix.members, (size_t)pmix.n, &collect, 1) != 0)
        return -1;
    for (int i = 0; i < pmix.n; i++) {
        if (pmix.get(&pmix.members[i], key, NULL, 0, &value) != 0)
            return -1;
        bool good = value->type == PMIX_BYTE_OBJECT && value->data.object.size == bytes;
        if (good)
            memcpy((char *)all + (size_t)i * bytes, value->data.object.bytes, bytes);
        if (value->type == PMIX_BYTE_OBJECT)
            free(value->data.object.bytes);
        free(value);
        if (!good)
            return -1;
    }
    return 0;
}

static int keep(bool stays)
{
    bool *all = calloc((size_t)pmix.n, sizeof *all);
    int n = 0, result = all ? gather(&stays, all, sizeof stays) : -1;

    for (int i = 0; i < pmix.n && result == 0; i++)
        if (all[i])
            pmix.members[n++] = pmix.members[i];
    if (result == 0)
        pmix.n = n;
    free(all);
    return result;
}

static void end(void)
{
    pmix.finalize(NULL, 0);
    free(pmix.members);
}

const launch_ops_t launch_pmix = {start, gather, keep, end};
