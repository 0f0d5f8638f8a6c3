/* Errors against the truth. Who has been done something to is on the board before it is done, so an error can come no
 * earlier: whatever it says of a rank that is unharmed is wrong, and so is another cause than the one that is written
 * there. A sentence blames the process that it names first, by "rank 3 (host:17)"; one that does not know it, and says
 * so, or names none, blames the first rank. */
#include "fault/trial.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What UCX has in a network that stays open: its event sets and wake-ups, a socket that listens and some more; besides,
 * as many connections as there are ranks. */
#define HELD_DESCRIPTORS 9
#define HELD_THREADS 2

#define SERVED_US 400000 /* rd_rendezvous_leave stays so long at least */

#define UNKNOWN "(its process is not known yet)"
#define ADVICE "; abort this communicator" /* what follows says what to do, not what has happened */

/* A sentence about a rank of that fate has one word of the first line and none of the second. "failed" is said where
 * it is not known how. */
typedef struct {
    const char *name;
    rondo_result_t result;
    const char *some[8], *none[8];
} cause_t;

static const cause_t causes[] = {
    [UNHARMED] = {"nothing has happened to", RONDO_SUCCESS, {NULL}, {NULL}},
    [DIED] = {"has died",
              RONDO_ERR_REMOTE,
              {"died", "ended", "failed", "dumps core", "cannot be read", "broke off", "closed the connection",
               "is not there"},
              {"abort", "destroyed", "why is unknown", "is late", "in time", "cut off"}},
    [STOPPED] = {"is stopped",
                 RONDO_ERR_TIMEOUT,
                 {"is stopped", "why is unknown", "in time"},
                 {"died", "abort", "destroyed", "cut off", "has ended"}},
    [ABORTED] = {"has aborted",
                 RONDO_ERR_REMOTE,
                 {"abort", "failed", "was lost", "has left it", "is not there"},
                 {"died:", "has ended", "without a farewell", "destroyed", "why is unknown", "is late", "cut off"}},
    [LACKS] = {"lacks something",
               RONDO_ERR_REMOTE,
               {"failed", "cannot", "memory", "open files", "file size", "was lost"},
               {"died:", "has ended", "without a farewell", "destroyed", "why is unknown", "is late", "cut off"}},
};

static int has_one(const char *text, const char *const words[8])
{
    for (int i = 0; i < 8 && words[i]; i++)
        if (strstr(text, words[i]))
            return 1;
    return 0;
}

/* The rank whose process is named at `at`, as ":17)" or ":17 "; -1: none is. */
static int process_at(const rank_t *r, const char *at)
{
    char *end;
    long pid = *at == ':' && isdigit((unsigned char)at[1]) ? strtol(at + 1, &end, 10) : -1;

    for (int q = 0; q < r->t->nranks && pid > 0; q++)
        if (r->trial->board->pid[q] == pid)
            return q;
    return -1;
}

static int blamed(const rank_t *r, const char *text, const int *member, int nmembers)
{
    const char *at, *reported = strstr(text, " reports that rank "), *named;
    int rank;

    text = reported ? reported : text; /* whoever reports is not to blame */
    named = strstr(text, "rank ");
    for (at = text; *at; at++)
        if ((rank = process_at(r, at)) >= 0)
            break;
    if (*at && (!named || named > at || !strstr(named, UNKNOWN) || strstr(named, UNKNOWN) > at))
        return rank;
    return named && sscanf(named, "rank %d", &rank) == 1 && rank >= 0 && rank < nmembers ? member[rank] : -1;
}

static void wrong(rank_t *r, const char *what, const char *why, const char *text)
{
    const board_t *board = r->trial->board;
    char truth[1024] = "";
    size_t n = 0;

    for (int q = 0; q < r->t->nranks; q++)
        if (board->fate[q] != UNHARMED && n < sizeof truth)
            n += (size_t)snprintf(truth + n, sizeof truth - n, " rank %d (pid %d) %s, in \"%s\";", q,
                                  (int)board->pid[q], causes[board->fate[q]].name, board->where[q]);
    test_fail(r->t, "%s: %s: \"%s\"; the truth:%s", what, why, text, *truth ? truth : " nothing has happened");
    atomic_fetch_add(&r->trial->board->blamed, 1);
}

/* One who has waited for a stopped rank of another node may know no more than the one that it waits for itself, and
 * says so, or who has said it. */
