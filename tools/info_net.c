/* rondo-info net: on which interface ranks would meet, by which devices data would go between nodes, and why. It asks
 * the code that a communicator runs. doc/cluster.md explains each line. */
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "interfaces.h"
#include "core/transports.h"
#include "netplugin/coll_switch.h"
#include "node/rails.h"

static void meeting(const rd_env_t *env, const char *address, const info_interface_t *one)
{
    const char *why = *env->iface            ? "RONDO_IFACE names it"
                      : one && one->loopback ? "no other interface is up: jobs on this host alone"
                                             : "the first that is up and neither loopback nor link-local";

    printf("ranks meet on  %s%s%s: %s\n", one ? one->name : "", one ? ", " : "", address, why);
    if (env->port_first)
        printf("ports          %d to %d (RONDO_PORTS); those of the network library are of the system's choice\n",
               env->port_first, env->port_last);
    else
        printf("ports          any (RONDO_PORTS keeps the bootstrap's in a range)\n");
}

/* A plugin may take devices for itself as it is loaded, so none is loaded that nobody has asked for. */
static void collective(const rd_env_t *env)
{
    char text[1000];

    rd_collnet_report(env, text, sizeof text);
    printf("switches       %s\n", text);
}

/* Each rank of a node takes the next rail. */
static int rails(const rd_transport_ops_t *ops, const rd_env_t *env, const char *address, rd_transport_report_t *report)
{
    int failed = 0, shown = 0;

    for (int rail = 0; ops->probe && rail < info_rails(env); rail++) {
        const bool opened = ops->probe(env, address, rail, report) == RONDO_SUCCESS;
        char name[128];

        failed |= !opened;
        if (!shown++)
            printf("data           %s, %s\n", rd_transport_version(ops), report->settings);
        rd_node_rail_name(env->net, rail, name, sizeof name);
        if (opened)
            printf("rail %-9d %s: %s\n", rail, report->devices, report->reason);
        else
            printf("rail %-9d %s%s%s\n", rail, name, *name ? ": " : "", rd_thread_error());
    }
    return failed;
}

static int data(const rd_env_t *env, const char *address)
{
    char why[RD_TRANSPORT_WHY];
    const rd_transport_ops_t *ops = rd_transport_between(env, why);
    rd_transport_report_t report = {.settings = ""};

    if (!ops) {
        printf("data           none between nodes: %s\n", why);
        return 0;
    }
    const int failed = rails(ops, env, address, &report);
    if (!ops->probe)
        printf("data           %s\n", rd_transport_version(ops));
    if (failed)
        printf("GPUs           not known\n");
    else if (env->gdr && report.cuda)
        printf("GPUs           messages go straight if device memory proves quick, else through the host's\n");
    else
        printf("GPUs           through the host's memory: %s\n",
               report.cuda ? "RONDO_GDR is 0" : "these transports take no device memory");
    if (ops->probe && ops->probe(env, NULL, 0, &report) == RONDO_SUCCESS)
        printf("there are      %s\n", report.devices);
    return failed;
}

static void table(const info_interface_t *all, int n, int meet)
{
    printf("\n%-15s %-5s %-24s %8s %6s %5s\n", "interface", "state", "address", "Mbit/s", "MTU", "NUMA");
    for (int i = 0; i < n; i++) {
        char speed[16] = "-", numa[16] = "-";
        if (all[i].mbit > 0)
            snprintf(speed, sizeof speed, "%d", all[i].mbit);
        if (all[i].numa >= 0)
            snprintf(numa, sizeof numa, "%d", all[i].numa);
        printf("%-15s %-5s %-24s %8s %6d %5s%s\n", all[i].name, all[i].running ? "up" : "down",
               *all[i].address ? all[i].address : "-", speed, all[i].mtu, numa, i == meet ? "  <- ranks meet" : "");
    }
}

int info_net(const rd_env_t *env)
{
    static info_interface_t all[INFO_MOST_INTERFACES];
    char address[64];
    int n = info_interfaces(all), meet, failed;

    if (info_meeting(env, all, n, address, &meet) != RONDO_SUCCESS)
        return 1;
    meeting(env, address, meet >= 0 ? &all[meet] : NULL);
    failed = data(env, address);
    collective(env);
    table(all, n, meet);
    return failed;
}
