/* Which of libfabric's providers a communicator uses: the one that RONDO_OFI_PROVIDER names, or the first of
 * `providers` that every rank has, on the same network. All exchange what they have, and each draws the same
 * conclusion.
 *
 * What is asked for is the least that serves: endpoints of the kind FI_EP_RDM with tagged messages, in whatever order,
 * whose progress is made by the caller (FI_PROGRESS_MANUAL), so that there are no threads. What a provider wants of its
 * caller is granted: memory that is registered (FI_MR_LOCAL), also with the endpoint (FI_MR_ENDPOINT), and space for
 * its own data in each request (FI_CONTEXT, FI_CONTEXT2). */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/rails.h"
#include "ofi/ofi.h"

/* The best first. libfabric lists psm2, psm3, sockets, udp and shm as well: those only if they are named. psm3 ends the
 * process when it loses a peer (its handler of such errors calls exit, and no setting changes that), so no rank would
 * survive another one. From 1.18 on "tcp" has such endpoints itself, and in 1.15 to 1.17 the same code is called "net";
 * before, and beside it, there is the older one below ofi_rxm. */
static const char *const providers[] = {"cxi", "efa", "opx", "verbs;ofi_rxm", "tcp", "net", "tcp;ofi_rxm"};
#define PROVIDERS (sizeof providers / sizeof providers[0])

/* A card that verbs finds on InfiniBand does not reach one on Ethernet (RoCE). */
typedef enum { INFINIBAND, ETHERNET, OTHER, NETWORKS } network_t;

/* A kind of devices: those of a provider in one of these networks. Kinds are bits, by their numbers; the last ones are
 * of the provider that RONDO_OFI_PROVIDER names. */
#define LISTED (PROVIDERS * NETWORKS)
#define KINDS (LISTED + NETWORKS)
_Static_assert(KINDS <= 32, "the kinds of offer_t");

typedef struct offer {
    uint32_t kinds; /* 0: the rank has none, or no libfabric */
    uint32_t version;
} offer_t;

/* What a rank's device is chosen by. */
typedef struct site {
    const char *address;   /* where the bootstrap listens */
    char device[64];       /* of RONDO_NET; "": any */
    const rd_node_t *node; /* shares what the provider has; NULL: `local_rank` says whose turn it is */
    int local_rank;
    size_t longest; /* message, with its header */
} site_t;

const char *rd_ofi_version(void)
{
    static char text[64];
    if (rd_ofi_load()) {
        snprintf(text, sizeof text, "libfabric that is not installed");
    } else {
        uint32_t version = rd_fi.version();
        snprintf(text, sizeof text, "libfabric %u.%u", FI_MAJOR(version), FI_MINOR(version));
    }
    return text;
}

/* Asks for all providers that have what is needed. NULL: there is none. */
static struct fi_info *all_find(void)
{
    struct fi_info *hints = rd_fi.dupinfo(NULL), *all = NULL;
    if (!hints)
        return NULL;
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    if (rd_fi.getinfo(RD_OFI_VERSION, NULL, NULL, 0, hints, &all) != 0)
        all = NULL;
    rd_fi.freeinfo(hints);
    return all;
}

/* ---- which of them is this rank's */

static network_t network_of(const struct fi_info *info)
{
    const char *type = info->nic && info->nic->link_attr ? info->nic->link_attr->network_type : NULL;
    if (!type || strncmp(info->fabric_attr->prov_name, "verbs", 5) != 0)
        return OTHER;
    return strcmp(type, "InfiniBand") == 0 ? INFINIBAND : strcmp(type, "Ethernet") == 0 ? ETHERNET : OTHER;
}

static const char *provider_of(size_t kind, const rd_env_t *env)
{
    return kind < LISTED ? providers[kind / NETWORKS] : env->ofi_provider;
}

/* What the user names need not be complete: "verbs" is "verbs;ofi_rxm", too. */
static bool is_of_kind(const struct fi_info *info, size_t kind, const rd_env_t *env)
{
    const char *has = info->fabric_attr->prov_name, *name = provider_of(kind, env);
    size_t length = strlen(name);
    return network_of(info) == kind % NETWORKS &&
           (strcmp(has, name) == 0 || (kind >= LISTED && strncmp(has, name, length) == 0 && has[length] == ';'));
}

