/* Machines as graphs: NCCL's XML comes back as it was written, ways have the kind and the rate that the file says,
 * files that are wrong are refused with their line, and the search's rings are right.
 *
 *   rings  of 10,000 random machines of 2 to 8 GPUs: the ring, closed and by a port, visits every GPU once, and carries
 *          as much as the best of all orders, each judged apart
 *   order  of elements, and the numbers of devices, leave the ring as it is, and large machines take few steps
 *   files  read(write(x)) = x; the matrix is that of nvidia-smi topo -m on such machines
 */
#include "topo/search.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/machines.h"
#include "topo/random_machine.h"
#include "util/check.h"
#include "util/comma.h"

static rondo_result_t text_read(rd_graph_t *graph, const char *text)
{
    FILE *f;
    const char *path = machine_file(&f);
    rondo_result_t result;

    fputs(text, f);
    fflush(f);
    result = rd_graph_get(graph, path, "NCCL_TOPO_FILE");
    fclose(f);
    return result;
}

/* ---- reading and writing ---- */

static char *written(const rd_xml_t *xml)
{
    char *text;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);

    if (!f)
        exit(1);
    rd_xml_write(xml, f);
    fclose(f);
    return text;
}

static void machine_write(FILE *f, int which)
{
    if (which == 0)
        machine_dgx1v(f);
    else if (which == 1)
        machine_nvswitch(f, 1, 8, 90);
    else if (which == 2)
        machine_nvswitch(f, 18, 4, 100);
    else
        machine_uneven(f);
}

static bool machine_get(rd_graph_t *graph, int which)
{
    FILE *f;
    const char *path = machine_file(&f);

    machine_write(f, which);
    fflush(f);
    bool got = rd_graph_is(path) && rd_graph_get(graph, path, "NCCL_TOPO_FILE") == RONDO_SUCCESS;
    CHECK(got, "machine %d: %s", which, rd_thread_error());
    fclose(f);
    return got;
}

static void round_trip(int which)
{
    FILE *f, *again;
    const char *path = machine_file(&f);
    rd_xml_t *first = NULL, *second = NULL;

    machine_write(f, which);
    fflush(f);
    if (rd_xml_read(&first, path, "NCCL_TOPO_FILE") != RONDO_SUCCESS) {
        CHECK(0, "%s", rd_thread_error());
        fclose(f);
        return;
    }
    char *one = written(first);
    path = machine_file(&again);
    fputs(one, again);
    fflush(again);
    CHECK(rd_xml_read(&second, path, "NCCL_TOPO_FILE") == RONDO_SUCCESS, "%s", rd_thread_error());
    char *two = written(second);
    CHECK(strcmp(one, two) == 0, "machine %d comes back otherwise", which);
    if (which == 3)
        CHECK(strstr(one, "<future size=\"2\">") && strstr(one, "site=\"a &amp; b\"") && strstr(one, "keep=\"1\""),
              "what is unknown is lost: %s", one);
    free(one);
    free(two);
    rd_xml_free(first);
    rd_xml_free(second);
    fclose(f);
    fclose(again);
}

static void matrices(void)
{
    static const rd_graph_origin_t origin = {"NCCL_TOPO_FILE", "a test"};
    static rd_gpu_topo_t t;
    rd_graph_t g;

    if (machine_get(&g, 0)) {
        CHECK(rd_graph_matrix(&t, &g, &origin) == RONDO_SUCCESS && t.count == 8 && t.nnics == 4, "cube mesh");
        CHECK(t.gpu[0].to[3].near == RD_NEAR_NVLINK && t.gpu[0].to[3].links == 2 && t.gpu[0].to[1].links == 1,
              "two bricks to GPU 3");
        CHECK(t.gpu[0].to[5].near == RD_NEAR_SYS && t.gpu[0].nic[0] == RD_NEAR_PIX && t.gpu[0].nic[1] == RD_NEAR_PHB &&
                  t.gpu[0].nic[2] == RD_NEAR_SYS && t.gpu[7].nic[3] == RD_NEAR_PIX,
              "PCIe of the cube mesh");
        CHECK(strcmp(t.gpu[0].bus, "0000:11:00.0") == 0 && strcmp(t.nic[0].bus, "0000:13:00.0") == 0 &&
                  t.gpu[4].numa == 1 && t.gpu[0].pcie_gen == 3,
              "%s %s", t.gpu[0].bus, t.nic[0].bus);
        rd_graph_free(&g);
    }
    if (machine_get(&g, 1)) {
        CHECK(rd_graph_matrix(&t, &g, &origin) == RONDO_SUCCESS && t.gpu[2].to[6].near == RD_NEAR_NVLINK &&
                  t.gpu[2].to[6].links == 18 && t.gpu[2].switched == 18 && t.gpu[2].pcie_gen == 5,
              "NVSwitch: NV%d", t.gpu[2].to[6].links);
        rd_graph_free(&g);
    }
    if (machine_get(&g, 2)) {
        CHECK(g.ngpus == 72 && g.nnets == 72, "%d GPUs, %d ports", g.ngpus, g.nnets);
        CHECK(rd_graph_matrix(&t, &g, &origin) != RONDO_SUCCESS && strstr(rd_thread_error(), "72 GPUs"), "too large");
        rd_graph_free(&g);
    }
    if (machine_get(&g, 3)) {
        CHECK(rd_graph_matrix(&t, &g, &origin) == RONDO_SUCCESS && t.count == 7 && t.nnics == 1, "uneven");
        CHECK(t.gpu[0].to[1].near == RD_NEAR_PIX && t.gpu[1].to[2].near == RD_NEAR_PHB &&
                  t.gpu[3].to[4].near == RD_NEAR_SYS && t.gpu[4].nic[0] == RD_NEAR_PHB &&
                  strcmp(t.gpu[0].bus, "0000:0a:00.0") == 0,
              "PCIe of the uneven machine");
        rd_graph_free(&g);
    }
}

