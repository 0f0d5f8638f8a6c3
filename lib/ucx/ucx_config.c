/* UCX's settings, and what each version of UCX tolerates.
 *
 * The settings are a private copy: UCX reads UCX_* first and RONDO_UCX_* over it, then the transports of RONDO_UCX_TLS
 * and the bootstrap's interface are put in. Neither the environment nor the use of UCX by an MPI in the same process is
 * affected. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node/rails.h"
#include "ucx/ucx.h"

/* Finds the name of the interface that has this address. */
static bool iface_of(const char *address, char name[IF_NAMESIZE])
{
    char text[INET6_ADDRSTRLEN];
    int found = 0;
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return false;
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (family == AF_INET)
            inet_ntop(family, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text, sizeof text);
        else if (family == AF_INET6)
            inet_ntop(family, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, text, sizeof text);
        else
            continue;
        found = strcmp(text, address) == 0;
        if (found)
            snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
    }
    freeifaddrs(all);
    return found;
}

static rondo_result_t setting_put(rd_ucx_net_t *net, ucp_config_t *config, const char *name, const char *value)
{
    ucs_status_t status = rd_ucp.config_modify(config, name, value);
    if (status == UCS_OK)
        return RONDO_SUCCESS;
    return rd_error(net->base.ctx, RONDO_ERR_INVALID_ARGUMENT, "UCX does not take %s=%s: %s (RONDO_UCX_%s sets it)",
                    name, value, rd_ucp.status_string(status), name);
}

/* The ranks of a node take the devices in turn, so that each rail of a hierarchical algorithm has its own. (UCX could
 * split one rank's messages over several devices; with peer error handling it does not.) */
rondo_result_t rd_ucx_device_put(rd_ucx_net_t *net, ucp_config_t *config, const char *devices, int local_rank)
{
    char device[128];
    rd_node_rail_name(devices, local_rank, device, sizeof device);
    return setting_put(net, config, "NET_DEVICES", device);
}

const char *rd_ucx_said(const char *name)
{
    char variable[64];
    snprintf(variable, sizeof variable, "RONDO_UCX_%s", name);
    const char *ours = getenv(variable);
    return ours ? ours : getenv(variable + strlen("RONDO_"));
}

/* Returns true if the loaded UCX is 1.FIRST to 1.LAST. */
static bool ucx_is_of(unsigned first, unsigned last)
{
    unsigned major = 0, minor = 0;
    if (rd_ucx_load())
        return false;
    sscanf(rd_ucp.get_version_string(), "%u.%u", &major, &minor);
    return major == 1 && minor >= first && minor <= last;
}

/* Up to 1.16 ucp_config_modify took a transport's own settings without their prefix ("TCP_" or the like), which they
 * had only in the environment. */
static const char *name_of(const char *transport, const char *name)
{
    return ucx_is_of(0, 16) ? name + strlen(transport) : name;
}

/* Returns true if this UCX may end the process when a peer is lost while a message is announced to it, because that is
 * forced, or because the message goes directly from GPU to GPU. 1.16 to 1.21 read their registration cache then, and
 * crash if there is none (ucp_request_memh_invalidate; tried with each of these). With the cache, Ubuntu's 1.16.0 hit
 * an assertion of its own in two of four runs of test/ucx/net. */
static bool announcing_ends(void)
{
    return ucx_is_of(16, 21);
}

const char *rd_ucx_fragile(void)
{
    return announcing_ends() ? "this UCX may end the process when a peer is lost while a message is announced" : NULL;
}

/* The process ends by an assertion of ucp_request_send_state_ff. */
bool rd_ucx_answer_ends(void)
{
    return ucx_is_of(0, 13);
}

bool rd_ucx_tcp_alone(const char *tls)
{
    int tcp = 0;
    while (*tls != 0) {
        size_t length = strcspn(tls, ",");
        if (strncmp(tls, "cuda", 4) != 0 && strncmp(tls, "gdr_copy", 8) != 0) {
            if (length != 3 || strncmp(tls, "tcp", 3) != 0)
                return false;
            tcp = 1;
        }
        tls += length + (tls[length] == ',');
    }
    return tcp;
}

