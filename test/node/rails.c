/* Shares of network devices: each serves as many ranks as the others, ranks have a near one where that is possible, and
 * where nothing is known they take them in turn. NUMA nodes of devices are read as /sys has them. */
#include "node/rails.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/check.h"

#define MOST 32

/* `ranks` and `devices`: the NUMA node of each, a digit, or "-"; `want`: the device of each rank. */
static void shares(const char *ranks, const char *devices, const char *want)
{
    int rank[MOST], device[MOST], n = (int)strlen(ranks), d = (int)strlen(devices);
    char got[MOST + 1] = "";

    for (int i = 0; i < n; i++)
        rank[i] = ranks[i] == '-' ? -1 : ranks[i] - '0';
    for (int i = 0; i < d; i++)
        device[i] = devices[i] == '-' ? -1 : devices[i] - '0';
    for (int i = 0; i < n; i++)
        got[i] = (char)('0' + rd_node_share(device, d, rank, n, i));
    CHECK(strcmp(got, want) == 0, "ranks on %s, devices on %s: %s, not %s", ranks, devices, got, want);
}

/* Any machine: no device serves more ranks than another one by two, and a rank has a far device only if no near one has
 * room. */
static void random_shares(void)
{
    unsigned state = 7;

    printf("seed 7\n");
    for (int trial = 0; trial < 2000; trial++) {
        int rank[MOST], device[8], users[8] = {0}, got[MOST], n, d;
        state = state * 1664525 + 1013904223;
        n = 1 + (int)(state >> 16) % MOST;
        d = 1 + (int)(state >> 24) % 8;
        for (int i = 0; i < n + d; i++) {
            state = state * 1664525 + 1013904223;
            *(i < n ? &rank[i] : &device[i - n]) = (int)(state >> 20) % 5 - 1;
        }
        for (int i = 0; i < n; i++)
            users[got[i] = rd_node_share(device, d, rank, n, i)]++;
        for (int i = 0; i < d; i++)
            CHECK(users[i] <= (n + d - 1) / d, "trial %d: device %d serves %d of %d ranks", trial, i, users[i], n);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < d && rank[i] >= 0 && device[got[i]] != rank[i]; k++)
                CHECK(device[k] != rank[i] || users[k] == (n + d - 1) / d, "trial %d: rank %d is far from device %d",
                      trial, i, got[i]);
    }
}

static void numa_write(const char *sys, const char *folder, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/class/%s/device/numa_node", sys, folder);
    for (char *c = path + 1; (c = strchr(c, '/')); *c++ = '/') {
        *c = '\0';
        mkdir(path, 0700);
    }
    if (!(f = fopen(path, "w")) || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void names(void)
{
    char sys[] = "/tmp/rondo-rails-XXXXXX", command[64];
    int numa[] = {1, 0, 1, -1};
    rd_node_t node = {.nlocal = 4, .numa = numa};

    if (!mkdtemp(sys))
        exit(1);
    numa_write(sys, "infiniband/mlx5_0", "0\n");
    numa_write(sys, "infiniband/mlx5_1", "1\n");
    numa_write(sys, "net/eth1", "-1\n");
    for (node.self = 0; node.self < 4; node.self++)
        CHECK(rd_node_rail(&node, "mlx5_0:1,mlx5_1:1", sys) == "1010"[node.self] - '0', "rank %d: %d", node.self,
              rd_node_rail(&node, "mlx5_0:1,mlx5_1:1", sys));
    node.self = 3;
    CHECK(rd_node_rail(&node, "eth0,eth1", sys) == 1, "in turn");
    CHECK(rd_node_rail(&node, "", sys) == 3 && rd_node_rail(&node, "eth0", sys) == 3, "nothing to share");
    node.numa = NULL;
    CHECK(rd_node_rail(&node, "mlx5_0,mlx5_1", sys) == 3, "nobody has said where ranks are");
    snprintf(command, sizeof command, "rm -rf %s", sys);
    if (system(command) != 0)
        exit(1);
}

int main(void)
{
    alarm(60);
    shares("0011", "01", "0011");
    shares("0101", "01", "0101");
    shares("1100", "01", "1100");
    shares("0000", "01", "0011"); /* both are used */
    shares("----", "01", "0101"); /* as if nothing was known */
    shares("0123", "--", "0101");
    shares("00112233", "3210", "33221100");
    shares("00000111", "0011", "01012323"); /* uneven */
    shares("012", "0", "000");
    shares("11111", "011", "12120");
    random_shares();
    names();
    return failures != 0;
}
