/* A node's shared memory.
 *
 * Too little memory must be an error, never a signal: tmpfs pages beyond a cgroup's limit get the process killed, a
 * file beyond RLIMIT_FSIZE raises SIGXFSZ, and touching a page that is not available raises SIGBUS. So the limits are
 * read first, then the pages are reserved by fallocate, and only then is any page touched. Each rank reserves its own
 * segment, which also places it on that rank's NUMA node.
 *
 * Ranks reserve one after the other, because the kernel locks the file meanwhile: 12 MB of each of 32 ranks take 70 ms,
 * and freeing them again 50. Few programs use most of these pages. So where there is many times as much memory as is
 * needed, they are not reserved but come when they are first used, on the NUMA node of the rank that they belong to. If
 * such a machine runs out of memory later, that ends processes whichever page is missed. */
#include "node/node_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/fork.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define AMPLE 16                 /* times what is needed: pages need not be reserved */
#define PIECE ((size_t)32 << 20) /* reserved at a time: fallocate undoes a whole call when a signal comes */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels refuse it and fallocate does the work */
#endif

/* ---- what is available ---- */

static FILE *open_under(const char *root, const char *dir, const char *name)
{
    char path[512];
    if ((size_t)snprintf(path, sizeof(path), "%s%s/%s", root, dir, name) >= sizeof(path))
        return NULL;
    return rd_file_read(path);
}

/* Returns the number in a file of one number; UINT64_MAX for "max" or a missing file. */
static uint64_t read_number(const char *root, const char *dir, const char *name)
{
    unsigned long long value = UINT64_MAX;
    FILE *f = open_under(root, dir, name);
    if (!f)
        return UINT64_MAX;
    if (fscanf(f, "%llu", &value) != 1)
        value = UINT64_MAX;
    fclose(f);
    return value;
}

/* Returns the number after `key` in a file of lines "key number"; 0 if it is not there. */
static uint64_t read_keyed(const char *root, const char *dir, const char *name, const char *key)
{
    char line[256];
    unsigned long long value = 0;
    size_t length = strlen(key);
    FILE *f = open_under(root, dir, name);
    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, key, length) == 0 && (line[length] == ' ' || line[length] == ':'))
            sscanf(line + length + 1, "%llu", &value);
    fclose(f);
    return value;
}

typedef struct names {
    const char *mount, *limit, *used, *cache;
} names_t;

static const names_t v2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
static const names_t v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                           "total_inactive_file"};

/* Reads from the process's group up to the root, since each may limit. In a container the upper part of the path may be
 * missing below the mount; the root of the mount is then the container's group. */
static void climb(rd_mem_room_t *room, const char *root, const names_t *names, const char *path)
{
    char dir[400];
    size_t mount = strlen(names->mount);
    if ((size_t)snprintf(dir, sizeof(dir), "%s%s", names->mount, path) >= sizeof(dir))
        return;
    for (;;) {
        uint64_t limit = read_number(root, dir, names->limit), used = read_number(root, dir, names->used);
        if (limit != UINT64_MAX && used != UINT64_MAX) {
            uint64_t cache = read_keyed(root, dir, "memory.stat", names->cache); /* is reclaimed under pressure */
            used = used > cache ? used - cache : 0;
            uint64_t left = limit > used ? limit - used : 0;
            if (left < room->cgroup) {
                room->cgroup = left;
                snprintf(room->where, sizeof(room->where), "%.159s", dir);
            }
        }
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < mount)
            return;
        *slash = 0;
    }
}

static void read_cgroup(rd_mem_room_t *room, const char *root)
{
    char line[512];
    FILE *f = open_under(root, "/proc/self", "cgroup");
    if (!f)
        return;
    while (fgets(line, sizeof(line), f)) { /* "0::/path" or "4:memory:/path" */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        if (strcmp(path, "/") == 0)
            path = "";
        if (controllers[1] == 0)
            climb(room, root, &v2, path);
        else if (strstr(controllers + 1, "memory"))
            climb(room, root, &v1, path);
    }
    fclose(f);
}

