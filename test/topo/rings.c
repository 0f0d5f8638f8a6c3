/* The order in which rings visit the GPUs of a communicator, and rings in NCCL's XML of graphs: a ring comes back as it
 * was written, files that are wrong are refused with variable and line, and a communicator takes the searched order
 * where links differ, the one by number where they do not, and that of RONDO_GRAPH_FILE in place of either. */
#include "topo/gpu_ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/machines.h"
#include "topo/ring_file.h"
#include "topo/topo_write.h"
#include "util/check.h"

static char dir[] = "/tmp/rondo-rings-XXXXXX";
static char topo_name[64], graph_name[64], dump_name[64];

static void text_write(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        exit(1);
}

/* ---- the file ---- */

static void (*const unused)(FILE *) __attribute__((unused)) = machine_uneven;

static void round_trip(void)
{
    rd_graph_t g;
    rd_tour_t ring;
    rd_ring_read_t read;
    rd_xml_t *xml;
    int numbers[8], order[8];
    FILE *f = fopen(topo_name, "w");

    machine_dgx1v(f);
    fclose(f);
    CHECK(rd_graph_get(&g, topo_name, "RONDO_TOPO_FILE") == RONDO_SUCCESS, "%s", rd_thread_error());
    CHECK(rd_tour_search(&ring, &g, g.gpu, g.ngpus, -1) == RONDO_SUCCESS && ring.n == 8);
    CHECK(rd_ring_xml(&xml, &g, &ring, NULL) == RONDO_SUCCESS && rd_xml_save(xml, graph_name) == RONDO_SUCCESS, "%s",
          rd_thread_error());
    rd_xml_free(xml);
    CHECK(rd_ring_read(&read, graph_name, "RONDO_GRAPH_FILE") == RONDO_SUCCESS, "%s", rd_thread_error());
    CHECK(read.n == 8 && !read.ranked);
    for (int i = 0; i < 8; i++)
        numbers[i] = g.node[g.gpu[i]].number;
    CHECK(!rd_ring_order(&read, numbers, 8, false, order));
    for (int i = 0; i < 8; i++)
        CHECK(g.gpu[order[i]] == ring.gpu[i], "place %d", i);
    CHECK(rd_ring_order(&read, numbers, 7, false, order) && rd_ring_order(&read, numbers, 8, true, order));
    rd_tour_t same;
    CHECK(rd_tour_rate(&same, &g, ring.gpu, 8) == RONDO_SUCCESS && same.gbps == ring.gbps && same.ways == ring.ways,
          "%g, searched %g", same.gbps, ring.gbps);
    free(read.gpu);
    rd_tour_free(&same);
    rd_tour_free(&ring);
    rd_graph_free(&g);
}

/* As NCCL 2.27 writes one of two channels of two machines, with trees behind; capital digits and no 0x in one. */
static void foreign(void)
{
    rd_ring_read_t read;

    text_write(graph_name,
               "<graphs version=\"1\">\n"
               "  <graph id=\"1\" pattern=\"3\" nchannels=\"1\"><channel><gpu dev=\"0x9\"/></channel></graph>\n"
               "  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"2\" speedintra=\"12\" "
               "speedinter=\"12\" latencyinter=\"0\" typeintra=\"SYS\" typeinter=\"PHB\" "
               "samechannels=\"1\" new=\"kept\">\n"
               "    <channel><net dev=\"0x0\"/><gpu dev=\"0xa\" rank=\"1\"/><gpu dev=\"B\" rank=\"0\"/>"
               "<net dev=\"0x0\"/></channel>\n"
               "    <channel><net dev=\"0x1\"/><gpu dev=\"0xb\" rank=\"0\"/><gpu dev=\"0xA\" rank=\"1\"/>"
               "<net dev=\"0x1\"/></channel>\n"
               "  </graph>\n</graphs>\n");
    CHECK(rd_ring_read(&read, graph_name, "RONDO_GRAPH_FILE") == RONDO_SUCCESS, "%s", rd_thread_error());
    CHECK(read.n == 2 && read.ranked && read.line == 4 && read.gpu[0].dev == 10 && read.gpu[1].dev == 11 &&
          read.gpu[0].rank == 1);
    free(read.gpu);
}

/* As NCCL 2.28 (xmlSetAttrLong of NCCL_TOPO_ID) writes those of two machines that share their NVSwitches, whose devices
 * have the same numbers: two channels, each by a port of another machine. */