/* What a matrix is written as reads as the same matrix, as far as XML can say it. */
static void from_matrix(void)
{
    static const char *const names[] = {"a100-8", "a100-pcie-4", "h200-8", "h200-2", "one"};
    const rd_graph_origin_t origin = {"RONDO_TOPO_FILE", "a test"};
    const char *top = getenv("top_srcdir");

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        static rd_gpu_topo_t want, got;
        char file[1024];
        rd_graph_t g;
        snprintf(file, sizeof file, "%s/test/topo/%s.gpus", top ? top : ".", names[i]);
        if (rd_gpu_topo_read(&want, file) || rd_graph_get(&g, file, "RONDO_TOPO_FILE") ||
            rd_graph_matrix(&got, &g, &origin)) {
            CHECK(0, "%s", rd_thread_error());
            continue;
        }
        CHECK(got.count == want.count && got.nnics == want.nnics, "%s: %d GPUs, %d ports", names[i], got.count,
              got.nnics);
        for (int a = 0; a < want.count; a++) {
            for (int b = 0; b < want.count; b++)
                CHECK(got.gpu[a].to[b].near == want.gpu[a].to[b].near &&
                          got.gpu[a].to[b].links == want.gpu[a].to[b].links,
                      "%s: %d to %d is %d, %d links", names[i], a, b, got.gpu[a].to[b].near, got.gpu[a].to[b].links);
            for (int b = 0; b < want.nnics; b++)
                CHECK(got.gpu[a].nic[b] == want.gpu[a].nic[b], "%s: %d to port %d", names[i], a, b);
        }
        rd_graph_free(&g);
    }
}

/* Files that are short, but whose graph would take much to search: devices without end, and NUMA nodes of which each
 * reaches every other one. */
static void too_large(void)
{
    static const struct {
        int count;
        const char *before, *each, *after, *says;
    } files[] = {
        {30000, "<cpu>", "<pci busid=\"%d\"/>\n", "</cpu>", "at most 8192 NUMA nodes, switches and devices"},
        {900, "", "<cpu numaid=\"%d\"/>\n", "", "at most 131072 links"},
    };
    rd_graph_t g;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *text = malloc((size_t)files[i].count * 40 + 100), *at = text;
        if (!text)
            exit(1);
        at += sprintf(at, "<system>%s", files[i].before);
        for (int k = 0; k < files[i].count; k++)
            at += sprintf(at, files[i].each, k);
        sprintf(at, "%s</system>", files[i].after);
        CHECK(text_read(&g, text) != RONDO_SUCCESS, "%d times %s", files[i].count, files[i].each);
        CHECK(strstr(rd_thread_error(), files[i].says), "%s", rd_thread_error());
        free(text);
    }
}

/* PCIe 1, whose "2.5 GT/s" are not 2. */
static void comma(void)
{
    static const char text[] = "<system><cpu numaid=\"0\"><pci busid=\"1\" class=\"0x030200\" "
                               "link_speed=\"2.5 GT/s PCIe\" link_width=\"16\"/></cpu></system>";
    rd_graph_t g;

    if (!comma_set())
        return;
    if (text_read(&g, text) != RONDO_SUCCESS) {
        CHECK(0, "%s", rd_thread_error());
    } else {
        CHECK(g.nlinks == 2 && g.link[0].gbps == 3, "%d links, %g GB/s", g.nlinks, g.link[0].gbps);
        rd_graph_free(&g);
    }
    setlocale(LC_ALL, "C");
}

