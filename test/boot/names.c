/* A rank that dies before the ranks have been introduced to each other is named by its host and process on all others:
 * by its neighbours, whether they have connected to it or it to them, and by those that only hear of it. Rank 2 dies
 * when all have their connections and have begun the first exchange, which the linker hands over. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot.h"
#include "util/gate.h"

#define MOST 9 /* of so many ranks two are no neighbours of rank 2 */
#define VICTIM 2

typedef struct board { /* shared */
    _Atomic int there;
    _Atomic int pid;
} board_t;

static board_t *board;
static int self, nranks;

rondo_result_t __real_rd_boot_allgather(rd_boot_t *boot, void *all, size_t each);
rondo_result_t __wrap_rd_boot_allgather(rd_boot_t *boot, void *all, size_t each);

rondo_result_t __wrap_rd_boot_allgather(rd_boot_t *boot, void *all, size_t each)
{
    atomic_fetch_add(&board->there, 1);
    while (self == VICTIM && atomic_load(&board->there) < nranks)
        usleep(1000);
    if (self == VICTIM)
        kill(getpid(), SIGKILL);
    return __real_rd_boot_allgather(boot, all, each);
}

static int fail_named(const rondo_unique_id_t *id, const rd_env_t *env)
{
    rd_log_ctx_t ctx = {.rank = self, .nranks = nranks, .name = "test"};
    char named[RD_ERROR_BYTES], host[65] = "";
    rd_stop_t stop = {0};
    rd_boot_t *boot;

    rd_log_set_level(RD_LOG_NONE);
    rondo_result_t result = rd_boot_create(&boot, id, self, nranks, env, &ctx, &stop);
    gethostname(host, sizeof host - 1);
    snprintf(named, sizeof named, "rank %d (%s:%d) ", VICTIM, host, atomic_load(&board->pid));
    if (result == RONDO_ERR_REMOTE && strstr(rd_thread_error(), named) && !strstr(rd_thread_error(), "not known"))
        return 0;
    printf("FAILED: rank %d of %d must name \"%s\": %s: \"%s\"\n", self, nranks, named, rondo_result_string(result),
           rd_thread_error());
    return 1;
}

static int run(int n)
{
    rondo_unique_id_t id;
    pid_t pids[MOST];
    rd_env_t env;
    int status, bad = 0;

    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    nranks = n;
    atomic_store(&board->there, 0);
    gate_t gate = gate_make();
    for (self = 0; self < n; self++) {
        pids[self] = fork();
        if (pids[self] == 0) {
            alarm(60);
            if (self == VICTIM)
                atomic_store(&board->pid, getpid());
            id = gate_wait(&gate);
            _exit(fail_named(&id, &env) | (fflush(stdout) != 0));
        }
    }
    if (rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
        return 1;
    gate_open(&gate, &id, n);
    for (int r = 0; r < n; r++) {
        waitpid(pids[r], &status, 0);
        bad |= r == VICTIM ? !WIFSIGNALED(status) : status != 0;
    }
    return bad;
}

int main(void)
{
    int bad = 0;

    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    alarm(100);
    for (int n = 3; n <= MOST; n += 3)
        bad |= run(n);
    return bad;
}
