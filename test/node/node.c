/* Nodes and their memory: processes, threads and mixtures of both; nodes played by RONDO_HOSTID; every rank writes into
 * every segment and reads what the others wrote; a limit that is too small is an error on all ranks, not a signal. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/gate.h"
#include "node/node.h"

#define SEGMENT ((size_t)256 << 10)

typedef struct plan {
    int nranks, threads, nodes; /* ranks, of which `threads` in one process; played nodes */
    int limit;                  /* a resource limited in rank 1's process, -1: none */
    rlim_t most;
    const char *less; /* what the error says needs less */
} plan_t;

typedef struct rank {
    const plan_t *plan;
    rondo_unique_id_t id;
    int rank, bad;
} rank_t;

static int fail(const rank_t *r, const char *what)
{
    printf("rank %d of %d (%d a process, %d nodes): %s\n", r->rank, r->plan->nranks, r->plan->threads, r->plan->nodes,
           what);
    return 1;
}

static int same_process(const plan_t *p, int a, int b)
{
    return a / p->threads == b / p->threads;
}

static int check_node(const rank_t *r, const rd_node_t *node)
{
    const plan_t *p = r->plan;
    int m = 0;
    if (node->nnodes != p->nodes)
        return fail(r, "wrong number of nodes");
    if (node->fewest != p->nranks / p->nodes || node->most != (p->nranks + p->nodes - 1) / p->nodes)
        return fail(r, "wrong sizes of the emptiest or fullest node");
    for (int i = 0; i < p->nranks; i++) {
        if (node->node_of[i] != i % p->nodes)
            return fail(r, "a rank on the wrong node");
        if (i % p->nodes != r->rank % p->nodes)
            continue;
        if (m >= node->nlocal || node->local[m] != i || (i == r->rank && node->self != m))
            return fail(r, "wrong local ranks");
        if ((node->pidfd[m] < 0) != same_process(p, i, r->rank))
            return fail(r, "a pidfd missing, or one of the own process");
        m++;
    }
    return m == node->nlocal ? 0 : fail(r, "wrong number of local ranks");
}

/* The barrier between the ranks is an exchange over the bootstrap. */
static int barrier(rd_boot_t *boot, int nranks, int rank)
{
    unsigned char all[64] = {0};
    all[rank] = 1;
    return rd_boot_allgather(boot, all, 1) != RONDO_SUCCESS || memchr(all, 0, (size_t)nranks) != NULL;
}

static int check_memory(const rank_t *r, const rd_node_t *node, rd_boot_t *boot)
{
    if (node->nlocal == 1 && node->base)
        return fail(r, "memory with nobody to share it");
    if (node->nlocal == 1) /* the others' two barriers */
        return barrier(boot, r->plan->nranks, r->rank) || barrier(boot, r->plan->nranks, r->rank);
    const char *own = node->base + (size_t)node->self * SEGMENT;
    for (size_t i = 0; i < SEGMENT; i++)
        if (own[i])
            return fail(r, "memory is not zero");
    if (barrier(boot, r->plan->nranks, r->rank))
        return fail(r, "barrier");
    for (int m = 0; m < node->nlocal; m++)
        node->base[(size_t)m * SEGMENT + SEGMENT - 64 + (size_t)node->self] = (char)(1 + r->rank);
    if (barrier(boot, r->plan->nranks, r->rank))
        return fail(r, "barrier");
    for (int m = 0; m < node->nlocal; m++)
        if (own[SEGMENT - 64 + m] != (char)(1 + node->local[m]))
            return fail(r, "what another rank wrote is not here");
    return 0;
}

/* Segments of 32 GB that are long only in name: what ranks touch of them must be there, and is. */
static int long_segments(const rank_t *r, rd_boot_t *boot, const rd_env_t *env, rd_log_ctx_t *ctx, rd_stop_t *stop)
{
    const size_t segment = (size_t)1 << 35, used[] = {0, 4096, 5000};
    rd_node_t node;

    if (rd_node_find(&node, boot, r->rank, r->plan->nranks, env, -1, ctx, stop) != RONDO_SUCCESS)
        return fail(r, "find again");
    if (rd_node_map_used(&node, boot, segment, used, NULL, env, ctx, stop) != RONDO_SUCCESS)
        return fail(r, rd_log_ctx_error(ctx));
    memset(node.base + (size_t)node.self * segment, 1, used[r->rank]);
    rd_node_free(&node);
    return 0;
}

