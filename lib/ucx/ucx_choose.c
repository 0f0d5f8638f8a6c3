/* Which of UCX's transports a communicator uses if RONDO_UCX_TLS does not say: those of the fastest kind of device that
 * every rank has, and tcp where that is all there is.
 *
 * A rank asks UCX only if its host has a device with an active port that is hardware: soft RoCE and the like are slower
 * than tcp. Then all exchange what they have, and each draws the same conclusion. tcp stays beside a faster transport,
 * for a pair of ranks that do not reach each other by it. Where all ports are InfiniBand's and of one subnet, and a
 * node has no fewer ranks than ports, each rank takes one of them (node/rails.h); otherwise a rank may need any of them
 * to reach the others, so UCX gets them all. Different versions of UCX are known to understand each other over tcp only
 * (exchange.c). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "node/rails.h"
#include "ucx/ucx.h"

#define FAST "ib,cxi" /* UCX's "ib" is rc, dc and ud, and srd from the version that has it */
#define RESOURCE 160  /* bytes of "rc_mlx5/mlx5_0:1" */

/* Kinds of devices, as bits. A port over Ethernet does not reach one over InfiniBand. */
enum { TCP = 1, INFINIBAND = 2, ROCE = 4, OTHER = 8, EVERY = 15 };

typedef struct offer {
    uint32_t kinds;
    uint32_t version; /* 100 * major + minor */
    uint64_t subnet;  /* a hash of the one that all InfiniBand ports of this rank are in; 0: there is none */
    uint64_t named;   /* a hash of RONDO_NET if it names InfiniBand devices of this rank's host; else 0 */
} offer_t;

/* Where ranks meet on loopback, nothing is to leave the host. Tests have a folder of their own. */
__attribute__((weak)) const char *rd_ucx_fabric_folder(const char *address)
{
    bool loopback = strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
    return loopback ? NULL : "/sys/class/infiniband";
}

/* Reads the first line of a port's file; "" if there is none. */
static void port_read(const char *folder, const char *device, const char *port, const char *name, char text[32])
{
    char path[RESOURCE * 3];
    snprintf(path, sizeof path, "%s/%s/ports/%s/%s", folder, device, port, name);
    FILE *f = rd_file_read(path);
    if (!f || !fgets(text, 32, f))
        *text = 0;
    if (f)
        fclose(f);
}

/* Only hardware has a device on a bus. */
static bool is_hardware(const char *folder, const char *device)
{
    char path[RESOURCE * 2];
    snprintf(path, sizeof path, "%s/%s/device", folder, device);
    return access(path, F_OK) == 0;
}

/* Returns the kind of UCX's device, as "mlx5_0:1"; 0: it is not to be used. */
static uint32_t kind_of(const char *folder, const char *name)
{
    char device[RESOURCE], layer[32], state[32];
    const char *port = strchr(name, ':');
    if (!port)
        return OTHER;
    snprintf(device, sizeof device, "%.*s", (int)(port - name), name);
    port_read(folder, device, port + 1, "state", state);
    port_read(folder, device, port + 1, "link_layer", layer);
    if (!is_hardware(folder, device) || !strstr(state, "ACTIVE"))
        return 0;
    return strncmp(layer, "InfiniBand", 10) == 0 ? INFINIBAND : strncmp(layer, "Ethernet", 8) == 0 ? ROCE : OTHER;
}

/* Finds a port of this host that is hardware and active, whether UCX has a driver for it or not. */
static bool fabric_find(const char *folder, char name[RESOURCE])
{
    DIR *d = opendir(folder);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        for (int port = 1; e->d_name[0] != '.' && port <= 2 && !found; port++) {
            snprintf(name, RESOURCE, "%.100s:%d", e->d_name, port);
            found = kind_of(folder, name) != 0;
        }
    }
    if (d)
        closedir(d);
    if (!found && access("/sys/class/cxi", F_OK) == 0) {
        snprintf(name, RESOURCE, "cxi");
        found = true;
    }
    return found;
}

/* Returns true if the list has the device. */
static bool is_listed(const char *devices, const char *name)
{
    size_t length = strlen(name);
    for (const char *d = devices; *d != 0; d += strcspn(d, ","), d += *d == ',') {
        if (strcspn(d, ",") == length && strncmp(d, name, length) == 0)
            return true;
    }
    return false;
}

/* Adds those of UCX's resources, as "rc_mlx5/mlx5_0:1 ud_mlx5/mlx5_0:1", that are of the `wanted` kinds to `devices`,
 * as "mlx5_0:1,mlx5_1:1". Returns the kinds that there are. */
