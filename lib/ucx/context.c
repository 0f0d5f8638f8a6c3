/* The UCX context and worker of one communicator, and the exchange of worker addresses.
 *
 * The settings are a private copy: UCX reads UCX_* first and RONDO_UCX_* over it, then the transports of RONDO_UCX_TLS
 * and the bootstrap's interface are put in. Neither the environment nor what an MPI in the same process does with UCX
 * is touched. Addresses travel over the authenticated bootstrap alone, in pieces, since a worker with many devices
 * has a long one.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ucx/ucx.h"

#define PIECE 32768         /* bytes of an address that one exchange carries */
#define ADDRESS_MAX 1048576 /* a longer one is a mistake */
/* Versions that were tried together, over tcp. UCX promises nothing about what different ones say to each other. */
#define TRIED_FIRST 11300
#define TRIED_LAST 12299

/* The name of the interface that has this address. */
static int iface_of(const char *address, char name[IF_NAMESIZE])
{
    char text[INET6_ADDRSTRLEN];
    int found = 0;
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) {
        return 0;
    }
    for (struct ifaddrs *i = all; i != NULL && !found; i = i->ifa_next) {
        int family = i->ifa_addr != NULL ? i->ifa_addr->sa_family : AF_UNSPEC;
        if (family == AF_INET) {
            inet_ntop(family, &((struct sockaddr_in *)i->ifa_addr)->sin_addr, text, sizeof text);
        } else if (family == AF_INET6) {
            inet_ntop(family, &((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, text, sizeof text);
        } else {
            continue;
        }
        found = strcmp(text, address) == 0;
        if (found) {
            snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
        }
    }
    freeifaddrs(all);
    return found;
}

static rondo_result_t setting_put(rd_net_t *net, ucp_config_t *config, const char *name, const char *value)
{
    ucs_status_t status = ucp_config_modify(config, name, value);
    if (status == UCS_OK) {
        return RONDO_SUCCESS;
    }
    return rd_error(net->who, RONDO_ERR_INVALID_ARGUMENT, "UCX does not take %s=%s: %s (RONDO_UCX_%s sets it)", name,
                    value, ucs_status_string(status), name);
}

/* The ranks of a node take the devices in turn: so each rail of a hierarchical algorithm has its own. (UCX could cut
 * one rank's messages over several; with peer error handling it does not.) */
static rondo_result_t device_put(rd_net_t *net, ucp_config_t *config, const char *devices, int place)
{
    char device[128];
    int n = 1;
    for (const char *c = devices; *c != 0; c++) {
        n += *c == ',';
    }
    for (place %= n; place > 0; place--) {
        devices += strcspn(devices, ",") + 1;
    }
    snprintf(device, sizeof device, "%.*s", (int)strcspn(devices, ","), devices);
    return setting_put(net, config, "NET_DEVICES", device);
}

/* What the user has said, which stands; NULL: nothing. */
static const char *said(const char *name)
{
    char variable[64];
    snprintf(variable, sizeof variable, "RONDO_UCX_%s", name);
    const char *ours = getenv(variable);
    return ours != NULL ? ours : getenv(variable + strlen("RONDO_"));
}

/* Whether the UCX that was loaded is 1.FIRST to 1.LAST. */
static int ucx_is_of(unsigned first, unsigned last)
{
    unsigned major = 0, minor = 0;
    sscanf(ucp_get_version_string(), "%u.%u", &major, &minor);
    return major == 1 && minor >= first && minor <= last;
}

/* The transport's own settings had no "TCP_" before them for ucp_config_modify up to 1.16, only in the environment. */
static const char *tcp_name(const char *name)
{
    return ucx_is_of(0, 16) ? name + strlen("TCP_") : name;
}

/* 1.16 to 1.21 look into what they have kept, and crash where there is none, when a peer is lost that had an announced
 * message on its way (ucp_request_memh_invalidate; tried with each of these); where there is, Ubuntu's 1.16.0 met an
 * assertion of its own in two of four runs of test/net. */
int rd_net_announcing_ends(void)
{
    return ucx_is_of(16, 21);
}

int rd_net_tcp_alone(const char *tls)
{
    int tcp = 0;
    while (*tls != 0) {
        size_t length = strcspn(tls, ",");
        if (strncmp(tls, "cuda", 4) != 0 && strncmp(tls, "gdr_copy", 8) != 0) {
            if (length != 3 || strncmp(tls, "tcp", 3) != 0) {
                return 0;
            }
            tcp = 1;
        }
        tls += length + (tls[length] == ',');
    }
    return tcp;
}

/* UCX would announce a message of some KB and send its bytes when they are asked for: over tcp that is two more turns
 * of the wire, and a message of rondo's has its place already.
 *
 * Nor does it send from the user's buffer. Where a connection breaks while such a send waits for the socket, UCX (1.13
 * to 1.22: uct_tcp_ep_sendv, behind uct_tcp_ep_purge) completes it twice, and its assertion, which distributions leave
 * in, ends the process. The copy is not measured where pieces are as long as what the receiver takes at once, 64 KB; by
 * UCX's own 8 KB a third of the rate is left.
 *
 * Nor does it keep what it has registered, for tcp registers nothing. To know when such memory goes it would lay itself
 * around mmap and its like, with a lock that a child may find taken for ever if another thread was there at the fork.
 * But the versions that rd_net_announcing_ends knows end the process sooner without: they keep theirs.
 *
 * What goes straight between GPUs is announced whatever the threshold is. But where that is infinite, UCX counts on no
 * rendezvous, and looks for no transport that lets go of memory when a peer fails. */
static rondo_result_t tcp_put(rd_net_t *net, ucp_config_t *config, int alone)
{
    rondo_result_t result = RONDO_SUCCESS;
    const char *threshold = said("RNDV_THRESH");
    if (threshold == NULL) {
        result = setting_put(net, config, "RNDV_THRESH", alone ? "inf" : "1g");
    } else if (rd_net_announcing_ends() && net->rank == 0 && strcmp(threshold, "inf") != 0) {
        rd_log(net->who, RD_LOG_WARN,
               "UCX %s may end this process when a rank is lost: RNDV_THRESH is set, and it "
               "does not bear that while a message is announced",
               ucp_get_version_string());
    }
    if (result == RONDO_SUCCESS && said("ZCOPY_THRESH") == NULL) {
        result = setting_put(net, config, "ZCOPY_THRESH", "inf");
    }
    if (result == RONDO_SUCCESS && alone && !rd_net_announcing_ends() && said("RCACHE_ENABLE") == NULL) {
        result = setting_put(net, config, "RCACHE_ENABLE", "n");
    }
    if (result == RONDO_SUCCESS && said("TCP_TX_SEG_SIZE") == NULL) {
        result = setting_put(net, config, tcp_name("TCP_TX_SEG_SIZE"), "64k");
    }
    return result;
}

/* UCX's tcp trusts whoever connects: he may even write into this process's memory. So it listens on the interface of
 * the bootstrap alone (loopback when all ranks share a host), unless the user names devices; devices of other
 * transports have names of their own. */
static rondo_result_t settings_put(rd_net_t *net, ucp_config_t *config, const rd_env_t *env, const char *address,
                                   int place)
{
    char iface[IF_NAMESIZE];
    rondo_result_t result = RONDO_SUCCESS;
    if (env->ucx_tls[0] != 0) {
        result = setting_put(net, config, "TLS", env->ucx_tls);
    }
    if (result == RONDO_SUCCESS && rd_net_tcp_alone(env->ucx_tls)) {
        result = tcp_put(net, config, strcmp(env->ucx_tls, "tcp") == 0);
    }
    if (result == RONDO_SUCCESS && net->keeps) { /* by a flush of the endpoints it would wait for the peers' polls */
        result = setting_put(net, config, "FLUSH_WORKER_EPS", "n");
    }
    if (result == RONDO_SUCCESS && env->net[0] != 0) {
        return device_put(net, config, env->net, place);
    }
    if (result == RONDO_SUCCESS && rd_net_tcp_alone(env->ucx_tls) && said("NET_DEVICES") == NULL &&
        iface_of(address, iface)) {
        result = setting_put(net, config, "NET_DEVICES", iface);
    }
    return result;
}

/* UCX has one thread that accepts connections for all contexts of a process. A child that is forked meanwhile has no
 * such thread, but UCX there believes that it has. */
static _Atomic int contexts;
static int orphaned;

static void fork_child(void)
{
    orphaned |= atomic_load(&contexts) != 0;
}

static void fork_register(void)
{
    pthread_atfork(NULL, NULL, fork_child);
}

static rondo_result_t context_allowed(const rd_net_t *net)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fork_register);
    if (!orphaned) {
        return RONDO_SUCCESS;
    }
    return rd_error(net->who, RONDO_ERR_UNSUPPORTED,
                    "this process was forked while its parent had a communicator between nodes, and UCX does not work "
                    "in such a child: fork before that is made, or when it is destroyed; or let the child call exec");
}

