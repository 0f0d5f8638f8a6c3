/* Each system call that a rank makes while a communicator is made is refused once: by a sandbox, by an old kernel, for
 * lack of something, or by a signal (EINTR). What is refused is any call of the process, also those of other libraries
 * (kth.c refuses what librondo's own objects ask for).
 *
 * The communicator is made all the same, on all ranks, and works; or all ranks fail, soon and not by a deadline, and
 * what they say names the cause, and the rank. Between nodes some calls are UCX's, which may end the process, or give
 * up a connection: then the others say so.
 *
 * A sandbox that does not know of a call refuses it for good. That is tried of the calls by which ranks wait for each
 * other, until the communicator has ended.
 *
 *   refused [--call NAME] [--time K] [--error E] [--victim R] [--nodes N] [--sample PERCENT] [--seed S] [--verbose]
 *       --call, --time: that call alone, when it is made the K-th time; --sample: a share of the times behind the
 * first; --nodes 2: two played nodes, by hand: a connection that UCX gives up over one EINTR is seen, seldom, by
 * nothing but the deadline
 *
 * The kernel hands each call of the victim's threads to another thread of it, which lets it go on or refuses it
 * (seccomp_unotify(2)). */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

#define RANKS 3
#define SOON_US 5000000

/* Errors of a call, by what they mean. */
enum { SIGNAL = EINTR, LACK = ENOMEM, FILES = EMFILE, FORBIDDEN = EPERM, OLD = ENOSYS };

/* The calls that are refused, and how. Not among them: those that end or free something, and those of which the C
 * library needs the result to go on (futex, rt_sigprocmask, set_robust_list, rseq). A getrandom that is not there any
 * more (ENOSYS) ends the process, by libsodium. */
static const struct {
    int number;
    const char *name;
    int errors[3];
} calls[] = {
#define CALL(name, ...)                                                                                                \
    {                                                                                                                  \
        SYS_##name, #name,                                                                                             \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
    CALL(accept4, FILES, SIGNAL),
    CALL(bind, FORBIDDEN, LACK),
    CALL(clone, EAGAIN),
    CALL(clone3, OLD, EAGAIN),
    CALL(close_range, OLD),
    CALL(connect, FORBIDDEN, SIGNAL),
    CALL(epoll_create1, FILES),
    CALL(epoll_ctl, LACK),
    CALL(epoll_wait, SIGNAL),
    CALL(eventfd2, FILES),
    CALL(fallocate, ENOSPC, EOPNOTSUPP),
    CALL(fcntl, FILES),
    CALL(fstat, LACK),
    CALL(ftruncate, FORBIDDEN),
    CALL(getdents64, FORBIDDEN),
    CALL(getrandom, SIGNAL, EAGAIN),
    CALL(getsockname, ENOBUFS),
    CALL(getsockopt, FORBIDDEN),
    CALL(gettid, OLD),
    CALL(listen, FORBIDDEN),
    CALL(madvise, EINVAL),
    CALL(membarrier, OLD),
    CALL(memfd_create, OLD, FILES),
    CALL(mmap, LACK),
    CALL(mprotect, LACK),
    CALL(newfstatat, FORBIDDEN),
    CALL(openat, FILES, FORBIDDEN),
    CALL(pidfd_open, OLD, FILES, FORBIDDEN),
    CALL(poll, SIGNAL),
    CALL(prctl, FORBIDDEN),
    CALL(prlimit64, FORBIDDEN),
    CALL(process_vm_readv, FORBIDDEN, OLD),
    CALL(read, EIO, SIGNAL),
    CALL(readlink, FORBIDDEN),
    CALL(recvfrom, ENOBUFS, SIGNAL),
    CALL(recvmsg, ENOBUFS, SIGNAL),
    CALL(sched_getaffinity, FORBIDDEN),
    CALL(sendmsg, ENOBUFS, SIGNAL),
    CALL(sendto, ENOBUFS, SIGNAL),
    CALL(setsockopt, FORBIDDEN),
    CALL(socket, FILES, FORBIDDEN),
    CALL(socketpair, FILES),
    CALL(statx, OLD),
    CALL(sysinfo, FORBIDDEN),
    CALL(uname, FORBIDDEN),
    CALL(unshare, FORBIDDEN),
    CALL(write, EIO, SIGNAL),
};
#define CALLS ((int)(sizeof calls / sizeof calls[0]))

typedef struct {
    int victim, nodes;
    int which, time, error; /* calls[which] is refused when it is asked for the time-th time; 0: never */
    bool lasts;             /* and from then on */
    _Atomic int armed, asked[CALLS];
    _Atomic int made;
} job_t;

/* ---- the victim's second thread ---- */

static job_t *job;
static _Atomic int listener = -1;

static int index_of(int number)
{
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == number)
            return i;
    return -1;
}

