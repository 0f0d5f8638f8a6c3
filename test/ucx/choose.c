/* Which transports the ranks agree on. InfiniBand is played: a folder in the place of Linux's, a UCX that lists ports
 * of the test's choice, and shared memory, which UCX carries by the same operations, in the place of rc. What is faster
 * is used if all ranks have it; else data goes by tcp, and one line says what lies idle and why. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ucx/ucx_load.h"
#include "util/harness.h"

#define RANKS 3
#define MOST (1 << 20)  /* elements of an allreduce */
#define PORTS_MOST 1024 /* bytes of a trial's ports */

typedef struct trial {
    const char *name;
    const char *ports[RANKS]; /* "mlx5_0:1 InfiniBand ACTIVE hardware [SUBNET], ..." */
    const char *listed;       /* by UCX; NULL: those ports */
    bool other[RANKS];        /* it has another version of UCX, which is known to go with its own over tcp */
    int vanishes;             /* the rank whose device does, or -1 */
    const char *tls[RANKS];   /* RONDO_UCX_TLS */
    const char *net;          /* RONDO_NET of all ranks, or NULL */
    const char *version;      /* that UCX says it is, or NULL: its own */
    bool fast;
    const char *devices[RANKS]; /* that UCX is given, or NULL */
    const char *line;           /* of rank 0 */
} trial_t;

static const trial_t *now;
static int here;                              /* this rank */
static char root[32], folder[48], given[512]; /* `folder` is this rank's, in the one of all */
static bool asking, fast;                     /* what the configuration at hand is for */
static bool quiet;                            /* no message is announced */
static rd_ucp_t ucx;
static struct ucp_context *const listing = (struct ucp_context *)folder; /* what only lists */

const char *rd_ucx_fabric_folder(const char *address);
const char *rd_ucx_fabric_folder(const char *address)
{
    (void)address;
    return folder;
}

/* ---- the UCX that is played */

static ucs_status_t modify(ucp_config_t *config, const char *name, const char *value)
{
    if (strcmp(name, "TLS") == 0) {
        asking = strcmp(value, "ib,cxi") == 0;
        fast = strcmp(value, "ib,cxi,tcp") == 0;
        value = fast ? "posix,sysv,self,tcp" : asking ? "self" : value;
    }
    quiet |= fast && strcmp(name, "RNDV_THRESH") == 0 && strcmp(value, "inf") == 0;
    if (strcmp(name, "NET_DEVICES") == 0 && fast) {
        snprintf(given, sizeof given, "%s", value);
        value = "lo";
    }
    return ucx.config_modify(config, name, value);
}

static ucs_status_t init(unsigned major, unsigned minor, const ucp_params_t *params, const ucp_config_t *config,
                         ucp_context_h *context)
{
    if (fast && now->vanishes == here)
        return UCS_ERR_NO_DEVICE;
    if (!asking)
        return ucx.init_version(major, minor, params, config, context);
    *context = listing;
    return UCS_OK;
}

static void clean(ucp_context_h context)
{
    if (context != listing)
        ucx.cleanup(context);
}

/* Has the ports as UCX prints them, each by the transports of a Mellanox card. */
static void print(const ucp_context_h context, FILE *stream)
{
    static const char *const transports[] = {"rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs", "ud_mlx5"};
    char text[PORTS_MOST], *state = NULL;
    if (context != listing) {
        ucx.context_print_info(context, stream);
        return;
    }
    snprintf(text, sizeof text, "%s", now->listed ? now->listed : now->ports[here]);
    for (char *port = strtok_r(text, ",", &state); port; port = strtok_r(NULL, ",", &state)) {
        char name[32];
        sscanf(port, "%31s", name);
        for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++)
            fprintf(stream, "#      resource %zu  :  md 0  dev 0  flags -- %s/%s\n", i, transports[i], name);
    }
}

static void version(unsigned *major, unsigned *minor, unsigned *patch)
{
    ucx.get_version(major, minor, patch);
    if (now->other[here])
        *minor = *minor == 22 ? 21 : 22;
}

static const char *version_string(void)
{
    return now->version ? now->version : ucx.get_version_string();
}

