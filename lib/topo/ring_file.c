/* Rings in and out of NCCL's XML of graphs: see ring_file.h. */
#include "topo/ring_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
#define RING_ID 0
#define RING_PATTERN 4
#define MACHINE_SHIFT 56 /* NCCL_TOPO_ID of NCCL's topo.h */

typedef struct reading {
    const char *file, *variable;
    const rd_xml_t *first; /* channel of the ring */
    rd_ring_gpu_t *gpu;    /* of the first channel */
    int n;
} reading_t;

static rondo_result_t wrong(const reading_t *r, const rd_xml_t *e, const char *what, const char *more)
{
    return rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT, "%s=%.200s, line %d, <%.40s>: %s%.60s", r->variable, r->file,
                    e->line, e->name, what, more);
}

/* NCCL reads `dev` as hexadecimal, whether it begins with 0x or not. */
static int64_t dev_of(const rd_xml_t *e)
{
    const char *text = rd_xml_get(e, "dev");
    const int64_t of_machine = ((int64_t)1 << MACHINE_SHIFT) - 1;
    char *end;
    long long dev;

    if (!text || !*text)
        return -1;
    errno = 0;
    dev = strtoll(text, &end, 16);
    return errno || *end || dev < 0 || (dev & of_machine) >= RD_GRAPH_MOST ? -1 : dev;
}

static rondo_result_t number_is(const reading_t *r, const rd_xml_t *e, const char *name, long least, long most,
                                long *number)
{
    bool bad = false;

    *number = rd_xml_number(e, name, -1, &bad);
    return bad || *number < least || *number > most ? wrong(r, e, "its attribute lacks or is no such number: ", name)
                                                    : RONDO_SUCCESS;
}

static rondo_result_t gpu_read(reading_t *r, const rd_xml_t *e, rd_ring_gpu_t *list, int n)
{
    long rank = -1;
    const int64_t dev = dev_of(e);

    if (dev < 0)
        return wrong(r, e, "dev must be the number of a device, in hexadecimal", "");
    if (rd_xml_get(e, "rank") && number_is(r, e, "rank", 0, 1 << 30, &rank) != RONDO_SUCCESS)
        return RONDO_ERR_INVALID_ARGUMENT;
    if (n == RD_GRAPH_MOST)
        return wrong(r, e, "a ring has at most 1024 GPUs", "");
    if (n > 0 && (rank < 0) != (list[0].rank < 0))
        return wrong(r, e, "some GPUs of the ring have a rank and others have none", "");
    for (int i = 0; i < n; i++)
        if (rank < 0 ? list[i].dev == dev : list[i].rank == rank)
            return wrong(r, e, rank < 0 ? "the ring has this GPU before" : "the ring has this rank before", "");
    list[n] = (rd_ring_gpu_t){dev, (int)rank};
    return RONDO_SUCCESS;
}

/* Is every GPU of the channel one of the first channel's? */
static bool has_same(const reading_t *r, const rd_ring_gpu_t *list, int n)
{
    bool same = n == r->n;

    for (int i = 0; i < n && same; i++) {
        int k = 0;
        while (k < n && (r->gpu[k].dev != list[i].dev || r->gpu[k].rank != list[i].rank))
            k++;
        same = k < n;
    }
    return same;
}

static rondo_result_t channel_read(reading_t *r, const rd_xml_t *channel, rd_ring_gpu_t *list)
{
    rondo_result_t result = RONDO_SUCCESS;
    int n = 0, nets = 0;

    for (const rd_xml_t *e = channel->first; e && result == RONDO_SUCCESS; e = e->next)
        if (rd_xml_named(e, "gpu") && (result = gpu_read(r, e, list, n)) == RONDO_SUCCESS)
            n++;
        else if (rd_xml_named(e, "net") && (++nets > 2 || dev_of(e) < 0))
            result = wrong(r, e, nets > 2 ? "a ring comes in by one device and leaves by one" : "dev is no number", "");
    if (result != RONDO_SUCCESS)
        return result;
    if (n == 0 || nets == 1)
        return wrong(r, channel, n == 0 ? "the ring has no GPU" : "it comes in by a device and does not leave", "");
    if (!r->first) {
        r->first = channel;
        r->n = n;
        memcpy(r->gpu, list, (size_t)n * sizeof *list);
    }
    return has_same(r, list, n) ? RONDO_SUCCESS
                                : wrong(r, channel, "it has not the same GPUs as the ring's first channel", "");
}

static rondo_result_t graph_read(reading_t *r, const rd_xml_t *graph, rd_ring_gpu_t *list)
{
    rondo_result_t result;
    long pattern, channels, count = 0;

    if ((result = number_is(r, graph, "pattern", RING_PATTERN, RING_PATTERN, &pattern)) ||
        (result = number_is(r, graph, "nchannels", 1, 64, &channels)))
        return result;
    if (r->first)
        return wrong(r, graph, "there is a ring before", "");
    for (const rd_xml_t *e = graph->first; e && result == RONDO_SUCCESS; e = e->next)
        if (rd_xml_named(e, "channel")) {
            count++;
            result = channel_read(r, e, list);
        }
    if (result == RONDO_SUCCESS && count != channels)
        return wrong(r, graph, "it has another number of channels than nchannels says", "");
    return result;
}