/* A question about network interfaces. Between nodes UCX asks, and waits for an answer to what it could not send. */
static bool is_netlink(const struct seccomp_data *call)
{
    int domain = 0;
    socklen_t bytes = sizeof domain;

    return (call->nr == SYS_recvmsg || call->nr == SYS_recvfrom || call->nr == SYS_sendto) &&
           getsockopt((int)call->args[0], SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_NETLINK;
}

static void *decide(void *unused)
{
    struct seccomp_notif asked;
    struct seccomp_notif_resp answer;

    (void)unused;
    while (atomic_load(&listener) < 0)
        sched_yield();
    for (;;) {
        memset(&asked, 0, sizeof asked);
        memset(&answer, 0, sizeof answer);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
            continue;
        int i = index_of(asked.data.nr), times = 0;
        if (atomic_load(&job->armed) && i >= 0 && !(job->nodes > 1 && is_netlink(&asked.data)))
            times = atomic_fetch_add(&job->asked[i], 1) + 1;
        answer.id = asked.id;
        if (times && i == job->which && (times == job->time || (job->lasts && job->time && times > job->time)))
            answer.error = -job->error;
        else
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return NULL;
}

/* From now on what this thread, and those that it starts, ask of the kernel is decided there. Returns false if the
 * kernel has no such thing. */
static bool watch(void)
{
    struct sock_filter filter[2 * CALLS + 4];
    struct sock_fprog program = {.filter = filter};
    pthread_t thread;
    int n = 0;

    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < CALLS; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program.len = (unsigned short)n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || pthread_create(&thread, NULL, decide, NULL) != 0)
        return false;
    atomic_store(&listener,
                 (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
    return atomic_load(&listener) >= 0;
}

/* ---- the ranks ---- */

/* What a sentence may call an error that was made up. */
static bool names(const char *text, int error)
{
    bool lack = error == LACK || error == EAGAIN;

    return strstr(text, strerror(error)) || (error == FILES && strstr(text, "open files")) ||
           (lack && (strstr(text, "memory") || strstr(text, "threads")));
}

/* What is said where UCX has ended a process or a connection. */
static bool is_of_network(const char *text)
{
    static const char *const words[] = {"UCX", "network", "died", "was lost", "transport"};

    for (size_t i = 0; job->nodes > 1 && i < sizeof words / sizeof words[0]; i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

static void judge(test_rank_t *t, rondo_result_t result, rondo_comm_t comm, int64_t took)
{
    const char *text = rondo_last_error(comm);
    char victim[32];

    snprintf(victim, sizeof victim, "rank %d", job->victim);
    if (result == RONDO_SUCCESS)
        return;
    if (took > SOON_US)
        test_fail(t, "only after %lld ms: %s", (long long)took / 1000, text);
    if (is_of_network(text))
        return;
    if (job->lasts && !strstr(text, calls[job->which].name))
        test_fail(t, "%s, and the call is not said: %s", rondo_result_string(result), text);
    if (!names(text, job->error))
        test_fail(t, "%s, and the cause is not said: %s", rondo_result_string(result), text);
    if (t->rank != job->victim && !strstr(text, victim))
        test_fail(t, "%s, and the rank is not said: %s", rondo_result_string(result), text);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_unique_id_t id;
    rondo_comm_t comm;
    char host[16];

    (void)arg;
    test_note(t, "%s, %d%s of rank %d: %s", calls[job->which].name, job->time, job->lasts ? " and all after it" : "",
              job->victim, strerror(job->error));
    snprintf(host, sizeof host, "%d", t->rank % job->nodes);
    setenv("RONDO_HOSTID", host, 1);
    if (job->nodes == 1)
        setenv("RONDO_IFACE", "lo", 1); /* so that a rank asks for its interfaces */
    test_id(t, &id);
    bool watched = t->rank == job->victim && watch();
    if (t->rank == job->victim && !watched)
        test_stop(t, "the kernel does not hand over this thread's system calls: %s", strerror(errno));
    int64_t began = test_clock_us();
    if (watched)
        atomic_store(&job->armed, 1);
    rondo_result_t result = rondo_comm_create(&comm, t->nranks, &id, t->rank, NULL);
    if (watched && !job->lasts)
        atomic_store(&job->armed, 0);
    judge(t, result, NULL, test_clock_us() - began);
    if (result != RONDO_SUCCESS)
        return;
    atomic_fetch_add(&job->made, 1);
    /* What fails on the victim after its last word to the others, they hear in their first call. */
    judge(t, rondo_barrier(comm, NULL), comm, 0);
    rondo_comm_destroy(comm);
}

/* ---- all of it ---- */

/* Not where the kernel is too old, or a container forbids it. */
static bool can_watch(void)
{
    int status = 1;
    pid_t child = fork();

    if (child == 0)
        _exit(!watch());
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int run(int which, int time, int error)
{
    job->which = which;
    job->time = time;
    job->error = error;
    for (int i = 0; i < CALLS; i++)
        atomic_store(&job->asked[i], 0);
    atomic_store(&job->armed, 0);
    atomic_store(&job->made, 0);
    test_director_t ends = {.victims = job->nodes > 1 ? 1u << job->victim : 0, .signal = SIGABRT};
    return test_run_directed(&ends, RANKS, 60, body, NULL) != 0;
}

typedef struct {
    const char *call;
    int time, error, sample, verbose;
    uint64_t seed;
} wanted_t;

/* Returns how many were wrong of what is wanted of one call. `share`: the percentage of its times that is tried. */
static int sweep_call(const wanted_t *w, int which, int times, unsigned share, uint64_t *random, int *runs)
{
    int bad = 0;

    for (int k = 1; k <= times; k++)
        for (int e = 0; e < 3 && calls[which].errors[e]; e++) {
            int error = calls[which].errors[e];
            if ((w->time && w->time != k) || (w->error && w->error != error) ||
                (!w->time && k > 1 && test_below(random, 100) >= share))
                continue;
            bad += run(which, k, error);
            ++*runs;
            if (w->verbose)
                printf("%s %d, %s: made on %d\n", calls[which].name, k, strerror(error), job->made);
        }
    return bad;
}

static int sweep(const wanted_t *w, int *runs)
{
    uint64_t random = w->seed;
    int bad = run(0, 0, 0), all = 0, asked[CALLS];

    for (int i = 0; i < CALLS; i++)
        all += asked[i] = atomic_load(&job->asked[i]);
    for (int i = 0; i < CALLS; i++)
        if (!w->call || strcmp(w->call, calls[i].name) == 0)
            bad += sweep_call(w, i, asked[i], (unsigned)w->sample, &random, runs);
    printf("refused: %d nodes, rank %d makes %d calls\n", job->nodes, job->victim, all);
    return bad;
}

/* The same of calls that are refused each time. Between nodes UCX waits by them, too. */
static int sweep_lasting(const wanted_t *w, int *runs)
{
    static const int waits[] = {SYS_accept4, SYS_getsockopt, SYS_poll, SYS_epoll_wait}, errors[] = {FORBIDDEN, OLD};
    int bad = 0;

    job->lasts = true;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0] && job->nodes == 1; i++)
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
            int which = index_of(waits[i]);
            if ((w->call && strcmp(w->call, calls[which].name) != 0) || (w->error && w->error != errors[e]))
                continue;
            bad += run(which, w->time ? w->time : 1, errors[e]);
            ++*runs;
            if (w->verbose)
                printf("%s, each time, %s: made on %d\n", calls[which].name, strerror(errors[e]), job->made);
        }
    job->lasts = false;
    return bad;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"call", 1, NULL, 'c'},   {"time", 1, NULL, 't'},    {"error", 1, NULL, 'e'},
        {"victim", 1, NULL, 'r'}, {"nodes", 1, NULL, 'n'},   {"sample", 1, NULL, 's'},
        {"seed", 1, NULL, 'd'},   {"verbose", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
    wanted_t w = {.sample = 10, .seed = 1};
    int victim = -1, bad = 0, runs = 0, option;

    job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job == MAP_FAILED)
        return 1;
    job->nodes = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int value = optarg ? atoi(optarg) : 0;
        if (option == 'c')
            w.call = optarg;
        else if (option == 't')
            w.time = value;
        else if (option == 'e')
            w.error = value;
        else if (option == 'r')
            victim = value;
        else if (option == 'n')
            job->nodes = value;
        else if (option == 's')
            w.sample = value;
        else if (option == 'd')
            w.seed = (uint64_t)value;
        else if (option == 'v')
            w.verbose = 1;
        else
            return 2;
    }
    test_begin("refused", 3000);
    if (!can_watch()) {
        printf("refused: here no system calls are handed to a program\n");
        return TEST_SKIPPED;
    }
    setenv("RONDO_CREATE_TIMEOUT_MS", "20000", 1);
    printf("refused: seed %llu\n", (unsigned long long)w.seed);
    for (job->victim = 0; job->victim < RANKS; job->victim++)
        if (victim < 0 || victim == job->victim)
            bad += sweep(&w, &runs) + sweep_lasting(&w, &runs);
    printf("refused: %d runs, %d wrong\n", runs, bad);
    return bad != 0;
}