static ucs_status_t query(ucp_worker_h worker, ucp_worker_attr_t *attr)
{
    attr->address_flags = fast ? 0 : attr->address_flags;
    return ucx.worker_query(worker, attr);
}

void rd_ucx_loaded(rd_ucp_t *ucp)
{
    ucx = *ucp;
    ucp->config_modify = modify;
    ucp->init_version = init;
    ucp->cleanup = clean;
    ucp->context_print_info = print;
    ucp->get_version = version;
    ucp->get_version_string = version_string;
    ucp->worker_query = query;
}

/* ---- the host that is played */

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (f) {
        fprintf(f, "%s\n", text);
        fclose(f);
    }
}

static void host_make(const char *ports)
{
    char text[PORTS_MOST], *state = NULL;
    snprintf(text, sizeof text, "%s", ports);
    for (char *port = strtok_r(text, ",", &state); port; port = strtok_r(NULL, ",", &state)) {
        char device[32], number[8], layer[32], activity[32], kind[32], subnet[8] = "", path[256], gid[64];
        sscanf(port, " %31[^:]:%7s %31s %31s %31s %7s", device, number, layer, activity, kind, subnet);
        snprintf(path, sizeof path, "%s/%s", folder, device);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/%s/ports", folder, device);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/%s/ports/%s", folder, device, number);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/%s/ports/%s/state", folder, device, number);
        write_file(path, activity);
        snprintf(path, sizeof path, "%s/%s/ports/%s/link_layer", folder, device, number);
        write_file(path, layer);
        snprintf(path, sizeof path, "%s/%s/ports/%s/gids", folder, device, number);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/%s/ports/%s/gids/0", folder, device, number);
        snprintf(gid, sizeof gid, "%s:0000:0000:0000:0002:c903:0000:%.4s", subnet, device + strlen(device) - 4);
        if (*subnet)
            write_file(path, gid);
        snprintf(path, sizeof path, "%s/%s/device", folder, device);
        if (strcmp(kind, "hardware") == 0)
            mkdir(path, 0700);
    }
}

static int forget(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s;
    (void)type;
    (void)at;
    return remove(path);
}

/* ---- the ranks */

static void data_check(test_rank_t *t, rondo_comm_t comm)
{
    int *in = malloc(MOST * sizeof *in), *out = malloc(MOST * sizeof *out);
    for (size_t n = 1; in && out && n <= MOST; n *= 16) {
        for (size_t i = 0; i < n; i++)
            in[i] = (int)i + t->rank;
        TEST_OK(t, comm, rondo_allreduce(in, out, n, RONDO_INT32, RONDO_SUM, comm, NULL));
        for (size_t i = 0; i < n && test_failures(t) == 0; i++)
            if (out[i] != RANKS * (int)i + RANKS * (RANKS - 1) / 2)
                test_fail(t, "element %zu of %zu is %d", i, n, out[i]);
    }
    free(in);
    free(out);
}

static void log_check(test_rank_t *t, int log)
{
    char text[8192];
    ssize_t bytes = pread(log, text, sizeof text - 1, 0);
    text[bytes > 0 ? bytes : 0] = 0;
    if (!strstr(text, now->fast ? "transports ib,cxi,tcp: " : "transports tcp: tcp/lo"))
        test_fail(t, "%s: not the transports that were expected: %s", now->name, text);
    if (t->rank == 0 && now->line && !strstr(text, now->line))
        test_fail(t, "%s: the log must have \"%s\": %s", now->name, now->line, text);
    if (strstr(text, "lies idle") && !(t->rank == 0 && now->line))
        test_fail(t, "%s: said more than once: %s", now->name, text);
}

