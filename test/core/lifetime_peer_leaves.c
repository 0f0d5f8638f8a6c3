/* A rank destroys its communicator in order, and its process lives on. Who waits for it gets RONDO_ERR_REMOTE with its
 * number, soon, on the same node and on another, whether it waited before or begins to wait afterwards; what was sent
 * before arrives all the same, however late it is read, also when the process is just ending, and nothing stays behind
 * of that; who needs nothing of it any more is not disturbed; and it gets away from one that does not answer it; all
 * that also where UCX announces messages, if this one bears a loss then. Nothing here has a time limit but the test
 * itself, and the 0.3 seconds for which an ending process must wait. A seed may be given.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/harness.h"
#include "core/transports.h"

#define LARGE ((size_t)8 << 20)
#define MOST 60000
#define GREETS_MS 1200 /* a rank greets one whom it has waited for so long */

typedef enum { RECV, SEND, EXCHANGE, SUBMITTED, ALLREDUCE, NUM_WAITS } wait_t;

typedef enum { IT_LIVES_ON, ITS_PROCESS_ENDS, NOBODY_READS, READER_DIES, NUM_FATES } fate_t;

static const char *const fates[] = {"its process lives on", "its process ends", "and nobody reads", "the reader dies"};

typedef struct {
    int nodes;
    wait_t wait;
    int early; /* they wait already when it leaves */
    int nmessages;
    bool late; /* nobody reads them at first */
    fate_t fate;
} case_t;

static uint64_t seed = 1;
static struct {
    atomic_int gone;    /* the last rank has left */
    atomic_int waiting; /* a rank waits for another one, long enough */
    atomic_int process; /* the last rank's, which ends */
} * seen;               /* by all ranks */

static void named(test_rank_t *t, rondo_comm_t comm, rondo_result_t result, int rank)
{
    char word[32];

    snprintf(word, sizeof word, "rank %d (", rank);
    if (test_result(t, comm, result, RONDO_ERR_REMOTE, "the call") && !strstr(rondo_last_error(comm), word))
        test_fail(t, "the sentence must name %s): \"%s\"", word, rondo_last_error(comm));
}

/* ---- what is awaited before the test goes on ---- */

static void await(atomic_int *event)
{
    while (!atomic_load(event))
        usleep(1000);
}

/* Says when this rank has waited for another one so long: a thread that looks while the rank calls. */
typedef struct {
    pthread_t thread;
    rondo_comm_t comm;
    int peer;
    int64_t ms;
    atomic_bool over; /* the call is */
} lookout_t;

static void *look_out(void *arg)
{
    lookout_t *l = arg;
    rondo_status_t status = {.size = sizeof status};

    while (!atomic_load(&l->over) && rondo_comm_status(l->comm, &status) == RONDO_SUCCESS) {
        if (status.waits_for == l->peer && status.waits_ms >= l->ms)
            atomic_store(&seen->waiting, 1);
        usleep(1000);
    }
    return NULL;
}

static void look_out_begin(test_rank_t *t, lookout_t *l)
{
    if (pthread_create(&l->thread, NULL, look_out, l) != 0)
        test_stop(t, "no thread");
}

static void look_out_end(lookout_t *l)
{
    atomic_store(&l->over, true);
    pthread_join(l->thread, NULL);
}

/* ---- waiting for it ---- */

static rondo_result_t wait_for(rondo_comm_t comm, wait_t how, int peer, char *from, char *to)
{
    rondo_request_t request = NULL;
    rondo_result_t result;

    switch (how) {
    case RECV:
        return rondo_recv(to, 10, RONDO_INT8, peer, comm, NULL);
    case SEND:
        return rondo_send(from, LARGE, RONDO_INT8, peer, comm, NULL);
    case ALLREDUCE:
        return rondo_allreduce(from, to, 1000, RONDO_INT8, RONDO_SUM, comm, NULL);
    default:
        rondo_group_start();
        rondo_recv(to, LARGE, RONDO_INT8, peer, comm, NULL);
        if (how == EXCHANGE) {
            rondo_send(from, LARGE, RONDO_INT8, peer, comm, NULL);
            return rondo_group_end();
        }
        result = rondo_group_submit(&request);
        return result == RONDO_SUCCESS ? rondo_request_wait(&request) : result;
    }
}