bool rd_ofi_is_tcp(const struct fi_info *info)
{
    const char *has = info->fabric_attr->prov_name;
    return strncmp(has, "tcp", 3) == 0 || strncmp(has, "net", 3) == 0 || strncmp(has, "sockets", 7) == 0 ||
           strncmp(has, "udp", 3) == 0;
}

bool rd_ofi_listens(const struct fi_info *info)
{
    return rd_ofi_is_tcp(info) && strncmp(info->fabric_attr->prov_name, "udp", 3) != 0;
}

static bool is_family(const struct fi_info *info, const char *address)
{
    return info->addr_format == (strchr(address, ':') ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN);
}

static bool is_at(const struct fi_info *info, const char *address)
{
    char text[INET6_ADDRSTRLEN] = "";
    const struct sockaddr *at = info->src_addr;
    if (!at || !is_family(info, address))
        return false;
    if (at->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)info->src_addr)->sin_addr, text, sizeof text);
    else
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)info->src_addr)->sin6_addr, text, sizeof text);
    return strcmp(text, address) == 0;
}

/* Returns true if it does what the other files expect of it. */
static bool serves(const struct fi_info *info, size_t longest)
{
    bool joins = info->tx_attr->iov_limit < 2;
    return info->ep_attr->max_msg_size >= longest && info->tx_attr->size > 0 && info->rx_attr->size >= 2 &&
           (info->mode & ~(FI_CONTEXT | FI_CONTEXT2 | FI_BUFFERED_RECV)) == 0 && info->ep_attr->msg_prefix_size == 0 &&
           !(joins && info->domain_attr->mr_mode & FI_MR_LOCAL);
}

/* Returns false where nobody can be reached: the link is down, or the address counts on this host alone (verbs lists
 * those of interfaces that have no other). */
static bool is_up(const struct fi_info *info)
{
    const struct sockaddr_in6 *at = info->src_addr;
    if (info->nic && info->nic->link_attr && info->nic->link_attr->state == FI_LINK_DOWN)
        return false;
    return info->addr_format != FI_SOCKADDR_IN6 || !at || !IN6_IS_ADDR_LINKLOCAL(&at->sin6_addr);
}

/* Over tcp nothing listens but on the interface of the bootstrap (loopback when all ranks share a host), unless the
 * user names devices. */
static bool is_device(const struct fi_info *info, const site_t *site)
{
    const char *domain = info->domain_attr->name;
    size_t length = strlen(site->device);
    if (length == 0)
        return !rd_ofi_is_tcp(info) || is_at(info, site->address);
    if (rd_ofi_is_tcp(info))
        return strcmp(domain, site->device) == 0 && is_family(info, site->address);
    length = strcspn(site->device, ":"); /* UCX writes mlx5_0:1 */
    return strncmp(domain, site->device, length) == 0 && (domain[length] == 0 || domain[length] == '-');
}

/* Returns which of the provider's devices is this rank's, of those that the ranks of a node share. */
static int turn_of(struct fi_info *const *found, int n, const site_t *site)
{
    char list[64 * 64] = "";
    size_t used = 0;
    if (!site->node || *site->device != 0)
        return site->local_rank;
    for (int k = 0; k < n && used < sizeof list; k++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.60s", k != 0 ? "," : "",
                                 found[k]->domain_attr->name);
    return rd_node_rail(site->node, list, rd_locality_sys());
}

/* Returns the device of this kind for this rank. NULL: there is none. */
static struct fi_info *pick(struct fi_info *all, size_t kind, const rd_env_t *env, const site_t *site)
{
    struct fi_info *found[64], *i;
    int n = 0;
    for (i = all; i && n < 64; i = i->next) {
        if (!is_of_kind(i, kind, env) || !serves(i, site->longest) || !is_up(i) || !is_device(i, site))
            continue;
        bool known = false;
        for (int k = 0; k < n; k++)
            known |= strcmp(found[k]->domain_attr->name, i->domain_attr->name) == 0;
        if (!known)
            found[n++] = i;
    }
    return n != 0 ? found[turn_of(found, n, site) % n] : NULL;
}

/* The ranks of a node share the devices of RONDO_NET, so that each rail has its own. */
static site_t site_of(const rd_env_t *env, const char *address, int local_rank, size_t longest)
{
    site_t site = {.address = address, .local_rank = local_rank, .longest = longest + sizeof(rd_net_header_t)};
    rd_node_rail_name(env->net, local_rank, site.device, sizeof site.device);
    return site;
}