/* UCX lets whoever speaks its protocol fetch by keys, so it learns to only where there may be device memory to fetch.
 * Up to 1.18 it does that in software, through the host, where a peer's failure is to be borne; so it does with its
 * older protocols. */
static int may_fetch(const rd_env_t *env)
{
    const char *tls = env->ucx_tls, *protocols = said("PROTO_ENABLE");
    int device = tls[0] == 0 || strstr(tls, "cuda") != NULL || strstr(tls, "all") != NULL;
    int older = protocols != NULL && (strchr("nN0", *protocols) != NULL || strcasecmp(protocols, "off") == 0);
    return env->net_direct != 0 && device && !ucx_is_of(0, 18) && !older;
}

/* In software UCX (1.13 to 1.22: ucp_get_req_handler) ends the process that is fetched from, if the connection fails
 * before it has answered; and so it would fetch host memory over tcp. Weak, because tests play a UCX that does not. */
__attribute__((weak)) int rd_ucx_fetches_host(void)
{
    return 0;
}

static rondo_result_t context_make(rd_net_t *net, const rd_env_t *env, const char *address, int place)
{
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read("RONDO", NULL, &config);
    if (status != UCS_OK) {
        return rd_error(net->who, RONDO_ERR_SYSTEM, "UCX cannot read its settings: %s (look at the UCX_* variables)",
                        ucs_status_string(status));
    }
    rondo_result_t result = settings_put(net, config, env, address, place);
    if (result == RONDO_SUCCESS) {
        ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME |
                                             UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                               .features = UCP_FEATURE_AM | (may_fetch(env) ? UCP_FEATURE_RMA : 0),
                               .name = "rondo",
                               .mt_workers_shared = 0,
                               .estimated_num_eps = (size_t)net->nranks};
        atomic_fetch_add(&contexts, 1);
        status = ucp_init(&params, config, &net->context);
        if (status != UCS_OK) {
            atomic_fetch_sub(&contexts, 1);
            net->context = NULL;
            result = rd_error(
                net->who, RONDO_ERR_SYSTEM,
                "UCX cannot start: %s (RONDO_UCX_TLS is \"%s\"; RONDO_NET, RONDO_UCX_NET_DEVICES or UCX_NET_DEVICES "
                "may name a device that it has not)",
                ucs_status_string(status), env->ucx_tls);
        }
    }
    ucp_config_release(config);
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    if (result == RONDO_SUCCESS && ucp_context_query(net->context, &attr) == UCS_OK) {
        net->cuda = (attr.memory_types >> UCS_MEMORY_TYPE_CUDA & 1) != 0;
    }
    net->fetches = may_fetch(env) || rd_ucx_fetches_host();
    return result;
}

