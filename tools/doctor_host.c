/* rondo-info doctor, the host: cores, memory, descriptors, shared memory, what ranks of a node may do with each other,
 * and how a job would be started. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/conns.h"
#include "info.h"
#include "node/node_mem.h"
#include "node/fd_pass.h"
#include "topo/topo.h"

#define OWN_DESCRIPTORS 64 /* of a process beside those for the ranks of its node, of each of which it has */
#define RANK_DESCRIPTORS 2 /* a pidfd and a record */

static void cores(const rd_topo_t *topo)
{
    if (topo->quota > 0 && topo->quota < topo->allowed)
        info_found(INFO_NOTE, "cores",
                   "start no more ranks than that: beyond it they wait for each other's turn, and the control group "
                   "stops all of them for the rest of each period",
                   "%d of %d threads may be used, and the control group pays for %.2f cores", topo->allowed,
                   topo->threads, topo->quota);
    else if (topo->allowed == 1 && topo->threads > 1)
        info_found(
            INFO_NOTE, "cores",
            "if this is how ranks are started, too, they share one core: mpirun --bind-to core gives each its own",
            "this process is bound to 1 of %d threads", topo->threads);
    else
        info_found(INFO_WELL, "cores", NULL, "%d may be used: as many ranks run without waiting for a core",
                   topo->usable);
}

/* What a job of one rank a core takes of the node's memory, with these settings. */
static void memory(const rd_env_t *env, int ranks)
{
    char text[RD_MEM_TEXT];
    rd_mem_room_t room;
    rd_layout_t layout;

    rd_layout_init(&layout, ranks, 1, env);
    size_t bytes = layout.segment_bytes * (size_t)ranks;
    rd_mem_room(&room, "");
    if (rd_mem_check(&room, bytes, bytes, 1, text) != RONDO_SUCCESS)
        info_found(INFO_WRONG, "memory", "with fewer ranks less is needed, too", "%s", text);
    else if (room.cgroup < room.available)
        info_found(INFO_WELL, "memory", NULL, "%.1f MiB a communicator of %d ranks; %.1f MiB are left in %s",
                   (double)bytes / 1048576, ranks, (double)room.cgroup / 1048576, room.where);
    else
        info_found(INFO_WELL, "memory", NULL, "%.1f MiB a communicator of %d ranks; the control group sets no limit",
                   (double)bytes / 1048576, ranks);
}

static void descriptors(int ranks)
{
    struct rlimit limit;
    unsigned long need = OWN_DESCRIPTORS + RANK_DESCRIPTORS * (unsigned long)ranks;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        info_found(INFO_WELL, "open files", NULL, "without limit");
    else if (limit.rlim_cur < need)
        info_found(INFO_WRONG, "open files", "raise `ulimit -n` (on a cluster: in the limits of the batch system)",
                   "at most %lu, but a rank here needs about %lu", (unsigned long)limit.rlim_cur, need);
    else
        info_found(INFO_WELL, "open files", NULL, "at most %lu; a rank here needs about %lu",
                   (unsigned long)limit.rlim_cur, need);
}

