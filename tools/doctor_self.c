/* rondo-info doctor --network: what a node says of itself. Where ranks would meet, by what data would go, and what else
 * is there, as the library would choose now and as the kernel tells. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/transports.h"
#include "doctor_nodes.h"
#include "interfaces.h"

static void copy(nodes_interface_t *to, const info_interface_t *from)
{
    snprintf(to->name, sizeof to->name, "%.15s", from->name);
    snprintf(to->address, sizeof to->address, "%s", from->address);
    to->prefix = from->prefix;
    to->mbit = from->mbit;
    to->mtu = from->mtu;
    to->loopback = (char)from->loopback;
    to->device = (char)from->device;
    to->running = (char)from->running;
}

/* Ranks with the same kernel and network namespace can pass each other descriptors. */
static void identify(nodes_node_t *self, const rd_env_t *env)
{
    char host[HOST_NAME_MAX + 1] = "?";
    FILE *f = rd_file_read("/proc/sys/kernel/random/boot_id");

    gethostname(host, sizeof host - 1);
    if (!f || fscanf(f, "%39s", self->boot) != 1)
        snprintf(self->boot, sizeof self->boot, "%.39s", host);
    if (f)
        fclose(f);
    if (readlink("/proc/self/ns/net", self->space, sizeof self->space - 1) < 0)
        self->space[0] = '\0';
    snprintf(self->hostid, sizeof self->hostid, "%s", env->hostid);
    snprintf(self->name, sizeof self->name, "%.31s%s%.60s", host, *env->hostid ? "/" : "", env->hostid);
    if (getentropy(&self->token, sizeof self->token) != 0)
        self->token = (uint64_t)getpid();
}

static void interfaces(nodes_node_t *self, const rd_env_t *env)
{
    static info_interface_t all[INFO_MOST_INTERFACES];
    int n = info_interfaces(all), meet;
    char address[64];

    self->meet.prefix = self->meet.mbit = self->meet.mtu = -1;
    if (info_meeting(env, all, n, address, &meet) != RONDO_SUCCESS) {
        snprintf(self->why, sizeof self->why, "%.*s", (int)sizeof self->why - 1, rd_thread_error());
        return;
    }
    if (meet >= 0)
        copy(&self->meet, &all[meet]);
    for (int i = 0; i < n; i++)
        if (i != meet && all[i].running && all[i].device && !all[i].loopback && *all[i].address &&
            all[i].mbit > self->fastest.mbit)
            copy(&self->fastest, &all[i]);
}

static void library(nodes_node_t *self, const rd_env_t *env)
{
    char why[RD_TRANSPORT_WHY];
    const rd_transport_ops_t *ops = rd_transport_between(env, why);
    rd_transport_report_t report = {.cuda = false};

    if (!ops) {
        snprintf(self->why, sizeof self->why, "%.*s", (int)sizeof self->why - 1, why);
        return;
    }
    if (ops->probe && ops->probe(env, self->meet.address, 0, &report) != RONDO_SUCCESS) {
        snprintf(self->why, sizeof self->why, "%.*s", (int)sizeof self->why - 1, rd_thread_error());
        return;
    }
    snprintf(self->version, sizeof self->version, "%.47s", rd_transport_version(ops));
    snprintf(self->devices, sizeof self->devices, "%.*s", (int)sizeof self->devices - 1, report.devices);
    self->cuda = report.cuda;
}

static void fabric(nodes_node_t *self)
{
    DIR *dir = opendir("/sys/class/infiniband");

    for (struct dirent *e; dir && !*self->fabric && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            snprintf(self->fabric, sizeof self->fabric, "%.31s", e->d_name);
    if (dir)
        closedir(dir);
}

nodes_listener_t *doctor_self(nodes_node_t *self, const rd_env_t *env)
{
    rd_gpu_topo_t gpus;
    int fd;

    memset(self, 0, sizeof *self);
    identify(self, env);
    interfaces(self, env);
    library(self, env);
    fabric(self);
    self->gdr = env->gdr != 0;
    self->gpus = rd_gpu_topo_read(&gpus, env->topo_file) == RONDO_SUCCESS ? gpus.count : 0;
    if (rd_addr_choose(&self->at, env) != RONDO_SUCCESS || rd_sock_listen(&fd, &self->at, env, NULL) != RONDO_SUCCESS) {
        snprintf(self->why, sizeof self->why, "%.*s", (int)sizeof self->why - 1, rd_thread_error());
        self->at.family = 0;
        return NULL;
    }
    nodes_listener_t *listener = doctor_listen(fd, self->token);
    if (!listener) {
        rd_fd_close(fd);
        snprintf(self->why, sizeof self->why, "no thread can be started to answer the other nodes");
        self->at.family = 0;
    }
    return listener;
}
