/* rondo-info doctor, the network: can ranks listen where they would, can they reach themselves by the address that they
 * would tell others, does the network library start, and is there a faster way than the one that would be taken. */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/sock.h"
#include "core/transports.h"
#include "info.h"
#include "interfaces.h"
#include "topo/topo.h"

#define MOST_PORTS 512
#define REACH_MS 2000

/* Zero: there is nothing to go on with. */
static int interface(const rd_env_t *env, const info_interface_t *all, int n, char address[64], int *meet)
{
    if (info_meeting(env, all, n, address, meet) != RONDO_SUCCESS) {
        info_found(INFO_WRONG, "interface", "`rondo-info net` lists what is here", "%s", rd_thread_error());
        return 0;
    }
    const char *name = *meet >= 0 ? all[*meet].name : "?";
    if (*meet >= 0 && all[*meet].loopback)
        info_found(INFO_NOTE, "interface",
                   *env->iface ? "unset RONDO_IFACE for a job on several hosts"
                               : "`ip -br addr`: an interface needs an address, and its cable",
                   "ranks meet on %s, %s: jobs stay on this host", name, address);
    else
        info_found(INFO_WELL, "interface", NULL, "ranks meet on %s, %s", name, address);
    return 1;
}

/* A job takes a port for the id and, when it has several nodes, one for each rank. */
static void ports(const rd_env_t *env, const rd_addr_t *at, int ranks)
{
    int fds[MOST_PORTS], have = 0, need = ranks + 1 < MOST_PORTS ? ranks + 1 : MOST_PORTS;

    for (rd_addr_t one = *at; have < need && rd_sock_listen(&fds[have], &one, env, NULL) == RONDO_SUCCESS; one = *at)
        have++;
    if (have < need)
        info_found(INFO_WRONG, "ports",
                   env->port_first ? "a wider RONDO_PORTS; `ss -ltn` says who has them" : "look at `ulimit -n`",
                   "%d of %d that a job of %d ranks here needs could be had: %s", have, need, ranks, rd_thread_error());
    else if (env->port_first)
        info_found(INFO_WELL, "ports", NULL, "enough of %d to %d are free", env->port_first, env->port_last);
    else
        info_found(INFO_WELL, "ports", NULL, "any, as the system gives them (behind a firewall: RONDO_PORTS)");
    while (have > 0)
        rd_fd_close(fds[--have]);
}

/* A byte from this process to itself by the address that others would be told. */
static int reach(const rd_addr_t *at, int listener)
{
    char byte = 1;
    int out = rd_sock_connect(at), in = -1;
    struct pollfd asked = {.fd = listener, .events = POLLIN}, sent = {.events = POLLIN};

    if (out >= 0 && poll(&asked, 1, REACH_MS) == 1)
        in = sent.fd = rd_sock_accept(listener);
    int reached = in >= 0 && write(out, &byte, 1) == 1 && poll(&sent, 1, REACH_MS) == 1 && read(in, &byte, 1) == 1;
    rd_fd_close(in);
    rd_fd_close(out);
    return reached;
}

static void connection(const rd_env_t *env, const char *address, rd_addr_t at)
{
    int listener;

    if (rd_sock_listen(&listener, &at, env, NULL) != RONDO_SUCCESS)
        return; /* said already */
    if (reach(&at, listener))
        info_found(INFO_WELL, "connection", NULL,
                   "this host reaches itself by %s (others: see \"Is it the network?\" in doc/cluster.md)", address);
    else
        info_found(INFO_WRONG, "connection", "let the firewall (`nft list ruleset`) pass TCP between the job's hosts",
                   "this host does not reach itself by %s, port %d", address, at.port[0] << 8 | at.port[1]);
    rd_fd_close(listener);
}

/* Appends the devices that the ranks of this host would use. */
static void library(const rd_env_t *env, const char *address, char *devices, size_t size)
{
    char why[RD_TRANSPORT_WHY];
    const rd_transport_ops_t *ops = rd_transport_between(env, why);
    rd_transport_report_t report;

    if (!ops) {
        info_found(INFO_NOTE, "network library", "this matters to jobs on several nodes alone", "none: %s", why);
        return;
    }
    for (int rail = 0; ops->probe && rail < info_rails(env); rail++) {
        rondo_result_t result = ops->probe(env, address, rail, &report);
        if (result != RONDO_SUCCESS)
            info_found(INFO_WRONG, "network library", report.advice, "%s", rd_thread_error());
        else if (!*report.devices)
            info_found(INFO_WRONG, "network library", report.advice, "%s has no network device for %s",
                       rd_transport_version(ops), report.settings);
        if (result != RONDO_SUCCESS || !*report.devices)
            continue;
        snprintf(devices + strlen(devices), size - strlen(devices), "%s ", report.devices);
        info_found(INFO_WELL, "network library", NULL, "%s: %s (%s)", rd_transport_version(ops), report.devices,
                   report.reason);
    }
}

static void faster(const rd_env_t *env, const info_interface_t *all, int n, int meet)
{
    char names[256] = "";
    size_t used = 0;

    for (int i = 0; i < n; i++) {
        if (i == meet || all[i].loopback || !all[i].running || !all[i].device || !*all[i].address)
            continue;
        if (meet >= 0 && all[i].mbit > all[meet].mbit)
            info_found(INFO_NOTE, "speed", "if it reaches the job's other hosts: RONDO_IFACE with its name",
                       "%s has %d Mbit/s, %s has %d", all[i].name, all[i].mbit, all[meet].name, all[meet].mbit);
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? "," : "", all[i].name);
    }
    if (*names && meet >= 0 && !*env->net)
        info_found(INFO_NOTE, "rails", "if each reaches the other hosts: RONDO_NET with their names",
                   "data goes by %s alone, and %s could carry some, too", all[meet].name, names);
}

static void fabric(const char *devices)
{
    DIR *dir = opendir("/sys/class/infiniband");
    char name[64] = "";

    for (struct dirent *e; dir && !*name && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            snprintf(name, sizeof name, "%.63s", e->d_name);
    if (dir)
        closedir(dir);
    if (*name && !strstr(devices, name))
        info_found(
            INFO_NOTE, "fabric",
            "a UCX with InfiniBand, a port that is active (ibstat), and neither RONDO_UCX_TLS nor RONDO_IFACE=lo",
            "%s is here, but data would not use it", name);
}

void info_doctor_net(const rd_env_t *env)
{
    static info_interface_t all[INFO_MOST_INTERFACES];
    int n = info_interfaces(all), meet;
    char address[64], devices[2048] = "";
    rd_topo_t topo;
    rd_addr_t at;

    if (!interface(env, all, n, address, &meet) || rd_addr_choose(&at, env) != RONDO_SUCCESS)
        return;
    rd_topo_basic(&topo);
    ports(env, &at, topo.usable > 1 ? topo.usable : 2);
    connection(env, address, at);
    library(env, address, devices, sizeof devices);
    faster(env, all, n, meet);
    fabric(devices);
}