bool rd_ucx_tls_shares(const char *tls)
{
    static const char *const names[] = {"posix", "sysv", "xpmem", "mm", "sm", "shm"};
    while (*tls != 0) {
        size_t length = strcspn(tls, ",");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (length == strlen(names[i]) && strncmp(tls, names[i], length) == 0)
                return true;
        tls += length + (tls[length] == ',');
    }
    return false;
}

/* Returns 0 for a text that only UCX understands. */
static uint32_t bytes_of(const char *text)
{
    uint64_t bytes = 0;
    char number[24];
    snprintf(number, sizeof number, "%s", text);
    size_t length = strlen(number);
    if (length > 1 && (number[length - 1] == 'b' || number[length - 1] == 'B')) /* UCX takes 64kb, too */
        number[length - 1] = 0;
    return rd_bytes_parse(number, &bytes) == 0 && bytes < UINT32_MAX ? (uint32_t)bytes : 0;
}

/* Segments are as long as the longest of rondo's messages: one system call for half a megabyte is twice as fast as nine
 * for 60 KB each. UCX ends a process that receives a longer segment than it takes. So all ranks take such segments,
 * whatever they send themselves, unless the user sets less; and exchange.c compares. */
static rondo_result_t segments_put(rd_ucx_net_t *net, ucp_config_t *config, int alone)
{
    const char *takes = rd_ucx_said("TCP_RX_SEG_SIZE"), *sends = rd_ucx_said("TCP_TX_SEG_SIZE"), *most = "512k";
    rondo_result_t result = RONDO_SUCCESS;
    if (!takes)
        result = setting_put(net, config, name_of("TCP_", "TCP_RX_SEG_SIZE"), most);
    takes = takes ? takes : most;
    if (result == RONDO_SUCCESS && !sends && alone) {
        sends = takes;
        result = setting_put(net, config, name_of("TCP_", "TCP_TX_SEG_SIZE"), sends);
    }
    net->takes = bytes_of(takes);
    net->sends = sends ? bytes_of(sends) : 0;
    return result;
}

/* By itself UCX would announce a message of some KB and send its bytes when they are requested: over tcp that is two
 * more journeys over the wire, and a message of rondo's has its slot already.
 *
 * UCX also does not send from the user's buffer. If a connection breaks while such a send waits for the socket, UCX
 * (1.13 to 1.22: uct_tcp_ep_sendv, after uct_tcp_ep_purge) completes it twice, and its assertion, which distributions
 * leave in, ends the process. The copy costs nothing measurable when pieces are as long as what the receiver takes at
 * once; with UCX's own 8 KB only a third of the rate is left (segments_put).
 *
 * UCX also has no registration cache, for tcp registers nothing. To know when cached memory is freed, it would hook
 * mmap and the like, with a lock that a child may find locked for ever if another thread held it at the fork. But the
 * versions that announcing_ends knows end the process sooner without the cache: they keep it.
 *
 * A GDR message between GPUs is announced whatever the threshold is. But if the threshold is infinite, UCX expects
 * no rendezvous, and looks for no transport that can release memory when a peer fails. */
static rondo_result_t tcp_put(rd_ucx_net_t *net, ucp_config_t *config, int alone)
{
    rondo_result_t result = RONDO_SUCCESS;
    const char *threshold = rd_ucx_said("RNDV_THRESH");
    net->buffers_set = rd_ucx_said("TCP_SNDBUF") || rd_ucx_said("TCP_RCVBUF");
    if (!threshold) {
        result = setting_put(net, config, "RNDV_THRESH", alone ? "inf" : "1g");
    } else if (announcing_ends() && net->base.rank == 0 && strcmp(threshold, "inf") != 0) {
        rd_log(net->base.ctx, RD_LOG_WARN,
               "UCX %s may end this process if a rank is lost while a message is announced, which it does only because "
               "RNDV_THRESH is set: unset it",
               rd_ucp.get_version_string());
    }
    if (result == RONDO_SUCCESS && !rd_ucx_said("ZCOPY_THRESH"))
        result = setting_put(net, config, "ZCOPY_THRESH", "inf");
    if (result == RONDO_SUCCESS && alone && !announcing_ends() && !rd_ucx_said("RCACHE_ENABLE"))
        result = setting_put(net, config, "RCACHE_ENABLE", "n");
    return result;
}

