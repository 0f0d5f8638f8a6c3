/* rondo-info doctor --network: pairs of nodes that cannot be connected, or through which nothing comes. A node that
 * none of the others reaches is said once, in place of each of its pairs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor_nodes.h"

#define MOST_SAID 8 /* pairs of one kind; of the others their number is said */

static const char firewall[] =
    "a firewall drops it, or there is no route between the two interfaces: let TCP pass between the job's hosts "
    "(`nft list ruleset`; RONDO_PORTS keeps to a range), or name another interface by RONDO_IFACE";
static const char refused[] =
    "a firewall rejects it, or the address belongs to another host, too: `nft list ruleset`, `ip route get` with that "
    "address, RONDO_IFACE";
static const char elsewhere[] =
    "several hosts have that address, as those of bridges for containers and machines: RONDO_IFACE with the interface "
    "that is cabled to the others";

static const char *remedy(int error)
{
    return error == ECONNREFUSED ? refused : error == EBADMSG ? elsewhere : firewall;
}

static void describe(int error, int reach_ms, char text[96])
{
    if (error == ETIMEDOUT)
        snprintf(text, 96, "nothing answers within %d s", reach_ms / 1000);
    else if (error == EBADMSG)
        snprintf(text, 96, "something else answers there");
    else
        snprintf(text, 96, "%s", strerror(error));
}

/* The errno that all other nodes have in common, towards `to` or, back, from it; 0: one is connected, or they differ.
 */
static int common(const nodes_view_t *view, int node, bool back)
{
    int error = -1;

    for (int i = 0; i < view->n; i++) {
        const nodes_way_t *way = back ? nodes_way(view, node, i) : nodes_way(view, i, node);
        if (i == node)
            continue;
        if (way->stage != WAY_BLOCKED || (error >= 0 && way->error != error))
            return 0;
        error = way->error;
    }
    return error > 0 ? error : 0;
}

static void connections(const nodes_view_t *view)
{
    char where[RD_ADDR_TEXT], text[96];
    int blocked = 0, deaf = 0;

    for (int to = 0; to < view->n; to++) {
        const nodes_node_t *node = &view->node[to];
        deaf += !node->at.family;
        int error = view->n > 2 && node->at.family ? common(view, to, false) : 0;
        if (error) {
            describe(error, view->reach_ms, text);
            info_found(INFO_WRONG, "firewall", remedy(error), "no node can connect to %s at %s (%s): %s", node->name,
                       rd_addr_print(&node->at, where), node->meet.name, text);
        }
        for (int from = 0; from < view->n; from++) {
            const nodes_way_t *way = nodes_way(view, from, to);
            if (from == to || way->stage != WAY_BLOCKED || !node->at.family || ++blocked > MOST_SAID || error)
                continue;
            describe(way->error, view->reach_ms, text);
            info_found(INFO_WRONG, "firewall", remedy(way->error), "%s cannot connect to %s at %s (%s): %s",
                       view->node[from].name, node->name, rd_addr_print(&node->at, where), node->meet.name, text);
        }
    }
    if (blocked > MOST_SAID)
        info_found(INFO_WRONG, "firewall", NULL, "%d connections in all cannot be made", blocked);
    if (blocked == 0 && deaf == 0 && view->n > 1)
        info_found(INFO_WELL, "connections", NULL, "every node can connect to every other one");
}

static const char *advice(way_stage_t stage, const char *text, bool mtus_differ)
{
    if (stage == WAY_NO_START && text && strncmp(text, "ranks differ in ", 16) == 0)
        return "the same on all nodes: `mpirun -x NAME` hands a variable on (srun does it by itself), and a shell's "
               "start "
               "files or a module may set it on one node alone";
    if (stage == WAY_NO_START)
        return "where it is a connection that fails: the ports of the network library may be closed while those of the "
               "bootstrap are open (UCX_TCP_PORT_RANGE, net.ipv4.ip_local_port_range; doc/cluster.md)";
    if (stage == WAY_NO_LARGE && mtus_differ)
        return "one MTU on all interfaces of the job: `ip link set dev NAME mtu N`, and not more than its switches "
               "pass";
    if (stage == WAY_NO_LARGE)
        return "a switch or tunnel between them may pass shorter packets than the interfaces send: `ping -M do -s` "
               "with "
               "the MTU less 28 shows it; set that MTU on all";
    return "lost packets (`nstat -az TcpRetransSegs`, `ip -s link`), or a firewall that closes a connection in use";
}

/* The pairs whose addresses could be connected to, and that have failed later. */
static void transport(const nodes_view_t *view)
{
    static const char *const what[] = {
        [WAY_NO_START] = "transport", [WAY_NO_SMALL] = "messages", [WAY_NO_LARGE] = "MTU"};
    static const char *const words[] = {[WAY_NO_START] = "cannot make a communicator",
                                        [WAY_NO_SMALL] = "meet, but short messages do not come through",
                                        [WAY_NO_LARGE] = "pass short messages, but long ones stall"};
    int failed = 0;

    for (int a = 0; a < view->n; a++)
        for (int b = a + 1; b < view->n; b++) {
            const nodes_way_t *way = nodes_way(view, a, b);
            const nodes_node_t *x = &view->node[a], *y = &view->node[b];
            bool known = !x->at.family || !y->at.family || !*x->version || !*y->version; /* why: of the node itself */
            if (known || way->stage < WAY_NO_START || way->stage == WAY_DONE || ++failed > MOST_SAID)
                continue;
            bool differ = x->meet.mtu != y->meet.mtu;
            info_found(INFO_WRONG, what[way->stage], advice(way->stage, way->text, differ),
                       "%s (%s, MTU %d) and %s (%s, MTU %d) %s%s%s", x->name, x->meet.name, x->meet.mtu, y->name,
                       y->meet.name, y->meet.mtu, words[way->stage], way->text ? ": " : "", way->text ? way->text : "");
        }
    if (failed > MOST_SAID)
        info_found(INFO_WRONG, "transport", NULL, "%d pairs in all have failed like this", failed);
}

void doctor_find_blocked(const nodes_view_t *view)
{
    for (int i = 0; i < view->n; i++)
        if (!view->node[i].at.family)
            info_found(INFO_WRONG, "interface", "`rondo-info net` on that node lists what is there",
                       "%s cannot listen for the others: %s", view->node[i].name, view->node[i].why);
    connections(view);
    transport(view);
}
