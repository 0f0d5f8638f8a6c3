/* The GPUs of a machine, asked of an NVML and a /sys that this test plays: four GPUs, two of them joined by NVLinks,
 * one behind the same PCIe switch as a network device, one on another NUMA node. A file of PCIe alone gets its NVLinks.
 * Then what is written down reads back,
 * and files that are wrong are refused. */
#include "topo/gpu_ring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/check.h"
#include "util/nvml_played.h"

static char sys[] = "/tmp/rondo-sys-XXXXXX";

/* A line of shell in the played /sys, where $a and $b are these. */
static void run(const char *line, const char *a, const char *b)
{
    char whole[400];

    setenv("a", a, 1);
    setenv("b", b, 1);
    snprintf(whole, sizeof whole, "cd %s && %s", sys, line);
    if (system(whole) != 0) {
        printf("%s failed\n", whole);
        exit(1);
    }
}

/* A PCI device at `path` below devices, with its entry of the bus. */
static void device(const char *path, const char *numa)
{
    run("mkdir -p devices/$a bus/pci/devices && ln -s ../../../devices/$a bus/pci/devices/ && "
        "echo $b > devices/$a/numa_node",
        path, numa);
}

static void machine_play(void)
{
    const char *nic = "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0";

    if (!mkdtemp(sys)) {
        perror("mkdtemp");
        exit(1);
    }
    device("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0", "0"); /* a switch: 11, its ports 12 */
    device(nic, "0");
    device("pci0000:10/0000:10:02.0/0000:15:00.0", "0");
    device("pci0000:20/0000:20:01.0/0000:21:00.0", "0");
    device("pci0000:80/0000:80:01.0/0000:81:00.0", "1");
    run("mkdir -p class/infiniband/$b && ln -s ../../../devices/$a class/infiniband/$b/device", nic, "mlx5_0");
    run("mkdir -p class/net/$b && ln -s ../../../devices/$a class/net/$b/device", nic, "ib0"); /* its other name */
    run("mkdir -p class/net/$a && ln -s ../../../devices class/net/$a/device", "virtual0", "");
}

static rd_near_t near(const rd_gpu_topo_t *t, int a, int b)
{
    return t->gpu[a].to[b].near;
}

static void asked(rd_gpu_topo_t *t)
{
    memset(t, 0, sizeof *t);
    t->nodes = 1;
    CHECK(rd_gpu_topo_walk(t, sys) == RONDO_SUCCESS && t->count == 4, "%d GPUs, %s", t->count, t->source);
    CHECK(strcmp(t->gpu[1].bus, "0000:15:00.0") == 0 && t->gpu[1].numa == 0 && t->gpu[3].numa == 1, "%s, %d, %d",
          t->gpu[1].bus, t->gpu[1].numa, t->gpu[3].numa);
    CHECK(near(t, 1, 2) == RD_NEAR_NVLINK && t->gpu[1].to[2].links == 4 && t->gpu[2].to[1].links == 4, "%d by %d",
          near(t, 1, 2), t->gpu[1].to[2].links);
    CHECK(near(t, 0, 1) == RD_NEAR_PHB && near(t, 0, 2) == RD_NEAR_NODE && near(t, 2, 3) == RD_NEAR_SYS, "%d %d %d",
          near(t, 0, 1), near(t, 0, 2), near(t, 2, 3));
    CHECK(t->nnics == 1 && strcmp(t->nic[0].name, "mlx5_0") == 0, "%d network devices, %s", t->nnics, t->nic[0].name);
    CHECK(t->gpu[0].nic[0] == RD_NEAR_PIX && t->gpu[1].nic[0] == RD_NEAR_PHB && t->gpu[3].nic[0] == RD_NEAR_SYS,
          "%d %d %d", t->gpu[0].nic[0], t->gpu[1].nic[0], t->gpu[3].nic[0]);
    rd_gpu_path_t far = rd_gpu_farthest(t, 4), pair = rd_gpu_path(t, 1, 2);
    CHECK(far.near == RD_NEAR_SYS && far.gbps > 60 && far.gbps < 65, "%d, %.1f GB/s", far.near, far.gbps);
    CHECK(pair.gbps == 100 && !pair.switched, "%.1f GB/s", pair.gbps);
}

