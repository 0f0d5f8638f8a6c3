/* How the record of this process comes about: memory that is sealed in size, or a file where the user wants one. */
#include "monitor/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/wait.h"
#include "boot/sock.h"
#include "monitor/held.h"
#include "monitor/origin.h"
#include "monitor/process_int.h"
#include "monitor/ras_socket.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static rd_record_t *record;
static _Atomic int open_fd = -1; /* its descriptor, for signal handlers */

rd_record_t *rd_record(void)
{
    return record;
}

void rd_record_lock(void)
{
    pthread_mutex_lock(&lock);
}

void rd_record_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- what the head says ---- */

/* Returns the number in the first of these variables that is set to one; -1: none is. */
static int launcher_number(const char *const *names)
{
    for (; *names; names++) {
        const char *text = getenv(*names);
        char *end = NULL;
        long number = text && *text ? strtol(text, &end, 10) : -1;
        if (end && !*end && number >= 0 && number <= INT32_MAX)
            return (int)number;
    }
    return -1;
}

static void fill_head(const rd_record_t *made)
{
    rd_monitor_head_t *head = made->head;
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK", NULL};
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE", NULL};
    rd_process_stat_t self;
    rd_origin_t here;
    struct timespec now;

    rd_origin_find(&here);
    rd_clock_read(CLOCK_REALTIME, &now);
    head->version = RD_MONITOR_VERSION;
    head->head_bytes = RD_MONITOR_PAGE;
    head->comm_bytes = sizeof(rd_monitor_comm_t);
    head->ncomms = RD_MONITOR_COMMS;
    head->event_bytes = sizeof(rd_monitor_event_t);
    head->nevents = (uint32_t)(made->mask + 1);
    head->comms_at = RD_MONITOR_PAGE;
    head->events_at = RD_MONITOR_PAGE + sizeof(rd_monitor_comm_t) * RD_MONITOR_COMMS;
    head->bytes = made->bytes;
    head->stack_bytes = sizeof(rd_monitor_stack_t);
    head->module_bytes = sizeof(rd_monitor_module_t);
    if (made->stacks) {
        head->stacks_at = (uint64_t)((char *)made->stacks - (char *)head);
        head->nstacks = RD_MONITOR_STACKS;
        head->modules_at = (uint64_t)((char *)made->modules - (char *)head);
        head->nmodules = RD_MONITOR_MODULES;
    }
    head->pid = (int32_t)getpid();
    head->uid = (int32_t)geteuid();
    head->job_rank = launcher_number(ranks);
    head->job_size = launcher_number(sizes);
    head->pid_space = here.pid_space;
    head->started = rd_process_stat("self", &self) ? self.started : 0;
    head->clock = (uint32_t)made->clock;
    head->made_ticks = rd_ticks_now(made->clock);
    head->made_ns = (uint64_t)rd_clock_ns();
    head->made_unix_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    memcpy(head->host, here.host, sizeof head->host);
    memcpy(head->boot, here.boot, sizeof head->boot);
    snprintf(head->program, sizeof head->program, "%s", program_invocation_short_name);
    snprintf(head->library, sizeof head->library, "%d.%d.%d", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR,
             RONDO_VERSION_PATCH);
    atomic_store_explicit(&head->magic, RD_MONITOR_MAGIC, memory_order_release);
}

/* ---- its memory ---- */