static void waits(test_rank_t *t, void *arg)
{
    static const char *const hows[] = {"receives", "sends", "exchanges", "has submitted a receive", "reduces"};
    const case_t *c = arg;
    rondo_comm_t comm = test_comm_on(t, c->nodes);
    int last = t->nranks - 1;
    char *memory = calloc(2, LARGE);

    if (!comm || !memory)
        return;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* nobody is in the barrier any more */
    test_note(t, "%d nodes, %s, %s", c->nodes, hows[c->wait], c->early ? "then it leaves" : "after it has left");
    if (t->rank == last) {
        if (c->early)
            await(&seen->waiting);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
        test_barrier(t);
    } else {
        lookout_t l = {.comm = comm, .peer = last};
        if (!c->early)
            test_barrier(t);
        look_out_begin(t, &l);
        named(t, comm, wait_for(comm, c->wait, last, memory, memory + LARGE), last);
        look_out_end(&l);
        if (c->early)
            test_barrier(t);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
    test_barrier(t); /* its process must not be what ends the wait */
    free(memory);
}

/* ---- whom it has never met ---- */

/* In a communicator of more than 64 ranks: the first rank waits for the last one, on another node, with which it has
 * exchanged nothing. */
static void unmet(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    rondo_comm_t comm = test_comm_on(t, c->nodes);
    int last = t->nranks - 1;
    char memory[10];

    if (!comm)
        return;
    test_barrier(t);
    test_note(t, "%d nodes, waits for one it has not met, %s", c->nodes, c->early ? "then it leaves" : "after it left");
    if (!c->early && t->rank != last)
        test_barrier(t);
    if (t->rank == 0) {
        lookout_t l = {.comm = comm, .peer = last, .ms = GREETS_MS};
        look_out_begin(t, &l);
        named(t, comm, rondo_recv(memory, sizeof memory, RONDO_INT8, last, comm, NULL), last);
        look_out_end(&l);
    }
    if (t->rank == last && c->early)
        await(&seen->waiting);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (c->early || t->rank == last)
        test_barrier(t);
    test_barrier(t);
}

/* ---- who does not answer it ---- */

/* Rank 0 has begun to send and then looks at nothing: where its messages are long for UCX, it has announced them, and
 * the last rank asks for their bytes as it leaves. They never come. */
static void deaf(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    rondo_comm_t comm = test_comm_on(t, c->nodes);
    rondo_request_t request = NULL;
    char *memory = calloc(1, LARGE);

    if (!comm || !memory)
        return;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_barrier(t); /* nobody is in the barrier any more */
    test_note(t, "%d nodes, leaves one that looks at nothing", c->nodes);
    if (t->rank == 0) {
        rondo_group_start();
        rondo_send(memory, LARGE, RONDO_INT8, 1, comm, NULL);
        TEST_OK(t, comm, rondo_group_submit(&request));
    }
    test_barrier(t);
    if (t->rank == 1)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    test_barrier(t);
    if (t->rank == 0) {
        named(t, comm, rondo_request_wait(&request), 1);
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    }
    test_barrier(t);
    free(memory);
}

/* ---- what was sent before ---- */

static size_t length(int i)
{
    static const size_t most[] = {64, 400, 3000, 9000, MOST};
    uint64_t random = test_mix(seed * 1000 + (uint64_t)i);

    return 1 + random % most[random >> 32 & 3 ? random >> 40 & 3 : 4];
}

static void fill(char *message, int i)
{
    for (size_t k = 0; k < length(i); k++)
        message[k] = (char)(test_mix(seed + k / 64) + (uint64_t)i + k);
}

/* The last rank sends and leaves; rank 0 reads when it likes, or when the other has left, or waits for it. */
static void unread(test_rank_t *t, void *arg)
{
    static char message[MOST], right[MOST];
    const case_t *c = arg;
    const char *late = c->late ? ", late" : "";
    rondo_comm_t comm = test_comm_on(t, c->nodes);
    int last = t->nranks - 1, i;

    if (!comm)
        return;
    lookout_t l = {.comm = comm, .peer = 0};
    if (t->rank == last)
        look_out_begin(t, &l);
    for (i = 0; i < c->nmessages && t->rank == last; i++) {
        test_note(t, "%d nodes, sends message %d", c->nodes, i);
        fill(message, i);
        TEST_OK(t, comm, rondo_send(message, length(i), RONDO_INT8, 0, comm, NULL));
    }
    if (t->rank == last)
        look_out_end(&l);
    while (t->rank == 0 && c->late && !atomic_load(&seen->gone) && !atomic_load(&seen->waiting))
        usleep(1000);
    for (i = 0; i < c->nmessages && t->rank == 0; i++) {
        test_note(t, "%d nodes, reads message %d%s", c->nodes, i, late);
        if (!TEST_OK(t, comm, rondo_recv(message, length(i), RONDO_INT8, last, comm, NULL)))
            break;
        fill(right, i);
        TEST_TRUE(t, memcmp(message, right, length(i)) == 0);
    }
    test_note(t, "%d nodes, one message more%s", c->nodes, late);
    if (t->rank == 0)
        named(t, comm, rondo_recv(message, 1, RONDO_INT8, last, comm, NULL), last);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (t->rank == last)
        atomic_store(&seen->gone, 1);
    test_barrier(t);
}

/* ---- what is read when it is long gone ---- */

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Nothing stays of what has left, when it is read or nobody is left to read it. */
static void nothing_stays(int fds, int threads)
{
    while (entries("/proc/self/task") > threads || entries("/proc/self/fd") > fds)
        usleep(1000);
}

/* A child that ends takes nothing with it. */
static void have_child(test_rank_t *t)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        exit(0);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        test_fail(t, "a child ended with status 0x%x", status);
}