static uint32_t devices_of(const char *folder, const char *resources, uint32_t wanted, char *devices, size_t size)
{
    char text[RD_UCX_RESOURCES], *state = NULL;
    size_t used = 0;
    uint32_t kinds = 0;
    *devices = 0;
    snprintf(text, sizeof text, "%s", resources);
    for (char *r = strtok_r(text, " ", &state); r; r = strtok_r(NULL, " ", &state)) {
        const char *name = strchr(r, '/');
        uint32_t kind = name ? kind_of(folder, name + 1) : 0;
        kinds |= kind;
        if (kind & wanted && !is_listed(devices, name + 1) && used + strlen(name) + 1 < size)
            used += (size_t)snprintf(devices + used, size - used, "%s%s", used != 0 ? "," : "", name + 1);
    }
    return kinds;
}

/* Returns offer_t.subnet. Its number is the first half of a port's first address, "fe80:0000:0000:0000:...", and UCX
 * holds that ports with the same one reach each other. */
static uint64_t subnet_of(const char *folder, const char *devices)
{
    char first[32] = "", next[32], device[RESOURCE];
    for (const char *d = devices; *d != 0; d += strcspn(d, ","), d += *d == ',') {
        size_t length = strcspn(d, ":,");
        snprintf(device, sizeof device, "%.*s", (int)length, d);
        const char port[2] = {d[length] == ':' ? d[length + 1] : '1', 0};
        port_read(folder, device, port, "gids/0", next);
        next[strlen("0000:0000:0000:0000")] = 0;
        if (*next == 0 || (*first != 0 && strcmp(first, next) != 0))
            return 0;
        memcpy(first, next, sizeof first);
    }
    return *first != 0 ? rd_hash(RD_HASH_EMPTY, first, strlen(first)) : 0;
}

/* Asks UCX for its resources of the fast transports; they stay "" if it has none. */
static void resources_find(rd_ucx_net_t *net, const rd_env_t *env, int local_rank, char *resources, size_t size)
{
    ucp_config_t *config;
    ucp_context_h context;
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
    *resources = 0;
    if (rd_ucp.config_read("RONDO", NULL, &config) != UCS_OK)
        return;
    if (rd_ucp.config_modify(config, "TLS", FAST) == UCS_OK &&
        (env->net[0] == 0 || rd_ucx_device_put(net, config, env->net, local_rank) == RONDO_SUCCESS) &&
        rd_ucp.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context) == UCS_OK) {
        rd_ucx_resources(context, resources, size);
        rd_ucp.cleanup(context);
    }
    rd_ucp.config_release(config);
}

/* Returns true if RONDO_NET names InfiniBand devices of this host, and nothing else. */
static bool names_fabric(const char *folder, const char *names)
{
    char path[RESOURCE * 2];
    bool all = folder && *names != 0;
    for (const char *n = names; all && *n != 0; n += strcspn(n, ","), n += *n == ',') {
        snprintf(path, sizeof path, "%s/%.*s", folder, (int)strcspn(n, ":,"), n);
        all = access(path, F_OK) == 0;
    }
    return all;
}

/* Has the user chosen devices among which there may well be no fast one? */
static bool by_name(const rd_ucx_net_t *net, const rd_env_t *env)
{
    return (env->net[0] != 0 && !names_fabric(net->fabric, env->net)) || rd_ucx_said("NET_DEVICES");
}

static uint64_t hash_of(const char *names)
{
    return rd_hash(RD_HASH_EMPTY, names, strlen(names));
}

/* Returns what this rank can use, and its resources. */
static offer_t offer_own(rd_ucx_net_t *net, const rd_env_t *env, int local_rank, char *resources, size_t size)
{
    unsigned major, minor, patch;
    char name[RESOURCE], devices[RD_UCX_DEVICES];
    offer_t own = {.kinds = TCP, .named = names_fabric(net->fabric, env->net) ? hash_of(env->net) : 0};
    *resources = 0;
    if (rd_ucx_unusable())
        return own;
    rd_ucp.get_version(&major, &minor, &patch);
    own.version = 100 * major + minor;
    if (strcmp(env->ucx_tls, "auto") != 0) {
        own.kinds = rd_ucx_tcp_alone(env->ucx_tls) ? TCP : EVERY;
    } else if (net->fabric && fabric_find(net->fabric, name)) {
        sigset_t before;
        if (rd_ucx_enter(net, &before) != RONDO_SUCCESS)
            return own;
        resources_find(net, env, local_rank, resources, size);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void)devices_of(net->fabric, resources, INFINIBAND, devices, sizeof devices);
        own.subnet = subnet_of(net->fabric, devices);
        own.kinds |= devices_of(net->fabric, resources, EVERY, devices, sizeof devices);
        if (own.kinds == TCP)
            rd_log(net->base.ctx, by_name(net, env) ? RD_LOG_INFO : RD_LOG_WARN,
                   "%s lies idle: this UCX (%s) has no transport for it, so data between nodes goes by tcp (install a "
                   "UCX with InfiniBand, as ucx-ib or libucx0 with libibverbs, or set RONDO_UCX_TLS=tcp)",
                   name, rd_ucp.get_version_string());
    }
    return own;
}

