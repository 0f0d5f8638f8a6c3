/* Machines as NCCL's XML, made by rules: a DGX-1V's cube mesh, a box with NVSwitches and a port for each GPU, a rack
 * whose hosts share NVSwitches, and PCIe boxes, even and uneven. Rates and links are those of the products' documents.
 */
#ifndef TEST_TOPO_MACHINES_H
#define TEST_TOPO_MACHINES_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A file without a name for a machine, empty. Returns its path, which is good until the next call. */
static inline const char *machine_file(FILE **f)
{
    static char path[64];
    int fd = memfd_create("machine", MFD_CLOEXEC);

    *f = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!*f)
        exit(1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

static void machine_gpu(FILE *f, const char *bus, int dev, int sm)
{
    fprintf(f,
            "<pci busid=\"%s\" class=\"0x030200\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">"
            "<gpu dev=\"%d\" sm=\"%d\" rank=\"%d\" gdr=\"1\">",
            bus, dev, sm, dev);
}

/* Two sockets of two switches of two GPUs and a port each; NVLinks of 1 or 2 bricks. */
static void machine_dgx1v(FILE *f)
{
    static const int bricks[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                                     {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                     {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
    char bus[32];

    fprintf(f, "<system version=\"1\">\n");
    for (int g = 0; g < 8; g++) {
        if (g % 4 == 0)
            fprintf(f, "<cpu numaid=\"%d\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"79\">\n",
                    g / 4);
        if (g % 2 == 0)
            fprintf(f,
                    "<pci busid=\"0000:%02x:00.0\" class=\"0x060400\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">\n"
                    "<pci busid=\"0000:%02x:00.0\" class=\"0x020700\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\">"
                    "<nic><net name=\"mlx5_%d\" dev=\"%d\" speed=\"100000\"/></nic></pci>\n",
                    0x10 + 0x10 * g, 0x13 + 0x10 * g, g / 2, g / 2);
        snprintf(bus, sizeof bus, "0000:%02x:00.0", 0x11 + 0x10 * (g / 2 * 2) + g % 2);
        machine_gpu(f, bus, g, 70);
        for (int k = 0; k < 8; k++)
            if (bricks[g][k])
                fprintf(f, "<nvlink target=\"0000:%02x:00.0\" count=\"%d\" tclass=\"0x030200\"/>",
                        0x11 + 0x10 * (k / 2 * 2) + k % 2, bricks[g][k]);
        fprintf(f, "</gpu></pci>\n%s%s", g % 2 ? "</pci>\n" : "", g % 4 == 3 ? "</cpu>\n" : "");
    }
    fprintf(f, "</system>\n");
}

/* `hosts` hosts of `each` GPUs of sm 90 or 100, each behind a switch of its own with a port, NVLinks to NVSwitches. */
static void machine_nvswitch(FILE *f, int hosts, int each, int sm)
{
    fprintf(f, "<system version=\"1\">\n");
    for (int h = 0; h < hosts; h++) {
        for (int g = 0; g < each; g++) {
            if (g % ((each + 1) / 2) == 0)
                fprintf(f,
                        "%s<cpu host_hash=\"0x%x\" numaid=\"%d\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
                        "familyid=\"6\" modelid=\"143\">\n",
                        g ? "</cpu>\n" : "", 0x1000 + h, g / ((each + 1) / 2));
            fprintf(f,
                    "<pci busid=\"%04x:%02x:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
                    "link_width=\"16\">\n"
                    "<pci busid=\"%04x:%02x:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
                    "<gpu dev=\"%d\" sm=\"%d\"><nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>"
                    "</gpu></pci>\n"
                    "<pci busid=\"%04x:%02x:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
                    "<nic><net name=\"mlx5_%d\" dev=\"%d\" speed=\"400000\" rail=\"%d\"/></nic></pci></pci>\n",
                    h, 0x10 * g + 0x10, h, 0x11 + 0x10 * g, h * each + g, sm, h, 0x12 + 0x10 * g, g, g, g);
        }
        fprintf(f, "</cpu>\n");
    }
    fprintf(f, "</system>\n");
}

/* Seven GPUs without NVLinks on two sockets: 2 + 2 behind switches, and 3 at one root, with names as users write them:
 * capital letters, no speed, an unknown element and attribute, and a card that is nowhere on PCI. */
static void machine_uneven(FILE *f)
{
    static const char *const bus[] = {"0000:0A:00.0", "0000:0b:00.0", "0000:1a:00.0", "0000:1b:00.0",
                                      "0000:8a:00.0", "0000:9a:00.0", "0000:aa:00.0"};

    fprintf(f, "<?xml version=\"1.0\"?><!-- by hand --><system version=\"1\" site=\"a &amp; b\">\n");
    for (int g = 0; g < 7; g++) {
        if (g == 0 || g == 4)
            fprintf(f,
                    "%s<cpu numaid=\"%d\" affinity=\"0000ffff\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
                    "familyid=\"143\" modelid=\"49\">\n",
                    g ? "</cpu>" : "", g / 4);
        if (g == 0 || g == 2)
            fprintf(f, "<pci busid=\"0000:0%d:00.0\" class=\"0x060400\" link_speed=\"\" link_width=\"0\">\n", g + 1);
        machine_gpu(f, bus[g], g, 80);
        fprintf(f, "</gpu></pci>%s\n", g == 1 || g == 3 ? "</pci>" : "");
    }
    fprintf(f, "<future size=\"2\"><part/></future><nic keep=\"1\"><net name=\"eth0\" dev=\"0\" speed=\"25000\"/></nic>"
               "</cpu></system>\n");
}

#endif