static void read_all(test_rank_t *t, const case_t *c, rondo_comm_t comm, int from)
{
    static char message[MOST], right[MOST];
    int i;

    for (i = 0; i < c->nmessages; i++) {
        test_note(t, "reads message %d of one that has left, %s", i, fates[c->fate]);
        memset(right, i + 1, sizeof right);
        if (!TEST_OK(t, comm, rondo_recv(message, sizeof message, RONDO_INT8, from, comm, NULL)))
            return;
        TEST_TRUE(t, memcmp(message, right, sizeof message) == 0);
    }
}

/* An exit that waits for nobody is over then; one that waits for its reader has begun. */
static void let_end(pid_t process)
{
    struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, process, 0), .events = POLLIN};

    if (ended.fd < 0 && errno == ESRCH)
        return;
    (void)poll(&ended, 1, 300); /* also where the system has no pidfd */
    if (ended.fd >= 0)
        close(ended.fd);
}

/* The last rank sends more than the other's kernel may hold, and leaves. Rank 0 looks at nothing until that one's
 * destroy has returned, or its process is about to end. Of many ranks another one, whom it has not met, begins to wait
 * for it in between, which the communicator does not survive. */
static void outlived(test_rank_t *t, void *arg)
{
    static char message[MOST];
    const case_t *c = arg;
    int last = t->nranks - 1, i, fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    rondo_comm_t comm = test_comm_on(t, c->nodes);

    if (!comm)
        return;
    if (t->rank == 0) /* they meet */
        TEST_OK(t, comm, rondo_send(message, 1, RONDO_INT8, last, comm, NULL));
    if (t->rank == last)
        TEST_OK(t, comm, rondo_recv(message, 1, RONDO_INT8, 0, comm, NULL));
    for (i = 0; i < c->nmessages && t->rank == last; i++) {
        test_note(t, "sends message %d, then leaves, %s", i, fates[c->fate]);
        memset(message, i + 1, sizeof message);
        TEST_OK(t, comm, rondo_send(message, sizeof message, RONDO_INT8, 0, comm, NULL));
    }
    if (t->rank == last)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (t->rank == last && c->fate == IT_LIVES_ON)
        have_child(t);
    if (t->rank == last)
        atomic_store(&seen->process, getpid());
    test_note(t, "%d nodes, one sends and leaves, %s", c->nodes, fates[c->fate]);
    test_barrier(t);
    if (t->rank == last && c->fate == ITS_PROCESS_ENDS)
        return;
    if (t->nranks > 2 && t->rank == t->nranks / 2 - 1)
        named(t, comm, rondo_recv(message, 1, RONDO_INT8, last, comm, NULL), last);
    test_barrier(t);
    if (t->rank == 0 && c->fate == ITS_PROCESS_ENDS)
        let_end(seen->process);
    if (t->rank == 0 && c->fate == READER_DIES)
        _exit(0);
    if (t->rank == 0 && c->fate != NOBODY_READS)
        read_all(t, c, comm, last);
    if (t->rank != last)
        TEST_OK(t, NULL, rondo_comm_destroy(comm));
    test_note(t, "is through, %s", fates[c->fate]);
    test_barrier(t);
    if (t->rank == last)
        nothing_stays(fds, threads);
}

/* The last rank sends rank 0 its only message and leaves. Rank 0, which has yet to send it anything, hears of that
 * while it waits for another one, then reads the message; nothing of a connection stays. */
static void unanswered(test_rank_t *t, void *arg)
{
    const case_t *c = arg;
    int last = t->nranks - 1, other = t->nranks - 3; /* both on the other node */
    int fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    rondo_comm_t comm = test_comm_on(t, c->nodes);
    char byte = 1;

    if (!comm)
        return;
    test_note(t, "%d nodes, one whom nothing was sent leaves", c->nodes);
    if (t->rank == last || t->rank == other) {
        if (t->rank == other)
            await(&seen->gone);
        TEST_OK(t, comm, rondo_send(&byte, 1, RONDO_INT8, 0, comm, NULL));
    }
    if (t->rank == 0) {
        TEST_OK(t, comm, rondo_recv(&byte, 1, RONDO_INT8, other, comm, NULL));
        TEST_OK(t, comm, rondo_recv(&byte, 1, RONDO_INT8, last, comm, NULL));
    }
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (t->rank == last)
        atomic_store(&seen->gone, 1);
    if (t->rank == 0)
        nothing_stays(fds, threads);
    test_barrier(t);
}