static rondo_result_t worker_make(rd_net_t *net)
{
    /* One thread at a time, though not always the same one: the user orders the calls on one communicator. A peer that
     * dies leaves requests behind that nothing completes any more: that is not worth UCX's warning. */
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED,
                                  .flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK};
    ucs_status_t status = ucp_worker_create(net->context, &params, &net->worker);
    if (status != UCS_OK) {
        net->worker = NULL;
        return rd_error(net->who, RONDO_ERR_SYSTEM, "UCX cannot make a worker: %s", ucs_status_string(status));
    }
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    status = ucp_worker_query(net->worker, &attr);
    if (status != UCS_OK || attr.max_am_header < sizeof(rd_ucx_header_t)) {
        return rd_error(net->who, RONDO_ERR_UNSUPPORTED,
                        "the transports that UCX found carry no active message header of %zu bytes: choose others by "
                        "RONDO_UCX_TLS",
                        sizeof(rd_ucx_header_t));
    }
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = RD_UCX_AM,
                                      .cb = rd_ucx_arrive,
                                      .arg = net};
    status = ucp_worker_set_am_recv_handler(net->worker, &handler);
    if (status != UCS_OK) {
        return rd_error(net->who, RONDO_ERR_SYSTEM, "UCX takes no active message handler: %s",
                        ucs_status_string(status));
    }
    return RONDO_SUCCESS;
}