/* Returns the kinds of which this rank has a device. Where ranks meet on loopback, nothing is to leave the host. */
static uint32_t kinds_of(struct fi_info *all, const rd_env_t *env, const site_t *site)
{
    bool named = strcmp(env->ofi_provider, "auto") != 0;
    bool loopback = strncmp(site->address, "127.", 4) == 0 || strcmp(site->address, "::1") == 0;
    uint32_t has = 0;
    for (size_t k = named ? LISTED : 0; k < (named ? KINDS : LISTED); k++) {
        const struct fi_info *info = pick(all, k, env, site);
        if (info && (named || !loopback || rd_ofi_is_tcp(info)))
            has |= 1U << k;
    }
    return has;
}

/* Copies what this rank goes by out of the list. */
static struct fi_info *best(struct fi_info *all, const rd_env_t *env, const site_t *site, uint32_t common)
{
    struct fi_info *info = NULL;
    for (size_t k = 0; k < KINDS && !info; k++)
        if (common & 1U << k)
            info = pick(all, k, env, site);
    return info ? rd_fi.dupinfo(info) : NULL;
}

/* ---- agreement */

static rondo_result_t none_here(rd_log_ctx_t *ctx, const rd_env_t *env, const site_t *site)
{
    return rd_error(
        ctx, RONDO_ERR_UNSUPPORTED,
        "%s has no provider here for ranks that meet on %s (RONDO_OFI_PROVIDER is \"%s\", RONDO_NET \"%s\"): "
        "`fi_info -t FI_EP_RDM` lists what it has, of which FI_PROVIDER leaves out some; or unset "
        "RONDO_TRANSPORT to go by UCX",
        rd_ofi_version(), site->address, env->ofi_provider, env->net);
}

/* "verbs;ofi_rxm on InfiniBand, tcp" */
static const char *kinds_print(uint32_t has, const rd_env_t *env, char text[RD_OFI_NAME * 2])
{
    static const char *const on[NETWORKS] = {" on InfiniBand", " on Ethernet", ""};
    size_t used = 0;
    *text = 0;
    for (size_t k = 0; k < KINDS; k++)
        if (has & 1U << k && used < RD_OFI_NAME * 2)
            used += (size_t)snprintf(text + used, RD_OFI_NAME * 2 - used, "%s%s%s", used ? ", " : "",
                                     provider_of(k, env), on[k % NETWORKS]);
    return text;
}

/* Every rank comes to the same conclusion. */
static rondo_result_t agree(const rd_ofi_net_t *net, const rd_env_t *env, const offer_t *offers, const char *why,
                            uint32_t *common)
{
    char one[RD_OFI_NAME * 2], other[RD_OFI_NAME * 2];
    *common = ~0U;
    for (int r = 0; r < net->base.nranks; r++) {
        if (offers[r].kinds == 0)
            return rd_net_has_failed(&net->base, r, "cannot go by libfabric", why);
        if ((*common & offers[r].kinds) == 0) {
            rd_boot_farewell_alike(net->base.boot);
            return rd_error(net->base.ctx, RONDO_ERR_UNSUPPORTED,
                            "libfabric has no provider that all ranks have: rank %d (%s) has %s, those before it %s: "
                            "let all nodes load the same libfabric, let RONDO_NET name devices that reach each "
                            "other, or unset RONDO_TRANSPORT to go by UCX",
                            r, rd_boot_whois(net->base.boot, r), kinds_print(offers[r].kinds, env, one),
                            kinds_print(*common, env, other));
        }
        *common &= offers[r].kinds;
    }
    return RONDO_SUCCESS;
}

/* This rank's own part: what there is. */
static rondo_result_t look(rd_ofi_net_t *net, const rd_env_t *env, const site_t *site, struct fi_info **all,
                           offer_t *own)
{
    rd_net_quiet_t quiet;
    rondo_result_t result = rd_ofi_enter(net->base.ctx, &quiet);
    if (result != RONDO_SUCCESS)
        return result;
    *all = all_find();
    rd_net_quiet_end(&quiet);
    *own = (offer_t){.kinds = kinds_of(*all, env, site), .version = rd_fi.version()};
    return own->kinds != 0 ? RONDO_SUCCESS : none_here(net->base.ctx, env, site);
}

