/* What was detected, and what is built in. */
#include <stdio.h>

#include <sodium.h>

#include "core/transports.h"
#include "exec/cuda/cuda.h"
#include "exec/host/reduce.h"
#include "info.h"
#include "topo/topo.h"

static const char *or_unknown(const char *text)
{
    return *text ? text : "unknown";
}

static void cache(const char *name, size_t bytes, int threads)
{
    char text[24];

    if (bytes == 0)
        return;
    printf("  %s %s", name, rd_bytes_print(bytes, text));
    if (threads > 1)
        printf(" (%d threads share one)", threads);
    else if (threads == 1)
        printf(" (each thread its own)");
}

static void machine(const rd_topo_t *t)
{
    char text[24];

    printf("host          %s\n", t->host);
    printf("processor     %s\n", or_unknown(t->cpu));
    printf("              packages %d, NUMA nodes %d, cores %d, threads %d   [%s]\n", t->packages, t->numa, t->cores,
           t->threads, t->source);
    printf("usable        %d: affinity mask %d, control group ", t->usable, t->allowed);
    if (t->quota > 0)
        printf("%.2f cores\n", t->quota);
    else
        printf("without limit\n");
    printf("caches      ");
    cache("L1d", t->l1d, 0);
    cache("L2", t->l2, t->l2_threads);
    cache("L3", t->l3, t->l3_threads);
    printf("\nmemory        %.1f GiB, pages of %s", (double)t->memory / (1 << 30), rd_bytes_print(t->page, text));
    if (t->huge_page)
        printf(", huge pages of %s (anonymous: %s, shared: %s, reserved: %d)", rd_bytes_print(t->huge_page, text),
               or_unknown(t->huge_anonymous), or_unknown(t->huge_shared), t->huge_reserved);
    printf("\n");
}

static void transports(void)
{
    const rd_transport_ops_t *ops;
    int between = 0;

    for (int i = 0; (ops = rd_transport_at(i)); i++) {
        printf("%s%s, %s", i ? "              " : "\ntransports    ", ops->name,
               ops->reach == RD_WITHIN_NODE ? "within a node" : "between nodes");
        if (ops->version)
            printf("   [%s]", ops->version());
        printf("\n");
        between += ops->reach == RD_BETWEEN_NODES;
    }
    if (!between)
        printf("              none between nodes: built without UCX and libfabric\n");
}

int info_machine(const rd_env_t *env)
{
    int v = rondo_version();
    rd_topo_t topo;

    if (rd_topo_read(&topo, env->topo_file) != RONDO_SUCCESS)
        return 1;
    printf("rondo %d.%d.%d\n\n", v / 10000, v / 100 % 100, v % 100);
    machine(&topo);
    if (env->hostid[0])
        printf("RONDO_HOSTID  %s: ranks with another value count as on another node\n", env->hostid);
    transports();
    printf("reductions    %s\n", rd_reduce_simd_name());
    printf("topology      %s\n", rd_topo_backend());
    printf("bootstrap     libsodium %s\n", sodium_version_string());
    rd_cuda_print(stdout);
    return 0;
}
