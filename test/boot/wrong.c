/* Wrong inputs to a creation: every rank gets an error that names both sides, none is left waiting. Two ranks claim one
 * number, rank counts differ, a rank is out of range, an id is used twice, damaged, or carries an error; a rank does
 * not come, dies while the others wait, or is aborted. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/boot.h"
#include "util/gate.h"
#include "util/harness.h"

#define MOST 8

typedef struct claim {
    int rank, nranks;
    int after_ms;           /* comes late */
    int dies_ms, aborts_ms; /* after it has begun; 0: never */
} claim_t;

typedef struct outcome {
    rondo_result_t code;
    char text[512];
    pid_t pid;
} outcome_t;

static outcome_t *outcome; /* shared, by place in the list of claims */
static int made_by;        /* the process that made the id; -1: the parent */
static int failures;
static rd_stop_t stop;

static void expect(int good, const char *test, int i, const char *what)
{
    if (good)
        return;
    printf("%s: process %d: %s; code %d, \"%s\"\n", test, i, what, outcome[i].code, outcome[i].text);
    failures++;
}

static void on_alarm(int signal_number)
{
    signal(signal_number, SIG_DFL); /* the next one ends a process that hangs */
    alarm(10);
    if (atomic_load(&stop.failed_rank) < 0)
        kill(getpid(), SIGKILL);
    snprintf(stop.text, sizeof(stop.text), "aborted by the test");
    atomic_store(&stop.code, RONDO_ERR_ABORTED);
}

static void in_ms(int ms, int die)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {.it_value = {ms / 1000, ms % 1000 * 1000}};
    if (!ms)
        return;
    atomic_store(&stop.failed_rank, die ? -1 : 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void run_claim(const claim_t *c, const rondo_unique_id_t *id, const rd_env_t *env, outcome_t *out)
{
    rd_log_ctx_t ctx = {.rank = c->rank, .nranks = c->nranks, .name = "test"};
    rd_boot_t *boot;
    out->pid = getpid();
    usleep((useconds_t)c->after_ms * 1000);
    in_ms(c->dies_ms, 1);
    in_ms(c->aborts_ms, 0);
    out->code = rd_boot_create(&boot, id, c->rank, c->nranks, env, &ctx, &stop);
    snprintf(out->text, sizeof(out->text), "%s", rd_log_ctx_error(&ctx));
    if (out->code == RONDO_SUCCESS)
        rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    if (out->code == RONDO_SUCCESS)
        rd_boot_destroy(boot);
}

/* `maker`: which process makes the id, -1: the parent, which only launches. */
static void run(const claim_t *claims, int n, int maker, int timeout_ms, rondo_unique_id_t *id)
{
    rd_env_t env;
    int pipes[2], status;
    rd_env_read(&env);
    rd_log_set_level(RD_LOG_NONE);
    env.create_timeout_ms = timeout_ms;
    memset(outcome, 0, MOST * sizeof(*outcome));
    made_by = maker;
    if (pipe(pipes) != 0)
        exit(1);
    gate_t gate = gate_make();
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        if (fork() != 0)
            continue;
        alarm(15);
        *id = gate_wait(&gate);
        if (maker == i) {
            if (rd_boot_id_create(id, &env) != RONDO_SUCCESS)
                _exit(1);
            for (int k = 1; k < n; k++)
                if (write(pipes[1], id, sizeof(*id)) != sizeof(*id))
                    _exit(1);
        } else if (maker >= 0 && read(pipes[0], id, sizeof(*id)) != sizeof(*id)) {
            _exit(1);
        }
        run_claim(&claims[i], id, &env, &outcome[i]);
        exit(0); /* through the library's destructor */
    }
    if (maker < 0 && id->bytes[0] == 0 && rd_boot_id_create(id, &env) != RONDO_SUCCESS)
        exit(1);
    gate_open(&gate, id, n);
    for (int i = 0; i < n; i++)
        wait(&status);
    close(pipes[0]);
    close(pipes[1]);
}