rondo_result_t rd_ucx_open(rd_net_t *net, const rd_env_t *env, const char *address, int place)
{
    net->keeps = env->ucx_tls[0] == 0 || strstr(env->ucx_tls, "tcp") != NULL || strstr(env->ucx_tls, "all") != NULL;
    net->lists = rd_net_tcp_alone(env->ucx_tls);
    rondo_result_t result = context_allowed(net);
    if (result == RONDO_SUCCESS) {
        result = context_make(net, env, address, place);
    }
    return result == RONDO_SUCCESS ? worker_make(net) : result;
}

void rd_ucx_close(rd_net_t *net)
{
    if (net->worker != NULL) {
        rd_ucx_direct_free(net);
        ucp_worker_destroy(net->worker);
    }
    if (net->context != NULL) {
        ucp_cleanup(net->context);
        atomic_fetch_sub(&contexts, 1);
    }
}

/* UCX has no call for it but the one that prints: lines that end with "-- tcp/eth0", or "-- posix/memory" and the like
 * for what is no network. */
static void devices_list(ucp_context_h context, char text[RD_NET_DEVICES])
{
    char *printed = NULL, *line, *state = NULL;
    size_t bytes = 0, used = 0;
    FILE *f = open_memstream(&printed, &bytes);
    text[0] = 0;
    if (f == NULL) {
        return;
    }
    ucp_context_print_info(context, f);
    fclose(f);
    for (line = strtok_r(printed, "\n", &state); line != NULL; line = strtok_r(NULL, "\n", &state)) {
        const char *device = strstr(line, "resource") != NULL ? strstr(line, "-- ") : NULL;
        if (device != NULL && strstr(device, "/memory") == NULL && used < RD_NET_DEVICES) {
            used += (size_t)snprintf(text + used, RD_NET_DEVICES - used, "%s%s", used != 0 ? " " : "", device + 3);
        }
    }
    free(printed);
}

rondo_result_t rd_net_probe(const rd_env_t *env, const char *address, int place, char text[RD_NET_DEVICES], int *cuda)
{
    rd_net_t net = {.nranks = 2};
    /* A list of all there is needs no worker, and of shared memory none should be made for it. */
    rondo_result_t result =
        *address != 0 ? rd_ucx_open(&net, env, address, place) : context_make(&net, env, address, place);
    if (result == RONDO_SUCCESS) {
        devices_list(net.context, text);
    }
    *cuda = net.cuda;
    rd_ucx_close(&net);
    return result;
}

/* The address of this rank's worker, malloced. */
static rondo_result_t address_own(rd_net_t *net, char **address, uint32_t *bytes)
{
    /* Network devices alone: shared memory's part is of no use between nodes. But cuda_ipc counts as that. */
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
                              .address_flags = net->cuda ? 0 : UCP_WORKER_ADDRESS_FLAG_NET_ONLY};
    ucs_status_t status = ucp_worker_query(net->worker, &attr);
    if (status != UCS_OK || attr.address_length > ADDRESS_MAX) {
        return rd_error(net->who, RONDO_ERR_SYSTEM, "UCX gives no usable worker address: %s",
                        ucs_status_string(status));
    }
    *address = malloc(attr.address_length);
    if (*address != NULL) {
        memcpy(*address, attr.address, attr.address_length);
        *bytes = (uint32_t)attr.address_length;
    }
    ucp_worker_release_address(net->worker, attr.address);
    return *address != NULL ? RONDO_SUCCESS : rd_error(net->who, RONDO_ERR_NO_MEMORY, "no memory for a worker address");
}

/* Moves bytes [from, from + each) of everybody's address into net->addresses, `stride` bytes a rank. */
static rondo_result_t piece_exchange(rd_net_t *net, const char *own, uint32_t own_bytes, size_t from, size_t each,
                                     size_t stride, char *all)
{
    char *mine = all + (size_t)net->rank * each;
    size_t have = own_bytes > from ? own_bytes - from : 0;
    memset(mine, 0, each);
    memcpy(mine, own + (have != 0 ? from : 0), have < each ? have : each);
    rondo_result_t result = rd_boot_allgather(net->boot, all, each);
    for (int r = 0; result == RONDO_SUCCESS && r < net->nranks; r++) {
        memcpy(net->addresses + (size_t)r * stride + from, all + (size_t)r * each, each);
    }
    return result;
}

/* What ranks say of their UCX before they exchange addresses. */
typedef struct part {
    uint32_t bytes;   /* of the address; 0: its own part failed */
    uint32_t version; /* 10000 * major + 100 * minor + patch */
    uint32_t tcp;     /* no other transport */
} part_t;

