/* Recorded machines read as what they are; control group limits of both versions; this machine makes sense. */
#include "topo/topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/check.h"

static void recorded(const char *name, const rd_topo_t *want)
{
    const char *top = getenv("top_srcdir");
    char file[1024];
    rd_topo_t t;

    snprintf(file, sizeof file, "%s/test/topo/%s.xml", top ? top : ".", name);
    if (rd_topo_read(&t, file) != RONDO_SUCCESS) {
        CHECK(0, "%s", rd_thread_error());
        return;
    }
    CHECK(t.packages == want->packages && t.numa == want->numa && t.cores == want->cores && t.threads == want->threads,
          "%s: %d packages, %d NUMA nodes, %d cores, %d threads", name, t.packages, t.numa, t.cores, t.threads);
    CHECK(t.allowed == want->allowed && t.usable == want->allowed && t.quota == 0, "%s: allowed %d, usable %d", name,
          t.allowed, t.usable);
    CHECK(t.l1d == want->l1d && t.l2 == want->l2 && t.l3 == want->l3, "%s: caches %zu %zu %zu", name, t.l1d, t.l2,
          t.l3);
    CHECK(t.l2_threads == want->l2_threads && t.l3_threads == want->l3_threads, "%s: sharing %d %d", name, t.l2_threads,
          t.l3_threads);
}

static void file_write(const char *directory, const char *name, const char *text)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static double quota(const char *directory, const char *self)
{
    char path[512];

    file_write(directory, "self", self);
    snprintf(path, sizeof path, "%s/self", directory);
    return rd_topo_quota(path, directory);
}

static void limits(void)
{
    static const char *const made[] = {"job/step/cpu.max",
                                       "job/cpu.max",
                                       "cpu/a/cpu.cfs_period_us",
                                       "cpu/a/cpu.cfs_quota_us",
                                       "self",
                                       "job/step",
                                       "job",
                                       "cpu/a",
                                       "cpu"};
    char directory[] = "/tmp/rondo-topo-XXXXXX", path[512];
    double got;

    if (!mkdtemp(directory)) {
        perror("mkdtemp");
        exit(1);
    }
    for (size_t i = sizeof made / sizeof made[0]; i-- > 5;) {
        snprintf(path, sizeof path, "%s/%s", directory, made[i]);
        mkdir(path, 0700);
    }
    file_write(directory, "job/step/cpu.max", "max 100000\n");
    file_write(directory, "job/cpu.max", "250000 100000\n");
    file_write(directory, "cpu/a/cpu.cfs_quota_us", "150000\n");
    file_write(directory, "cpu/a/cpu.cfs_period_us", "100000\n");
    CHECK((got = quota(directory, "0::/job/step\n")) == 2.5, "version 2, limit of the parent: %g", got);
    CHECK((got = quota(directory, "0::/\n")) == 0, "version 2, no limit: %g", got);
    CHECK((got = quota(directory, "0::/not/here\n")) == 0, "a group that is not visible: %g", got);
    CHECK((got = quota(directory, "3:cpuset:/a\n2:cpu,cpuacct:/a\n0::/job\n")) == 1.5, "both versions: %g", got);
    CHECK((got = quota(directory, "3:cpuset:/a\n2:cpuacct:/a\n")) == 0, "other controllers: %g", got);
    CHECK((got = quota(directory, "nonsense\n::\n")) == 0, "nonsense: %g", got);
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, made[i]);
        (void)remove(path);
    }
    CHECK(rmdir(directory) == 0, "%s is left behind", directory);
}

static void here(void)
{
    rd_topo_t quick, t;

    rd_topo_basic(&quick);
    CHECK(quick.allowed >= 1 && quick.usable >= 1 && quick.usable <= quick.allowed, "allowed %d usable %d",
          quick.allowed, quick.usable);
    CHECK(quick.page >= 4096 && quick.memory > 0 && quick.host[0], "page %zu memory %zu", quick.page, quick.memory);
    if (rd_topo_read(&t, "") != RONDO_SUCCESS) {
        CHECK(0, "%s", rd_thread_error());
        return;
    }
    CHECK(t.usable == quick.usable && t.allowed == quick.allowed, "usable %d and %d", t.usable, quick.usable);
    CHECK(t.threads >= t.allowed && t.threads >= t.cores, "threads %d cores %d", t.threads, t.cores);
}

/* Files of GPUs, rondo's and NCCL's: the processors are this machine's. */
static void gpus_alone(void)
{
    static const char *const texts[] = {"rondo-gpus 1\ngpu 0 name A\nnear X\n",
                                        "<system version=\"1\"><cpu numaid=\"0\"/></system>\n"};
    char path[] = "/tmp/rondo-read-XXXXXX";
    int fd = mkstemp(path);
    rd_topo_t this, t;

    if (fd < 0 || rd_topo_read(&this, "") != RONDO_SUCCESS)
        exit(1);
    close(fd);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        FILE *f = fopen(path, "w");
        if (!f || fputs(texts[i], f) < 0 || fclose(f) != 0)
            exit(1);
        CHECK(rd_topo_read(&t, path) == RONDO_SUCCESS, "%s", rd_thread_error());
        CHECK(t.threads == this.threads && strcmp(t.source, this.source) == 0, "%d threads, by %s", t.threads,
              t.source);
    }
    unlink(path);
}

int main(void)
{
    static const rd_topo_t two_packages = {.packages = 2,
                                           .numa = 2,
                                           .cores = 16,
                                           .threads = 32,
                                           .allowed = 32,
                                           .l1d = 32768,
                                           .l2 = 1 << 20,
                                           .l3 = 32 << 20,
                                           .l2_threads = 2,
                                           .l3_threads = 16};
    static const rd_topo_t four_numa = {.packages = 1,
                                        .numa = 4,
                                        .cores = 32,
                                        .threads = 32,
                                        .allowed = 8,
                                        .l1d = 32768,
                                        .l2 = 512 << 10,
                                        .l3 = 32 << 20,
                                        .l2_threads = 1,
                                        .l3_threads = 4};
    static const rd_topo_t small_arm = {
        .packages = 1, .numa = 1, .cores = 4, .threads = 4, .allowed = 4, .l1d = 65536, .l2 = 4 << 20, .l2_threads = 4};
    rd_topo_t t;

    alarm(30);
    limits();
    here();
    gpus_alone();
    if (strncmp(rd_topo_backend(), "hwloc", 5) == 0) {
        recorded("two-packages", &two_packages);
        recorded("four-numa", &four_numa);
        recorded("small-arm", &small_arm);
    }
    rd_log_set_level(RD_LOG_NONE);
    CHECK(rd_topo_read(&t, "/nonexistent/machine.xml") != RONDO_SUCCESS, "a missing file was read");
    CHECK(strstr(rd_thread_error(), "RONDO_TOPO_FILE") && strstr(rd_thread_error(), strerror(ENOENT)), "%s",
          rd_thread_error());
    return failures != 0;
}
