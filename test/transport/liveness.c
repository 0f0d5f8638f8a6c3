/* Liveness: a rank that is killed is named on every survivor, on its node (pidfd) and on others (sockets, passed on),
 * also while a forked child of it lives; a rank that leaves in order is not taken for dead; an abort is heard by all;
 * no thread and no descriptor is left. Where a sandbox refuses all that can be waited by, the thread sees all the same
 * that it was woken. */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/events.h"
#include "transport/silent_ops.h"
#include "util/gate.h"

typedef enum { KILLED, KILLED_WITH_CHILD, LEFT, ABORTED } fate_t;
static const char *const fates[] = {"killed", "killed, its child lives", "left", "aborted"};

typedef struct trial {
    int nranks, nodes, victim;
    fate_t fate;
    unsigned char *left; /* shared: of each rank */
    int over[2];         /* a pipe whose writing end only main has */
} trial_t;

static int count_in(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static bool has_left(void *arg, int rank)
{
    return ((const trial_t *)arg)->left[rank];
}

static bool has_failed(void *arg, int rank)
{
    (void)arg;
    (void)rank;
    return false;
}

static const rd_liveness_ops_t ops = {has_left, has_failed, SILENT_OPS};

/* Killed by itself: nothing of the library gets to run, as with any other kill -9. */
static void suffer(const trial_t *t, rd_boot_t *boot)
{
    if (t->fate == KILLED_WITH_CHILD && fork() == 0) {
        char byte;
        if (read(t->over[0], &byte, 1) == 0) /* ends when the trial is over */
            _exit(0);
    }
    if (t->fate == KILLED || t->fate == KILLED_WITH_CHILD)
        kill(getpid(), SIGKILL);
    if (t->fate == ABORTED)
        rd_boot_farewell(boot, RONDO_ERR_ABORTED, t->victim);
}

static int survive(const trial_t *t, int rank, rd_stop_t *stop)
{
    if (t->fate == LEFT) {
        usleep(50000);
        if (rd_stop_get(stop) != RONDO_SUCCESS)
            printf("rank %d: %s\n", rank, stop->text);
        return rd_stop_get(stop) != RONDO_SUCCESS;
    }
    while (rd_stop_get(stop) == RONDO_SUCCESS) /* the alarm ends it when nothing comes */
        usleep(1000);
    if (rd_stop_get(stop) == RONDO_ERR_REMOTE && atomic_load(&stop->failed_rank) == t->victim)
        return 0;
    printf("rank %d: %s\n", rank, stop->text);
    return 1;
}

static int run_rank(trial_t *t, const rondo_unique_id_t *id, int rank)
{
    rd_env_t env;
    rd_log_ctx_t ctx = {.rank = rank, .nranks = t->nranks, .name = "test"};
    rd_stop_t stop = {0};
    rd_boot_t *boot;
    rd_node_t node;
    rd_liveness_t *liveness;
    int bad = 0;
    rd_log_set_level(RD_LOG_NONE);
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    snprintf(env.hostid, sizeof(env.hostid), "%d", rank % t->nodes);
    rd_log_set_level(RD_LOG_NONE);
    int fds = count_in("/proc/self/fd"), tasks = count_in("/proc/self/task");
    if (rd_boot_create(&boot, id, rank, t->nranks, &env, &ctx, &stop) != RONDO_SUCCESS ||
        rd_node_find(&node, boot, rank, t->nranks, &env, -1, &ctx, &stop) != RONDO_SUCCESS ||
        rd_node_map(&node, boot, 4096, NULL, &env, &ctx, &stop) != RONDO_SUCCESS ||
        rd_liveness_add(&liveness, boot, &node, &ctx, &stop, &ops, t) != RONDO_SUCCESS)
        return 1;
    char all[64] = {0};
    rondo_result_t met = rd_boot_allgather(boot, all, 1); /* the victim may be gone before others are through */
    bad |= met != RONDO_SUCCESS && t->fate == LEFT;
    if (rank == t->victim)
        suffer(t, boot);
    else
        bad |= survive(t, rank, &stop);
    t->left[rank] = 1;
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_liveness_remove(liveness);
    rd_node_free(&node);
    rd_boot_destroy(boot);
    for (int i = 0; i < 1000 && count_in("/proc/self/task") != tasks; i++)
        usleep(1000); /* a thread that was joined may be listed for a moment more */
    if (count_in("/proc/self/fd") != fds || count_in("/proc/self/task") != tasks) {
        printf("rank %d: descriptors %d -> %d, threads %d -> %d\n", rank, fds, count_in("/proc/self/fd"), tasks,
               count_in("/proc/self/task"));
        bad = 1;
    }
    return bad;
}

static int run(trial_t t)
{
    rondo_unique_id_t id;
    rd_env_t env;
    int status, bad = 0;
    pid_t pids[16];
    if (rd_env_read(&env) != RONDO_SUCCESS || pipe(t.over) != 0)
        return 1;
    gate_t gate = gate_make();
    memset(t.left, 0, 64);
    fflush(stdout);
    for (int r = 0; r < t.nranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            alarm(20);
            id = gate_wait(&gate);
            close(t.over[1]);
            _exit(run_rank(&t, &id, r) | (fflush(stdout) != 0));
        }
    }
    if (rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
        return 1;
    gate_open(&gate, &id, t.nranks);
    for (int r = 0; r < t.nranks; r++) {
        waitpid(pids[r], &status, 0);
        int killed = r == t.victim && (t.fate == KILLED || t.fate == KILLED_WITH_CHILD);
        if (!killed && status)
            printf("rank %d status %x\n", r, status);
        bad |= killed ? !WIFSIGNALED(status) : status != 0;
    }
    close(t.over[1]);
    close(t.over[0]);
    while (wait(NULL) > 0) /* the victim's child, which came to us */
        ;
    if (bad)
        printf("FAILED: %d ranks on %d nodes, rank %d %s\n", t.nranks, t.nodes, t.victim, fates[t.fate]);
    return bad;
}

/* ---- a sandbox ---- */

static const int waits[] = {
#ifdef SYS_epoll_wait /* not where there is but the newer one */
    SYS_epoll_wait, SYS_poll,
#endif
    SYS_epoll_pwait, SYS_ppoll};

static bool refuse_waits(void)
{
    struct sock_filter code[2 * sizeof waits / sizeof waits[0] + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short n = 1;

    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)waits[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int wake_in_a_sandbox(void)
{
    int status = 0;

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct epoll_event come[2];
        if (rd_events_open() != 0 || !refuse_waits())
            _exit(0); /* not here */
        _exit(rd_events_wake() != 0 || rd_events_await(come, 2, 1000) != 1 || come[0].data.u64 != RD_EVENT_WAKE);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        printf("refused: the thread does not see that it was woken\n");
    return status != 0;
}

int main(void)
{
    int bad = wake_in_a_sandbox();
    alarm(100);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    unsigned char *left = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (left == MAP_FAILED)
        return 1;
    for (int fate = KILLED; fate <= ABORTED; fate++) {
        bad |= run((trial_t){3, 1, 1, (fate_t)fate, left, {0, 0}});
        bad |= run((trial_t){7, 7, 2, (fate_t)fate, left, {0, 0}});
        bad |= run((trial_t){6, 2, 0, (fate_t)fate, left, {0, 0}});
    }
    return bad;
}