static part_t part_own(uint32_t bytes, const rd_env_t *env)
{
    unsigned major, minor, patch;
    ucp_get_version(&major, &minor, &patch);
    return (part_t){bytes, 10000 * major + 100 * minor + patch, strcmp(env->ucx_tls, "tcp") == 0};
}

static const char *version_print(uint32_t version, char text[16])
{
    snprintf(text, 16, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return text;
}

/* All ranks see the same, and refuse or go on alike. Patches of one version go together. */
static rondo_result_t versions_check(const rd_net_t *net, const part_t *parts)
{
    int first = 0, last = 0, tcp = 1;
    char one[16], other[16];
    for (int r = 0; r < net->nranks; r++) {
        first = parts[r].version < parts[first].version ? r : first;
        last = parts[r].version > parts[last].version ? r : last;
        tcp &= parts[r].tcp != 0;
    }
    if (parts[first].version / 100 == parts[last].version / 100 ||
        (tcp && parts[first].version >= TRIED_FIRST && parts[last].version <= TRIED_LAST)) {
        return RONDO_SUCCESS;
    }
    rd_boot_farewell_alike(net->boot);
    return rd_error(
        net->who, RONDO_ERR_UNSUPPORTED,
        "ranks have different versions of UCX: rank %d (%s) has %s, rank %d (%s) has %s: let all nodes load "
        "the same one (only 1.13 to 1.22 are known to go together, and only over RONDO_UCX_TLS=tcp)",
        first, rd_boot_whois(net->boot, first), version_print(parts[first].version, one), last,
        rd_boot_whois(net->boot, last), version_print(parts[last].version, other));
}

/* The longest address is the stride of the table. A rank whose own part failed takes part with length 0, so that all
 * ranks learn of it. */
static rondo_result_t parts_exchange(rd_net_t *net, part_t own, part_t *parts, size_t *stride)
{
    parts[net->rank] = own;
    rondo_result_t result = rd_boot_allgather(net->boot, parts, sizeof *parts);
    *stride = 0;
    for (int r = 0; result == RONDO_SUCCESS && r < net->nranks; r++) {
        if (r != net->rank && (parts[r].bytes == 0 || parts[r].bytes > ADDRESS_MAX)) {
            return rd_error(net->who, RONDO_ERR_REMOTE, "rank %d (%s) has no working UCX: its own message says why", r,
                            rd_boot_whois(net->boot, r));
        }
        *stride = parts[r].bytes > *stride ? parts[r].bytes : *stride;
    }
    return result == RONDO_SUCCESS ? versions_check(net, parts) : result;
}

rondo_result_t rd_ucx_exchange(rd_net_t *net, const rd_env_t *env, rondo_result_t opened, const unsigned char *remote)
{
    char *own = NULL, *all = NULL;
    uint32_t own_bytes = 0;
    size_t stride = 0, n = (size_t)net->nranks;
    if (opened == RONDO_SUCCESS) {
        opened = address_own(net, &own, &own_bytes);
    }
    char why[RD_ERROR_BYTES]; /* of this rank; the exchange may have more to say */
    snprintf(why, sizeof why, "%s", rd_thread_error());
    part_t *parts = calloc(n, sizeof *parts);
    if (parts == NULL) {
        free(own);
        return rd_error(net->who, RONDO_ERR_NO_MEMORY, "no memory for the lengths of %zu addresses", n);
    }
    rondo_result_t result = parts_exchange(net, part_own(opened == RONDO_SUCCESS ? own_bytes : 0, env), parts, &stride);
    if (opened != RONDO_SUCCESS) {
        result = opened;
        rd_thread_error_set(why);
    }
    if (result != RONDO_SUCCESS) {
        goto free_own;
    }
    size_t piece = stride < PIECE ? stride : PIECE;
    net->addresses = calloc(n, stride);
    all = malloc(n * piece);
    if (net->addresses == NULL || all == NULL) {
        result = rd_error(net->who, RONDO_ERR_NO_MEMORY, "no memory for %zu worker addresses", n);
        goto free_own;
    }
    for (size_t from = 0; result == RONDO_SUCCESS && from < stride; from += piece) {
        size_t each = stride - from < piece ? stride - from : piece;
        result = piece_exchange(net, own, own_bytes, from, each, stride, all);
    }
    for (size_t r = 0; result == RONDO_SUCCESS && r < n; r++) {
        net->peers[r].address = remote[r] ? (const ucp_address_t *)(net->addresses + r * stride) : NULL;
    }
free_own:
    free(all);
    free(own);
    free(parts);
    return result;
}