static void refused(void)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"<system>\n<cpu>\n<pci>\n", "line 4"},
        {"<system>\n<cpu numaid=\"zero\">\n</cpu></system>", "line 2"},
        {"<system>\n<cpu>\n<pci class=\"0x030200\"/></cpu></system>", "line 3, <pci>: it has no busid"},
        {"<system>\n<cpu><pci busid=\"1\"><gpu dev=\"99999999999999\"/></pci></cpu></system>", "no number: dev"},
        {"<system><cpu><pci busid=\"1\"><gpu/></pci><pci busid=\"1\"><gpu/></pci></cpu></system>", "two GPUs"},
        {"<system><cpu><pci busid=\"1\"><gpu><nvlink target=\"1\" count=\"1\"/></gpu></pci></cpu></system>", "itself"},
        {"<system><cpu><pci busid=\"1\"><gpu><nvlink target=\"1\" count=\"-3\"/></gpu></pci></cpu></system>",
         "1 to 1024"},
        {"<system version=\"1\"/>", "line 1, <system>: it has no <cpu>"},
        {"<!DOCTYPE system [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><system v=\"&b;\"/>", "NCCL"},
        {"<?xml version=\"1.0\"?><!DOCTYPE system SYSTEM \"file:///etc/passwd\"><system/>", "document type"},
        {"plain text", "NCCL"},
        {"", "NCCL"},
        {"<other/>", "NCCL"},
    };
    rd_graph_t g;

    rd_log_set_level(RD_LOG_NONE);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        rondo_result_t result = text_read(&g, wrong[i].text);
        CHECK(result != RONDO_SUCCESS, "taken: %s", wrong[i].text);
        CHECK(strstr(rd_thread_error(), wrong[i].says), "%s: %s", wrong[i].text, rd_thread_error());
    }
    for (int levels = 60; levels < 100000; levels *= 100) { /* more levels than any machine */
        char *text = malloc((size_t)levels * 25 + 100), *at = text + sprintf(text, "<system><cpu>");
        for (int i = 0; text && i < levels; i++)
            at += sprintf(at, "<pci busid=\"%06d\">", i);
        CHECK(text_read(&g, text) != RONDO_SUCCESS, "%d levels", levels);
        free(text);
    }
    too_large();
    rd_log_set_level(RD_LOG_WARN);
}

/* ---- rings ---- */

/* What an order is worth, counted apart from the search: all its neighbours' ways, then each link. */
typedef struct judge {
    const rd_graph_t *g;
    int end[8];                  /* the GPUs, or a port and the GPUs */
    rd_graph_path_t path[8][64]; /* of each end */
} judge_t;

static double judged(const judge_t *j, const int *order, int n)
{
    int uses[512] = {0};
    double gbps = 1e9;

    for (int i = 0; i < n; i++) {
        const rd_graph_path_t *path = j->path[order[i]];
        int v = j->end[order[(i + 1) % n]];
        if (path[v].way == RD_WAY_NONE)
            return 0;
        for (; path[v].via >= 0; v = j->g->link[path[v].via].from)
            uses[path[v].via]++;
        CHECK(v == j->end[order[i]], "a way begins elsewhere");
    }
    for (int l = 0; l < j->g->nlinks; l++)
        if (uses[l] && j->g->link[l].gbps / uses[l] < gbps)
            gbps = j->g->link[l].gbps / uses[l];
    return gbps;
}

/* The best of all orders; the first `at` GPUs are fixed. */
static double brute(const judge_t *j, int *order, int n, int at)
{
    double best = at == n ? judged(j, order, n) : 0;

    for (int i = at; i < n; i++) {
        int other = order[at];
        order[at] = order[i];
        order[i] = other;
        double gbps = brute(j, order, n, at + 1);
        best = gbps > best ? gbps : best;
        order[i] = order[at];
        order[at] = other;
    }
    return best;
}

static bool is_whole(const rd_tour_t *ring, const rd_graph_t *g)
{
    bool seen[RD_GRAPH_MOST] = {false};

    for (int i = 0; i < ring->n; i++) {
        int k = 0;
        while (k < g->ngpus && g->gpu[k] != ring->gpu[i])
            k++;
        if (k == g->ngpus || seen[k])
            return false;
        seen[k] = true;
    }
    return ring->n == g->ngpus;
}

