/* rondo-info doctor --network: nodes, links and directions that are slow, judged by the others of the same job.
 *
 * A node is slow one way if even the best of its links that way is far from what the other nodes reach among
 * themselves. Links of nodes that are slow are not looked at again. Of the rest a link is slow if it is far below the
 * median, and if its other direction is not, it is the direction that is slow. "Far" is a factor that
 * noise does not reach: a rate below half, a delay above three times and by some microseconds. Where pairs of other
 * racks have less than half of what most have, each of them is named: that is what a job will see, too. */
#include <stdio.h>
#include <stdlib.h>

#include "doctor_nodes.h"

#define RATE_FACTOR 0.5
#define DELAY_FACTOR 3.0
#define DELAY_US 20.0 /* what a scheduler may add by chance */
#define LINE_FACTOR 0.2
#define SHARED_FACTOR 0.1 /* for rates, where nodes share a machine and wait for each other's cores */
#define MOST_SAID 8

/* Both measures as one, of which more is better. */
typedef enum { RATE, DELAY } measure_t;

static double goodness(const nodes_way_t *way, measure_t measure)
{
    return measure == RATE ? way->gbps : 1 / (way->us > 0 ? way->us : 1e-3);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* What judges: values of ways, and which ways count. */
typedef struct judge {
    const nodes_view_t *view;
    measure_t measure;
    double rate_factor;
    double *values; /* room for all ways */
    bool *slow[2];  /* of each node: what it sends, what it gets */
} judge_t;

static bool far_below(double value, double reference, const judge_t *j)
{
    if (j->measure == RATE)
        return value < j->rate_factor * reference;
    return value * DELAY_FACTOR < reference && 1 / value - 1 / reference > DELAY_US;
}

/* The value at a fraction of the sorted ways without those of node `but`, and without those of slow nodes. 0: none. */
static double level(const judge_t *j, int but, double fraction)
{
    int n = 0;

    for (int a = 0; a < j->view->n; a++)
        for (int b = 0; b < j->view->n; b++)
            if (a != b && a != but && b != but && !j->slow[0][a] && !j->slow[1][b] &&
                nodes_way(j->view, a, b)->stage == WAY_DONE)
                j->values[n++] = goodness(nodes_way(j->view, a, b), j->measure);
    if (n == 0)
        return 0;
    qsort(j->values, (size_t)n, sizeof *j->values, ascending);
    return j->values[(int)(fraction * (n - 1) + 0.5)];
}

/* The best of what a node sends, or gets; 0: nothing was measured. */
static double best(const judge_t *j, int node, bool gets)
{
    double most = 0;

    for (int i = 0; i < j->view->n; i++) {
        const nodes_way_t *way = gets ? nodes_way(j->view, i, node) : nodes_way(j->view, node, i);
        double value = i != node && way->stage == WAY_DONE ? goodness(way, j->measure) : 0;
        most = value > most ? value : most;
    }
    return most;
}

static const char *word(double value, measure_t measure, char text[32])
{
    if (measure == RATE)
        snprintf(text, 32, "%.3g GB/s", value);
    else
        snprintf(text, 32, "%.3g us", 1 / value);
    return text;
}

/* Two nodes that stand alone have nothing to be compared with, so there are three at least. */
static void nodes(judge_t *j)
{
    int n = j->view->n;
    char is[32], others[32];
    double most[2], reference;

    for (int i = 0; i < n && n > 2; i++) {
        const char *name = j->view->node[i].name;
        bool below[2];
        reference = level(j, i, 0.75);
        for (int gets = 0; gets < 2; gets++) {
            most[gets] = best(j, i, gets);
            below[gets] = most[gets] > 0 && reference > 0 && far_below(most[gets], reference, j);
        }
        if (!below[0] && !below[1])
            continue;
        bool both = below[0] && below[1];
        j->slow[0][i] = below[0];
        j->slow[1][i] = below[1];
        info_found(INFO_WRONG, "slow node",
                   "compare `ethtool` (speed, duplex), `ip -s link` (errors) and the load of that node with another's; "
                   "its cable, its port of the switch, and what else runs there",
                   "%s %s at %s %s %s every other node, the others have %s among themselves", name,
                   both       ? "has"
                   : below[0] ? "sends"
                              : "receives",
                   j->measure == RATE ? "most" : "least", word(below[0] ? most[0] : most[1], j->measure, is),
                   both       ? "with"
                   : below[0] ? "to"
                              : "from",
                   word(reference, j->measure, others));
    }
}

/* What a direction that is slow loses, where the sender's kernel knows it. */
static const char *resent(const nodes_way_t *way, char text[48])
{
    text[0] = 0;
    if (way->resent > 0)
        snprintf(text, 48, "; %.1f %% of it is sent again", 100 * way->resent);
    return text;
}

static bool is_slow(const judge_t *j, int a, int b, double median)
{
    const nodes_way_t *way = nodes_way(j->view, a, b);

    return way->stage == WAY_DONE && !j->slow[0][a] && !j->slow[1][b] &&
           far_below(goodness(way, j->measure), median, j);
}

/* Of two nodes alone each direction is what the other one is judged by. */
static double usual(const judge_t *j)
{
    return level(j, -1, j->view->n > 2 ? 0.5 : 1);
}

static int links(judge_t *j)
{
    int n = j->view->n, said = 0;
    double median = usual(j);
    char is[32], others[32], lost[48];

    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++) {
            bool there = is_slow(j, a, b, median), back = is_slow(j, b, a, median);
            int from = there ? a : b, to = there ? b : a;
            if ((!there && !back) || ++said > MOST_SAID)
                continue;
            double value = goodness(nodes_way(j->view, from, to), j->measure);
            if (there && back)
                info_found(
                    INFO_WRONG, "slow link",
                    "what lies between these two alone: a cable or port between their switches with errors, another "
                    "route (`traceroute`), a link that others fill",
                    "%s and %s have %s, %s is usual here", j->view->node[a].name, j->view->node[b].name,
                    word(value, j->measure, is), word(median, j->measure, others));
            else
                info_found(INFO_WRONG, "slow direction",
                           "one direction of a cable loses packets (`nstat -az TcpRetransSegs` on the sender, `ethtool "
                           "-S`), the duplex differs (`ethtool`), or the two ways have different routes",
                           "from %s to %s there are %s, back %s%s", j->view->node[from].name, j->view->node[to].name,
                           word(value, j->measure, is),
                           word(goodness(nodes_way(j->view, to, from), j->measure), j->measure, others),
                           resent(nodes_way(j->view, from, to), lost));
        }
    if (said > MOST_SAID)
        info_found(INFO_WRONG, "slow links", NULL, "%d pairs in all are far from the usual %s", said,
                   word(median, j->measure, is));
    return said;
}