static void shared_switches(void)
{
    const int ranks[] = {4, 5, 6, 7};
    rd_ring_read_t read;
    int order[4];

    text_write(graph_name,
               "<graphs version=\"1\">\n"
               "  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"2\" speedintra=\"30\" speedinter=\"30\" "
               "latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"0\">\n"
               "    <channel>\n"
               "      <net dev=\"0x0\"/><gpu dev=\"0x0\" rank=\"4\"/><gpu dev=\"0x100000000000000\" rank=\"6\"/>\n"
               "      <gpu dev=\"0x100000000000001\" rank=\"7\"/><gpu dev=\"0x1\" rank=\"5\"/><net dev=\"0x0\"/>\n"
               "    </channel>\n"
               "    <channel>\n"
               "      <net dev=\"0x100000000000003\"/><gpu dev=\"0x100000000000001\" rank=\"7\"/>\n"
               "      <gpu dev=\"0x1\" rank=\"5\"/><gpu dev=\"0x0\" rank=\"4\"/>"
               "<gpu dev=\"0x100000000000000\" rank=\"6\"/><net dev=\"0x100000000000003\"/>\n"
               "    </channel>\n"
               "  </graph>\n"
               "  <graph id=\"3\" pattern=\"5\" crossnic=\"0\" nchannels=\"1\" speedintra=\"30\" speedinter=\"30\" "
               "latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\">\n"
               "    <channel><net dev=\"0x0\"/><gpu dev=\"0x0\" rank=\"4\"/><net dev=\"0x0\"/></channel>\n"
               "  </graph>\n</graphs>\n");
    CHECK(rd_ring_read(&read, graph_name, "RONDO_GRAPH_FILE") == RONDO_SUCCESS, "%s", rd_thread_error());
    CHECK(read.n == 4 && read.ranked && !rd_ring_order(&read, ranks, 4, true, order));
    CHECK(order[0] == 0 && order[1] == 2 && order[2] == 3 && order[3] == 1);
    CHECK(rd_ring_order(&read, (const int[]){0, 1, 2, 3}, 4, false, order) != NULL); /* none of one machine's */
    free(read.gpu);
}

#define RING(inside)                                                                                                   \
    "<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" nchannels=\"1\">\n" inside "</graph></graphs>"

static void refused(void)
{
    static const char *const wrong[][2] = {
        {"<graphs version=\"2\"/>", "line 1, <graphs>"},
        {"<graphs/>", "version"},
        {"<graphs version=\"1\"/>", "no ring"},
        {"<system version=\"1\"/>", "begin with <graphs>"},
        {"<graphs version=\"1\">\n<graph pattern=\"4\"/></graphs>", "line 2, <graph>"},
        {"<graphs version=\"1\">\n<graph id=\"0\" pattern=\"3\" nchannels=\"1\"/></graphs>", "pattern"},
        {"<graphs version=\"1\">\n<graph id=\"0\" pattern=\"4\" nchannels=\"99999999\"/></graphs>", "nchannels"},
        {RING("<channel/>"), "line 3, <channel>: the ring has no GPU"},
        {RING("<channel><gpu dev=\"0\"/><gpu/></channel>"), "line 3, <gpu>: dev"},
        {RING("<channel>\n<gpu dev=\"zz\"/></channel>"), "line 4, <gpu>: dev"},
        {RING("<channel><gpu dev=\"-1\"/></channel>"), "dev"},
        {RING("<channel><gpu dev=\"0x7fffffffffffffff\"/></channel>"), "dev"},
        {RING("<channel><gpu dev=\"0x100000000000400\"/></channel>"), "dev"},
        {RING("<channel><gpu dev=\"0\"/>\n<gpu dev=\"0x0\"/></channel>"),
         "line 4, <gpu>: the ring has this GPU before"},
        {RING("<channel><gpu dev=\"0\" rank=\"1\"/><gpu dev=\"1\" rank=\"1\"/></channel>"), "this rank before"},
        {RING("<channel><gpu dev=\"0\" rank=\"1\"/><gpu dev=\"1\"/></channel>"), "others have none"},
        {RING("<channel><gpu dev=\"0\" rank=\"-4\"/></channel>"), "rank"},
        {RING("<channel><net dev=\"0\"/><gpu dev=\"0\"/></channel>"), "does not leave"},
        {RING("<channel><net dev=\"0\"/><net dev=\"0\"/><net dev=\"0\"/><gpu dev=\"0\"/></channel>"), "leaves by one"},
        {RING("<channel><net dev=\"x\"/><gpu dev=\"0\"/><net dev=\"0\"/></channel>"), "no number"},
        {RING("<channel><gpu dev=\"0\"/></channel><channel><gpu dev=\"0\"/></channel>"), "another number of channels"},
        {RING("<channel><gpu dev=\"0\"/></channel>\n<channel><gpu dev=\"1\"/></channel>"),
         "line 4, <channel>: it has not"},
        {RING("<channel><gpu dev=\"0\"/></channel></graph>\n<graph id=\"0\" pattern=\"4\" nchannels=\"1\">"),
         "a ring before"},
        {RING("<channel>"), "line 3"},
        {"<!DOCTYPE graphs [<!ENTITY a \"b\">]><graphs version=\"1\"/>", "document type"},
        {"", "line 1"},
        {"no XML", "line 1"},
    };
    rd_ring_read_t read;

    rd_log_set_level(RD_LOG_NONE);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        text_write(graph_name, wrong[i][0]);
        CHECK(rd_ring_read(&read, graph_name, "RONDO_GRAPH_FILE") != RONDO_SUCCESS, "taken: %s", wrong[i][0]);
        CHECK(strstr(rd_thread_error(), wrong[i][1]) && strstr(rd_thread_error(), "RONDO_GRAPH_FILE="), "%s: %s",
              wrong[i][0], rd_thread_error());
    }
    CHECK(rd_ring_read(&read, "/none/such", "RONDO_GRAPH_FILE") != RONDO_SUCCESS);
    rd_log_set_level(RD_LOG_WARN);
}

