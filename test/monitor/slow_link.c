/* A link between two nodes that is slow is named by rondo-ras, with both ends and the direction; and none is where all
 * are slow, where one is no more than half as fast as the others, where a host's sending is slow as a whole, or where a
 * rank is. Each rank is alone on a node that is played; the transport of test/transport/socketpair_transport.c carries
 * the messages and holds back what goes over a link. Which one it is is decided here before the ranks begin.
 *
 *     slow_link [--seed S] [--count N] */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "monitor/obedient.h"
#include "transport/socketpair.h"
#include "util/check.h"
#include "util/harness.h"

#define SLOW 6 /* the exit status of `who` */
#define RANKS 4
#define BLOCK ((size_t)2 << 20) /* bytes of a block: some messages */
#define MB UINT64_C(1000000)

typedef enum { LINK, LINK_OF_RING, FREE, ALL, HALF, PORT, RANK, NUM_KINDS } trouble_t;

static const char *const names[NUM_KINDS] = {"a slow link",     "a slow link of a ring", "free links",
                                             "all links alike", "a link half as fast",   "a slow port",
                                             "a slow rank"};

static struct shared {
    trouble_t kind;
    int from, to;
    _Atomic int over;
} * shared;

/* In bytes each second. */
static uint64_t limit(int from, int to)
{
    const bool it = from == shared->from && to == shared->to;

    switch (shared->kind) {
    case LINK:
    case LINK_OF_RING:
        return it ? 8 * MB : 0;
    case ALL:
        return 20 * MB;
    case HALF:
        return it ? 20 * MB : 40 * MB;
    case PORT:
        return from == shared->from ? 8 * MB : 0;
    default:
        return 0;
    }
}

static rondo_result_t exchange(rondo_comm_t comm, char *in, char *out)
{
    if (shared->kind == LINK_OF_RING)
        return rondo_allreduce(in, out, RANKS * BLOCK, RONDO_INT8, RONDO_SUM, comm, NULL);
    return rondo_alltoall(in, out, BLOCK, RONDO_INT8, comm, NULL);
}

/* The last turn is the same one on all ranks. */
static rondo_result_t obey(int what, int rank, rondo_comm_t comm)
{
    static char in[RANKS * BLOCK], out[RANKS * BLOCK];
    rondo_result_t result = RONDO_SUCCESS;

    if (what == OBEDIENT_END)
        return rondo_comm_destroy(comm);
    for (int over = 0; result == RONDO_SUCCESS && !over;) {
        int mine = atomic_load(&shared->over);
        if (shared->kind == RANK && rank == shared->from)
            obedient_pause(200);
        result = exchange(comm, in, out);
        if (result == RONDO_SUCCESS)
            result = rondo_allreduce(&mine, &over, 1, RONDO_INT32, RONDO_MAX, comm, NULL);
    }
    return result;
}

/* ---- what is said of it ---- */

/* A line for the matrix of blame.sh. */
static void note(const char *said)
{
    printf("blamed: %s: %s\n", names[shared->kind], said);
}

static void expect_link(void)
{
    char words[160];
    int status = 0;

    snprintf(words, sizeof words, "the link from rank %d (", shared->from);
    for (int i = 0; i < 60 && !(status == SLOW && strstr(obedient_text, words)); i++)
        status = obedient_ras("who", obedient_job);
    const char *at = strstr(obedient_text, words);
    note(at ? "slow link" : strstr(obedient_text, "is slow: ") ? "wrong" : "nobody");
    CHECK(status == SLOW && at, "%s: the link from %d to %d is to be named: exit %d: %s", names[shared->kind],
          shared->from, shared->to, status, obedient_text);
    snprintf(words, sizeof words, ":%d) to rank %d (", (int)obedient_pids[shared->from], shared->to);
    CHECK(at && strstr(at, words), "it goes from process %d to rank %d: %s", (int)obedient_pids[shared->from],
          shared->to, obedient_text);
    CHECK(!strstr(obedient_text, ") is slow: it"), "a rank is named: %s", obedient_text);
    CHECK(!at || !strstr(at + 1, "the link from"), "another link is named: %s", obedient_text);
}

/* What goes over a link goes no faster than its ranks get cores, and one that gets few for some seconds makes its links
 * slow: so a look now and then may name one. */
static void expect_no_link(void)
{
    const int looks = 10, most = looks / 3;
    int before = failures, named = 0;

    for (int i = 0; i < looks; i++) {
        obedient_ras("who", obedient_job);
        named += strstr(obedient_text, "the link from") != NULL;
        CHECK(named <= most, "%s: a link is named, %d times of %d: %s", names[shared->kind], named, i + 1,
              obedient_text);
        CHECK(shared->kind == RANK || !strstr(obedient_text, ") is slow: it"), "%s: a rank is named: %s",
              names[shared->kind], obedient_text);
    }
    note(failures != before ? "wrong" : strstr(obedient_text, ") is slow: it") ? "slow rank" : "nobody");
}

static void trial(uint64_t seed, trouble_t kind)
{
    memset(shared, 0, sizeof *shared);
    shared->kind = kind;
    shared->from = (int)(seed % RANKS);
    shared->to = kind == LINK_OF_RING ? (shared->from + 1) % RANKS
                                      : (shared->from + 1 + (int)(seed / RANKS % (RANKS - 1))) % RANKS;
    if (kind == LINK_OF_RING)
        setenv("RONDO_ALGO", "allreduce=ring", 1);
    obedient_start(RANKS, "world", obey);
    unsetenv("RONDO_ALGO");
    printf("slow_link: seed %llu: %s, from %d to %d\n", (unsigned long long)seed, names[kind], shared->from,
           shared->to);
    for (int r = 0; r < RANKS; r++)
        obedient_order(r, OBEDIENT_REDUCE);
    if (kind == LINK || kind == LINK_OF_RING)
        expect_link();
    else
        expect_no_link();
    atomic_store(&shared->over, 1);
    for (int r = 0; r < RANKS; r++)
        CHECK(obedient_settled(r) && !obedient[r].failed, "rank %d has failed", r);
    obedient_order_all(OBEDIENT_END);
    obedient_end();
}

int main(int argc, char **argv)
{
    uint64_t seed = 0;
    int count = NUM_KINDS;

    test_begin("monitor/slow_link", 600);
    if (!test_trials(argc, argv, &seed, &count))
        return 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    obedient_nodes = RANKS;
    sp_limit = limit;
    for (int i = 0; i < count; i++)
        trial(seed + (uint64_t)i, (trouble_t)((seed + (uint64_t)i) % NUM_KINDS));
    printf("slow_link: %d failures\n", failures);
    return failures != 0;
}