static void body(test_rank_t *t, void *arg)
{
    rondo_config_t config = RONDO_CONFIG_INIT;
    char host[16], path[32];
    int log = memfd_create("log", MFD_CLOEXEC);

    now = arg;
    here = t->rank;
    test_note(t, "%s", now->name);
    snprintf(folder, sizeof folder, "%s/%d", root, here);
    mkdir(folder, 0700);
    host_make(now->ports[here]);
    snprintf(host, sizeof host, "host%d", t->rank > 0); /* ranks 1 and 2 share a node */
    snprintf(path, sizeof path, "/proc/self/fd/%d", log);
    setenv("RONDO_HOSTID", host, 1);
    setenv("RONDO_DEBUG", "info", 1);
    setenv("RONDO_DEBUG_FILE", path, 1);
    setenv("UCX_POSIX_ERROR_HANDLING", "y", 1);
    setenv("UCX_SYSV_ERROR_HANDLING", "y", 1);
    if (now->tls[here])
        setenv("RONDO_UCX_TLS", now->tls[here], 1);
    if (now->net)
        setenv("RONDO_NET", now->net, 1);
    config.device = RONDO_DEVICE_HOST;
    rondo_comm_t comm = test_comm(t, &config);
    data_check(t, comm);
    log_check(t, log);
    const char *devices = now->devices[here];
    if (devices && strcmp(given, devices) != 0)
        test_fail(t, "%s: UCX is given the devices %s, not %s", now->name, given, devices);
    if (now->version && !quiet)
        test_fail(t, "%s: UCX may announce a message", now->name);
    TEST_OK(t, NULL, rondo_comm_destroy(comm));
}

#define IB "mlx5_0:1 InfiniBand ACTIVE hardware"
#define ROCE "mlx5_0:1 Ethernet ACTIVE hardware"
#define TWO(a, b) IB " " a ",mlx5_1:1 InfiniBand ACTIVE hardware " b
#define CARD(name) name " InfiniBand ACTIVE hardware,"
/* As many as a large GPU server has: UCX's list of them is long. */
#define SIXTEEN                                                                                                        \
    CARD("mlx5_0:1")                                                                                                   \
    CARD("mlx5_1:1")                                                                                                   \
    CARD("mlx5_2:1")                                                                                                   \
    CARD("mlx5_3:1")                                                                                                   \
    CARD("mlx5_4:1") CARD("mlx5_5:1") CARD("mlx5_6:1") CARD("mlx5_7:1") CARD("mlx5_8:1") CARD("mlx5_9:1")              \
        CARD("mlx5_10:1") CARD("mlx5_11:1") CARD("mlx5_12:1") CARD("mlx5_13:1") CARD("mlx5_14:1") CARD("mlx5_15:1")
#define SIXTEEN_DEVICES                                                                                                \
    "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1,mlx5_8:1,mlx5_9:1,mlx5_10:1,mlx5_11:1,"   \
    "mlx5_12:1,mlx5_13:1,mlx5_14:1,mlx5_15:1,lo"