/* ---- the order ---- */

static const rd_log_ctx_t *const no_ctx;

/* Four GPUs, two behind the switch of each of two sockets. */
static const char *const pcie[] = {"0000:01:00.0", "0000:02:00.0", "0000:81:00.0", "0000:82:00.0"};

static void pcie_write(void)
{
    FILE *f = fopen(topo_name, "w");

    fprintf(f, "<system version=\"1\">");
    for (int g = 0; g < 4; g++)
        fprintf(
            f,
            "%s<pci busid=\"%s\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"%d\" "
            "sm=\"89\"/></pci>%s",
            g % 2 ? ""
            : g   ? "<cpu numaid=\"1\"><pci busid=\"0000:80:00.0\" class=\"0x060400\">"
                  : "<cpu numaid=\"0\"><pci busid=\"0000:00:00.0\" class=\"0x060400\">",
            pcie[g], g, g % 2 ? "</pci></cpu>" : "");
    fprintf(f, "</system>");
    fclose(f);
}

static const int by_number[] = {0, 1, 2, 3}, behind[] = {4, 5, 8, 9};

static rd_gpu_ring_t found_as(const rd_env_t *env, const char *const *bus, const int *rank, int n, bool dump)
{
    rd_gpu_ring_t ring;

    CHECK(rd_gpu_ring_find(&ring, env, &(rd_ring_gpus_t){n, bus, rank}, dump, no_ctx) == RONDO_SUCCESS, "%s",
          rd_thread_error());
    return ring;
}

static rd_gpu_ring_t found(const rd_env_t *env, const char *const *bus, int n, bool dump)
{
    return found_as(env, bus, by_number, n, dump);
}

/* Ranks that stand as the links lie keep their numbers; others are visited socket by socket. */
static void searched(rd_env_t *env)
{
    const char *const across[] = {pcie[0], pcie[2], pcie[1], pcie[3]}, *const twice[] = {pcie[0], pcie[0], pcie[1]};

    pcie_write();
    snprintf(env->topo_file, sizeof env->topo_file, "%s", topo_name);
    CHECK(!found(env, pcie, 4, false).is);
    rd_gpu_ring_t ring = found(env, across, 4, false);
    CHECK(ring.is && !ring.given && ring.gbps > ring.number_gbps, "%g, by number %g", ring.gbps, ring.number_gbps);
    CHECK(ring.rank[0] == 0 && (ring.rank[1] == 2 || ring.rank[3] == 2), "%d %d %d %d", ring.rank[0], ring.rank[1],
          ring.rank[2], ring.rank[3]);
    for (int i = 0; i < 1000; i++) {
        rd_gpu_ring_t again = found(env, across, 4, false);
        CHECK(memcmp(&again, &ring, sizeof ring) == 0, "run %d", i);
    }
    CHECK(!found(env, twice, 3, false).is); /* two ranks on one GPU */
    CHECK(!found(env, across, 2, false).is);
    strcpy(env->order, "rank");
    CHECK(!found(env, across, 4, false).is);
    strcpy(env->order, "machine");
    const char *const elsewhere[] = {"0000:01:00.0", "0000:02:00.0", "0000:ff:00.0"};
    rd_log_set_level(RD_LOG_NONE);
    CHECK(!found(env, elsewhere, 3, false).is);
    rd_log_set_level(RD_LOG_WARN);
}