/* Says once, by the lowest rank that has it, that something faster than tcp lies idle. */
static void idle_say(const rd_ucx_net_t *net, const offer_t *offers, bool versions, const char *resources)
{
    char devices[RD_UCX_DEVICES];
    int first = 0, without = 0;
    while (first < net->base.nranks && offers[first].kinds == TCP)
        first++;
    if (first != net->base.rank || *resources == 0)
        return;
    while (without < net->base.nranks && (offers[without].kinds & offers[first].kinds & ~(uint32_t)TCP) != 0)
        without++;
    (void)devices_of(net->fabric, resources, EVERY, devices, sizeof devices);
    if (!versions)
        rd_log(
            net->base.ctx, RD_LOG_WARN,
            "%s lies idle: ranks have different versions of UCX, which go together over tcp only (let all nodes load "
            "the same one)",
            devices);
    else if (without < net->base.nranks)
        rd_log(net->base.ctx, RD_LOG_WARN,
               "%s lies idle: rank %d (%s) has no such device, so data between nodes goes by tcp (leave that node out, "
               "or set RONDO_UCX_TLS=tcp)",
               devices, without, rd_boot_whois(net->base.boot, without));
    else
        rd_log(net->base.ctx, RD_LOG_WARN,
               "%s lies idle: no kind of device is there on all ranks, so data between nodes goes by tcp", devices);
}

void rd_ucx_tcp_names(rd_ucx_net_t *net, rd_env_t *env)
{
    if (!rd_ucx_tcp_alone(env->ucx_tls) || !net->named)
        return;
    rd_log(net->base.ctx, RD_LOG_INFO,
           "RONDO_NET=%s does not count, since data between nodes goes by tcp: on the interface where ranks meet",
           env->net);
    env->net[0] = 0;
    net->named = false;
}

static void settle(rd_ucx_net_t *net, rd_env_t *env, uint32_t kinds, const char *resources)
{
    net->fast = kinds != 0;
    snprintf(env->ucx_tls, sizeof env->ucx_tls, "%s", kinds != 0 ? FAST ",tcp" : "tcp");
    (void)devices_of(net->fabric, resources, kinds, net->devices, sizeof net->devices);
}

void rd_ucx_choose_alone(rd_ucx_net_t *net, rd_env_t *env, const char *address, int local_rank)
{
    char resources[RD_UCX_RESOURCES];
    net->fabric = rd_ucx_fabric_folder(address);
    const offer_t own = offer_own(net, env, local_rank, resources, sizeof resources);
    if (strcmp(env->ucx_tls, "auto") == 0)
        settle(net, env, own.kinds & ~(uint32_t)TCP, resources);
    net->named = own.named != 0;
    rd_ucx_tcp_names(net, env);
}

/* Leaves this rank one of net->devices, unless there are more of them than ranks of this node, which then have all. */
static void share(rd_ucx_net_t *net, const rd_node_t *node)
{
    char device[RD_UCX_DEVICES];
    const char *d = net->devices;
    int n = 1;
    for (const char *c = d; *c != 0; c++)
        n += *c == ',';
    if (n > node->nlocal)
        return;
    rd_node_rail_name(d, rd_node_rail(node, d, rd_locality_sys()), device, sizeof device);
    memcpy(net->devices, device, sizeof device);
}

/* Returns true if all ranks' ports are of one InfiniBand subnet. */
static bool one_subnet(const offer_t *offers, int nranks, uint32_t kinds)
{
    bool one = kinds == INFINIBAND && offers[0].subnet != 0;
    for (int r = 1; r < nranks; r++)
        one = one && offers[r].subnet == offers[0].subnet;
    return one;
}

rondo_result_t rd_ucx_choose(rd_ucx_net_t *net, rd_env_t *env, const char *address, const rd_node_t *node,
                             int local_rank)
{
    char resources[RD_UCX_RESOURCES];
    uint32_t common = EVERY;
    const uint64_t name = env->net[0] != 0 ? hash_of(env->net) : 0;
    bool versions = true;
    offer_t *offers = calloc((size_t)net->base.nranks, sizeof *offers);
    if (!offers)
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for what %d ranks can use", net->base.nranks);
    net->fabric = rd_ucx_fabric_folder(address);
    offers[net->base.rank] = offer_own(net, env, local_rank, resources, sizeof resources);
    rondo_result_t result = rd_boot_allgather(net->base.boot, offers, sizeof *offers);
    for (int r = 0; result == RONDO_SUCCESS && r < net->base.nranks; r++) {
        common &= offers[r].kinds;
        versions = versions && offers[r].version == offers[0].version;
        net->named |= name != 0 && offers[r].named == name;
    }
    if (result == RONDO_SUCCESS && strcmp(env->ucx_tls, "auto") == 0) {
        settle(net, env, versions ? common & ~(uint32_t)TCP : 0, resources);
        if (net->fast && env->net[0] == 0 && node->nlocal > 1 &&
            one_subnet(offers, net->base.nranks, common & ~(uint32_t)TCP))
            share(net, node);
        if (!net->fast)
            idle_say(net, offers, versions, resources);
    }
    rd_ucx_tcp_names(net, env);
    free(offers);
    return result;
}
