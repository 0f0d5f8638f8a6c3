/* How a program may end, and what a fork leaves alone: a forked child is refused everything on its parent's
 * communicators, may make its own, and whatever it does, also exit with the parent's exit handlers, its parent and the
 * other ranks go on; a process that calls exit without destroying is named to those who wait for it, and hangs nowhere,
 * also with another of its threads in a call; a communicator may be destroyed by an exit handler. One rank of a node
 * warns of communicators that are left.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"

static void use(test_rank_t *t, rondo_comm_t comm, int nranks)
{
    int64_t in[700], out[700];
    int i;

    for (i = 0; i < 700; i++)
        in[i] = i + 1;
    if (!TEST_OK(t, comm, rondo_allreduce(in, out, 700, RONDO_INT64, RONDO_SUM, comm, NULL)))
        test_stop(t, "cannot go on");
    for (i = 0; i < 700 && out[i] == (int64_t)nranks * (i + 1); i++)
        continue;
    if (i < 700)
        test_fail(t, "element %d is %lld", i, (long long)out[i]);
}

static void join_child(test_rank_t *t, pid_t child)
{
    int status = -1;

    if (child < 0 || waitpid(child, &status, 0) != child)
        test_stop(t, "cannot have a child");
    if (status != 0)
        test_fail(t, "the child ended with status 0x%x", status);
}

/* ---- a child and its parent's communicator ---- */

#define REFUSED(call) TEST_GIVES(t, NULL, RONDO_ERR_INVALID_USAGE, call)

static void try_all(test_rank_t *t, rondo_comm_t comm, rondo_request_t request)
{
    rondo_comm_t other = NULL;
    rondo_result_t error;
    rondo_op_t op;
    float in[8] = {0}, out[8 * TEST_MAX_RANKS];
    int number = -7, done;
    void *memory = NULL;

    REFUSED(rondo_allreduce(in, out, 8, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_TRUE(t, strstr(rondo_last_error(comm), "parent") != NULL);
    REFUSED(rondo_broadcast(in, out, 8, RONDO_FLOAT32, 0, comm, NULL));
    REFUSED(rondo_allgather(in, out, 8, RONDO_FLOAT32, comm, NULL));
    REFUSED(rondo_send(in, 8, RONDO_FLOAT32, 0, comm, NULL));
    REFUSED(rondo_recv(out, 8, RONDO_FLOAT32, 0, comm, NULL));
    REFUSED(rondo_barrier(comm, NULL));
    REFUSED(rondo_comm_rank(comm, &number));
    TEST_TRUE(t, number == -7);
    REFUSED(rondo_comm_get_error(comm, &error));
    REFUSED(rondo_comm_split(comm, 0, 0, &other, NULL));
    REFUSED(rondo_comm_shrink(comm, &number, 0, &other, NULL));
    REFUSED(rondo_mem_alloc(&memory, 100, comm));
    REFUSED(rondo_op_create_premulsum(&op, in, RONDO_FLOAT32, 0, comm));
    REFUSED(rondo_request_test(&request, &done));
    REFUSED(rondo_request_wait(&request));
    TEST_OK(t, NULL, rondo_group_start());
    REFUSED(rondo_recv(out, 8, RONDO_FLOAT32, 0, comm, NULL));
    REFUSED(rondo_group_end());
    REFUSED(rondo_comm_finalize(comm));
    REFUSED(rondo_comm_abort(comm));
    REFUSED(rondo_comm_destroy(comm));
}

static void child_of(test_rank_t *t, void *arg)
{
    int nodes = *(int *)arg;
    rondo_comm_t comm = test_comm_on(t, nodes);
    rondo_request_t request = NULL;
    float in[100] = {0}, out[100];
    pid_t child;

    if (!comm)
        return;
    test_note(t, "%d nodes, a group open and a request out over a fork", nodes);
    use(t, comm, t->nranks);
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_allreduce(in, out, 100, RONDO_FLOAT32, RONDO_SUM, comm, NULL));
    TEST_OK(t, comm, rondo_group_submit(&request));
    TEST_OK(t, comm, rondo_group_start());
    TEST_OK(t, comm, rondo_broadcast(in, out, 100, RONDO_FLOAT32, 0, comm, NULL));
    child = fork();
    if (child == 0) {
        REFUSED(rondo_group_end());
        try_all(t, comm, request);
        exit(0);
    }
    if (t->rank % 2) /* the others go on while the child is at it */
        join_child(t, child);
    TEST_OK(t, comm, rondo_group_end());
    TEST_OK(t, comm, rondo_request_wait(&request));
    use(t, comm, t->nranks);
    if (t->rank % 2 == 0)
        join_child(t, child);
    use(t, comm, t->nranks);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* ---- children of their own ---- */

/* Rank 0's process serves the children's id. */
static pid_t fork_with_own(test_rank_t *t, rondo_result_t wanted)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t own = NULL;
    rondo_unique_id_t id;
    rondo_result_t result;
    pid_t child;

    config.device = RONDO_DEVICE_HOST;
    test_id(t, &id);
    child = fork();
    if (child)
        return child;
    test_note(t, "the child's own");
    result = rondo_comm_create(&own, t->nranks, &id, t->rank, &config);
    if (test_result(t, NULL, result, wanted, "rondo_comm_create") && result == RONDO_SUCCESS) {
        use(t, own, t->nranks);
        TEST_OK(t, NULL, rondo_comm_destroy(own));
    }
    TEST_TRUE(t, result == RONDO_SUCCESS || strstr(rondo_last_error(NULL), "forked"));
    exit(0);
}

/* The parents' communicator lives on meanwhile; where that is between nodes, the children's cannot be. Other children
 * come when it is destroyed, but for net plugins, which stay loaded. */
static void children(test_rank_t *t, void *arg)
{
    const char *transport = getenv("RONDO_TRANSPORT");
    int nodes = *(int *)arg, apart = t->nranks > 1 && (nodes > 1 || getenv("RONDO_TEST_HOSTS"));
    rondo_comm_t comm = test_comm_on(t, nodes);
    pid_t child;

    if (!comm)
        return;
    use(t, comm, t->nranks);
    child = fork_with_own(t, apart ? RONDO_ERR_UNSUPPORTED : RONDO_SUCCESS);
    use(t, comm, t->nranks);
    join_child(t, child);
    use(t, comm, t->nranks);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (!transport || strcmp(transport, "plugin") != 0)
        apart = 0;
    join_child(t, fork_with_own(t, apart ? RONDO_ERR_UNSUPPORTED : RONDO_SUCCESS));
}

static atomic_int explaining; /* the thread's number */

static void *explain(void *comm)
{
    char text[512];

    atomic_store(&explaining, (int)syscall(SYS_gettid));
    rondo_explain(comm, text, sizeof text);
    return NULL;
}

/* It sleeps between its looks, or is through. */
static void until_it_sleeps(void)
{
    char path[64], state[8] = "";

    while (strncmp(state, "S", 1) != 0) {
        sched_yield();
        if (!atomic_load(&explaining))
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&explaining));
        FILE *f = fopen(path, "r");
        if (!f || fscanf(f, "%*d (%*[^)]) %1s", state) != 1)
            strcpy(state, "S");
        if (f)
            fclose(f);
    }
}

