/* See harness.h. The parent never calls rondo, so a fork is always clean; ranks that are threads live in one forked
 * process, so that a hang is ended in the same way for both kinds. */
#define _GNU_SOURCE
#include "util/harness.h"

#include "util/enter.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each id of a test has a slot of its own: a rank may take the first when rank 0 has made the last. */
#define IDS 4096
#define AGREEMENTS 65536
#define PRINTED 12      /* failures of one run that are printed */
#define LIMITS_MS 20    /* between two looks at the limits of a run */
#define SHARE_US 250000 /* between two looks at how many programs want the cores */
#define LOST_MOST 4     /* times the limit is what a run gets more on a busy machine */

typedef struct {
    char note[256];
    _Atomic int ended;
    _Atomic int failed;
    _Atomic unsigned barriers;
} rank_state_t;

typedef struct test_shared {
    _Atomic int failures;
    _Atomic unsigned id_serial[IDS]; /* k+1 when the slot holds the k-th id */
    rondo_unique_id_t id[IDS];
    rank_state_t rank[TEST_MAX_RANKS];
    _Atomic unsigned agreed[TEST_MAX_RANKS];
    uint64_t value[TEST_MAX_RANKS][AGREEMENTS];
    char label[AGREEMENTS][96]; /* rank 0's */
} test_shared_t;

typedef struct {
    test_rank_t t;
    test_body_fn body;
    void *arg;
} start_t;

static const char *test_name = "test";

static int slow_factor(void)
{
    const char *text = getenv("RONDO_TEST_SLOW");
    int factor = text ? atoi(text) : 1;

    return factor < 1 ? 1 : factor;
}

bool test_trials(int argc, char **argv, uint64_t *seed, int *count)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            *seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--count") == 0)
            *count = atoi(argv[i + 1]);
        else
            return false;
    }
    return true;
}

void test_begin(const char *name, int seconds)
{
    test_name = name;
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* What these tests break on purpose would fill the log with warnings; the sentences are looked at all the same. */
    setenv("RONDO_DEBUG", "none", 0);
    alarm((unsigned)(seconds * slow_factor()));
}

const char *test_kind_name(test_kind_t kind)
{
    return kind == TEST_PROCESSES ? "processes" : "threads";
}

void test_note(test_rank_t *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(t->shared->rank[t->rank].note, sizeof t->shared->rank[t->rank].note, format, args);
    va_end(args);
}

const char *test_noted(const test_rank_t *t)
{
    return t->shared->rank[t->rank].note;
}

static void fail_with(test_rank_t *t, const char *format, va_list args)
{
    char text[1024];

    vsnprintf(text, sizeof text, format, args);
    int before = atomic_exchange(&t->shared->rank[t->rank].failed, 1);
    if (atomic_fetch_add(&t->shared->failures, 1) < PRINTED || (t->rank == 0 && !before)) /* who often knows why */
        printf("%s: FAILED rank %d/%d (%s), at \"%s\": %s\n", test_name, t->rank, t->nranks, test_kind_name(t->kind),
               test_noted(t), text);
}

void test_fail(test_rank_t *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_with(t, format, args);
    va_end(args);
}

static _Noreturn void end_rank(test_rank_t *t)
{
    atomic_store(&t->shared->rank[t->rank].ended, 1);
    if (t->kind == TEST_THREADS)
        pthread_exit(NULL);
    exit(0);
}

void test_stop(test_rank_t *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_with(t, format, args);
    va_end(args);
    end_rank(t);
}

int test_failures(const test_rank_t *t)
{
    return atomic_load(&t->shared->failures);
}

int test_result(test_rank_t *t, rondo_comm_t comm, rondo_result_t got, rondo_result_t want, const char *text)
{
    if (got == want)
        return 1;
    test_fail(t, "%s gave \"%s\", not \"%s\"; rondo says: %s", text, rondo_result_string(got),
              rondo_result_string(want), got == RONDO_SUCCESS ? "-" : rondo_last_error(comm));
    return 0;
}

static void nap(void)
{
    struct timespec time = {0, 100000};

    nanosleep(&time, NULL);
}