static int may_not_know(const rank_t *r, const char *text, rondo_result_t result)
{
    if (strstr(text, "makes no communicator of this list, or no longer")) /* it is in another shrink for long */
        return 1;
    if (result == RONDO_ERR_TIMEOUT && atomic_load(&r->trial->board->fate[r->trial->plan.victim]) == UNHARMED)
        return 1; /* the machine was too busy for that deadline */
    return result == RONDO_ERR_TIMEOUT && r->trial->plan.nnodes > 1 &&
           (strstr(text, "or waits for another one itself") || strstr(text, "reports"));
}

void judge_error(rank_t *r, rondo_comm_t comm, rondo_result_t result, const int *member, int nmembers,
                 unsigned culprits, const char *what)
{
    board_t *board = r->trial->board;
    char text[1024], why[160];
    const char *advice;
    int rank, fate;

    snprintf(text, sizeof text, "%s", rondo_last_error(comm));
    if ((advice = strstr(text, ADVICE)) != NULL)
        text[advice - text] = 0;
    atomic_fetch_add(&board->judged, 1);
    rank = blamed(r, text, member, nmembers);
    fate = rank < 0 ? UNHARMED : atomic_load(&board->fate[rank]);
    if (may_not_know(r, text, result))
        return;
    if (strstr(text, "(?)"))
        snprintf(why, sizeof why, "%s, and a question mark", rondo_result_string(result));
    else if (rank < 0 || !(culprits & 1u << rank) || fate == UNHARMED)
        snprintf(why, sizeof why, "%s, and it blames rank %d", rondo_result_string(result), rank);
    else if (result != causes[fate].result)
        snprintf(why, sizeof why, "%s where a rank %s", rondo_result_string(result), causes[fate].name);
    else if (fate == DIED && r->trial->plan.way == BY_EXEC && strstr(text, "executes another program"))
        return; /* its process goes on, so no more is known */
    else if (!has_one(text, causes[fate].some) || has_one(text, causes[fate].none))
        snprintf(why, sizeof why, "another cause than that rank %d %s", rank, causes[fate].name);
    else
        return;
    wrong(r, what, why, text);
}

void judge_pending(rank_t *r, rondo_result_t result)
{
    const plan_t *p = &r->trial->plan;
    rondo_result_t error = RONDO_SUCCESS;

    judge_error(r, r->comm, result, r->member, r->nranks, 1u << p->victim | (p->kind == SECOND ? 1u << p->second : 0),
                "the pending call");
    if (strcmp(rondo_last_error(r->comm), rondo_last_error(NULL)) != 0)
        test_fail(r->t, "this thread's last error must be the communicator's, \"%s\": \"%s\"",
                  rondo_last_error(r->comm), rondo_last_error(NULL));
    TEST_OK(r->t, r->comm, rondo_comm_get_error(r->comm, &error));
    TEST_TRUE(r->t, error == result);
    TEST_GIVES(r->t, r->comm, result, rondo_barrier(r->comm, NULL));
}

int judge_missing(const char *text, int rank)
{
    const char *at = strstr(text, "missing: ");
    int one = -1, n;

    for (at = at ? at + 9 : ""; sscanf(at, "%d%n", &one, &n) == 1; at += at[n] == ',' ? n + 1 : n)
        if (one == rank)
            return 1;
    return rank > one && strncmp(at, " and more", 9) == 0;
}

/* After a failure the rendezvous stays for a moment, for those that have yet to come and hear of it. */
static int came_too_late(const rank_t *r, const char *text)
{
    const int64_t happened = atomic_load(&r->trial->board->happened);

    return happened && test_clock_us() - happened > SERVED_US &&
           (strstr(text, "nobody serves this unique id") || strstr(text, "ended before the communicator was made"));
}

/* A rank that died before it came is only missed, by a deadline; and if it has made the id, nobody is there whom the
 * others could ask. Who serves the rendezvous says whom it has missed within two seconds of the deadline, unless the
 * machine was too busy for that. */
void judge_creation(rank_t *r, rondo_result_t result)
{
    const plan_t *p = &r->trial->plan;
    const char *text = rondo_last_error(NULL);

    if (p->kind == BIRTH && result == RONDO_ERR_TIMEOUT && judge_missing(text, p->victim))
        return;
    if (p->kind == BIRTH && result == RONDO_ERR_TIMEOUT && strstr(text, "no table came from the rendezvous"))
        return;
    if (p->kind == BIRTH && came_too_late(r, text))
        return;
    if (p->kind == BIRTH && p->victim == 0 && result == RONDO_ERR_INVALID_USAGE && strstr(text, "the maker has ended"))
        return;
    judge_error(r, NULL, result, r->member, r->nranks, 1u << p->victim, "creation");
}