bool rd_ucx_tls_may(const rd_env_t *env, const char *name)
{
    const char *tls = env->ucx_tls;
    return tls[0] == 0 || strstr(tls, name) || strstr(tls, "all");
}

/* Returns true if the memory of GPUs may be moved. */
static bool device_tls(const rd_env_t *env)
{
    return env->gdr != 0 && rd_ucx_tls_may(env, "cuda");
}

/* The sender ensures that nothing need be closed while kernels wait (exec/cuda/proxy/rcache.c), so the memory that is
 * mapped must be the sender's: the receiver gets, and nobody puts. Where NVML reports no NVLink, as over PCIe and in
 * virtual machines, cuda_ipc would otherwise do nothing; whether it gets fast enough is tried. A UCX without cuda_ipc
 * knows no such setting. */
static rondo_result_t gets_put(rd_ucx_net_t *net, ucp_config_t *config)
{
    const char *name = "CUDA_IPC_ENABLE_GET_ZCOPY";
    if (!rd_ucx_said(name))
        (void)rd_ucp.config_modify(config, name_of("CUDA_IPC_", name), "on");
    return !rd_ucx_said("RNDV_SCHEME") ? setting_put(net, config, "RNDV_SCHEME", "get_zcopy") : RONDO_SUCCESS;
}

/* Returns true if UCX_NET_DEVICES, which was set for another library in this process, names no interface of this host:
 * mlx5_0:1 is none for tcp. A name that the user gives to rondo, as RONDO_UCX_NET_DEVICES, counts in any case. */
static bool devices_of_others(void)
{
    const char *devices = getenv("UCX_NET_DEVICES");
    if (!devices || getenv("RONDO_UCX_NET_DEVICES") || strcmp(devices, "all") == 0)
        return false;
    while (*devices != 0) {
        char name[IF_NAMESIZE];
        size_t length = strcspn(devices, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, devices);
        if (length < sizeof name && if_nametoindex(name) != 0)
            return false;
        devices += length + (devices[length] == ',');
    }
    return true;
}

const char *rd_ucx_devices_by(const rd_env_t *env)
{
    if (env->net[0] != 0)
        return "RONDO_NET";
    if (getenv("RONDO_UCX_NET_DEVICES"))
        return "RONDO_UCX_NET_DEVICES";
    if (getenv("UCX_NET_DEVICES") && !(rd_ucx_tcp_alone(env->ucx_tls) && devices_of_others()))
        return "UCX_NET_DEVICES";
    return NULL;
}

/* Of an interface that has addresses of both kinds UCX takes the IPv4 one. Where ranks meet by IPv6 on it, that need
 * not lead from one to another. Up to 1.13 UCX reads this setting in the environment alone, which is left as it is; on
 * loopback both lead to all. */
static void family_put(ucp_config_t *config, const char *address)
{
    const char *name = "TCP_AF_PRIO";
    if (strchr(address, ':') && strcmp(address, "::1") != 0 && !rd_ucx_said(name))
        (void)rd_ucp.config_modify(config, name_of("TCP_", name), "inet6,inet");
}

/* The devices are those that were found, and the interface on which ranks meet, for tcp. */
static rondo_result_t fast_put(rd_ucx_net_t *net, ucp_config_t *config, const char *address)
{
    char devices[RD_UCX_DEVICES + IF_NAMESIZE + 1], iface[IF_NAMESIZE];
    bool found = iface_of(address, iface);
    snprintf(devices, sizeof devices, "%s%s%s", net->devices, found ? "," : "", found ? iface : "");
    return setting_put(net, config, "NET_DEVICES", devices);
}

/* UCX's own thresholds are made for fast devices. But where a lost peer with an announced message would end this
 * process, nothing is announced. */
static rondo_result_t quiet_put(rd_ucx_net_t *net, ucp_config_t *config)
{
    const bool puts = net->fast && announcing_ends() && !rd_ucx_said("RNDV_THRESH");
    return puts ? setting_put(net, config, "RNDV_THRESH", "inf") : RONDO_SUCCESS;
}