int test_id_unless_ended(test_rank_t *t, rondo_unique_id_t *id)
{
    test_shared_t *s = t->shared;
    unsigned k = t->ids++, slot = k % IDS;

    if (t->rank == 0) {
        if (rondo_unique_id_create(&s->id[slot]) != RONDO_SUCCESS)
            test_fail(t, "rondo_unique_id_create: %s", rondo_last_error(NULL));
        atomic_store(&s->id_serial[slot], k + 1);
    }
    while (atomic_load(&s->id_serial[slot]) != k + 1) {
        if (atomic_load(&s->rank[0].ended) && atomic_load(&s->id_serial[slot]) != k + 1)
            return 0;
        nap();
    }
    *id = s->id[slot];
    return 1;
}

void test_id(test_rank_t *t, rondo_unique_id_t *id)
{
    if (!test_id_unless_ended(t, id))
        test_stop(t, "rank 0 ended and made no id");
}

rondo_comm_t test_comm(test_rank_t *t, const rondo_config_t *config)
{
    rondo_config_t host = RONDO_CONFIG_INIT;
    rondo_unique_id_t id;
    rondo_comm_t comm = NULL;
    rondo_result_t result;

    host.device = RONDO_DEVICE_HOST;
    test_note(t, "create, communicator %u", t->ids);
    test_id(t, &id);
    result = rondo_comm_create(&comm, t->nranks, &id, t->rank, config ? config : &host);
    if (result != RONDO_SUCCESS)
        test_stop(t, "rondo_comm_create: %s: %s", rondo_result_string(result), rondo_last_error(NULL));
    return comm;
}

void test_barrier(test_rank_t *t)
{
    unsigned mine = ++t->barriers;
    int r;

    atomic_store(&t->shared->rank[t->rank].barriers, mine);
    for (r = 0; r < t->nranks; r++)
        while (atomic_load(&t->shared->rank[r].barriers) < mine && !atomic_load(&t->shared->rank[r].ended))
            nap();
}

void test_agree(test_rank_t *t, uint64_t value, const char *label)
{
    unsigned k = t->agreed++;

    if (k >= AGREEMENTS)
        test_stop(t, "more than %d values to agree on", AGREEMENTS);
    t->shared->value[t->rank][k] = value;
    if (t->rank == 0)
        snprintf(t->shared->label[k], sizeof t->shared->label[k], "%s", label);
    atomic_store(&t->shared->agreed[t->rank], k + 1);
}

static int compare_agreed(test_shared_t *s, int nranks)
{
    unsigned count = atomic_load(&s->agreed[0]), k;
    int r, bad = 0;

    for (r = 1; r < nranks; r++) {
        if (atomic_load(&s->agreed[r]) != count) {
            printf("%s: FAILED: rank 0 has %u results, rank %d has %u\n", test_name, count, r, s->agreed[r]);
            return bad + 1;
        }
        for (k = 0; k < count; k++)
            if (s->value[r][k] != s->value[0][k] && ++bad <= PRINTED)
                printf("%s: FAILED: ranks 0 and %d of %d got different bits: %s\n", test_name, r, nranks, s->label[k]);
    }
    return bad;
}

static void *run_thread(void *arg)
{
    start_t *start = arg;

    start->body(&start->t, start->arg);
    atomic_store(&start->t.shared->rank[start->t.rank].ended, 1);
    return NULL;
}

static void run_threads(start_t *start, int nranks)
{
    pthread_t thread[TEST_MAX_RANKS];
    int r;

    for (r = 0; r < nranks; r++)
        if (pthread_create(&thread[r], NULL, run_thread, &start[r]) != 0) {
            printf("%s: cannot start thread %d\n", test_name, r);
            exit(1);
        }
    for (r = 0; r < nranks; r++)
        pthread_join(thread[r], NULL);
}

int test_host_of(int rank)
{
    const char *all = getenv("RONDO_TEST_HOSTS"), *at = all;

    if (!all || !*all)
        return -1;
    for (int r = 0; r < rank; r++) {
        at += strcspn(at, ",");
        at = *at ? at + 1 : all;
    }
    return atoi(at);
}

static void go_to_host(int rank)
{
    int host = test_host_of(rank);

    if (host >= 0 && test_enter_played(host) != 0) {
        printf("%s: FAILED: rank %d cannot go to host %d\n", test_name, rank, host);
        _exit(1);
    }
}

static pid_t fork_rank(start_t *start, int nranks)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    go_to_host(start->t.rank);
    if (start->t.kind == TEST_THREADS)
        run_threads(start, nranks);
    else
        run_thread(start);
    exit(0);
}

