/* rondo-info doctor --network: what the nodes have set up differently, or all wrongly, as far as it can be known
 * without a message: interfaces, networks, MTUs, versions of the network library, devices, GPUs. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "doctor_nodes.h"

/* Bridges and tunnels that container engines, virtual machines and orchestrators make on each host for itself. */
static bool is_inner(const char *name)
{
    static const char *const begin[] = {"docker", "virbr", "br-",  "veth", "cni",   "flannel", "podman", "lxc",
                                        "lxd",    "tap",   "cali", "vnet", "kube-", "nerdctl", "cilium"};

    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

static void inner_interfaces(const nodes_view_t *view)
{
    for (int i = 0; i < view->n; i++) {
        const nodes_node_t *node = &view->node[i];
        char instead[128] = "RONDO_IFACE with the interface that is cabled to the others (`rondo-info net`)";
        if (*node->fastest.name)
            snprintf(instead, sizeof instead, "RONDO_IFACE=%s, if %s reaches the other nodes", node->fastest.name,
                     node->fastest.address);
        if (node->meet.loopback && !node->played && view->n > 1)
            info_found(INFO_WRONG, "interface", instead,
                       "%s would meet the others on %s, %s, which no other host reaches", node->name, node->meet.name,
                       node->meet.address);
        else if (!node->meet.loopback && is_inner(node->meet.name))
            info_found(INFO_WRONG, "interface", instead,
                       "%s would meet the others on %s, %s, which is made for what runs inside that host", node->name,
                       node->meet.name, node->meet.address);
        else if (*node->fastest.name && node->meet.mbit > 0 && node->fastest.mbit > node->meet.mbit)
            info_found(INFO_NOTE, "interface", instead, "%s uses %s, %s, of %d Mbit/s, but has %s, %s, of %d Mbit/s",
                       node->name, node->meet.name, node->meet.address, node->meet.mbit, node->fastest.name,
                       node->fastest.address, node->fastest.mbit);
    }
}

static void same_addresses(const nodes_view_t *view)
{
    for (int i = 0; i < view->n; i++)
        for (int j = 0; j < i; j++) {
            const nodes_node_t *a = &view->node[j], *b = &view->node[i];
            if (!*a->meet.address || strcmp(a->meet.address, b->meet.address) != 0 || (a->played && b->played))
                continue;
            info_found(INFO_WRONG, "address", "RONDO_IFACE with an interface whose address is the host's alone",
                       "%s and %s both have %s (%s and %s)", a->name, b->name, a->meet.address, a->meet.name,
                       b->meet.name);
            break; /* one pair says it for each node */
        }
}

static bool same_network(const nodes_interface_t *a, const nodes_interface_t *b)
{
    unsigned char x[16], y[16];
    int family = strchr(a->address, ':') ? AF_INET6 : AF_INET, bits = a->prefix < b->prefix ? a->prefix : b->prefix;

    if (bits < 0 || inet_pton(family, a->address, x) != 1 || inet_pton(family, b->address, y) != 1)
        return family == AF_INET ? !strchr(b->address, ':') : strchr(b->address, ':') != NULL;
    if (memcmp(x, y, (size_t)bits / 8) != 0)
        return false;
    return bits % 8 == 0 || (x[bits / 8] ^ y[bits / 8]) >> (8 - bits % 8) == 0;
}

/* Different networks may well reach each other by a router: that is judged by connections, and is slower. */
static void networks(const nodes_view_t *view)
{
    const nodes_node_t *first = &view->node[0];
    int others = 0, which = 0;

    for (int i = 1; i < view->n; i++)
        if (*view->node[i].meet.address && *first->meet.address && !same_network(&first->meet, &view->node[i].meet)) {
            which = others++ ? which : i;
        }
    if (others)
        info_found(
            INFO_NOTE, "networks",
            "if the nodes have a network in common: RONDO_IFACE with its interface, which may be another name on "
            "each node, or its address there",
            "%s is on %s/%d (%s), but %s on %s/%d (%s)%s", first->name, first->meet.address, first->meet.prefix,
            first->meet.name, view->node[which].name, view->node[which].meet.address, view->node[which].meet.prefix,
            view->node[which].meet.name, others > 1 ? ", and others are, too" : "");
    else if (view->n > 1)
        info_found(INFO_WELL, "networks", NULL, "all nodes meet on one");
}

/* TCP finds the shorter one of two ends, so a difference alone does no harm; what stalls is said elsewhere. */
static void mtus(const nodes_view_t *view)
{
    const nodes_node_t *first = NULL, *other = NULL; /* of those whose MTU is known */
    int known = 0;

    for (int i = 0; i < view->n; i++) {
        const nodes_node_t *node = &view->node[i];
        if (node->meet.mtu <= 0)
            continue;
        known++;
        first = first ? first : node;
        other = !other && node->meet.mtu != first->meet.mtu ? node : other;
    }
    if (other)
        info_found(INFO_NOTE, "MTU", "one MTU on all of them: `ip link set dev NAME mtu N`",
                   "%s of %s has %d, %s of %s has %d", first->meet.name, first->name, first->meet.mtu, other->meet.name,
                   other->name, other->meet.mtu);
    else if (known > 1)
        info_found(INFO_WELL, "MTU", NULL, "%d %s", first->meet.mtu,
                   known == view->n ? "everywhere" : "where it is known");
}

/* "tcp/eth0 tcp/eth1" says by which transports, whatever the names of devices are. "net" is a tcp of libfabric's. */
static bool has_fabric(const nodes_node_t *node)
{
    const char *first = node->devices;

    while (strncmp(first, "tcp/", 4) == 0 || strncmp(first, "net/", 4) == 0) {
        first += strcspn(first, " ");
        first += *first == ' ';
    }
    return *first != '\0';
}

/* "ucx 1.13.1" and "ucx 1.22.0" are, "ucx 1.13.1" and "libfabric 1.17" are not. */
static bool same_library(const char *a, const char *b)
{
    const size_t length = strcspn(a, " ");

    return length == strcspn(b, " ") && strncmp(a, b, length) == 0;
}

static void libraries(const nodes_view_t *view)
{
    int version = 0, without = 0, fast = -1, slow = -1;

    for (int i = 0; i < view->n; i++) {
        const nodes_node_t *node = &view->node[i];
        without += !*node->version;
        if (!*node->version)
            info_found(INFO_WRONG, "network library", "`rondo-info doctor` on that node says more", "%s has none: %s",
                       node->name, node->why);
        version = !version && *node->version && strcmp(node->version, view->node[0].version) != 0 ? i : version;
        fast = has_fabric(node) ? i : fast;
        slow = *node->version && !has_fabric(node) ? i : slow;
        if (*node->fabric && *node->version && !has_fabric(node))
            info_found(INFO_NOTE, "fabric",
                       "a UCX with InfiniBand, a port that is active (ibstat), and no RONDO_UCX_TLS",
                       "%s has %s, but data would go by %s", node->name, node->fabric, node->devices);
    }
    if (version && *view->node[0].version)
        info_found(INFO_NOTE, "versions",
                   same_library(view->node[0].version, view->node[version].version)
                       ? "load the same version on all nodes"
                       : "RONDO_TRANSPORT chooses the library, and must be the same on all nodes",
                   "%s has %s, %s has %s", view->node[0].name, view->node[0].version, view->node[version].name,
                   view->node[version].version);
    if (fast >= 0 && slow >= 0)
        info_found(INFO_WRONG, "devices",
                   "one node without the fast device makes all use tcp: mend it, or leave it out",
                   "%s would use %s, but %s only %s", view->node[fast].name, view->node[fast].devices,
                   view->node[slow].name, view->node[slow].devices);
    if (!version && !without)
        info_found(INFO_WELL, "network library", NULL, "%s everywhere", view->node[0].version);
}

static void gpus(const nodes_view_t *view)
{
    int with = 0, direct = 0;

    for (int i = 0; i < view->n; i++) {
        with += view->node[i].gpus > 0;
        direct += view->node[i].gpus > 0 && view->node[i].cuda && view->node[i].gdr;
    }
    if (with == 0)
        info_found(INFO_WELL, "GPU memory", NULL, "no node has a GPU");
    else if (direct == with)
        info_found(
            INFO_WELL, "GPU memory", NULL,
            "yes, directly: the network takes it on all %d nodes with GPUs; a communicator measures whether it is "
            "quicker so",
            with);
    for (int i = 0; i < view->n && with; i++)
        if (view->node[i].gpus && !(view->node[i].cuda && view->node[i].gdr)) {
            info_found(INFO_NOTE, "GPU memory",
                       view->node[i].gdr ? "a UCX with CUDA and a network with GPUDirect (doc/gpu.md)"
                                         : "unset RONDO_GDR",
                       "not directly, but through the host's memory, on %d of %d nodes with GPUs: on %s %s",
                       with - direct, with, view->node[i].name,
                       view->node[i].gdr ? "the transports take no device memory" : "RONDO_GDR is 0");
            return;
        }
}

void doctor_find_setup(const nodes_view_t *view)
{
    inner_interfaces(view);
    same_addresses(view);
    networks(view);
    mtus(view);
    libraries(view);
    gpus(view);
}

void doctor_find(const nodes_view_t *view)
{
    if (view->n < 2)
        info_found(INFO_WRONG, "nodes", "start a rank on each of several hosts: mpirun -n 2 -H node1,node2",
                   "all ranks are on one node (%s): there is no way to try", view->node[0].name);
    doctor_find_setup(view);
    doctor_find_blocked(view);
    doctor_find_slow(view);
    doctor_find_lost(view);
}