/* A file beyond the limit would raise a signal. */
static bool too_long(size_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

static int make_memfd(size_t bytes)
{
    rd_fd_fork_lock();
    int fd = rd_fd_keep(memfd_create(RD_MONITOR_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    rd_fd_fork_unlock();
    if (fd < 0 || ftruncate(fd, (off_t)bytes) == 0)
        return fd;
    int error = errno;
    rd_fd_close(fd);
    errno = error;
    return -1;
}

/* A folder into which others write could have any file under the name. */
static bool own_folder(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return false;
    errno = EPERM;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Pages of a file are reserved: a full disk would raise a signal later. */
static int make_file(const char *folder, size_t bytes, char *path, size_t room)
{
    char host[RD_MONITOR_NAME] = "";

    if (!own_folder(folder))
        return -1;
    gethostname(host, sizeof host - 1);
    if ((size_t)snprintf(path, room, "%s/%s.%d.rondo-record", folder, host, (int)getpid()) >= room) {
        errno = ENAMETOOLONG;
        return -1;
    }
    rd_fd_fork_lock();
    int fd = rd_fd_keep(open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    rd_fd_fork_unlock();
    if (fd < 0)
        return -1;
    int error = posix_fallocate(fd, 0, (off_t)bytes);
    if (error == 0)
        return fd;
    rd_fd_close(fd);
    unlink(path);
    errno = error;
    return -1;
}

static bool sealed; /* nobody can write to what is passed on */

/* With the mapping made, nobody shall map it for writing again. An older kernel has no such seal. */
static bool seal(int fd)
{
    sealed = fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_FUTURE_WRITE) == 0;
    return sealed || fcntl(fd, F_ADD_SEALS, SEALS) == 0;
}

/* What is passed on of a file is a descriptor that cannot write. */
static bool read_only(rd_record_t *made)
{
    rd_fd_fork_lock();
    int fd = rd_fd_keep(open(made->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    rd_fd_fork_unlock();
    if (fd < 0)
        return false;
    rd_fd_close(made->fd);
    made->fd = fd;
    sealed = true;
    return true;
}

static void unmake(rd_record_t *made)
{
    if (made->head)
        munmap(made->head, made->bytes);
    rd_fd_close(made->fd);
    if (made->path[0])
        unlink(made->path);
    free(made);
}

/* Where there can be no file, there is memory, and *refused is why. Returns -1 with errno. */
static int make_shared(const rd_env_t *env, rd_record_t *made, int *refused)
{
    int fd = -1;

    if (too_long(made->bytes)) {
        errno = EFBIG;
        return -1;
    }
    if (env->monitor_dir[0])
        fd = make_file(env->monitor_dir, made->bytes, made->path, sizeof made->path);
    if (fd >= 0)
        return fd;
    if (env->monitor_dir[0])
        *refused = errno;
    made->path[0] = 0; /* a file of that name would be another process's */
    return make_memfd(made->bytes);
}

static size_t events_of(const rd_env_t *env)
{
    return env->monitor_events ? (size_t)env->monitor_events : RD_MONITOR_EVENTS;
}

static size_t bytes_of(const rd_env_t *env)
{
    size_t bytes =
        RD_MONITOR_PAGE + RD_MONITOR_COMMS * sizeof(rd_monitor_comm_t) + events_of(env) * sizeof(rd_monitor_event_t);

    if (env->stacks)
        bytes += RD_MONITOR_STACKS * sizeof(rd_monitor_stack_t) + RD_MONITOR_MODULES * sizeof(rd_monitor_module_t);
    return bytes;
}

/* Returns NULL with errno. */
static rd_record_t *make(const rd_env_t *env, int *refused)
{
    const size_t nevents = events_of(env), bytes = bytes_of(env);
    rd_record_t *made = calloc(1, sizeof *made);

    if (!made)
        return NULL;
    made->bytes = bytes;
    made->fd = make_shared(env, made, refused);
    if (made->fd < 0) {
        int error = errno;
        free(made);
        errno = error;
        return NULL;
    }
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made->fd, 0);
    if (at != MAP_FAILED)
        made->head = at;
    if (!made->head || !(made->path[0] ? read_only(made) : seal(made->fd))) {
        int error = errno;
        unmake(made);
        errno = error;
        return NULL;
    }
    made->comms = (rd_monitor_comm_t *)(void *)((char *)at + RD_MONITOR_PAGE);
    made->events = (rd_monitor_event_t *)(void *)(made->comms + RD_MONITOR_COMMS);
    made->mask = nevents - 1;
    made->clock = rd_ticks_kind();
    if (env->stacks) {
        made->stacks = (rd_monitor_stack_t *)(void *)(made->events + nevents);
        made->modules = (rd_monitor_module_t *)(void *)(made->stacks + RD_MONITOR_STACKS);
    }
    fill_head(made);
    return made;
}

/* ---- its users ---- */

/* A child has the memory, too, and what it writes there would be taken for the parent's: so it gets other memory in the
 * same place, for a call that goes on in the child, and so does the struct that describes it. */
static void fork_child(void)
{
    pthread_mutex_unlock(&lock);
    if (record)
        mmap(record->head, record->bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    atomic_store(&open_fd, -1);
    record = NULL; /* its descriptors are closed with all others (boot/sock.h) */
    users = 0;
    rd_serve_forget();
    rd_held_forget();
}

static const rd_fork_handlers_t at_fork = {.prepare = rd_record_lock, .parent = rd_record_unlock, .child = fork_child};

/* Once a process, as each of its communicators is without. */
static void say_missing(const rd_env_t *env, const rd_log_ctx_t *ctx, int error)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    char why[96];

    if (atomic_flag_test_and_set(&said))
        return;
    snprintf(why, sizeof why, "%s", rd_fd_strerror(error));
    if (error == EFBIG)
        snprintf(why, sizeof why, "it has %zu KB, which is more than the limit of files allows (ulimit -f)",
                 bytes_of(env) >> 10);
    rd_log(
        ctx, RD_LOG_WARN,
        "there is no record of this process, so neither rondo-ras nor a verdict of other ranks knows what it does: %s",
        why);
}

bool rd_record_join(const rd_env_t *env, const rd_log_ctx_t *ctx)
{
    if (!env->monitor)
        return false;
    rd_fork_register(RD_FORK_MONITOR, &at_fork);
    bool first = atomic_load(&open_fd) < 0;
    int64_t group = first ? rd_serve_group(env->ras_group) : -1; /* without the lock, as it may take long */
    int error = 0, refused = 0;

    rd_record_lock();
    if (!record)
        record = make(env, &refused);
    atomic_store(&open_fd, record ? record->fd : -1);
    if (!record)
        error = errno ? errno : ENOMEM;
    else if (users++ == 0)
        rd_serve_open(!first ? rd_serve_group(env->ras_group) : sealed ? group : -1);
    bool unsealed = group >= 0 && record && !sealed;
    rd_record_unlock();
    if (group == -2)
        rd_log(ctx, RD_LOG_WARN, "RONDO_RAS_GROUP=%s: there is no such group, so nobody else may ask", env->ras_group);
    if (unsealed)
        rd_log(ctx, RD_LOG_WARN,
               "RONDO_RAS_GROUP=%s: this kernel cannot keep others from writing to a record (Linux 5.1 can), so nobody "
               "else may ask",
               env->ras_group);
    if (refused && !error)
        rd_log(
            ctx, RD_LOG_WARN,
            "RONDO_MONITOR_DIR=%s: no record can be there%s (%s): it is in memory, and goes with the last process that "
            "holds it",
            env->monitor_dir, refused == EPERM ? ", as the folder has to be this user's own, with mode 0700" : "",
            rd_fd_strerror(refused));
    if (error)
        say_missing(env, ctx, error);
    return error == 0;
}

void rd_record_leave(void)
{
    rd_record_lock();
    if (users && --users == 0) {
        rd_serve_close();
        atomic_store(&open_fd, -1);
        unmake(record);
        record = NULL;
    }
    rd_record_unlock();
}

int rd_record_job_rank(void)
{
    rd_record_lock();
    int rank = record ? record->head->job_rank : -1;
    rd_record_unlock();
    return rank;
}

int rd_record_job_size(void)
{
    rd_record_lock();
    int size = record ? record->head->job_size : -1;
    rd_record_unlock();
    return size;
}

int rd_record_open_fd(void)
{
    return atomic_load(&open_fd);
}

int rd_record_fd(void)
{
    return record ? record->fd : -1;
}