typedef struct {
    test_shared_t *s;
    test_director_t *director;
    pid_t pid[TEST_MAX_RANKS];
    int fd[TEST_MAX_RANKS]; /* tells that it has ended (pidfd); below 0: the system has none */
    int nprocesses, nranks, left;
    double share;       /* which part of the time counts, */
    int64_t share_due;  /* and when that is looked at again; in us, as all that follows */
    int64_t lost, owed; /* that did not count; and of it what the alarm has yet to get */
} run_t;

/* Zero if the process still runs or has ended well. */
static int reap(run_t *run, int ctx)
{
    test_director_t *d = run->director;
    int status;

    if (run->pid[ctx] == 0 || waitpid(run->pid[ctx], &status, WNOHANG) != run->pid[ctx])
        return 0;
    run->pid[ctx] = 0;
    run->left--;
    atomic_store(&run->s->rank[ctx].ended, 1);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (d && d->victims >> ctx & 1 && WIFSIGNALED(status) && WTERMSIG(status) == (d->signal ? d->signal : SIGKILL))
        return 0;
    if (d)
        d->crashed++;
    printf("%s: FAILED: process %d %s %d, at \"%s\"\n", test_name, ctx,
           WIFSIGNALED(status) ? "died by signal" : "exited with",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), run->s->rank[ctx].note);
    return 1;
}

static int cancel(run_t *run)
{
    int i, r;

    printf("%s: FAILED: out of time; where the ranks are:\n", test_name);
    for (r = 0; r < run->nranks; r++)
        printf("    rank %d: %s%s\n", r, run->s->rank[r].note, atomic_load(&run->s->rank[r].ended) ? " (ended)" : "");
    for (i = 0; i < run->nprocesses; i++)
        if (run->pid[i] > 0) {
            kill(run->pid[i], SIGKILL);
            waitpid(run->pid[i], NULL, 0);
        }
    if (run->director)
        run->director->hung++;
    return 1;
}

/* Where other programs want the cores as well, ranks get on the more slowly, and a limit is to find a hang, not that.
 * Returns which part of the time counts. */
static double share_of_cores(int nranks)
{
    const int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    FILE *f = fopen("/proc/loadavg", "r");
    int want = 0;

    if (f) {
        if (fscanf(f, "%*f %*f %*f %d", &want) != 1)
            want = 0;
        fclose(f);
    }
    want -= nranks; /* they may all hang in a loop */
    return want > cores ? (double)cores / want : 1;
}

/* The alarm of the program waits as much longer. */
static void alarm_later(int64_t *owed_us)
{
    unsigned seconds = (unsigned)(*owed_us / 1000000), left = seconds ? alarm(0) : 0;

    if (left)
        alarm(left + seconds);
    *owed_us -= (int64_t)seconds * 1000000;
}

/* Returns how much later a run is to end because of what has been between the two times. */
static int64_t lost_us(run_t *run, int64_t last, int64_t now, int64_t most)
{
    if (now >= run->share_due) {
        run->share = share_of_cores(run->nranks);
        run->share_due = now + SHARE_US;
    }
    int64_t lost = (int64_t)((double)(now - last) * (1 - run->share));
    if (now - last > 1000000) /* the machine stood still: that is nobody's hang */
        lost = now - last;
    if (run->lost + lost > most)
        lost = most - run->lost;
    run->lost += lost;
    run->owed += lost;
    alarm_later(&run->owed);
    return lost;
}

/* Until a process ends, or until it is time to look at limits. A director looks more often, and so does who has nothing
 * that would tell. */
static void await_end(const run_t *run)
{
    struct pollfd p[TEST_MAX_RANKS];
    bool told = !run->director || !run->director->step;
    nfds_t n = 0;

    for (int i = 0; i < run->nprocesses && told; i++) {
        if (run->pid[i] == 0)
            continue;
        told = run->fd[i] >= 0;
        p[n++] = (struct pollfd){.fd = run->fd[i], .events = POLLIN};
    }
    if (told)
        (void)poll(p, n, LIMITS_MS);
    else
        nap();
}

