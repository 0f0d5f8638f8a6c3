/* rondo-info doctor --network: the order of things. All ranks say who they are; the first of each node goes on. They
 * try to connect to each other, and then each pair of nodes measures its link, in the rounds of a tournament: every
 * node is in one pair at a time, so no two pairs share a node's link. What travels between the ranks besides goes by
 * the launcher (launch.h), because the network is what is on trial. Rank 0 shows what was found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_json.h"
#include "launch.h"
#include "progress.h"

#define REACH_MS 3000
#define ROUND_S 0.7 /* of a pair by tcp over 10 Gbit/s */

/* What goes around before each round: the id of the coming pair, and what this node has seen in the last one. */
typedef struct word {
    rondo_unique_id_t id;
    pair_result_t last;
} word_t;

static bool one_network(const nodes_node_t *a, const nodes_node_t *b)
{
    return strcmp(a->boot, b->boot) == 0 && strcmp(a->space, b->space) == 0;
}

static bool one_node(const nodes_node_t *a, const nodes_node_t *b)
{
    return one_network(a, b) && strcmp(a->hostid, b->hostid) == 0;
}

/* Keeps the first rank of each node, in the order of ranks. Returns how many, and which of them `rank` is (-1: none).
 */
static int keep_first(nodes_node_t *all, int nranks, int rank, int *self)
{
    int n = 0;

    *self = -1;
    for (int r = 0; r < nranks; r++) {
        int known = 0;
        for (; known < n && !one_node(&all[known], &all[r]);)
            known++;
        if (known < n)
            continue;
        if (r == rank)
            *self = n;
        all[n] = all[r];
        all[n++].rank = r;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            all[i].played |= (char)(i != j && one_network(&all[i], &all[j]));
            all[i].shared |= (char)(i != j && strcmp(all[i].boot, all[j].boot) == 0);
        }
    return n;
}

/* What both sides of a pair have seen: the stage that the slower of them has come to, and the words of either. Where it
 * was measured before, the better times count, and the worse end. A side whose
 * limit has passed has no words, and the other one knows but that. */
static void enter(nodes_view_t *view, int a, int b, const pair_result_t *of_a, const pair_result_t *of_b)
{
    way_stage_t stage = of_a->stage < of_b->stage ? of_a->stage : of_b->stage;
    bool said = (of_a->stage == WAY_DONE || *of_a->text) && (of_b->stage == WAY_DONE || *of_b->text);
    const char *text = !said ? "" : *of_a->text ? of_a->text : of_b->text;

    for (int back = 0; back < 2; back++) {
        nodes_way_t *way = back ? nodes_way(view, b, a) : nodes_way(view, a, b);
        double us = of_a->us, gbps = back ? of_b->gbps : of_a->gbps, resent = back ? of_b->resent : of_a->resent;
        if (way->stage == WAY_UNTRIED || stage < way->stage)
            way->stage = stage;
        way->us = way->us > 0 && way->us < us ? way->us : us;
        way->resent = way->gbps > 0 && way->resent < resent ? way->resent : resent;
        way->gbps = way->gbps > gbps ? way->gbps : gbps;
        if (*text && !way->text)
            way->text = strdup(text);
    }
}

static bool connected(const nodes_view_t *view, int a, int b)
{
    return nodes_way(view, a, b)->stage != WAY_BLOCKED && nodes_way(view, b, a)->stage != WAY_BLOCKED;
}

/* What has failed would count as failed whatever came of it the next time. */
static bool worth_trying(const nodes_view_t *view, int a, int b)
{
    way_stage_t stage = nodes_way(view, a, b)->stage;

    return connected(view, a, b) && (stage == WAY_UNTRIED || stage == WAY_DONE);
}

/* -1: the launcher's MPI has failed. */
static int connect_all(nodes_view_t *view, int self)
{
    int n = view->n, *mine = calloc((size_t)n, sizeof *mine), *all = calloc((size_t)n * (size_t)n, sizeof *all);
    int result = -1;

    if (mine && all) {
        doctor_reach(view->node, n, self, REACH_MS, mine);
        result = launch_gather(mine, all, (size_t)n * sizeof *mine, "who reaches whom");
    }
    for (int i = 0; i < n * n && result == 0; i++) {
        view->way[i].error = all[i];
        view->way[i].stage = all[i] ? WAY_BLOCKED : WAY_UNTRIED;
    }
    free(mine);
    free(all);
    return result;
}

/* Of few nodes each pair is measured twice: what disturbs a node for a moment is not taken for a slow link. */
static int all_rounds(int n)
{
    return doctor_rounds(n) * (n <= NODES_LISTED ? 2 : 1);
}