/* What was set for another library, often the MPI, and does not hold here, is said once by rank 0. */
static void others_named(rd_ucx_net_t *net, const rd_env_t *env, bool devices)
{
    const char *tls = getenv("UCX_TLS");
    if (net->base.rank != 0)
        return;
    if (tls && env->ucx_tls[0] != 0 && strcmp(tls, env->ucx_tls) != 0)
        rd_log(net->base.ctx, RD_LOG_INFO, "UCX_TLS=%s does not count for rondo, which uses %s (RONDO_UCX_TLS)", tls,
               env->ucx_tls);
    if (devices)
        rd_log(net->base.ctx, RD_LOG_INFO,
               "UCX_NET_DEVICES=%s names no interface of this host, so it does not count for rondo over tcp "
               "(RONDO_NET or RONDO_UCX_NET_DEVICES choose one)",
               getenv("UCX_NET_DEVICES"));
}

/* UCX's tcp does not mark its packets. */
static rondo_result_t class_put(rd_ucx_net_t *net, ucp_config_t *config, const rd_env_t *env)
{
    char text[16];
    if (env->traffic_class < 0)
        return RONDO_SUCCESS;
    if (rd_ucx_tcp_alone(env->ucx_tls)) {
        if (net->base.rank == 0)
            rd_log(net->base.ctx, RD_LOG_INFO, "traffic class %d has no effect: UCX's tcp has none",
                   env->traffic_class);
        return RONDO_SUCCESS;
    }
    snprintf(text, sizeof text, "%d", env->traffic_class);
    return setting_put(net, config, name_of("IB_", "IB_TRAFFIC_CLASS"), text);
}

/* UCX's tcp trusts everybody who connects: they may even write into this process's memory. So it listens only on the
 * interface of the bootstrap (loopback when all ranks share a host), unless the user names devices; devices of other
 * transports have names of their own. */
rondo_result_t rd_ucx_settings_put(rd_ucx_net_t *net, ucp_config_t *config, const rd_env_t *env, const char *address,
                                   int local_rank)
{
    char iface[IF_NAMESIZE];
    const bool tcp = rd_ucx_tcp_alone(env->ucx_tls), others = tcp && devices_of_others();
    const bool named = rd_ucx_said("NET_DEVICES") && !others;
    rondo_result_t result = RONDO_SUCCESS;
    if (env->ucx_tls[0] != 0)
        result = setting_put(net, config, "TLS", env->ucx_tls);
    if (result == RONDO_SUCCESS && tcp)
        result = tcp_put(net, config, strcmp(env->ucx_tls, "tcp") == 0);
    if (result == RONDO_SUCCESS && net->keeps) /* tcp may be among them */
        result = segments_put(net, config, tcp);
    if (result == RONDO_SUCCESS && net->keeps) /* a flush of the endpoints would wait for the peers' polls */
        result = setting_put(net, config, "FLUSH_WORKER_EPS", "n");
    if (result == RONDO_SUCCESS && device_tls(env))
        result = gets_put(net, config);
    if (result == RONDO_SUCCESS)
        result = class_put(net, config, env);
    if (result == RONDO_SUCCESS)
        result = quiet_put(net, config);
    if ((tcp || net->fast) && !named)
        family_put(config, address);
    if (result == RONDO_SUCCESS && env->net[0] != 0)
        return rd_ucx_device_put(net, config, env->net, local_rank);
    if (result == RONDO_SUCCESS && net->fast)
        return fast_put(net, config, address);
    others_named(net, env, others);
    if (result == RONDO_SUCCESS && *address == 0) /* what there is, whatever anybody has named */
        return setting_put(net, config, "NET_DEVICES", "all");
    if (result != RONDO_SUCCESS || !tcp || named)
        return result;
    return iface_of(address, iface) ? setting_put(net, config, "NET_DEVICES", iface) : RONDO_SUCCESS;
}

/* UCX lets everybody who speaks its protocol fetch by keys, so it is only enabled where there may be device memory to
 * fetch. Up to 1.18, where a peer's failure must be tolerated, UCX fetches in software, through the host; its older
 * protocols do so, too. */
bool rd_ucx_may_fetch(const rd_env_t *env)
{
    const char *protocols = rd_ucx_said("PROTO_ENABLE");
    int older = protocols && (strchr("nN0", *protocols) || strcasecmp(protocols, "off") == 0);
    return device_tls(env) && !ucx_is_of(0, 18) && !older;
}