static rondo_result_t graphs_read(reading_t *r, const rd_xml_t *graphs, rd_ring_gpu_t *list)
{
    rondo_result_t result;
    long version, id;

    if (!rd_xml_named(graphs, "graphs"))
        return wrong(r, graphs, "NCCL's graphs begin with <graphs>", "");
    result = number_is(r, graphs, "version", VERSION, VERSION, &version);
    for (const rd_xml_t *e = graphs->first; e && result == RONDO_SUCCESS; e = e->next)
        if (rd_xml_named(e, "graph") && (result = number_is(r, e, "id", 0, 1 << 30, &id)) == RONDO_SUCCESS &&
            id == RING_ID)
            result = graph_read(r, e, list);
    if (result == RONDO_SUCCESS && !r->first)
        return wrong(r, graphs, "it has no ring (a <graph> with id 0 and pattern 4)", "");
    return result;
}

rondo_result_t rd_ring_read(rd_ring_read_t *ring, const char *file, const char *variable)
{
    reading_t r = {.file = file, .variable = variable};
    rd_ring_gpu_t *list = NULL;
    rd_xml_t *graphs;
    rondo_result_t result = rd_xml_read(&graphs, file, variable);

    if (result != RONDO_SUCCESS)
        return result;
    r.gpu = calloc(RD_GRAPH_MOST, sizeof *r.gpu);
    list = calloc(RD_GRAPH_MOST, sizeof *list);
    result = r.gpu && list ? graphs_read(&r, graphs, list)
                           : rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory to read %.200s", file);
    if (result == RONDO_SUCCESS) {
        *ring = (rd_ring_read_t){.n = r.n, .gpu = r.gpu, .line = r.first->line, .ranked = true};
        for (int i = 0; i < r.n; i++)
            ring->ranked = ring->ranked && r.gpu[i].rank >= 0;
    } else {
        free(r.gpu);
    }
    free(list);
    rd_xml_free(graphs);
    return result;
}

const char *rd_ring_order(const rd_ring_read_t *ring, const int *numbers, int n, bool ranked, int *order)
{
    if (ring->n != n)
        return "its ring has another number of GPUs";
    for (int i = 0; i < n; i++) {
        const int64_t wanted = ranked ? ring->gpu[i].rank : ring->gpu[i].dev;
        int k = 0;
        while (k < n && numbers[k] != wanted)
            k++;
        if (k == n)
            return ranked ? "its ring has a rank that is not there" : "its ring has a GPU that is not there";
        for (int before = 0; before < i; before++)
            if (order[before] == k)
                return "its ring has a GPU twice";
        order[i] = k;
    }
    return NULL;
}

/* ---- out ---- */

/* NCCL has no word for NVLink to the processor's chip here. */
static const char *way_word(rd_way_t way)
{
    return rd_way_name(way == RD_WAY_C2C ? RD_WAY_PHB : way);
}

static int channel_write(rd_xml_t *channel, const rd_graph_t *graph, const rd_tour_t *ring, const int *rank)
{
    int failed = channel == NULL;

    for (int i = 0; i < ring->n && !failed; i++) {
        rd_xml_t *gpu = rd_xml_make(channel, "gpu");
        failed = !gpu || rd_xml_put(gpu, "dev", "0x%x", (unsigned)graph->node[ring->gpu[i]].number) ||
                 (rank && rd_xml_put(gpu, "rank", "%d", rank[i]));
    }
    return failed;
}

static int ring_write(rd_xml_t *root, const rd_graph_t *graph, const rd_tour_t *ring, const int *rank)
{
    rd_xml_t *e = rd_xml_make(root, "graph");
    /* Without a locale: "%.1f" would write a comma in some. */
    const int whole = (int)ring->gbps, tenths = (int)((ring->gbps - whole) * 10);

    return !e || rd_xml_put(root, "version", "%d", VERSION) || rd_xml_put(e, "id", "%d", RING_ID) ||
           rd_xml_put(e, "pattern", "%d", RING_PATTERN) || rd_xml_put(e, "crossnic", "0") ||
           rd_xml_put(e, "nchannels", "1") || rd_xml_put(e, "speedintra", "%d.%d", whole, tenths) ||
           rd_xml_put(e, "speedinter", "%d.%d", whole, tenths) || rd_xml_put(e, "latencyinter", "0") ||
           rd_xml_put(e, "typeintra", "%s", way_word(ring->worst)) || rd_xml_put(e, "typeinter", "PIX") ||
           rd_xml_put(e, "samechannels", "1") || channel_write(rd_xml_make(e, "channel"), graph, ring, rank);
}

rondo_result_t rd_ring_xml(rd_xml_t **graphs, const rd_graph_t *graph, const rd_tour_t *ring, const int *rank)
{
    rd_xml_t *root;

    if (ring->gbps <= 0)
        return rd_error(NULL, RONDO_ERR_UNSUPPORTED, "there is no ring of %d GPUs, so none can be written", ring->n);
    root = rd_xml_make(NULL, "graphs");
    if (!root || ring_write(root, graph, ring, rank)) {
        rd_xml_free(root);
        return rd_error(NULL, RONDO_ERR_NO_MEMORY, "no memory for the graph of a ring");
    }
    *graphs = root;
    return RONDO_SUCCESS;
}