static void shared_memory(void)
{
    char text[RD_MEM_TEXT], *base = NULL;
    size_t bytes = (size_t)1 << 20;
    int fd = memfd_create("rondo-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const rd_mem_file_t file = {.fd = fd, .bytes = bytes, .own_bytes = bytes};
    rd_mem_room_t room;

    rd_mem_room(&room, "");
    if (fd < 0)
        info_found(INFO_WRONG, "shared memory",
                   "this kernel or the container's seccomp profile refuses memfd_create: allow it",
                   "cannot be made: %s", strerror(errno));
    else if (rd_mem_check(&room, bytes, bytes, 1, text) != RONDO_SUCCESS || /* else a signal may come of it */
             rd_mem_size(fd, bytes, text) != RONDO_SUCCESS || rd_mem_map(&file, &base, text) != RONDO_SUCCESS)
        info_found(INFO_WRONG, "shared memory", NULL, "%s", text);
    else
        info_found(INFO_WELL, "shared memory", NULL, "a memfd can be made, sealed and mapped (/dev/shm is not used)");
    if (base)
        munmap(base, bytes);
    if (fd >= 0)
        close(fd);
}

static void huge_pages(const rd_topo_t *topo)
{
    const char *shared = topo->huge_shared;

    if (*shared && (strcmp(shared, "never") == 0 || strcmp(shared, "deny") == 0))
        info_found(INFO_NOTE, "huge pages", "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
                   "shared memory has none (shmem_enabled is %s)", shared);
    else
        info_found(INFO_WELL, "huge pages", NULL, "shared memory: %s", *shared ? shared : "the kernel does not say");
}

/* Ranks of a node find each other by a socket with an abstract name. */
static void descriptor_passing(void)
{
    unsigned char name[RD_NODE_NAME];
    int listener = rd_pass_listen(name), fd = listener >= 0 ? rd_pass_connect(name) : -1;

    if (fd < 0)
        info_found(INFO_WRONG, "local sockets",
                   "a seccomp profile or a security module forbids abstract unix sockets: allow them",
                   "ranks of this host cannot meet: %s", strerror(errno));
    else
        info_found(INFO_WELL, "local sockets", NULL,
                   "ranks in one network namespace can meet and share memory; those in another count as another node");
    rd_fd_close(fd);
    rd_fd_close(listener);
}

/* Reads a word of a sister process, as ranks do: not of a child, which Yama would allow. */
static int read_sister(void)
{
    uint64_t word = 0x726f6e646f, got = 0;
    struct iovec here = {&got, sizeof got}, there = {&word, sizeof word};
    int status, error = EIO, held[2];

    if (pipe2(held, O_CLOEXEC) != 0)
        return errno;
    pid_t sister = fork();
    if (sister == 0) {
        close(held[1]);
        _exit(read(held[0], &got, 1) < 0); /* until the other end is closed */
    }
    pid_t reader = sister > 0 ? fork() : -1;
    if (reader == 0)
        _exit(process_vm_readv(sister, &here, 1, &there, 1, 0) == sizeof got && got == word ? 0 : errno ? errno : EIO);
    if (reader > 0 && waitpid(reader, &status, 0) == reader && WIFEXITED(status))
        error = WEXITSTATUS(status);
    close(held[0]);
    close(held[1]);
    if (sister > 0)
        waitpid(sister, NULL, 0);
    return error;
}

int info_number_in(const char *path)
{
    int value = -1;
    FILE *f = fopen(path, "re");

    if (!f)
        return -1;
    if (fscanf(f, "%d", &value) != 1)
        value = -1;
    fclose(f);
    return value;
}

static void peers_memory(const rd_env_t *env)
{
    int error = env->cma ? read_sister() : 0, yama = info_number_in("/proc/sys/kernel/yama/ptrace_scope");

    if (!env->cma)
        info_found(INFO_NOTE, "peers' memory", "unset RONDO_CMA, unless you have measured that it is better so",
                   "RONDO_CMA=0: large messages are copied twice");
    else if (error && yama > 0)
        info_found(INFO_NOTE, "peers' memory", "as root: sysctl kernel.yama.ptrace_scope=0",
                   "ranks may not read each other's (kernel.yama.ptrace_scope is %d): large messages are copied twice",
                   yama);
    else if (error)
        info_found(INFO_NOTE, "peers' memory",
                   "in a container: one process namespace for all ranks, a seccomp profile that allows "
                   "process_vm_readv (Docker: --cap-add=SYS_PTRACE)",
                   "ranks may not read each other's (%s): large messages are copied twice", strerror(error));
    else
        info_found(INFO_WELL, "peers' memory", NULL, "ranks of one user may read each other's (process_vm_readv)");
}

static void process_descriptors(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    if (fd < 0)
        info_found(INFO_NOTE, "death of a rank",
                   "Linux 5.3 has pidfd_open; in a container the seccomp profile must allow it",
                   "no pidfd can be opened (%s): it is noticed by its connections instead", strerror(errno));
    else
        info_found(INFO_WELL, "death of a rank", NULL, "is noticed at once by the others of its node (pidfd)");
    if (fd >= 0)
        close(fd);
}

static int folder_has_entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);

    for (struct dirent *e; dir && (e = readdir(dir));)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static void locked_memory(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    int devices = folder_has_entries("/sys/class/infiniband");

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        info_found(INFO_WELL, "locked memory", NULL, "without limit");
    else if (devices)
        info_found(INFO_NOTE, "locked memory",
                   "`ulimit -l unlimited`: in /etc/security/limits.d for logins, in the service for Slurm's daemon",
                   "at most %lu KiB, and this host has InfiniBand devices, whose buffers are locked",
                   (unsigned long)(limit.rlim_cur / 1024));
    else
        info_found(INFO_WELL, "locked memory", NULL, "at most %lu KiB; nothing here locks any",
                   (unsigned long)(limit.rlim_cur / 1024));
}

static int in_path(const char *program)
{
    char path[4096], file[4400], *state = NULL;

    snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "");
    for (char *dir = strtok_r(path, ":", &state); dir; dir = strtok_r(NULL, ":", &state)) {
        snprintf(file, sizeof file, "%s/%s", dir, program);
        if (access(file, X_OK) == 0)
            return 1;
    }
    return 0;
}

static void launcher(int ranks)
{
    const char *slurm = getenv("SLURM_JOB_ID");
    int ompi = in_path("ompi_info");

    if (slurm)
        info_found(INFO_WELL, "launcher", NULL, "Slurm's job %s: srun -n %s ./program", slurm,
                   getenv("SLURM_NTASKS") ? getenv("SLURM_NTASKS") : "N");
    else if (in_path("mpirun") && ompi && geteuid() == 0 && !getenv("OMPI_ALLOW_RUN_AS_ROOT"))
        info_found(INFO_NOTE, "launcher", "mpirun --allow-run-as-root, or another user",
                   "mpirun (Open MPI's, if it is the first in PATH) refuses to start programs for root");
    else if (in_path("mpirun") || in_path("mpiexec"))
        info_found(INFO_WELL, "launcher", NULL, "%s -n %d ./program%s", in_path("mpirun") ? "mpirun" : "mpiexec", ranks,
                   ompi ? " (Open MPI: --oversubscribe for more ranks than cores)" : "");
    else
        info_found(INFO_NOTE, "launcher",
                   "install an MPI, or start the ranks in your own way, as examples/processes.c does",
                   "neither mpirun nor mpiexec nor a job of Slurm is here");
}

void info_doctor_host(const rd_env_t *env)
{
    rd_topo_t topo;

    rd_topo_basic(&topo);
    int ranks = topo.usable > 1 ? topo.usable : 2;
    cores(&topo);
    memory(env, ranks);
    descriptors(ranks);
    shared_memory();
    huge_pages(&topo);
    descriptor_passing();
    peers_memory(env);
    process_descriptors();
    locked_memory();
    launcher(ranks);
}