void rd_mem_room(rd_mem_room_t *room, const char *root)
{
    struct rlimit limit;
    uint64_t kib = read_keyed(root, "/proc", "meminfo", "MemAvailable");
    *room = (rd_mem_room_t){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, ""};
    if (kib)
        room->available = kib * 1024;
    read_cgroup(room, root);
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        room->file = limit.rlim_cur;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        uint64_t pages = read_number(root, "/proc/self", "statm");
        uint64_t used = pages == UINT64_MAX ? 0 : pages * (uint64_t)sysconf(_SC_PAGESIZE);
        room->space = limit.rlim_cur > used ? limit.rlim_cur - used : 0;
    }
}

static rondo_result_t too_little(char text[RD_MEM_TEXT], size_t need, uint64_t have, const char *what)
{
    snprintf(text, RD_MEM_TEXT,
             "the shared memory of this node's ranks needs %.1f MiB, but only %.1f MiB are left of %s",
             (double)need / 1048576, (double)have / 1048576, what);
    return RONDO_ERR_NO_MEMORY;
}

rondo_result_t rd_mem_check(const rd_mem_room_t *room, size_t bytes, size_t mapped, int file, char text[RD_MEM_TEXT])
{
    char what[200];
    /* a sixteenth stays free: the ranks need memory of their own, and the last page has a price */
    if (bytes > room->available - room->available / 16)
        return too_little(text, bytes, room->available, "the machine's available memory");
    snprintf(what, sizeof(what), "the cgroup limit in %s", room->where);
    if (bytes > room->cgroup - room->cgroup / 16)
        return too_little(text, bytes, room->cgroup, what);
    if (file && mapped > room->file)
        return too_little(text, mapped, room->file, "RLIMIT_FSIZE (ulimit -f)");
    if (mapped > room->space)
        return too_little(text, mapped, room->space, "RLIMIT_AS (ulimit -v)");
    return RONDO_SUCCESS;
}

bool rd_mem_ample(const rd_mem_room_t *room, size_t bytes)
{
    uint64_t least = room->available < room->cgroup ? room->available : room->cgroup;

    return least != UINT64_MAX && bytes <= least / AMPLE;
}

/* ---- the memfd ---- */

static rondo_result_t failed(char text[RD_MEM_TEXT], const char *what, size_t bytes)
{
    int error = errno;
    snprintf(text, RD_MEM_TEXT, "cannot %s %.1f MiB of shared memory: %s", what, (double)bytes / 1048576,
             error == EAGAIN ? "this process locks all its memory, and may not lock as much (raise `ulimit -l`)"
                             : strerror(error));
    return error == ENOMEM || error == ENOSPC || error == EAGAIN ? RONDO_ERR_NO_MEMORY : RONDO_ERR_SYSTEM;
}

rondo_result_t rd_mem_size(int fd, size_t bytes, char text[RD_MEM_TEXT])
{
    if (ftruncate(fd, (off_t)bytes) != 0)
        return failed(text, "make", bytes);
    if (fcntl(fd, F_ADD_SEALS, SEALS) != 0)
        return failed(text, "seal", bytes);
    return RONDO_SUCCESS;
}