/* A provider that knows no classes leaves the field alone. tcp's are such. */
static void class_put(rd_ofi_net_t *net, const rd_env_t *env)
{
    if (env->traffic_class < 0)
        return;
    if (rd_ofi_is_tcp(net->info) && net->base.rank == 0)
        rd_log(net->base.ctx, RD_LOG_INFO, "traffic class %d has no effect: libfabric's %s has none",
               env->traffic_class, net->info->fabric_attr->prov_name);
    if (!rd_ofi_is_tcp(net->info)) /* a DSCP is the upper six bits of the byte */
        net->info->tx_attr->tclass = fi_tc_dscp_set((uint8_t)(env->traffic_class >> 2));
}

rondo_result_t rd_ofi_choose(rd_ofi_net_t *net, const rd_env_t *env, const char *address, const rd_node_t *node)
{
    site_t site = site_of(env, address, rd_node_rail(node, env->net, rd_locality_sys()), net->longest);
    site.node = node;
    offer_t *offers = calloc((size_t)net->base.nranks, sizeof *offers);
    struct fi_info *all = NULL;
    char why[RD_ERROR_BYTES];
    uint32_t common;
    if (!offers)
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for what %d ranks can use", net->base.nranks);
    rondo_result_t own = look(net, env, &site, &all, &offers[net->base.rank]);
    snprintf(why, sizeof why, "%s", rd_thread_error());
    rondo_result_t result = rd_boot_allgather(net->base.boot, offers, sizeof *offers);
    if (result == RONDO_SUCCESS)
        result = agree(net, env, offers, why, &common);
    if (own != RONDO_SUCCESS) {
        result = own;
        rd_thread_error_set(why);
    }
    if (result == RONDO_SUCCESS && !(net->info = best(all, env, &site, common)))
        result = rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for the description of a provider");
    if (result == RONDO_SUCCESS)
        class_put(net, env);
    if (all)
        rd_fi.freeinfo(all);
    free(offers);
    return result;
}

/* ---- for rondo-info */

static void device_add(const struct fi_info *info, char *text, size_t size)
{
    char name[RD_OFI_NAME * 2];
    size_t used = strlen(text);
    snprintf(name, sizeof name, "%s/%s", info->fabric_attr->prov_name, info->domain_attr->name);
    const char *at = strstr(text, name);
    size_t length = strlen(name);
    if ((at && (at[length] == ' ' || at[length] == 0)) || used + length + 2 > size)
        return;
    snprintf(text + used, size - used, "%s%s", used != 0 ? " " : "", name);
}

static rondo_result_t probe_all(rd_transport_report_t *report)
{
    rd_net_quiet_t quiet;
    rondo_result_t result = rd_ofi_enter(NULL, &quiet);
    if (result != RONDO_SUCCESS)
        return result;
    struct fi_info *all = all_find();
    rd_net_quiet_end(&quiet);
    for (const struct fi_info *i = all; i; i = i->next)
        device_add(i, report->devices, sizeof report->devices);
    if (all)
        rd_fi.freeinfo(all);
    return RONDO_SUCCESS;
}

rondo_result_t rd_ofi_probe(const rd_env_t *env, const char *address, int local_rank, rd_transport_report_t *report)
{
    rd_ofi_net_t net = {.base = {.nranks = 2}, .longest = RD_OFI_SHORT};
    struct fi_info *all = NULL, *info = NULL;
    offer_t own = {.kinds = 0};
    bool named = strcmp(env->ofi_provider, "auto") != 0;
    *report = (rd_transport_report_t){.reason = named            ? "RONDO_OFI_PROVIDER names it"
                                                : *env->net != 0 ? "RONDO_NET names it"
                                                                 : "the fastest that is here",
                                      .advice = "`rondo-info net` without RONDO_NET and RONDO_OFI_PROVIDER says which "
                                                "devices there are"};
    snprintf(report->settings, sizeof report->settings, "provider %s (RONDO_OFI_PROVIDER)", env->ofi_provider);
    if (!address)
        return probe_all(report);
    const site_t site = site_of(env, address, local_rank, net.longest);
    rondo_result_t result = look(&net, env, &site, &all, &own);
    if (result == RONDO_SUCCESS)
        info = best(all, env, &site, own.kinds);
    if (info) {
        device_add(info, report->devices, sizeof report->devices);
        rd_fi.freeinfo(info);
    }
    if (all)
        rd_fi.freeinfo(all);
    return result;
}