/* Compares the ring of a machine, by its port or closed, with the best of all orders. */
static void compare(const rd_graph_t *g, int trial, int net)
{
    static judge_t judge;
    int n = g->ngpus + (net >= 0), order[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    rd_tour_t ring;

    if (n > 8 || g->nnodes > 64 || g->nlinks > 512)
        exit(1);
    judge.g = g;
    for (int i = 0; i < n; i++) {
        judge.end[i] = net < 0 ? g->gpu[i] : i > 0 ? g->gpu[i - 1] : net;
        if (rd_graph_paths(g, judge.end[i], judge.path[i]) != 0)
            exit(1);
    }
    double best = brute(&judge, order, n, 1);
    if (rd_tour_search(&ring, g, g->gpu, g->ngpus, net) != RONDO_SUCCESS)
        exit(1);
    CHECK(is_whole(&ring, g), "machine %d: a GPU lacks or is there twice", trial);
    CHECK(ring.best && ring.gbps > 0.9999 * best && ring.gbps < 1.0001 * best,
          "machine %d of %d GPUs%s: %g GB/s, the best is %g", trial, g->ngpus, net < 0 ? "" : " and a port", ring.gbps,
          best);
    rd_tour_free(&ring);
}

static void random_rings(void)
{
    random_begin(20261128);
    for (int trial = 0; trial < 10000 && failures < 10; trial++) {
        rd_graph_t g = {0};
        random_machine(&g, trial % 40 == 0 ? 7 + trial / 40 % 2 : 2 + below(5)); /* eight GPUs have 5,040 orders */
        compare(&g, trial, -1);
        if (g.ngpus < 7)
            compare(&g, trial, g.net[0]);
        rd_graph_free(&g);
    }
}

static void ring_is(int which, int net, double gbps, rd_way_t worst, long steps)
{
    rd_graph_t g;
    rd_tour_t ring;

    if (!machine_get(&g, which))
        return;
    if (rd_tour_search(&ring, &g, g.gpu, g.ngpus, net < 0 ? -1 : g.net[net]) != RONDO_SUCCESS)
        exit(1);
    CHECK(is_whole(&ring, &g), "machine %d", which);
    CHECK(ring.gbps > gbps - 0.01 && ring.gbps < gbps + 0.01 && ring.worst == worst, "machine %d: %g GB/s at worst %s",
          which, ring.gbps, rd_way_name(ring.worst));
    CHECK(ring.best && ring.steps <= steps, "machine %d: %ld steps", which, ring.steps);
    rd_tour_free(&ring);
    rd_graph_free(&g);
}

/* Numbers and places of elements in a file say nothing about a machine. */
static void same_ring(void)
{
    static const char *const links[] = {"b c", "a d", "a d", "b c"};
    static const char *const orders[] = {"abcd", "dcba", "bdac", "cadb"};
    char want[64] = "", got[64], text[4096];

    for (int run = 0; run < 1000; run++) {
        const char *order = orders[run % 4];
        char *at = text + sprintf(text, "<system><cpu numaid=\"0\">");
        rd_graph_t g;
        rd_tour_t ring;
        for (int i = 0; i < 4; i++) {
            at +=
                sprintf(at, "<pci busid=\"0000:%c0:00.0\" class=\"0x030200\"><gpu dev=\"%d\" sm=\"80\">", order[i], i);
            for (const char *c = links[order[i] - 'a']; *c; c++)
                if (*c != ' ')
                    at += sprintf(at, "<nvlink target=\"0000:%c0:00.0\" count=\"4\" tclass=\"0x030200\"/>", *c);
            at += sprintf(at, "</gpu></pci>");
        }
        sprintf(at, "</cpu></system>");
        if (text_read(&g, text) || rd_tour_search(&ring, &g, g.gpu, 4, -1)) {
            CHECK(0, "%s", rd_thread_error());
            return;
        }
        *got = '\0';
        for (int i = 0; i < 4; i++)
            strncat(got, g.node[ring.gpu[i]].name + 5, 1);
        CHECK(run == 0 || strcmp(got, want) == 0, "%s, then %s", want, got);
        CHECK(ring.gbps == 80 && ring.worst == RD_WAY_NVL, "%g", ring.gbps);
        strcpy(want, got);
        rd_tour_free(&ring);
        rd_graph_free(&g);
    }
}

int main(void)
{
    alarm(300);
    for (int which = 0; which < 4; which++)
        round_trip(which);
    matrices();
    from_matrix();
    refused();
    comma();
    random_rings();
    ring_is(0, -1, 40, RD_WAY_NVL, 1000000);
    ring_is(0, 0, 12, RD_WAY_PIX, 1000000);
    ring_is(1, -1, 370.8, RD_WAY_NVL, 1000);
    ring_is(1, 3, 48, RD_WAY_PHB, 1000000);
    ring_is(2, 5, 48, RD_WAY_PHB, 100000);
    ring_is(2, -1, 721.8, RD_WAY_NVL, 10000);
    ring_is(3, -1, 12, RD_WAY_SYS, 1000000);
    same_ring();
    return failures != 0;
}
