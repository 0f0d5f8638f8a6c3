/* The UCX context and worker of one communicator, and what rondo-info reports about them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/no_environ.h"
#include "base/thread.h"
#include "base/fd.h"
#include "transport/network/net_fork.h"
#include "ucx/ucx.h"

#define RD_UCX_RESERVE (16 << 20) /* bytes */
#define ROUTES "/proc/net/route"

/* UCX has one thread that accepts connections for all contexts of a process. A child that is forked while there is one
 * has no such thread, but UCX there believes that it has. */
static rd_net_fork_t at_fork = {.why = RD_NET_FORKED("UCX"), .known = ATOMIC_FLAG_INIT};

const char *rd_ucx_unusable(void)
{
    const char *missing = rd_ucx_load();
    return missing ? missing : rd_net_fork_orphaned(&at_fork);
}

/* When fetching in software, UCX (1.13 to 1.22: ucp_get_req_handler) ends the process that is fetched from if the
 * connection fails before that process has answered; and over tcp it would fetch host memory in this way. The function
 * is weak, because tests play a UCX that does not do this. */
__attribute__((weak)) bool rd_ucx_fetches_host(void)
{
    return false;
}

/* What UCX's tcp looks at may be missing where a program has changed its root. UCX does not say so. */
static const char *unseen(void)
{
    if (access("/sys/class/net", R_OK) != 0)
        return "; this process cannot read /sys/class/net: if it has changed its root, mount /sys there";
    if (access(ROUTES, R_OK) != 0)
        return "; this process cannot read " ROUTES ": if it has changed its root, mount /proc there";
    return "";
}

bool rd_ucx_is_blind(rd_ucx_net_t *net)
{
    net->blind |= net->saw_routes && access(ROUTES, R_OK) != 0;
    net->broken |= net->blind;
    return net->blind;
}

static rondo_result_t no_start(const rd_ucx_net_t *net, const rd_env_t *env, ucs_status_t status)
{
    const char *by = rd_ucx_devices_by(env), *why = rd_ucp.status_string(status);
    const char *devices = !by ? NULL : env->net[0] != 0 ? env->net : getenv(by);

    if (by)
        return rd_error(net->base.ctx, RONDO_ERR_SYSTEM,
                        "UCX cannot start: %s: %s=%.100s names devices that this host must have, for RONDO_UCX_TLS=%s "
                        "(`rondo-info net` without %s lists what there is)%s",
                        why, by, devices, env->ucx_tls, by, unseen());
    return rd_error(net->base.ctx, RONDO_ERR_SYSTEM,
                    "UCX cannot start: %s: this host must have a device for RONDO_UCX_TLS=%s (`rondo-info net` without "
                    "it lists what there is)%s",
                    why, env->ucx_tls, unseen());
}

static rondo_result_t context_make(rd_ucx_net_t *net, const rd_env_t *env, const char *address, int local_rank)
{
    ucp_config_t *config;
    ucs_status_t status = rd_ucp.config_read("RONDO", NULL, &config);
    if (status != UCS_OK) {
        return rd_error(net->base.ctx, RONDO_ERR_SYSTEM,
                        "UCX cannot read its settings: %s (look at the UCX_* variables)", rd_ucp.status_string(status));
    }
    rondo_result_t result = rd_ucx_settings_put(net, config, env, address, local_rank);
    if (result == RONDO_SUCCESS) {
        ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME |
                                             UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                               .features = UCP_FEATURE_AM | (rd_ucx_may_fetch(env) ? UCP_FEATURE_RMA : 0),
                               .name = "rondo",
                               .mt_workers_shared = 0,
                               .estimated_num_eps = (size_t)net->base.nranks};
        rd_net_fork_begin(&at_fork);
        status = rd_ucp.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &net->context);
        if (status == UCS_OK) {
            rd_fd_guard_begin(); /* connections that UCX makes later */
        } else {
            rd_net_fork_end(&at_fork);
            net->context = NULL;
            result = no_start(net, env, status);
        }
    }
    rd_ucp.config_release(config);
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    if (result == RONDO_SUCCESS && rd_ucp.context_query(net->context, &attr) == UCS_OK)
        net->base.transport.cuda = (attr.memory_types >> UCS_MEMORY_TYPE_CUDA & 1) != 0;
    net->base.transport.fetches = rd_ucx_may_fetch(env) || rd_ucx_fetches_host();
    return result;
}

static rondo_result_t worker_make(rd_ucx_net_t *net)
{
    /* Only one thread at a time uses it, though not always the same one: the user orders the calls on one communicator.
     * A peer that dies leaves requests behind that nothing completes any more: they do not deserve UCX's warning. */
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED,
                                  .flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK};
    ucs_status_t status = rd_ucp.worker_create(net->context, &params, &net->worker);
    if (status != UCS_OK) {
        net->worker = NULL;
        return rd_error(net->base.ctx, RONDO_ERR_SYSTEM, "UCX cannot make a worker: %s%s", rd_ucp.status_string(status),
                        unseen());
    }
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    status = rd_ucp.worker_query(net->worker, &attr);
    if (status != UCS_OK || attr.max_am_header < sizeof(rd_net_header_t)) {
        return rd_error(net->base.ctx, RONDO_ERR_UNSUPPORTED,
                        "the transports that UCX found carry no active message header of %zu bytes: choose others by "
                        "RONDO_UCX_TLS",
                        sizeof(rd_net_header_t));
    }
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = RD_UCX_AM,
                                      .cb = rd_ucx_arrive,
                                      .arg = net};
    status = rd_ucp.worker_set_am_recv_handler(net->worker, &handler);
    if (status != UCS_OK) {
        return rd_error(net->base.ctx, RONDO_ERR_SYSTEM, "UCX takes no active message handler: %s",
                        rd_ucp.status_string(status));
    }
    return RONDO_SUCCESS;
}