static int with_node(rank_t *r, rd_boot_t *boot, const rd_env_t *env, rd_log_ctx_t *ctx, rd_stop_t *stop)
{
    rd_node_t node;
    const plan_t *p = r->plan;
    if (rd_node_find(&node, boot, r->rank, p->nranks, env, -1, ctx, stop) != RONDO_SUCCESS)
        return fail(r, "find");
    int bad = check_node(r, &node);
    rondo_result_t code = bad ? RONDO_SUCCESS : rd_node_map(&node, boot, SEGMENT, p->less, env, ctx, stop);
    if (!bad && p->limit < 0 && code != RONDO_SUCCESS)
        bad = fail(r, "map");
    if (!bad && p->limit >= 0 && code != RONDO_ERR_NO_MEMORY)
        bad = fail(r, "a limit that is too small was not an error");
    if (!bad && p->limit >= 0 &&
        !strstr(rd_log_ctx_error(ctx),
                p->less ? "; a shorter window needs less" : "; a smaller RONDO_SLOT_BYTES or RONDO_SLOTS needs less"))
        bad = fail(r, "the error does not say what helps");
    if (!bad && code == RONDO_SUCCESS)
        bad = check_memory(r, &node, boot);
    if (!bad && barrier(boot, p->nranks, r->rank))
        bad = fail(r, "barrier");
    rd_node_free(&node);
    if (!bad && p->nranks == 3 && p->nodes == 1 && p->threads == 1 && p->limit < 0)
        bad = long_segments(r, boot, env, ctx, stop);
    return bad;
}

static void *run_rank(void *arg)
{
    rank_t *r = arg;
    rd_env_t env;
    rd_log_ctx_t ctx = {.rank = r->rank, .nranks = r->plan->nranks, .name = "test"};
    rd_stop_t stop = {0};
    rd_boot_t *boot;
    r->bad = 1;
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return NULL;
    snprintf(env.hostid, sizeof(env.hostid), "node%d", r->rank % r->plan->nodes);
    if (rd_boot_create(&boot, &r->id, r->rank, r->plan->nranks, &env, &ctx, &stop) != RONDO_SUCCESS)
        return NULL;
    r->bad = with_node(r, boot, &env, &ctx, &stop);
    rd_boot_farewell(boot, RONDO_SUCCESS, -1);
    rd_boot_destroy(boot);
    return NULL;
}

static int run_process(const plan_t *p, const rondo_unique_id_t *id, int first)
{
    rank_t r[16];
    pthread_t t[16];
    int bad = 0;
    if (p->limit >= 0 && first == 0) {
        struct rlimit limit = {p->most, p->most};
        setrlimit((__rlimit_resource_t)p->limit, &limit);
    }
    for (int i = 0; i < p->threads; i++) {
        r[i] = (rank_t){.plan = p, .id = *id, .rank = first + i};
        pthread_create(&t[i], NULL, run_rank, &r[i]);
    }
    for (int i = 0; i < p->threads; i++) {
        pthread_join(t[i], NULL);
        bad |= r[i].bad;
    }
    return bad;
}

static int run(plan_t p)
{
    rondo_unique_id_t id;
    rd_env_t env;
    int status, bad = 0;
    if (rd_env_read(&env) != RONDO_SUCCESS)
        return 1;
    gate_t gate = gate_make();
    fflush(stdout);
    for (int first = 0; first < p.nranks; first += p.threads) {
        if (fork() != 0)
            continue;
        alarm(30);
        id = gate_wait(&gate);
        exit(run_process(&p, &id, first));
    }
    if (rd_boot_id_create(&id, &env) != RONDO_SUCCESS)
        return 1;
    gate_open(&gate, &id, p.nranks / p.threads);
    while (wait(&status) > 0)
        bad |= status != 0;
    if (bad)
        printf("FAILED: %d ranks, %d a process, %d nodes, limit %d\n", p.nranks, p.threads, p.nodes, p.limit);
    return bad;
}

int main(void)
{
    int bad = 0;
    alarm(100);
    for (int n = 1; n <= 6; n++)
        for (int nodes = 1; nodes <= n && nodes <= 3; nodes++)
            bad |= run((plan_t){n, 1, nodes, -1, 0, NULL});
    bad |= run((plan_t){4, 4, 1, -1, 0, NULL}) || run((plan_t){4, 4, 2, -1, 0, NULL}) ||
           run((plan_t){3, 3, 3, -1, 0, NULL});
    bad |= run((plan_t){4, 2, 1, -1, 0, NULL}) || run((plan_t){8, 2, 2, -1, 0, NULL}) ||
           run((plan_t){6, 3, 1, -1, 0, NULL});
    bad |= run((plan_t){3, 1, 1, RLIMIT_FSIZE, SEGMENT, NULL}) || run((plan_t){3, 1, 1, RLIMIT_FSIZE, 4096, NULL});
    bad |= run((plan_t){4, 2, 2, RLIMIT_FSIZE, SEGMENT, NULL});
    bad |= run((plan_t){3, 1, 1, RLIMIT_FSIZE, SEGMENT, "a shorter window"});
    return bad;
}