/* The kernel says what the interface could carry: a network that is slow everywhere stands out by that alone. */
static void lines(const nodes_view_t *view, double median)
{
    int least = 0;
    char is[32];

    for (int i = 0; i < view->n; i++)
        if (view->node[i].meet.mbit > 0 && (least == 0 || view->node[i].meet.mbit < least))
            least = view->node[i].meet.mbit;
    if (least && median > 0 && median < LINE_FACTOR * least / 8e3)
        info_found(INFO_NOTE, "rate",
                   "one stream of tcp may not fill a fast line: more ranks a node do; `nstat -az TcpRetransSegs` shows "
                   "lost packets",
                   "%s is usual, but the interfaces have %d Mbit/s", word(median, RATE, is), least);
}

static void judge(judge_t *j)
{
    char least[32], middle[32];
    double median;
    int slow = 0;

    nodes(j);
    for (int i = 0; i < j->view->n; i++)
        slow += j->slow[0][i] || j->slow[1][i];
    slow += links(j);
    median = level(j, -1, 0.5);
    if (j->measure == RATE)
        lines(j->view, median);
    if (!slow && median > 0)
        info_found(INFO_WELL, j->measure == RATE ? "rates" : "delays", NULL, "none stands out: %s is usual, %s the %s",
                   word(median, j->measure, middle), word(level(j, -1, 0), j->measure, least),
                   j->measure == RATE ? "least" : "longest");
}

void doctor_find_slow(const nodes_view_t *view)
{
    size_t n = (size_t)view->n;
    double *values = calloc(n * n, sizeof *values);
    bool *slow = calloc(2 * n, sizeof *slow);
    int played = 0, shared = 0;

    for (int i = 0; i < view->n; i++) {
        played += view->node[i].played;
        shared += view->node[i].shared;
    }
    if (played)
        info_found(INFO_NOTE, "rates", "start it on nodes of their own",
                   "%d nodes are played on one machine (RONDO_HOSTID) and share its cores: times are not judged",
                   played);
    else if (shared)
        info_found(INFO_NOTE, "delays", "start it on machines of their own",
                   "%d nodes share a machine (containers, namespaces) and its cores: delays are not judged, and rates "
                   "only where they are a tenth of the others",
                   shared);
    for (measure_t m = RATE; m <= (shared ? RATE : DELAY) && values && slow && !played; m++) {
        for (size_t i = 0; i < 2 * n; i++)
            slow[i] = false;
        judge_t j = {view, m, shared ? SHARED_FACTOR : RATE_FACTOR, values, {slow, slow + n}};
        judge(&j);
    }
    free(values);
    free(slow);
}
