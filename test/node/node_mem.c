/* Room for shared memory on recorded machines: cgroup v2 and v1, limits above the process's own group, page cache that
 * can be given up, no limits at all. Then here: a sealed memfd is taken, an unsealed or short one is not; limits of
 * this process are errors that say what helps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/check.h"
#include "node/node_mem.h"

#define MIB ((uint64_t)1 << 20)

static char root[] = "/tmp/rondo-node-mem-XXXXXX";
/* A file of the recorded machine, with its folders. */
static void record(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        exit(1);
}

static void machines(void)
{
    rd_mem_room_t room;
    char text[RD_MEM_TEXT];
    rd_mem_room(&room, root);
    CHECK(room.available == UINT64_MAX && room.cgroup == UINT64_MAX, "a machine that tells nothing");
    CHECK(rd_mem_check(&room, 1 << 20, 1 << 20, 1, text) == RONDO_SUCCESS, "no limit known");
    record("/proc/meminfo", "MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\n");
    record("/proc/self/cgroup", "0::/user/job\n");
    record("/sys/fs/cgroup/user/job/memory.max", "max\n");
    record("/sys/fs/cgroup/user/job/memory.current", "1000\n");
    rd_mem_room(&room, root);
    CHECK(room.available == 8 * MIB && room.cgroup == UINT64_MAX, "v2 without a limit");
    record("/sys/fs/cgroup/user/memory.max", "4194304\n");
    record("/sys/fs/cgroup/user/memory.current", "3145728\n");
    record("/sys/fs/cgroup/user/memory.stat", "anon 5\ninactive_file 1048576\nactive_file 7\n");
    rd_mem_room(&room, root);
    CHECK(room.cgroup == 2 * MIB, "v2, limited from above, with cache");
    CHECK(strcmp(room.where, "/sys/fs/cgroup/user") == 0, "where");
    CHECK(rd_mem_check(&room, MIB, MIB, 1, text) == RONDO_SUCCESS, "1 of 2 MiB");
    CHECK(rd_mem_check(&room, 2 * MIB, MIB, 1, text) == RONDO_ERR_NO_MEMORY, "2 of 2 MiB");
    CHECK(strstr(text, "/sys/fs/cgroup/user") && strstr(text, "2.0 MiB"), "%s", text);
    record("/proc/self/cgroup", "5:cpu:/a\n4:memory:/not/below/the/mount\n0::/\n");
    record("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3145728\n");
    record("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2097152\n");
    rd_mem_room(&room, root);
    CHECK(room.cgroup == MIB, "v1 in a container");
    CHECK(rd_mem_check(&room, 9 * MIB, 9 * MIB, 1, text) == RONDO_ERR_NO_MEMORY && strstr(text, "available"), "%s",
          text);
}

static size_t allocated(int fd)
{
    struct stat st;

    CHECK(fstat(fd, &st) == 0, "fstat");
    return (size_t)st.st_blocks * 512;
}

static void memfds(void)
{
    char text[RD_MEM_TEXT], *base;
    int fd = memfd_create("test", MFD_ALLOW_SEALING);
    rd_mem_file_t file = {.fd = fd, .bytes = 4 * MIB, .own_bytes = 4 * MIB};

    CHECK(ftruncate(fd, (off_t)file.bytes) == 0, "ftruncate");
    CHECK(rd_mem_map(&file, &base, text) == RONDO_ERR_SYSTEM, "a memfd without seals");
    CHECK(rd_mem_size(fd, file.bytes, text) == RONDO_SUCCESS, "seals");
    file.bytes *= 2;
    CHECK(rd_mem_map(&file, &base, text) == RONDO_ERR_SYSTEM, "a short memfd");
    file = (rd_mem_file_t){.fd = fd, .bytes = 4 * MIB, .own = MIB, .own_bytes = 2 * MIB, .ample = true};
    CHECK(rd_mem_map(&file, &base, text) == RONDO_SUCCESS, "%s", text);
    CHECK(allocated(fd) == 0, "%zu bytes are reserved of memory that is ample", allocated(fd));
    base[MIB] = base[3 * MIB - 1] = 1;
    CHECK(allocated(fd) > 0, "pages come when they are used");
    munmap(base, file.bytes);
    file.ample = false;
    for (int huge = 0; huge < 2; huge++) {
        file.huge = huge;
        if (rd_mem_map(&file, &base, text) != RONDO_SUCCESS) {
            CHECK(0, "%s", text);
            continue;
        }
        CHECK(allocated(fd) >= 2 * MIB, "reserved");
        base[MIB] = base[3 * MIB - 1] = 1;
        munmap(base, file.bytes);
    }
    CHECK(ftruncate(fd, 0) != 0, "the size is sealed");
    close(fd);
}

static void ample(void)
{
    rd_mem_room_t room = {160 * MIB, UINT64_MAX, UINT64_MAX, UINT64_MAX, ""};

    CHECK(rd_mem_ample(&room, 10 * MIB) && !rd_mem_ample(&room, 10 * MIB + 1), "a sixteenth of what is available");
    room.cgroup = 80 * MIB;
    CHECK(rd_mem_ample(&room, 5 * MIB) && !rd_mem_ample(&room, 6 * MIB), "a sixteenth of what the cgroup leaves");
    room.available = room.cgroup = UINT64_MAX;
    CHECK(!rd_mem_ample(&room, MIB), "nobody knows how much there is");
}

static void plain(void)
{
    char text[RD_MEM_TEXT], *base;
    CHECK(rd_mem_plain(MIB, 1, &base, text) == RONDO_SUCCESS, "plain memory");
    CHECK(rd_mem_plain_join(base, 2 * MIB) != 0 && rd_mem_plain_join(base + 1, MIB) != 0, "memory that is not there");
    CHECK(rd_mem_plain_join(base, MIB) == 0, "a second user");
    rd_mem_plain_leave(base);
    base[MIB - 1] = 1; /* still there */
    rd_mem_plain_leave(base);
    CHECK(rd_mem_plain_join(base, MIB) != 0, "the last one unmaps");
}

static rlim_t mapped_now(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1)
        exit(1);
    fclose(f);
    return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* In a child, because the limit stays. */
static void limited(int resource, rlim_t most, const char *name)
{
    int status;
    fflush(stdout);
    if (fork() == 0) {
        struct rlimit limit = {most, most};
        rd_mem_room_t room;
        char text[RD_MEM_TEXT];
        setrlimit((__rlimit_resource_t)resource, &limit);
        rd_mem_room(&room, "");
        int told = rd_mem_check(&room, 64 * MIB, 64 * MIB, 1, text) == RONDO_ERR_NO_MEMORY && strstr(text, name);
        _exit(told ? 0 : 1);
    }
    wait(&status);
    CHECK(status == 0, "%s", name);
}

int main(void)
{
    char command[64];
    alarm(30);
    if (!mkdtemp(root))
        return 77;
    machines();
    snprintf(command, sizeof(command), "rm -r %s", root);
    CHECK(system(command) == 0, "clean up");
    memfds();
    ample();
    plain();
    limited(RLIMIT_FSIZE, MIB, "RLIMIT_FSIZE");
    limited(RLIMIT_AS, mapped_now() + 32 * MIB, "RLIMIT_AS");
    return failures != 0;
}