static int supervise(run_t *run, int seconds)
{
    const int64_t limit = (int64_t)seconds * slow_factor() * 1000000;
    int64_t last = test_clock_us(), deadline = last + limit, now;
    int bad = 0, i;

    for (run->left = run->nprocesses; run->left > 0;) {
        for (i = 0; i < run->nprocesses; i++)
            bad += reap(run, i);
        if (run->director && run->director->step && run->left > 0)
            run->director->step(run->director, run->pid);
        /* After a failure the others may wait for a rank that never comes: give them a moment, not the whole time. */
        now = test_clock_us();
        deadline += lost_us(run, last, now, LOST_MOST * limit);
        last = now;
        if ((bad > 0 || atomic_load(&run->s->failures) > 0) && deadline > now + 8000000)
            deadline = now + 8000000;
        if (now > deadline)
            return bad + cancel(run);
        if (run->left > 0)
            await_end(run);
    }
    return bad;
}

static int run_ranks(test_director_t *d, test_kind_t kind, int nranks, int seconds, test_body_fn body, void *arg)
{
    test_shared_t *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    run_t run = {.s = s, .director = d, .nprocesses = kind == TEST_THREADS ? 1 : nranks, .nranks = nranks};
    start_t start[TEST_MAX_RANKS];
    int bad, i;

    if (s == MAP_FAILED || nranks > TEST_MAX_RANKS) {
        printf("%s: FAILED: cannot start %d ranks\n", test_name, nranks);
        return 1;
    }
    fflush(stdout);
    for (i = 0; i < nranks; i++)
        start[i] = (start_t){{i, nranks, kind, 0, 0, 0, s}, body, arg};
    for (i = 0; i < run.nprocesses; i++)
        run.pid[i] = fork_rank(&start[i], nranks);
    for (i = 0; i < run.nprocesses; i++)
        run.fd[i] = (int)syscall(SYS_pidfd_open, run.pid[i], 0);
    bad = supervise(&run, seconds);
    for (i = 0; i < run.nprocesses; i++)
        if (run.fd[i] >= 0)
            close(run.fd[i]);
    bad += atomic_load(&s->failures);
    if (bad == 0 && !d)
        bad += compare_agreed(s, nranks);
    munmap(s, sizeof *s);
    return bad;
}

int test_run(test_kind_t kind, int nranks, int seconds, test_body_fn body, void *arg)
{
    return run_ranks(NULL, kind, nranks, seconds, body, arg);
}

int test_run_directed(test_director_t *d, int nranks, int seconds, test_body_fn body, void *arg)
{
    return run_ranks(d, TEST_PROCESSES, nranks, seconds, body, arg);
}

/* A fork's child has no alarm: each gets what is left of this one, and puts it off where others have its cores, as this
 * process, which waits for them without one, would not. What ends a part ends its ranks (fork_rank). */
int test_at_once(int n, int (*part)(int i))
{
    unsigned left = alarm(0);
    pid_t parent = getpid(), pid[TEST_MAX_RANKS];
    int status, bad = 0;

    if (n > TEST_MAX_RANKS) {
        printf("%s: FAILED: cannot start %d parts\n", test_name, n);
        return 1;
    }
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        if ((pid[i] = fork()) != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        alarm(left);
        bad = part(i);
        exit(bad > 100 ? 100 : bad);
    }
    for (int i = 0; i < n; i++) {
        if (pid[i] > 0 && waitpid(pid[i], &status, 0) == pid[i] && WIFEXITED(status)) {
            bad += WEXITSTATUS(status);
            continue;
        }
        printf("%s: FAILED: part %d did not come to its end\n", test_name, i);
        bad++;
    }
    alarm(left);
    return bad;
}

uint64_t test_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t test_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return test_mix(*state);
}

unsigned test_below(uint64_t *state, unsigned limit)
{
    return (unsigned)((test_random(state) >> 32) * limit >> 32);
}

int64_t test_clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int count_entries(const char *folder, const char *with)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int count = 0;

    if (!dir)
        return -1;
    while ((entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.' && (!with || strstr(entry->d_name, with));
    closedir(dir);
    return count;
}

bool test_is_stopped(pid_t pid)
{
    char path[64], text[512] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    size_t got = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    char *end = got ? strrchr(text, ')') : NULL;
    return end && end[2] == 'T';
}

int test_count_entries(const char *folder)
{
    return count_entries(folder, NULL);
}

int test_count_files(void)
{
    return count_entries("/dev/shm", "rondo");
}
