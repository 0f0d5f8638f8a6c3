/* rondo-info doctor --network: who loses packets, by what the kernels of the senders say they had to send again while a
 * pair was measured. Loss hides in rates that are merely low, and stands out here whatever the others reach; but other
 * connections of the host count, too, so it is for the user to judge.
 *
 * Where all that a node sends, or gets, is lost in part, it is the node that is named, and its links are not. */
#include <stdlib.h>

#include "doctor_nodes.h"

#define LOST 0.01 /* of the segments: switches that are full drop less */
#define MOST_SAID 8

static const char advice[] =
    "`ip -s link` and `ethtool -S` on both ends (errors, drops), the cable, the counters of the port of the switch; a "
    "firewall that limits rates (`nft list ruleset`)";

static bool is_lossy(const nodes_view_t *view, int from, int to)
{
    const nodes_way_t *way = nodes_way(view, from, to);

    return from != to && way->stage == WAY_DONE && way->resent >= LOST;
}

/* Sets *most to the worst of what a node sends, or gets. Returns true if all of it is lost in part. */
static bool is_node(const nodes_view_t *view, int node, bool gets, double *most)
{
    int measured = 0, lossy = 0;

    *most = 0;
    for (int i = 0; i < view->n; i++) {
        int from = gets ? i : node, to = gets ? node : i;
        const nodes_way_t *way = nodes_way(view, from, to);
        measured += from != to && way->stage == WAY_DONE;
        lossy += is_lossy(view, from, to);
        *most = is_lossy(view, from, to) && way->resent > *most ? way->resent : *most;
    }
    return measured > 1 && lossy == measured;
}

void doctor_find_lost(const nodes_view_t *view)
{
    size_t n = (size_t)view->n;
    bool *named = calloc(2 * n, sizeof *named); /* what a node sends, then what it gets */
    double most;
    int said = 0;

    for (int i = 0; i < view->n && named; i++)
        for (int gets = 0; gets < 2; gets++) {
            if (!(named[(size_t)gets * n + (size_t)i] = is_node(view, i, gets, &most)))
                continue;
            info_found(INFO_NOTE, "lost packets", advice, "of what %s %s every other node up to %.1f %% is sent again",
                       view->node[i].name, gets ? "gets from" : "sends to", 100 * most);
        }
    for (int a = 0; a < view->n && named; a++)
        for (int b = 0; b < view->n; b++) {
            if (!is_lossy(view, a, b) || named[a] || named[n + (size_t)b] || said++ >= MOST_SAID)
                continue;
            info_found(INFO_NOTE, "lost packets", advice, "of what %s sends to %s %.1f %% is sent again",
                       view->node[a].name, view->node[b].name, 100 * nodes_way(view, a, b)->resent);
        }
    if (said > MOST_SAID)
        info_found(INFO_NOTE, "lost packets", NULL, "%d ways in all lose packets", said);
    free(named);
}
