/* Fuzz target: NCCL's XML of topologies, which RONDO_TOPO_FILE names. A file is taken or refused with a sentence that
 * names the variable; what was taken comes back the same when it is written and read again, its ways end where they
 * should, and a ring that is found visits every GPU once. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "topo/pack.h"
#include "topo/search.h"

#define GPUS 10 /* a search among more takes its full number of steps */

/* Few GPUs: an execution is to take little. */
static void pack(const rd_graph_t *g)
{
    rd_pack_t pack;

    for (rd_pack_kind_t kind = RD_PACK_RINGS; kind <= RD_PACK_ANY_ROOTS && g->ngpus > 1; kind++) {
        const int n = g->ngpus < 4 ? g->ngpus : 4;
        if (g->nlinks > 200 || !rd_pack_serves(n, kind == RD_PACK_PORTS || kind == RD_PACK_CROSSED ? g->nnets : 0))
            continue;
        if (rd_pack_search(&pack, g, g->gpu, n, kind) != RONDO_SUCCESS || !(pack.gbps <= pack.bound * 1.001))
            abort();
        rd_pack_free(&pack);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const rd_graph_origin_t origin = {"RONDO_TOPO_FILE", "fuzz"};

static const char *file_make(FILE **f, const void *data, size_t bytes)
{
    static char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    *f = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!*f || (bytes && fwrite(data, 1, bytes, *f) != bytes))
        exit(1);
    fflush(*f);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static int refused(rondo_result_t result)
{
    if (result != RONDO_SUCCESS && !strstr(rd_thread_error(), "RONDO_TOPO_FILE"))
        abort();
    return result != RONDO_SUCCESS;
}

static void again(const rd_xml_t *first)
{
    char *one, *two;
    size_t bytes, more;
    FILE *f = open_memstream(&one, &bytes), *file;
    rd_xml_t *second;

    rd_xml_write(first, f);
    fclose(f);
    if (refused(rd_xml_read(&second, file_make(&file, one, bytes), "RONDO_TOPO_FILE")))
        abort();
    f = open_memstream(&two, &more);
    rd_xml_write(second, f);
    fclose(f);
    if (bytes != more || memcmp(one, two, bytes) != 0)
        abort();
    fclose(file);
    rd_xml_free(second);
    free(one);
    free(two);
}

static void search(const rd_graph_t *g)
{
    int n = g->ngpus < GPUS ? g->ngpus : GPUS;
    rd_tour_t ring;

    for (int net = -1; n > 0 && net < g->nnets && net < 2; net++) {
        if (rd_tour_search(&ring, g, g->gpu, n, net < 0 ? -1 : g->net[net]) != RONDO_SUCCESS || ring.n != n)
            abort();
        for (int i = 0; i < n; i++)
            for (int k = 0; k < i; k++)
                if (ring.gpu[i] == ring.gpu[k])
                    abort();
        rd_tour_free(&ring);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static rd_gpu_topo_t topo;
    rd_graph_t graph;
    rd_xml_t *xml;
    FILE *f;

    if (!refused(rd_xml_read(&xml, file_make(&f, data, bytes), "RONDO_TOPO_FILE"))) {
        again(xml);
        if (!refused(rd_graph_read(&graph, xml, &origin))) {
            search(&graph);
            pack(&graph);
            (void)refused(rd_graph_matrix(&topo, &graph, &origin));
            rd_graph_free(&graph);
        }
        rd_xml_free(xml);
    }
    fclose(f);
    return 0;
}