/* NVSwitch: all pairs alike, whatever PCIe says. */
static void switched(void)
{
    rd_gpu_topo_t t;

    nvml_played.switched = 18;
    for (nvml_played.untold = 0; nvml_played.untold < 2; nvml_played.untold++) {
        memset(&t, 0, sizeof t);
        CHECK(rd_gpu_topo_walk(&t, sys) == RONDO_SUCCESS && near(&t, 0, 3) == RD_NEAR_NVLINK, "%d", near(&t, 0, 3));
        rd_gpu_path_t way = rd_gpu_path(&t, 0, 3);
        CHECK(way.switched && way.links == 18 && way.gbps == 450, "%d links, %.0f", way.links, way.gbps);
    }
    nvml_played.switched = nvml_played.untold = 0;
}

/* NVML that fails for a moment is asked again; of one that goes on failing no link is missing, but unknown. */
static void busy(void)
{
    rd_gpu_topo_t t;

    nvml_played.switched = 18;
    for (int questions = 1; questions <= 3; questions++) {
        memset(&t, 0, sizeof t);
        nvml_played.busy = questions;
        CHECK(rd_gpu_topo_walk(&t, sys) == RONDO_SUCCESS && near(&t, 0, 3) == RD_NEAR_NVLINK, "%d", near(&t, 0, 3));
        CHECK(t.gpu[0].switched == 18 && nvml_played.busy == 0, "%d links", t.gpu[0].switched);
    }
    memset(&t, 0, sizeof t);
    nvml_played.busy = 1000000;
    CHECK(rd_gpu_topo_walk(&t, sys) == RONDO_SUCCESS && near(&t, 0, 3) == RD_NEAR_UNKNOWN, "%d", near(&t, 0, 3));
    nvml_played.switched = nvml_played.busy = 0;
}