void judge_sentence(rank_t *r, rondo_comm_t comm, rondo_result_t result, const char *what)
{
    if (result != RONDO_SUCCESS && !*rondo_last_error(comm))
        test_fail(r->t, "%s gave %s without a sentence", what, rondo_result_string(result));
}

void judge_group(rank_t *r, rondo_comm_t small, const int *out, int nout)
{
    int32_t in[100], sum[100], me = r->t->rank, member[TEST_MAX_RANKS] = {0};
    int size = 0, rank = -1, n = 0, before = 0, q, k;

    trial_note(r, "allgather and allreduce after the shrink");
    TEST_OK(r->t, small, rondo_comm_size(small, &size));
    TEST_OK(r->t, small, rondo_comm_rank(small, &rank));
    TEST_OK(r->t, small, rondo_allgather(&me, member, 1, RONDO_INT32, small, NULL));
    for (q = 0; q < r->t->nranks; q++) {
        for (k = 0; k < nout && out[k] != q;)
            k++;
        if (k < nout)
            continue;
        before += q < me;
        if (member[n++] != q)
            test_fail(r->t, "rank %d of the smaller communicator is %d, not %d", n - 1, member[n - 1], q);
    }
    TEST_TRUE(r->t, size == n && rank == before);
    for (k = 0; k < 100; k++)
        in[k] = k + 1;
    if (TEST_OK(r->t, small, rondo_allreduce(in, sum, 100, RONDO_INT32, RONDO_SUM, small, NULL)))
        for (k = 0; k < 100 && sum[k] == n * in[k];)
            k++;
    if (k < 100) {
        test_fail(r->t, "wrong result after the shrink");
        atomic_fetch_add(&r->trial->board->wrong, 1);
    }
}

/* Networks of this process of which the library has said that they stay open, because UCX would end the process. */
static _Atomic int held;

void __real_rd_log(const rd_log_ctx_t *ctx, rd_log_level_t level, const char *format, ...);
void __wrap_rd_log(const rd_log_ctx_t *ctx, rd_log_level_t level, const char *format, ...);

/* The linker hands over what the library logs. */
void __wrap_rd_log(const rd_log_ctx_t *ctx, rd_log_level_t level, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strstr(text, "stays open until this process ends"))
        atomic_fetch_add(&held, 1);
    __real_rd_log(ctx, level, "%s", text);
}

/* What a socket is, and to which ports; nothing if `fd` is none. */
static void socket_print(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    struct tcp_info info = {0};
    socklen_t n = sizeof own, m = sizeof peer, bytes = sizeof info;

    if (getsockname(fd, (struct sockaddr *)&own, &n) != 0)
        return;
    (void)getpeername(fd, (struct sockaddr *)&peer, &m);
    (void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes);
    printf("(family %d, ports %d to %d, state %d)", own.ss_family, ntohs(((struct sockaddr_in *)&own)->sin_port),
           ntohs(((struct sockaddr_in *)&peer)->sin_port), info.tcpi_state);
}

/* What each descriptor is, so that one that stays has a name. */
static void descriptors_print(void)
{
    char path[64], to[128];

    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, to, sizeof to - 1);
        if (n < 0)
            continue;
        printf(" %d=%.*s", fd, (int)n, to);
        socket_print(fd);
    }
    printf("\n");
}

void judge_leftovers(rank_t *r)
{
    int tries, descriptors = 0, threads = 0;

    for (tries = 0; tries < TRIAL_LIMIT_S * 50; tries++) {
        descriptors = test_count_entries("/proc/self/fd");
        threads = test_count_entries("/proc/self/task");
        if (descriptors <= r->descriptors + held * (HELD_DESCRIPTORS + r->t->nranks) &&
            threads <= 1 + held * HELD_THREADS)
            return;
        usleep(10000);
    }
    test_fail(r->t, "leftovers: %d descriptors, %d at the start, and %d threads; %d networks stay open", descriptors,
              r->descriptors, threads, held);
    descriptors_print();
    atomic_fetch_add(&r->trial->board->leftovers, 1);
}