/* Between GPUs that are all alike. */
static void alike(rd_env_t *env)
{
    const char *const bus[] = {"0000:31:00.0", "0000:11:00.0", "0000:41:00.0", "0000:21:00.0"};
    FILE *f = fopen(topo_name, "w");

    machine_nvswitch(f, 2, 4, 90);
    fclose(f);
    CHECK(!found(env, bus, 4, false).is);
    text_write(graph_name, RING("<channel><gpu dev=\"3\"/><gpu dev=\"2\"/><gpu dev=\"0\"/><gpu dev=\"1\"/></channel>"));
    snprintf(env->graph_file, sizeof env->graph_file, "%s", graph_name);
    rd_gpu_ring_t ring = found(env, bus, 4, false); /* dev 3 is rank 2, 2 is 0, 0 is 1, 1 is 3 */
    CHECK(ring.is && ring.given && ring.rank[0] == 0 && ring.rank[1] == 1 && ring.rank[2] == 3 && ring.rank[3] == 2,
          "%d %d %d %d", ring.rank[0], ring.rank[1], ring.rank[2], ring.rank[3]);
    CHECK(ring.gbps > 300, "%g", ring.gbps);
    rd_log_set_level(RD_LOG_NONE);
    CHECK(!found(env, bus, 3, false).is); /* of another number of GPUs: it is searched */
    text_write(graph_name, RING("<channel><gpu dev=\"3\"/><gpu dev=\"3\"/></channel>"));
    CHECK(rd_gpu_ring_find(&ring, env, &(rd_ring_gpus_t){4, bus, by_number}, false, no_ctx) != RONDO_SUCCESS &&
              strstr(rd_thread_error(), "line 3, <gpu>"),
          "%s", rd_thread_error());
    rd_log_set_level(RD_LOG_WARN);
    env->graph_file[0] = '\0';
}

static void dumped(rd_env_t *env)
{
    const char *const across[] = {pcie[0], pcie[2], pcie[1], pcie[3]};
    rd_ring_read_t read;
    rd_xml_t *one, *other;

    pcie_write();
    snprintf(env->graph_dump_file, sizeof env->graph_dump_file, "%s", dump_name);
    rd_gpu_ring_t ring = found(env, across, 4, true);
    CHECK(rd_ring_read(&read, dump_name, "RONDO_GRAPH_FILE") == RONDO_SUCCESS, "%s", rd_thread_error());
    CHECK(read.n == 4 && read.ranked);
    for (int i = 0; i < 4; i++)
        CHECK(read.gpu[i].rank == ring.rank[i], "place %d", i);
    free(read.gpu);
    snprintf(env->graph_file, sizeof env->graph_file, "%s", dump_name);
    rd_gpu_ring_t again = found(env, across, 4, false);
    CHECK(again.given && memcmp(again.rank, ring.rank, sizeof ring.rank) == 0);
    again = found_as(env, across, behind, 4, false); /* the file of one node on another one that is alike */
    CHECK(again.given && memcmp(again.rank, ring.rank, sizeof ring.rank) == 0);
    env->graph_file[0] = '\0';
    again = found_as(env, across, behind, 4, true);
    CHECK(rd_ring_read(&read, dump_name, "RONDO_GRAPH_FILE") == RONDO_SUCCESS, "%s", rd_thread_error());
    for (int i = 0; i < 4; i++)
        CHECK(read.gpu[i].rank == behind[again.rank[i]], "place %d", i);
    free(read.gpu);
    snprintf(env->topo_dump_file, sizeof env->topo_dump_file, "%s", dump_name);
    rd_topo_dump(env, 1, no_ctx); /* not this one */
    CHECK(rd_xml_read(&one, dump_name, "x") == RONDO_SUCCESS && rd_xml_named(one, "graphs"));
    rd_xml_free(one);
    rd_topo_dump(env, 0, no_ctx);
    CHECK(rd_xml_read(&one, dump_name, "x") == RONDO_SUCCESS && rd_xml_named(one, "system"), "%s", rd_thread_error());
    CHECK(rd_xml_read(&other, topo_name, "x") == RONDO_SUCCESS);
    rd_xml_free(one);
    rd_xml_free(other);
}

int main(void)
{
    static rd_env_t env = {.order = "machine"};

    alarm(100);
    if (!mkdtemp(dir))
        return 1;
    snprintf(topo_name, sizeof topo_name, "%s/topo.xml", dir);
    snprintf(graph_name, sizeof graph_name, "%s/graph.xml", dir);
    snprintf(dump_name, sizeof dump_name, "%s/dump.xml", dir);
    round_trip();
    foreign();
    shared_switches();
    refused();
    searched(&env);
    alike(&env);
    dumped(&env);
    unlink(topo_name);
    unlink(graph_name);
    unlink(dump_name);
    CHECK(rmdir(dir) == 0, "a file was left in %s", dir);
    return failures != 0;
}