/* A thread of the parent explains, which takes long, and the child does, too. */
static void explains(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    rondo_comm_t comm = test_comm_on(t, 1), own = NULL;
    rondo_unique_id_t id;
    char text[512];
    pthread_t thread;
    pid_t child;

    (void)arg;
    test_note(t, "a child, while a thread explains");
    if (pthread_create(&thread, NULL, explain, comm) != 0)
        test_stop(t, "cannot start a thread");
    until_it_sleeps();
    config.device = RONDO_DEVICE_HOST;
    child = fork();
    if (child == 0) {
        TEST_OK(t, NULL, rondo_unique_id_create(&id));
        if (TEST_OK(t, NULL, rondo_comm_create(&own, 1, &id, 0, &config))) {
            TEST_OK(t, own, rondo_explain(own, text, sizeof text));
            TEST_OK(t, NULL, rondo_comm_destroy(own));
        }
        exit(0);
    }
    join_child(t, child);
    pthread_join(thread, NULL);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* ---- exit ---- */

static struct {
    test_rank_t *t;
    rondo_comm_t comm;
    pid_t pid;
} at_exit;

static void destroy_at_exit(void)
{
    rondo_result_t wanted = getpid() == at_exit.pid ? RONDO_SUCCESS : RONDO_ERR_INVALID_USAGE;

    TEST_GIVES(at_exit.t, NULL, wanted, rondo_comm_destroy(at_exit.comm));
}

/* A child inherits the exit handler: the parent's communicator must live through it. */
static void exit_handler(test_rank_t *t, void *arg)
{
    int nodes = *(int *)arg;
    rondo_comm_t comm = test_comm_on(t, nodes);
    pid_t child;

    if (!comm)
        return;
    at_exit.t = t;
    at_exit.comm = comm;
    at_exit.pid = getpid();
    atexit(destroy_at_exit);
    use(t, comm, t->nranks);
    child = fork();
    if (child == 0)
        exit(0);
    join_child(t, child);
    test_note(t, "after a child with the exit handler");
    use(t, comm, t->nranks);
    test_note(t, "the exit handler destroys");
}

static void *wait_for_ever(void *arg)
{
    rondo_comm_t comm = arg;
    int buffer = 0;

    rondo_recv(&buffer, 1, RONDO_INT32, 0, comm, NULL);
    return NULL;
}

/* All say it alike, whether they have seen the process end, or its connection, or have heard of it. */
#define DEATH "died: its process has ended without a farewell; abort this communicator, then shrink it or end"

/* The last rank exits without a word, with a thread in a call if `arg` says so; the others hear of it, and go on. */
static void exits(test_rank_t *t, void *arg)
{
    int inside = *(int *)arg, last = t->nranks - 1;
    rondo_comm_t comm = test_comm_on(t, 1), small = NULL;
    rondo_result_t result;
    pthread_t thread;
    float in[100] = {0}, out[100];
    char word[32];

    use(t, comm, t->nranks);
    test_barrier(t); /* or the exit would end an allreduce that another rank is still in */
    if (t->rank == last) {
        test_note(t, "exits, %s", inside ? "a thread is in a call" : "in silence");
        if (inside && pthread_create(&thread, NULL, wait_for_ever, comm) != 0)
            test_stop(t, "cannot start a thread");
        usleep(inside ? 20000 : 0);
        exit(0);
    }
    test_note(t, "waits for one that exits");
    result = rondo_allreduce(in, out, 100, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    snprintf(word, sizeof word, "rank %d", last);
    if (test_result(t, comm, result, RONDO_ERR_REMOTE, "rondo_allreduce") && !strstr(rondo_last_error(comm), word))
        test_fail(t, "the sentence must name %s: \"%s\"", word, rondo_last_error(comm));
    if (!strstr(rondo_last_error(comm), DEATH))
        test_fail(t, "the sentence must be that of a death: \"%s\"", rondo_last_error(comm));
    if (TEST_OK(t, comm, rondo_comm_shrink(comm, &last, 1, &small, NULL))) {
        use(t, small, last);
        TEST_OK(t, NULL, rondo_comm_destroy(small));
    }
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

/* ---- communicators that are left ---- */

static void leaves(test_rank_t *t, void *arg)
{
    int left = *(int *)arg;
    rondo_comm_t comm[2] = {test_comm_on(t, 1), test_comm_on(t, 1)};

    use(t, comm[1], t->nranks);
    test_barrier(t);
    test_note(t, "ends and leaves %d", left);
    for (int i = left; i < 2; i++)
        TEST_OK(t, NULL, rondo_comm_destroy(comm[i]));
    exit(0);
}

static int run(const char *what, int nranks, test_body_fn body, void *arg)
{
    int bad = test_run(TEST_PROCESSES, nranks, 60, body, arg);

    if (bad)
        printf("endings: WRONG: %s, %d ranks\n", what, nranks);
    return bad;
}

static bool is_lowest_of_its_node(int rank)
{
    for (int r = 0; r < rank; r++)
        if (test_host_of(r) == test_host_of(rank))
            return false;
    return true;
}

/* Three ranks leave so many communicators: the lowest one of each node says so, by this warning, and no other. */
static int warned(int left, const char *warning)
{
    char file[] = "/tmp/rondo-left-XXXXXX", line[600];
    int fd = mkstemp(file), lines = 0, right = 0, wanted = 0;

    setenv("RONDO_DEBUG", "warn", 1);
    setenv("RONDO_DEBUG_FILE", file, 1);
    int bad = fd < 0 || run("the process ends and leaves communicators", 3, leaves, &left);
    unsetenv("RONDO_DEBUG_FILE");
    setenv("RONDO_DEBUG", "none", 1);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    for (int rank = 0; left > 0 && rank < 3; rank++)
        wanted += is_lowest_of_its_node(rank);
    for (; f && fgets(line, sizeof line, f); lines += strstr(line, "not destroyed") != NULL)
        for (int rank = 0; rank < 3; rank++) {
            char who[16];
            snprintf(who, sizeof who, " %d/3 ", rank);
            right += strstr(line, warning) != NULL && strstr(line, who) != NULL && is_lowest_of_its_node(rank);
        }
    if (f)
        fclose(f);
    unlink(file);
    if (lines == wanted && right == lines)
        return bad;
    printf("endings: WRONG: %d lines of %d, %d right, of %d communicators that are left\n", lines, wanted, right, left);
    return 1;
}

int main(void)
{
    int bad = 0, n, yes = 1, no = 0, nodes;

    test_begin("endings", 200);
    for (n = 1; n <= 4; n += n == 1 ? 1 : 2) {
        for (nodes = 1; nodes <= (n > 1 ? 2 : 1); nodes++) {
            bad += run("a child and its parent's communicator", n, child_of, &nodes);
            bad += run("an exit handler", n, exit_handler, &nodes);
            bad += run("children of their own", n, children, &nodes);
        }
        if (n > 1) {
            bad += run("exit in silence", n, exits, &no);
            bad += run("exit with a thread in a call", n, exits, &yes);
        }
    }
    bad += run("a child, while a thread explains", 1, explains, NULL);
    bad += warned(0, "") + warned(1, "1 of its communicators was") + warned(2, "2 of its communicators were");
    return bad != 0;
}