static int reserve(int fd, size_t from, size_t bytes)
{
    while (bytes) {
        size_t piece = bytes < PIECE ? bytes : PIECE;
        if (fallocate(fd, 0, (off_t)from, (off_t)piece) != 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        from += piece;
        bytes -= piece;
    }
    return 0;
}

/* Makes pages of this rank's segment come on its own NUMA node, whichever rank touches them first. Returns false if the
 * kernel refuses that; on a machine with one NUMA node there is nothing to do. */
static bool prefer_own_node(char *own, size_t own_bytes)
{
    enum { PREFERRED = 1, WORD = 8 * sizeof(unsigned long) }; /* MPOL_PREFERRED of linux/mempolicy.h */
    unsigned long nodes[16] = {0};
    unsigned cpu, node;
    char online[16] = "";
    FILE *f = rd_file_read("/sys/devices/system/node/online");

    if (f) {
        bool one = fgets(online, sizeof(online), f) && strcmp(online, "0\n") == 0;
        fclose(f);
        if (one)
            return true;
    }
    if (syscall(SYS_getcpu, &cpu, &node, NULL) != 0 || node >= WORD * 16)
        return false;
    nodes[node / WORD] = 1ul << node % WORD;
    return syscall(SYS_mbind, own, own_bytes, PREFERRED, nodes, sizeof(nodes) * 8, 0) == 0;
}

/* Returns true if memfds may have huge pages on this machine. The file reads "always within_size advise [never] deny
 * force". */
static bool huge_memfds(void)
{
    char text[128] = "";
    FILE *f = rd_file_read("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    if (!f)
        return false;
    char *got = fgets(text, sizeof(text), f);
    fclose(f);
    return got && !strstr(text, "[never]") && !strstr(text, "[deny]");
}

/* Huge pages are optional. With a memfd they come only at the first touch through a mapping that requests them, so the
 * pages are touched here, by the call that reports failure instead of raising a signal. It takes four times as long as
 * fallocate, so it is not done where it would be in vain. */
static void make_huge(char *base, size_t bytes, size_t own, size_t own_bytes, int file)
{
    if (file && !huge_memfds())
        return;
    if (madvise(base, bytes, MADV_HUGEPAGE) == 0 && file)
        madvise(base + own, own_bytes, MADV_POPULATE_WRITE);
}

rondo_result_t rd_mem_map(const rd_mem_file_t *file, char **base, char text[RD_MEM_TEXT])
{
    struct stat st;
    int seals = fcntl(file->fd, F_GET_SEALS);
    if (seals < 0 || fstat(file->fd, &st) != 0)
        return failed(text, "look at", file->bytes);
    if ((size_t)st.st_size != file->bytes || (seals & SEALS) != SEALS) {
        snprintf(text, RD_MEM_TEXT, "the shared memory that came is not sealed at %zu bytes", file->bytes);
        return RONDO_ERR_SYSTEM;
    }
    char *at = mmap(NULL, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (at == MAP_FAILED)
        return failed(text, "map", file->bytes);
    if (file->huge)
        make_huge(at, file->bytes, file->own, file->own_bytes, 1);
    bool later = file->ample && prefer_own_node(at + file->own, file->own_bytes);
    if (!later && reserve(file->fd, file->own, file->own_bytes) != 0) {
        rondo_result_t code = failed(text, "reserve", file->own_bytes);
        munmap(at, file->bytes);
        return code;
    }
    *base = at;
    return RONDO_SUCCESS;
}

/* ---- plain memory ---- */

typedef struct plain {
    char *base;
    size_t bytes;
    int users;
    struct plain *next;
} plain_t;

static pthread_mutex_t plain_lock = PTHREAD_MUTEX_INITIALIZER;
static const rd_fork_handlers_t at_fork = {.lock = &plain_lock};
static plain_t *plains;

rondo_result_t rd_mem_plain(size_t bytes, int huge, char **base, char text[RD_MEM_TEXT])
{
    plain_t *p = malloc(sizeof(*p));
    char *at = p ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (at == MAP_FAILED) {
        rondo_result_t code = failed(text, "map", bytes);
        free(p);
        return code;
    }
    if (huge)
        make_huge(at, bytes, 0, bytes, 0);
    *p = (plain_t){.base = at, .bytes = bytes, .users = 1};
    rd_fork_register(RD_FORK_PLAIN, &at_fork);
    pthread_mutex_lock(&plain_lock);
    p->next = plains;
    plains = p;
    pthread_mutex_unlock(&plain_lock);
    *base = at;
    return RONDO_SUCCESS;
}

int rd_mem_plain_join(char *base, size_t bytes)
{
    int found = -1;
    pthread_mutex_lock(&plain_lock);
    for (plain_t *p = plains; p && found; p = p->next) {
        if (p->base != base || p->bytes != bytes)
            continue;
        p->users++;
        found = 0;
    }
    pthread_mutex_unlock(&plain_lock);
    return found;
}

void rd_mem_plain_leave(char *base)
{
    pthread_mutex_lock(&plain_lock);
    for (plain_t **at = &plains; *at; at = &(*at)->next) {
        plain_t *p = *at;
        if (p->base != base)
            continue;
        if (--p->users == 0) {
            *at = p->next;
            munmap(p->base, p->bytes);
            free(p);
        }
        break;
    }
    pthread_mutex_unlock(&plain_lock);
}
