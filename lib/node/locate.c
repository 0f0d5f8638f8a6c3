/* The order of the ranks by the machines that they run on: node by node, on a node package by package, and there NUMA
 * node by NUMA node; among ranks of one NUMA node by number. It is computed from what all ranks have told each other at
 * creation and nothing else, so it is the same on every rank. */
#include <stdlib.h>

#include "node/node.h"

typedef struct seat {
    int node, package, numa, rank;
} seat_t;

static int by_seat(const void *a, const void *b)
{
    const seat_t *x = a, *y = b;

    return x->node != y->node         ? x->node - y->node
           : x->package != y->package ? x->package - y->package
           : x->numa != y->numa       ? x->numa - y->numa
                                      : x->rank - y->rank;
}

/* On a node with a rank that may run anywhere, or on several NUMA nodes of a package, nothing is gained by the places
 * of the others. */
static void unplaced_find(const seat_t *seat, int nranks, bool *no_package, bool *no_numa)
{
    for (int r = 0; r < nranks; r++) {
        no_package[seat[r].node] = no_package[seat[r].node] || seat[r].package < 0;
        no_numa[seat[r].node] = no_numa[seat[r].node] || seat[r].numa < 0;
    }
}

/* Orders the ranks into order[nranks], and writes their places behind it. Returns true if one is not at the place of
 * its number. */
static bool order_fill(seat_t *seat, int nranks, int *order)
{
    bool moved = false;

    qsort(seat, (size_t)nranks, sizeof *seat, by_seat);
    for (int at = 0; at < nranks; at++) {
        order[at] = seat[at].rank;
        order[nranks + seat[at].rank] = at;
        moved = moved || seat[at].rank != at;
    }
    return moved;
}

static void seats_fill(seat_t *seat, const rd_node_t *node, const rd_locality_t *localities, int nranks,
                       bool *no_package, bool *no_numa)
{
    for (int r = 0; r < nranks; r++)
        seat[r] = (seat_t){node->node_of[r], localities[r].package, localities[r].numa, r};
    unplaced_find(seat, nranks, no_package, no_numa);
    for (int r = 0; r < nranks; r++) {
        seat[r].package = no_package[seat[r].node] ? 0 : seat[r].package;
        seat[r].numa = no_numa[seat[r].node] || no_package[seat[r].node] ? 0 : seat[r].numa;
    }
}

rondo_result_t rd_node_locate(rd_node_t *node, const rd_locality_t *localities, int nranks, bool by_number,
                              rd_log_ctx_t *ctx)
{
    seat_t *seat = malloc((size_t)nranks * sizeof *seat);
    bool *no_package = calloc((size_t)node->nnodes, sizeof *no_package);
    bool *no_numa = calloc((size_t)node->nnodes, sizeof *no_numa);
    int *order = malloc(2 * (size_t)nranks * sizeof *order);
    rondo_result_t result = RONDO_SUCCESS;

    node->at = malloc((size_t)node->nlocal * sizeof *node->at);
    if (!seat || !no_package || !no_numa || !order || !node->at) {
        result = rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory for the order of %d ranks", nranks);
        goto free_all;
    }
    for (int i = 0; i < node->nlocal; i++)
        node->at[i] = localities[node->local[i]];
    seats_fill(seat, node, localities, nranks, no_package, no_numa);
    if (!by_number && order_fill(seat, nranks, order)) {
        node->order = order;
        order = NULL;
    }
free_all:
    free(order);
    free(no_numa);
    free(no_package);
    free(seat);
    return result;
}