static int names(const char *text, int i)
{
    char pid[16];
    snprintf(pid, sizeof(pid), ":%d", (int)outcome[i].pid);
    return strstr(text, pid) != NULL;
}

/* A rank that has made the id may be gone, on a busy machine, when this process comes. */
static bool came_late(int i)
{
    return i != made_by && made_by >= 0 && test_came_late(outcome[i].code, outcome[i].text);
}

/* All processes get `code`, and the sentence names processes a and b (-1: none). */
static void expect_all(const char *test, int n, rondo_result_t code, int a, int b, const char *part)
{
    for (int i = 0; i < n; i++) {
        if ((outcome[i].code == RONDO_SUCCESS && outcome[i].pid == 0) || (code != RONDO_SUCCESS && came_late(i)))
            continue;
        expect(outcome[i].code == code, test, i, "wrong code");
        expect(a < 0 || names(outcome[i].text, a), test, i, "one side is not named");
        expect(b < 0 || names(outcome[i].text, b), test, i, "the other side is not named");
        expect(strstr(outcome[i].text, part) != NULL, test, i, part);
    }
}

/* Process i is told what has become of the one with rank `other`; or, on a busy machine, where that was over before it
 * had said who it is, that it is missing, or that it does not serve the id. */
static void expect_told(const char *test, int i, int other)
{
    const outcome_t *o = &outcome[i];
    char missing[32];

    snprintf(missing, sizeof missing, "missing: %d, 2", other);
    bool never_came = o->code == RONDO_ERR_TIMEOUT && strstr(o->text, missing);
    bool never_served = other == 0 && o->code == RONDO_ERR_INVALID_USAGE && strstr(o->text, "nobody serves");
    expect((o->code == RONDO_ERR_REMOTE && names(o->text, other)) || never_came || never_served, test, i, "not told");
}

static void claims_that_clash(int maker)
{
    rondo_unique_id_t id = {{0}};
    claim_t twice[] = {{0, 4, 0, 0, 0}, {1, 4, 0, 0, 0}, {1, 4, 20, 0, 0}, {3, 4, 60, 0, 0}};
    run(twice, 4, maker, 10000, &id);
    expect_all("claimed twice", 4, RONDO_ERR_INVALID_ARGUMENT, 1, 2, "rank 1");
    claim_t counts[] = {{0, 3, 0, 0, 0}, {1, 3, 0, 0, 0}, {2, 4, 40, 0, 0}};
    memset(&id, 0, sizeof(id));
    run(counts, 3, maker, 10000, &id);
    expect_all("counts differ", 3, RONDO_ERR_INVALID_ARGUMENT, 2, -1, "4");
    claim_t range[] = {{0, 3, 0, 0, 0}, {1, 3, 0, 0, 0}, {3, 3, 30, 0, 0}};
    memset(&id, 0, sizeof(id));
    run(range, 3, maker, 10000, &id);
    expect_all("out of range", 3, RONDO_ERR_INVALID_ARGUMENT, 2, -1, "rank 3 of 3");
    claim_t negative[] = {{0, 2, 0, 0, 0}, {-1, 2, 0, 0, 0}};
    memset(&id, 0, sizeof(id));
    run(negative, 2, maker, 10000, &id);
    expect_all("negative", 2, RONDO_ERR_INVALID_ARGUMENT, 1, -1, "rank -1");
}

static void single_against_others(void)
{
    rondo_unique_id_t id = {{0}};
    claim_t alone[] = {{0, 1, 100, 0, 0}, {1, 2, 0, 0, 0}};
    run(alone, 2, 0, 10000, &id);
    if (outcome[0].code == RONDO_SUCCESS) /* the other one has come later still, on a busy machine, or just then */
        expect(outcome[1].code == RONDO_ERR_INVALID_USAGE ||
                   (outcome[1].code == RONDO_ERR_REMOTE &&
                    (strstr(outcome[1].text, "ended before") || strstr(outcome[1].text, "gave up"))),
               "1 rank against 2, which is late", 1, "wrong code");
    else
        expect_all("1 rank against 2", 2, RONDO_ERR_INVALID_ARGUMENT, 0, 1, "");
}