/* ---- who does not need it ---- */

/* The last rank has sent what it had to, and goes. Rank 0 still has something for rank 1, which waits for that; then
 * the two go on for a while. */
static void not_needed(test_rank_t *t, void *arg)
{
    static char from[MOST], to[MOST];
    const case_t *c = arg;
    rondo_comm_t comm = test_comm_on(t, c->nodes);
    int last = t->nranks - 1, i;

    if (!comm)
        return;
    TEST_OK(t, comm, rondo_barrier(comm, NULL));
    test_note(t, "%d nodes, goes on without it", c->nodes);
    if (t->rank == last)
        TEST_OK(t, comm, rondo_send(from, 100, RONDO_INT8, 0, comm, NULL));
    if (t->rank == 1)
        await(&seen->gone);
    rondo_group_start();
    if (t->rank == 0)
        rondo_recv(to, 100, RONDO_INT8, last, comm, NULL);
    if (t->rank == 0)
        rondo_send(from, MOST, RONDO_INT8, 1, comm, NULL);
    if (t->rank == 1)
        rondo_recv(to, MOST, RONDO_INT8, 0, comm, NULL);
    TEST_OK(t, comm, rondo_group_end());
    for (i = 0; i < 20 && t->rank < 2; i++) {
        usleep(10000);
        rondo_group_start();
        rondo_send(from, 1000, RONDO_INT8, 1 - t->rank, comm, NULL);
        rondo_recv(to, 1000, RONDO_INT8, 1 - t->rank, comm, NULL);
        TEST_OK(t, comm, rondo_group_end());
    }
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
    if (t->rank == last)
        atomic_store(&seen->gone, 1);
    test_barrier(t);
}

static int run(const char *what, int nranks, test_body_fn body, case_t *c)
{
    atomic_store(&seen->gone, 0);
    atomic_store(&seen->waiting, 0);
    int bad = test_run(TEST_PROCESSES, nranks, 40, body, c);

    if (bad)
        printf("left: WRONG: %s, %d ranks, %d nodes, seed %llu\n", what, nranks, c->nodes, (unsigned long long)seed);
    return bad;
}

/* Messages that are long for UCX go another way than short ones. */
static int run_sent(case_t c)
{
    static const struct {
        int messages;
        bool late;
    } cases[] = {{8, true}, {8, false}, {300, false}};
    int bad = 0, i;

    for (i = 0; i < 3; i++) {
        c.nmessages = cases[i].messages;
        c.late = cases[i].late;
        bad += run("messages of one that has left", 2, unread, &c);
    }
    bad += run("one that is deaf", 2, deaf, &c);
    return bad + run("one that nobody needs", 3, not_needed, &c);
}

static int run_all(int nodes)
{
    case_t c = {.nodes = nodes};
    int bad = 0, wait;

    for (wait = 0; wait < NUM_WAITS; wait++)
        for (c.early = 0; c.early < 2; c.early++) {
            c.wait = (wait_t)wait;
            bad += run("waiting for one that has left", c.early ? 2 : 3, waits, &c);
        }
    return bad + run_sent(c);
}

static int run_unmet(void)
{
    case_t c = {.nodes = 2};
    int bad = 0;

    for (c.early = 0; c.early < 2; c.early++)
        bad += run("one that was never met", 66, unmet, &c);
    return bad + run("one that was never answered", 66, unanswered, &c);
}

static int run_outlived(void)
{
    case_t c = {.nodes = 2, .nmessages = 4};
    int bad = 0;

    for (c.fate = 0; c.fate < NUM_FATES; c.fate++)
        bad += run("messages of one that has long left", 2, outlived, &c);
    c.nmessages = 2;
    c.fate = NOBODY_READS;
    setenv("RONDO_SLOTS", "8", 1); /* room for what rank 0 does not read */
    setenv("RONDO_SLOT_BYTES", "64K", 1);
    bad += run("one that was never met, and that another has yet to read", 66, outlived, &c);
    unsetenv("RONDO_SLOTS");
    unsetenv("RONDO_SLOT_BYTES");
    return bad;
}

int main(int argc, char **argv)
{
    int bad;

    test_begin("left", 240);
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : seed;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED) {
        perror("left: mmap");
        return 1;
    }
    bad = run_all(1) || run_all(2) || run_unmet() || run_outlived();
    const rd_transport_ops_t *ucx = rd_transport_named("ucx");
    if (ucx && ucx->fragile()) {
        printf("left: %s: messages announced to who leaves are not tried: %s\n", ucx->version(), ucx->fragile());
        return bad;
    }
    setenv("RONDO_UCX_RNDV_THRESH", "1000", 1);
    return bad || run_all(2);
}