int main(void)
{
    static const trial_t trials[] = {
        {.name = "all", .ports = {IB, IB, IB}, .vanishes = -1, .fast = true, .devices = {"mlx5_0:1,lo"}},
        {.name = "several ports",
         .ports = {IB
                   ",mlx5_1:1 InfiniBand ACTIVE hardware,mlx5_2:1 InfiniBand DOWN hardware,rxe0:1 Ethernet ACTIVE soft",
                   IB, IB},
         .vanishes = -1,
         .fast = true,
         .devices = {"mlx5_0:1,mlx5_1:1,lo"}},
        {.name = "sixteen ports",
         .ports = {SIXTEEN, SIXTEEN, SIXTEEN},
         .vanishes = -1,
         .fast = true,
         .devices = {SIXTEEN_DEVICES, SIXTEEN_DEVICES}},
        {.name = "shares of one subnet",
         .ports = {TWO("fe80", "fe80"), TWO("fe80", "fe80"), TWO("fe80", "fe80")},
         .vanishes = -1,
         .fast = true,
         .devices = {"mlx5_0:1,mlx5_1:1,lo", "mlx5_0:1,lo", "mlx5_1:1,lo"}},
        {.name = "two subnets",
         .ports = {TWO("fe80", "fe81"), TWO("fe80", "fe81"), TWO("fe80", "fe81")},
         .vanishes = -1,
         .fast = true,
         .devices = {"mlx5_0:1,mlx5_1:1,lo", "mlx5_0:1,mlx5_1:1,lo", "mlx5_0:1,mlx5_1:1,lo"}},
        {.name = "another subnet on a host",
         .ports = {TWO("fe81", "fe81"), TWO("fe80", "fe80"), TWO("fe80", "fe80")},
         .vanishes = -1,
         .fast = true,
         .devices = {"mlx5_0:1,mlx5_1:1,lo", "mlx5_0:1,mlx5_1:1,lo", "mlx5_0:1,mlx5_1:1,lo"}},
        {.name = "none", .ports = {"", "", ""}, .vanishes = -1},
        {.name = "soft RoCE alone",
         .ports = {"rxe0:1 Ethernet ACTIVE soft", "rxe0:1 Ethernet ACTIVE soft", "rxe0:1 Ethernet ACTIVE soft"},
         .vanishes = -1},
        {.name = "not on rank 2", .ports = {IB, IB, ""}, .vanishes = -1, .line = "mlx5_0:1 lies idle: rank 2 ("},
        {.name = "two fabrics", .ports = {IB, IB, ROCE}, .vanishes = -1, .line = "mlx5_0:1 lies idle: rank 2 ("},
        {.name = "not in UCX", .ports = {IB, "", ""}, .listed = "", .vanishes = -1, .line = "has no transport for it"},
        {.name = "two versions",
         .ports = {IB, IB, IB},
         .other = {false, true, false},
         .vanishes = -1,
         .line = "lies idle: ranks have different versions of UCX"},
        {.name = "vanishes on rank 0",
         .ports = {IB, IB, IB},
         .vanishes = 0,
         .line = "mlx5_0:1 cannot be used here: data between nodes goes by tcp"},
        {.name = "vanishes on rank 1", .ports = {IB, IB, IB}, .vanishes = 1},
        {.name = "tcp on rank 1",
         .ports = {IB, IB, IB},
         .vanishes = -1,
         .tls = {NULL, "tcp", NULL},
         .line = "rank 1 ("},
        {.name = "tcp on all", .ports = {IB, IB, IB}, .vanishes = -1, .tls = {"tcp", "tcp", "tcp"}},
        {.name = "a port by name",
         .ports = {TWO("fe80", "fe81"), TWO("fe80", "fe81"), TWO("fe80", "fe81")},
         .vanishes = -1,
         .net = "mlx5_1:1",
         .fast = true,
         .devices = {"mlx5_1:1", "mlx5_1:1", "mlx5_1:1"}},
        {.name = "a port by name that rank 2 lacks among its own",
         .ports = {IB, IB, ROCE},
         .vanishes = -1,
         .net = "mlx5_0:1",
         .line = "mlx5_0:1 lies idle: rank 2 ("},
        {.name = "a port by name on a host that has no port",
         .ports = {IB, IB, ""},
         .vanishes = -1,
         .net = "mlx5_0:1",
         .line = "mlx5_0:1 lies idle: rank 2 ("},
        {.name = "a port by name, and tcp, on a host that has none",
         .ports = {IB, IB, ""},
         .vanishes = -1,
         .tls = {"tcp", "tcp", "tcp"},
         .net = "mlx5_0:1"},
        {.name = "a port by name, and tcp",
         .ports = {IB, IB, IB},
         .vanishes = -1,
         .tls = {"tcp", "tcp", "tcp"},
         .net = "mlx5_0:1"},
        {.name = "a port by name that vanishes",
         .ports = {IB, IB, IB},
         .vanishes = 0,
         .net = "mlx5_0:1",
         .line = "mlx5_0:1 cannot be used here: data between nodes goes by tcp"},
        {.name = "a UCX that may end the process",
         .ports = {IB, IB, IB},
         .vanishes = -1,
         .version = "1.17.0",
         .fast = true,
         .devices = {"mlx5_0:1,lo"}},
        {.name = "a UCX that may end the process, and a port by name",
         .ports = {IB, IB, IB},
         .vanishes = -1,
         .net = "mlx5_0:1",
         .version = "1.17.0",
         .fast = true,
         .devices = {"mlx5_0:1"}},
    };
    int bad = 0;

    test_begin("ucx_choose", 120);
    setenv("RONDO_IFACE", "lo", 1);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        snprintf(root, sizeof root, "/tmp/rondo-choose-XXXXXX");
        if (!mkdtemp(root))
            return 1;
        bad += test_run(TEST_PROCESSES, RANKS, 30, body, (void *)&trials[i]);
        nftw(root, forget, 8, FTW_DEPTH | FTW_PHYS);
    }
    return bad != 0;
}