static void paths(void)
{
    const char *a = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0";

    CHECK(rd_pci_near(a, a, 1) == RD_NEAR_SELF, "itself");
    CHECK(rd_pci_near(a, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:04.0/0000:07:00.0", 1) ==
              RD_NEAR_PIX,
          "one switch");
    CHECK(rd_pci_near(
              a,
              "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:04.0/0000:08:00.0/0000:09:00.0/0000:0a:00.0",
              1) == RD_NEAR_PXB,
          "a switch behind a switch");
    CHECK(rd_pci_near(a, "/sys/devices/pci0000:00/0000:00:02.0/0000:07:00.0", 1) == RD_NEAR_PHB, "a host bridge");
    CHECK(rd_pci_near(a, "/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0", 1) == RD_NEAR_NODE, "a NUMA node");
    CHECK(rd_pci_near(a, "/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0", 0) == RD_NEAR_SYS, "two NUMA nodes");
}

static void file_write(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void files(const rd_gpu_topo_t *t)
{
    static const char *const wrong[] = {
        "rondo-gpus 2\n",
        "rondo-gpus 1\ngpu\n",
        "rondo-gpus 1\ngpu 0 sms many name A\nnear X\n",
        "rondo-gpus 1\ngpu 0 name A\n",
        "rondo-gpus 1\ngpu 0 name A\nnear SYS\n",
        "rondo-gpus 1\ngpu 0 name A\nnear X X\n",
        "rondo-gpus 1\ngpu 0 name A\ngpu 1 name B\nnear X NV2\nnear NV3 X\n",
        "rondo-gpus 1\ngpu 0 name A\nnic 5 numa 0 name n\nnear X NV2\n",
        "rondo-gpus 1\ngpu 0 name A\nnear X\nnear X\n",
        "rondo-gpus 1\nnodes 0\ngpu 0 name A\nnear X\n",
        "rondo-gpus 1\nnodes 2147483647\ngpu 0 name A\nnear X\n",
        "rondo-gpus 1\ngpu 0 sms -5 name A\nnear X\n",
        "rondo-gpus 1\ngpu 0 pcie 65536x65536 name A\nnear X\n",
        "rondo-gpus 1\ngpu 0 nvswitch -3 name A\nnear X\n",
        "rondo-gpus 1\ngpu 0 name A\ngpu 1 name B\nnear X NV2147483647\nnear NV2147483647 X\n",
    };
    rd_gpu_topo_t read;
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/machine", sys);
    if (!(f = fopen(path, "w")))
        exit(1);
    rd_gpu_topo_write(t, f);
    fclose(f);
    CHECK(rd_gpu_topo_is(path) && rd_gpu_topo_read(&read, path) == RONDO_SUCCESS, "%s", rd_thread_error());
    CHECK(memcmp(read.gpu, t->gpu, sizeof t->gpu) == 0 && memcmp(read.nic, t->nic, sizeof t->nic) == 0,
          "what was written reads otherwise");
    rd_log_set_level(RD_LOG_NONE);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        file_write(path, wrong[i]);
        int taken = rd_gpu_topo_is(path) && rd_gpu_topo_read(&read, path) == RONDO_SUCCESS;
        CHECK(!taken, "taken: %s", wrong[i]);
        CHECK(i == 0 || strstr(rd_thread_error(), "RONDO_TOPO_FILE"), "%s", rd_thread_error());
    }
}

/* A file of PCIe alone, as cloud images have it: the NVLinks that NVML tells of count beside it. By PCIe the order of
 * these ranks would go from socket to socket and back, twice. */
static void cloud(void)
{
    const char *const bus[] = {"0000:13:00.0", "0000:21:00.0", "0000:15:00.0", "0000:81:00.0"};
    static const int by_number[] = {0, 1, 2, 3};
    static rd_env_t env = {.order = "machine"};
    const rd_ring_gpus_t gpus = {4, bus, by_number};
    rd_gpu_ring_t ring;

    snprintf(env.topo_file, sizeof env.topo_file, "%s/cloud.xml", sys);
    file_write(env.topo_file,
               "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:10:00.0\" class=\"0x060400\">"
               "<pci busid=\"0000:13:00.0\" class=\"0x030200\"/><pci busid=\"0000:15:00.0\" class=\"0x030200\"/>"
               "</pci></cpu><cpu numaid=\"1\"><pci busid=\"0000:20:00.0\" class=\"0x060400\">"
               "<pci busid=\"0000:21:00.0\" class=\"0x030200\"/><pci busid=\"0000:81:00.0\" class=\"0x030200\"/>"
               "</pci></cpu></system>");
    for (int switched = 18; switched >= 0; switched -= 18) {
        nvml_played.switched = switched;
        rondo_result_t result = rd_gpu_ring_find(&ring, &env, &gpus, false, NULL);
        if (result == RONDO_ERR_UNSUPPORTED) /* built without expat */
            return;
        CHECK(result == RONDO_SUCCESS && ring.is == !switched, "%d NVLinks each: %s", switched,
              ring.is ? "PCIe decides" : "all are alike");
    }
}

int main(void)
{
    static const char *const buses[] = {"0000:13:00.0", "0000:15:00.0", "0000:21:00.0", "0000:81:00.0"};
    static rd_gpu_topo_t t;

    alarm(60);
    nvml_played.count = 4;
    for (int g = 0; g < 4; g++)
        nvml_played.bus[g] = buses[g];
    nvml_played.links[1][2] = nvml_played.links[2][1] = 4;
    machine_play();
    paths();
    asked(&t);
    switched();
    busy();
    cloud();
    files(&t);
    run("rm -rf $PWD", "", "");
    return failures != 0;
}