static void ranks_that_fail(int maker)
{
    rondo_unique_id_t id = {{0}};
    claim_t late[] = {{0, 3, 0, 0, 0}, {1, 3, 0, 0, 0}};
    run(late, 2, maker, 1000, &id);
    expect_all("a rank does not come", 2, RONDO_ERR_TIMEOUT, -1, -1, "2 (RONDO_CREATE_TIMEOUT_MS)"); /* the last one */
    claim_t dies[] = {{0, 3, 0, 0, 0}, {1, 3, 0, 100, 0}};
    memset(&id, 0, sizeof(id));
    run(dies, 2, maker, 10000, &id);
    expect_told("a rank dies", 0, 1);
    claim_t aborts[] = {{0, 3, 0, 0, 0}, {1, 3, 0, 0, 100}};
    memset(&id, 0, sizeof(id));
    run(aborts, 2, maker, 10000, &id);
    expect_told("a rank aborts", 0, 1);
    expect(outcome[1].code == RONDO_ERR_ABORTED, "a rank aborts", 1, "its own code");
    claim_t maker_aborts[] = {{0, 3, 0, 0, 100}, {1, 3, 0, 0, 0}};
    memset(&id, 0, sizeof(id));
    run(maker_aborts, 2, maker, 10000, &id);
    expect_told("rank 0 aborts", 1, 0);
    if (maker != 0)
        return;
    claim_t maker_dies[] = {{0, 3, 0, 100, 0}, {1, 3, 0, 0, 0}};
    memset(&id, 0, sizeof(id));
    run(maker_dies, 2, maker, 10000, &id);
    expect_told("the maker dies", 1, 0);
}

static void bad_ids(void)
{
    rondo_unique_id_t id = {{0}};
    rd_env_t env;
    claim_t two[] = {{0, 2, 0, 0, 0}, {1, 2, 0, 0, 0}};
    run(two, 2, -1, 10000, &id);
    expect_all("first use", 2, RONDO_SUCCESS, -1, -1, "");
    run(two, 2, -1, 10000, &id);
    expect_all("second use", 2, RONDO_ERR_INVALID_USAGE, -1, -1, "an id serves one communicator");
    id.bytes[60] ^= 1;
    run(two, 2, -1, 10000, &id);
    expect_all("damaged", 2, RONDO_ERR_INVALID_ARGUMENT, -1, -1, "damaged");
    id.bytes[4]++;
    run(two, 2, -1, 10000, &id);
    expect_all("another version", 2, RONDO_ERR_INVALID_ARGUMENT, -1, -1, "version");
    memset(&id, 'x', sizeof(id));
    run(two, 2, -1, 10000, &id);
    expect_all("no id at all", 2, RONDO_ERR_INVALID_ARGUMENT, -1, -1, "not a unique id");
    rd_env_read(&env);
    rd_log_set_level(RD_LOG_NONE);
    snprintf(env.iface, sizeof(env.iface), "nosuch0");
    expect(rd_boot_id_create(&id, &env) == RONDO_ERR_INVALID_ARGUMENT, "bad RONDO_IFACE", 0, "accepted");
    run(two, 2, -1, 10000, &id);
    expect_all("carried error", 2, RONDO_ERR_INVALID_ARGUMENT, -1, -1, "RONDO_IFACE=nosuch0");
}

int main(void)
{
    alarm(100);
    outcome = mmap(NULL, MOST * sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcome == MAP_FAILED)
        return 1;
    for (int maker = -1; maker <= 0; maker++) {
        claims_that_clash(maker);
        ranks_that_fail(maker);
    }
    single_against_others();
    bad_ids();
    return failures != 0;
}