/* One round more than are played: the last word says what the last one has brought. */
static int play(nodes_view_t *view, int self, progress_t *progress)
{
    int n = view->n, rounds = all_rounds(n);
    word_t mine = {.last = {0}}, *all = calloc((size_t)n, sizeof *all);

    for (int round = 0; all && round <= rounds; round++) {
        int other = round < rounds ? doctor_opponent(n, round, self) : -1;
        if (other >= 0 && self < other && worth_trying(view, self, other))
            (void)rondo_unique_id_create(&mine.id); /* on failure it carries the error to both */
        if (launch_gather(&mine, all, sizeof mine, "the ids of a round") != 0)
            break;
        for (int a = 0; a < n && round > 0; a++) {
            int b = doctor_opponent(n, round - 1, a);
            if (a < b && worth_trying(view, a, b))
                enter(view, a, b, &all[a].last, &all[b].last);
        }
        if (round == rounds) {
            free(all);
            return 0;
        }
        if (other >= 0 && worth_trying(view, self, other))
            doctor_pair(&all[self < other ? self : other].id, self > other, &mine.last);
        if (self == 0)
            progress_step(progress);
    }
    free(all);
    return -1;
}

static void say_nodes(const nodes_view_t *view, int nranks)
{
    int n = view->n;

    printf("%d ranks on %d node%s\n", nranks, n, n == 1 ? "" : "s");
    for (int i = 0; i < n && n <= NODES_LISTED; i++) {
        const nodes_node_t *node = &view->node[i];
        char speed[32] = "", mtu[32] = "";
        if (node->meet.mbit > 0)
            snprintf(speed, sizeof speed, ", %d Mbit/s", node->meet.mbit);
        if (node->meet.mtu > 0)
            snprintf(mtu, sizeof mtu, ", MTU %d", node->meet.mtu);
        printf("  %3d  %-20s rank %d, %s %s%s%s; data: %s%s%s\n", i + 1, node->name, node->rank,
               *node->meet.name ? node->meet.name : "no interface", node->meet.address, speed, mtu,
               *node->version ? node->version : "none", *node->devices ? ", " : "", node->devices);
    }
    if (n > 1)
        printf("%d pair%s in %d rounds, about %d s\n", n * (n - 1) / 2, n == 2 ? "" : "s", all_rounds(n),
               (int)(ROUND_S * all_rounds(n)) + 1);
    fflush(stdout);
}

/* The first ranks of the nodes; 0 when all is well, 1 when something is wrong. Only rank 0 has an opinion. The
 * listener's port is free again for the pairs, because RONDO_PORTS may leave few. */
static int examine(nodes_view_t *view, int self, int nranks, nodes_listener_t *listener, bool json)
{
    progress_t progress = {0};
    bool shows = self == 0;
    int code = 0;

    if (shows && !json)
        say_nodes(view, nranks);
    if (shows)
        progress_begin(&progress, "rondo-info doctor", "rounds", all_rounds(view->n));
    int failed = connect_all(view, self);
    doctor_listen_end(listener);
    if (failed || play(view, self, &progress) != 0) {
        fprintf(stderr, "rondo-info doctor: node %s: no memory, or the launcher's MPI has failed\n",
                view->node[self].name);
        return 1;
    }
    if (shows && json) {
        doctor_json_begin(true);
        doctor_json_nodes(view, nranks);
        doctor_json_area("network");
    } else if (shows) {
        doctor_matrix(view);
        printf("\nfindings\n");
        fflush(stdout);
    }
    if (shows) {
        doctor_find(view);
        code = info_found_sum();
    }
    return code;
}

static int with_ranks(const rd_env_t *env, int rank, int nranks, bool json)
{
    nodes_node_t self, *all = calloc((size_t)nranks, sizeof *all);
    nodes_view_t view = {.node = all, .reach_ms = REACH_MS};
    nodes_listener_t *listener = doctor_self(&self, env);
    int me, code = 1;

    if (!all || launch_gather(&self, all, sizeof self, "who is where") != 0)
        goto out;
    view.n = keep_first(all, nranks, rank, &me);
    if (launch_keep(me >= 0) != 0)
        goto out;
    code = 0;
    if (me >= 0 && (view.way = calloc((size_t)view.n * (size_t)view.n, sizeof *view.way))) {
        code = examine(&view, me, nranks, listener, json);
        listener = NULL;
        for (int i = 0; i < view.n * view.n; i++)
            free(view.way[i].text);
        free(view.way);
    } else if (me >= 0) {
        code = 1;
    }
out:
    doctor_listen_end(listener);
    free(all);
    return code;
}

int info_doctor_nodes(const rd_env_t *env, bool json)
{
    char why[LAUNCH_WHY];
    int rank, nranks, code;

    if (!launch_is_rank()) {
        fprintf(stderr, "rondo-info doctor: --network tries the ways between nodes, so it must be started as a job on "
                        "them, one rank each: mpirun -n 2 -H node1,node2 rondo-info doctor --network\n");
        return 2;
    }
    rd_log_set_level(RD_LOG_NONE); /* what fails is said here, once */
    (void)rondo_setting_set("RONDO_DEBUG", "none");
    setenv("RONDO_CREATE_TIMEOUT_MS", DOCTOR_CREATE_MS, 1);
    if (launch_start(&rank, &nranks, why) != 0) {
        fprintf(stderr, "rondo-info doctor: %s\n", why);
        return 1;
    }
    code = with_ranks(env, rank, nranks, json);
    launch_end();
    return code;
}