rondo_result_t rd_ucx_enter(rd_ucx_net_t *net, sigset_t *before)
{
    const char *why = rd_ucx_unusable();
    if (why)
        return rd_error(net->base.ctx, RONDO_ERR_UNSUPPORTED, "%s", why);
    int error = rd_thread_try(); /* UCX ends the process by an assertion where it cannot start its own */
    if (error != 0)
        return rd_error(net->base.ctx, RONDO_ERR_SYSTEM, "UCX needs a thread, and none can be started: %s",
                        rd_thread_strerror(error));
    rd_signals_block(before);
    return RONDO_SUCCESS;
}

/* UCX's tcp tries for ever to send the first message of a connection where it finds no memory for that (1.13: 12 MiB).
 * So much is reserved before its threads and the C library's arenas, which come in larger pieces, take the rest. */
static rondo_result_t reserve_memory(rd_ucx_net_t *net)
{
    void *reserve = mmap(NULL, RD_UCX_RESERVE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (reserve == MAP_FAILED)
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for UCX, which needs %d MiB: raise %s",
                        RD_UCX_RESERVE >> 20, errno == EAGAIN ? "`ulimit -l`" : "`ulimit -v` and `ulimit -d`");
    net->reserve = reserve;
    return RONDO_SUCCESS;
}

void rd_ucx_memory_back(rd_ucx_net_t *net)
{
    if (net->reserve)
        munmap(net->reserve, RD_UCX_RESERVE);
    net->reserve = NULL;
}

rondo_result_t rd_ucx_open(rd_ucx_net_t *net, const rd_env_t *env, const char *address, int local_rank)
{
    sigset_t before;
    net->keeps = rd_ucx_tls_may(env, "tcp");
    net->saw_routes = net->keeps && access(ROUTES, R_OK) == 0;
    net->lists = rd_ucx_tcp_alone(env->ucx_tls);
    net->shares = rd_ucx_tls_shares(env->ucx_tls);
    rondo_result_t result = rd_ucx_enter(net, &before);
    if (result != RONDO_SUCCESS)
        return result;
    rd_no_environ_begin(); /* UCX walks over the variables without asking whether there are any */
    result = reserve_memory(net);
    if (result == RONDO_SUCCESS)
        result = context_make(net, env, address, local_rank);
    if (result == RONDO_SUCCESS)
        result = worker_make(net);
    rd_no_environ_end();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

void rd_ucx_close(rd_ucx_net_t *net)
{
    rd_ucx_memory_back(net);
    if (net->worker) {
        rd_ucx_gdr_free(net);
        rd_ucp.worker_destroy(net->worker);
        net->worker = NULL;
    }
    if (net->context) {
        rd_ucp.cleanup(net->context);
        rd_fd_guard_end();
        net->context = NULL;
        rd_net_fork_end(&at_fork);
    }
}

/* UCX lists its resources only as printed text, whose lines end with "-- tcp/eth0", or with "-- posix/memory" and the
 * like for what is no network. A resource for which there is no room is left out: half a name would be another one. */
void rd_ucx_resources(ucp_context_h context, char *text, size_t size)
{
    char *printed = NULL, *line, *state = NULL;
    size_t bytes = 0, used = 0;
    FILE *f = open_memstream(&printed, &bytes);
    text[0] = 0;
    if (!f)
        return;
    rd_ucp.context_print_info(context, f);
    fclose(f);
    for (line = strtok_r(printed, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        const char *device = strstr(line, "resource") ? strstr(line, "-- ") : NULL;
        if (device && !strstr(device, "/memory") && used + strlen(device + 3) + 1 < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used != 0 ? " " : "", device + 3);
    }
    free(printed);
}

/* Returns why data would use these devices. */
static const char *reason(const rd_env_t *env)
{
    const char *by = rd_ucx_devices_by(env);

    if (by)
        return strcmp(by, "RONDO_NET") == 0    ? "RONDO_NET names it"
               : strncmp(by, "RONDO_", 6) == 0 ? "RONDO_UCX_NET_DEVICES names it"
                                               : "UCX_NET_DEVICES names it";
    return rd_ucx_tcp_alone(env->ucx_tls) ? "ranks meet there" : "UCX chooses, of what it has for RONDO_UCX_TLS";
}

rondo_result_t rd_ucx_probe(const rd_env_t *env, const char *address, int local_rank, rd_transport_report_t *report)
{
    rd_ucx_net_t net = {.base = {.nranks = 2}};
    rd_env_t used = *env, every = *env;
    if (address)
        rd_ucx_choose_alone(&net, &used, address, local_rank);
    *report = (rd_transport_report_t){.reason = net.fast ? "the fastest that is here" : reason(&used)};
    report->advice = "`rondo-info net` without RONDO_NET and RONDO_UCX_TLS says which devices there are";
    snprintf(report->settings, sizeof report->settings, "transports %s (RONDO_UCX_TLS)", used.ucx_tls);
    rondo_result_t result;
    if (address) {
        result = rd_ucx_open(&net, &used, address, local_rank);
    } else { /* listing all devices needs no worker, and none should be made for shared memory */
        every.net[0] = 0;
        snprintf(every.ucx_tls, sizeof every.ucx_tls, "all");
        result = context_make(&net, &every, "", local_rank);
    }
    if (result == RONDO_SUCCESS)
        rd_ucx_resources(net.context, report->devices, sizeof report->devices);
    if (result == RONDO_SUCCESS && report->devices[0] == 0)
        report->advice = "RONDO_UCX_TLS must name a transport between hosts, as tcp";
    report->cuda = net.base.transport.cuda;
    rd_ucx_close(&net);
    return result;
}
