/* NCCL_ALGO becomes a RONDO_ALGO of algorithms that serve, on host memory and between GPUs, each by the protocol that
 * NCCL_PROTO asks for, and files of topologies and graphs become rondo's; networks that the environment names stand
 * above those of a config. Variables are read once a process: each case has one.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/setting.h"
#include "exec/cuda/cuda.h"
#include "nccl/shim.h"
#include "util/check.h"

/* What a child of its own finds in RONDO_ALGO or RONDO_PROTO. */
typedef struct wish {
    int host;
    const char *algo, *proto, *own; /* NCCL_ALGO, NCCL_PROTO, RONDO_PROTO; "": unset */
    const char *in, *want;          /* the variable of rondo, and its value; "": not set */
} wish_t;

static int in_child(const wish_t *w)
{
    char text[RD_SETTING_BYTES];
    const char *got;

    setenv("RONDO_NCCL_HOST", w->host ? "1" : "0", 1);
    setenv("NCCL_ALGO", w->algo, 1);
    setenv("NCCL_PROTO", w->proto, 1);
    setenv("RONDO_PROTO", w->own, 1);
    nc_settings();
    got = rd_setting_text(w->in, text);
    if (strcmp(got ? got : "", w->want) == 0)
        return 0;
    printf("%s: NCCL_ALGO=%s NCCL_PROTO=%s RONDO_PROTO=%s: %s=%s, not %s\n", w->host ? "host memory" : "GPUs", w->algo,
           w->proto, w->own, w->in, got ? got : "", w->want);
    return 1;
}

/* The sentence with which creation fails in a child of its own; "": it does not. */
static void refused(const char *variable, const char *value, const char *sentence)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        ncclUniqueId id;
        ncclComm_t comm = NULL;
        int bad;

        setenv("RONDO_NCCL_HOST", "1", 1);
        setenv("NCCL_DEBUG", "NONE", 1);
        setenv(variable, value, 1);
        bad = ncclGetUniqueId(&id) != ncclSuccess;
        bad |= ncclCommInitRank(&comm, 1, id, 0) != (*sentence ? ncclInvalidUsage : ncclSuccess);
        bad |= *sentence && strstr(ncclGetLastError(NULL), sentence) == NULL;
        if (*sentence) { /* as in NCCL, the group has the error */
            bad |= ncclGroupStart() != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess;
            bad |= ncclGroupEnd() != ncclInvalidUsage || comm != NULL;
        }
        if (bad)
            printf("%s=%s: %s\n", variable, value, ncclGetLastError(NULL));
        fflush(stdout);
        _exit(bad);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s=%s", variable, value);
}

static void check(const wish_t *w)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        int bad = in_child(w);
        fflush(stdout);
        _exit(bad);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s by %s", w->algo, w->proto);
}

static void becomes(int host, const char *algo, const char *proto, const char *own, const char *want)
{
    const wish_t wish = {host, algo, proto, own, "RONDO_ALGO", want};

    check(&wish);
}

static void protocol(int host, const char *proto, const char *want)
{
    const wish_t wish = {host, "", proto, "", "RONDO_PROTO", want};

    check(&wish);
}

/* NCCL_RAS_ADDR and NCCL_RAS_ENABLE in a child of its own; "": not set. */
static void asks_at(const char *address, const char *enable, const char *want)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        char text[RD_SETTING_BYTES];

        setenv("NCCL_RAS_ADDR", address, 1);
        setenv("NCCL_RAS_ENABLE", enable, 1);
        nc_settings();
        const char *got = rd_setting_text("RONDO_RAS_NCCL", text);
        _exit(strcmp(got ? got : "", want) != 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "NCCL_RAS_ADDR=%s NCCL_RAS_ENABLE=%s",
          address, enable);
}

static void file_named(const char *nccl, const char *value, const char *rondo, const char *want)
{
    const wish_t wish = {1, "", "", "", rondo, want};

    setenv(nccl, value, 1);
    check(&wish);
    unsetenv(nccl);
}

/* Files of topologies and graphs; a communicator of one rank leaves its machine in one. */
static void files(void)
{
    char name[] = "/tmp/rondo-nccl-dump-XXXXXX", line[64] = "";
    int fd = mkstemp(name);
    FILE *f;

    close(fd);
    file_named("NCCL_TOPO_FILE", name, "RONDO_TOPO_FILE", name);
    file_named("NCCL_TOPO_FILE", "/none/such", "RONDO_TOPO_FILE", "");
    file_named("NCCL_TOPO_DUMP_FILE", "/none/such", "RONDO_TOPO_DUMP_FILE", "/none/such");
    file_named("NCCL_TOPO_DUMP_FILE_RANK", "3", "RONDO_TOPO_DUMP_FILE_RANK", "3");
    file_named("NCCL_GRAPH_FILE", name, "RONDO_GRAPH_FILE", name);
    file_named("NCCL_GRAPH_FILE", "/none/such", "RONDO_GRAPH_FILE", "");
    file_named("NCCL_GRAPH_DUMP_FILE", name, "RONDO_GRAPH_DUMP_FILE", name);
    file_named("NCCL_GRAPH_DUMP_FILE_RANK", "2", "RONDO_GRAPH_DUMP_FILE_RANK", "2");
    refused("NCCL_TOPO_DUMP_FILE", name, "");
    f = fopen(name, "r");
    CHECK(f && fgets(line, sizeof line, f) && strncmp(line, "<system version=\"1\"", 19) == 0, "%s", line);
    if (f)
        fclose(f);
    unlink(name);
    refused("NCCL_TOPO_DUMP_FILE", "/none/such", ""); /* which a line of the log says */
}

/* The network of a communicator with this netName ("": none), in a child of its own. */
static void network_is(const char *net, const char *off, const char *own, const char *named, const char *want)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        nc_config_t read;

        setenv("RONDO_NCCL_HOST", "1", 1);
        setenv("NCCL_NET", net, 1);
        setenv("NCCL_IB_DISABLE", off, 1);
        setenv("RONDO_UCX_TLS", own, 1);
        config.netName = *named ? named : NULL;
        if (nc_config_read(&read, &config, NULL, "test") != ncclSuccess)
            _exit(1);
        const char *got = read.network ? read.network : "";
        if (strcmp(got, want) != 0)
            printf("the network is \"%s\", not \"%s\"\n", got, want);
        fflush(stdout);
        _exit(strcmp(got, want) != 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0,
          "NCCL_NET=%s NCCL_IB_DISABLE=%s RONDO_UCX_TLS=%s, netName %s", net, off, own, named);
}

static void networks(void)
{
    network_is("", "", "", "", "");
    network_is("", "", "", "Socket", "tcp");
    network_is("socket", "", "", "", "tcp");
    network_is("IB", "0", "", "Socket", "ib"); /* as in NCCL, it stands above a config */
    network_is("IB", "1", "", "IB", "tcp");    /* NCCL would have no network at all */
    network_is("", "1", "", "", "tcp");
    network_is("AWS Libfabric", "", "", "", "");
    network_is("Socket", "1", "all", "", ""); /* rondo's own variable counts */
    file_named("NCCL_IB_TC", "106", "RONDO_TRAFFIC_CLASS", "106");
    file_named("NCCL_IB_TC", "256", "RONDO_TRAFFIC_CLASS", "");
}

static char fabric[] = "/tmp/rondo-nccl-ib-XXXXXX";

const char *nc_ib_folder(void);
const char *nc_ib_folder(void)
{
    return fabric;
}

/* One port's folder of the host that is played. */
static void port_make(const char *device, int port, const char *state, const char *layer)
{
    char command[400];

    snprintf(command, sizeof command, "d=%s/%s/ports/%d; mkdir -p $d && echo '%s' >$d/state && echo %s >$d/link_layer",
             fabric, device, port, state, layer);
    CHECK(system(command) == 0, "%s", command);
}

/* The ports that NCCL_IB_HCA leaves, as NCCL's parseStringList and matchIfList read it. */
static void ib_ports(void)
{
    char command[64];

    CHECK(mkdtemp(fabric) != NULL);
    port_make("mlx5_0", 1, "4: ACTIVE", "InfiniBand");
    port_make("mlx5_1", 1, "4: ACTIVE", "Ethernet");
    port_make("mlx5_1", 2, "4: ACTIVE", "InfiniBand");
    port_make("mlx5_2", 1, "1: DOWN", "InfiniBand");
    port_make("mlx5_10", 1, "4: ACTIVE", "InfiniBand");
    file_named("NCCL_IB_HCA", "mlx5_0", "RONDO_NET", "mlx5_0:1");
    file_named("NCCL_IB_HCA", "mlx5_1", "RONDO_NET", "mlx5_1:1,mlx5_1:2,mlx5_10:1");
    file_named("NCCL_IB_HCA", "=mlx5_1", "RONDO_NET", "mlx5_1:1,mlx5_1:2");
    file_named("NCCL_IB_HCA", "=mlx5_1:2,mlx5_0", "RONDO_NET", "mlx5_0:1,mlx5_1:2"); /* in the order of devices */
    file_named("NCCL_IB_HCA", "mlx5_1:1", "RONDO_NET", "mlx5_1:1,mlx5_10:1");
    file_named("NCCL_IB_HCA", "=mlx5_1:2:0:1,,mlx5_0:", "RONDO_NET", "mlx5_0:1,mlx5_1:2"); /* with rail and plane */
    file_named("NCCL_IB_HCA", "^mlx5_1", "RONDO_NET", "mlx5_0:1");
    file_named("NCCL_IB_HCA", "^=mlx5_1", "RONDO_NET", "mlx5_0:1,mlx5_10:1");
    file_named("NCCL_IB_HCA", "^=mlx5_1:1", "RONDO_NET", "mlx5_0:1,mlx5_1:2,mlx5_10:1");
    file_named("NCCL_IB_HCA", "mlx5", "RONDO_NET", ""); /* which leaves nothing out */
    file_named("NCCL_IB_HCA", "=", "RONDO_NET", "");
    file_named("NCCL_IB_HCA", "^", "RONDO_NET", ""); /* and none of these has an active port */
    file_named("NCCL_IB_HCA", "mlx5_2,=mlx5_0,mlx5_1:3", "RONDO_NET", "");
    file_named("NCCL_IB_HCA", "mlx4", "RONDO_NET", "");
    setenv("RONDO_TRANSPORT", "ofi", 1);
    file_named("NCCL_IB_HCA", "mlx5_0", "RONDO_NET", "");
    unsetenv("RONDO_TRANSPORT");
    snprintf(command, sizeof command, "rm -r %s", fabric);
    CHECK(system(command) == 0);
}

/* What is asked of the shim itself is 1, in a child of its own. */
static void shim_says(const char *nccl, const char *value, bool (*asks)(void))
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        setenv("RONDO_NCCL_HOST", "1", 1);
        setenv(nccl, value, 1);
        nc_settings();
        _exit(!asks());
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "NCCL's %s=%s", nccl, value);
}

static bool blocking_is_0(void)
{
    int value = 5;

    return nc_settings_blocking(&value) && value == 0;
}

static bool blocking_is_1(void)
{
    int value = 5;

    return nc_settings_blocking(&value) && value == 1;
}

static bool blocking_is_unset(void)
{
    int value = 5;

    return !nc_settings_blocking(&value);
}

static bool policy_is_zero(void)
{
    int value = 5;

    return nc_settings_cta_policy(&value) && value == NCCL_CTA_POLICY_ZERO;
}

static bool policy_is_unset(void)
{
    int value = 5;

    return !nc_settings_cta_policy(&value);
}

static bool checks_nothing(void)
{
    return !nc_settings_checks_pointers();
}

/* NCCL reads a number as strtoll does by base 0: in front of the text, a word is 0, and one that is too long is none.
 */
static void odd_numbers(void)
{
    file_named("NCCL_P2P_DISABLE", "0x1", "RONDO_CMA", "0");
    file_named("NCCL_P2P_DISABLE", "1 ", "RONDO_CMA", "0");
    file_named("NCCL_P2P_DISABLE", "true", "RONDO_CMA", "");
    file_named("NCCL_P2P_DISABLE", "2", "RONDO_CMA", "");
    file_named("NCCL_P2P_LEVEL", "LOC", "RONDO_CMA", "0");
    file_named("NCCL_P2P_LEVEL", "00", "RONDO_CMA", "0");
    file_named("NCCL_P2P_LEVEL", "0x2", "RONDO_CMA", "");
    file_named("NCCL_P2P_LEVEL", "loc", "RONDO_CMA", "");
    file_named("NCCL_NET_GDR_LEVEL", "LOC", "RONDO_GDR", "0");
    file_named("NCCL_NET_GDR_LEVEL", "0", "RONDO_GDR", "0");
    file_named("NCCL_NET_GDR_LEVEL", "LOC", "RONDO_CMA", "");
    file_named("NCCL_NET_GDR_LEVEL", "PHB", "RONDO_GDR", "");
    file_named("NCCL_BUFFSIZE", "0x400000", "RONDO_SLOT_BYTES", "524288");
    file_named("NCCL_BUFFSIZE", "4194304B", "RONDO_SLOT_BYTES", "524288");
    file_named("NCCL_BUFFSIZE", "4M", "RONDO_SLOT_BYTES", "");
    file_named("NCCL_BUFFSIZE", "99999999999999999999", "RONDO_SLOT_BYTES", "");
    file_named("NCCL_COLLNET_ENABLE", "false", "RONDO_COLLNET", "0");
    file_named("NCCL_COLLNET_ENABLE", "01", "RONDO_COLLNET", "-1");
    file_named("NCCL_IB_TC", "0x6a", "RONDO_TRAFFIC_CLASS", "106");
    file_named("NCCL_IB_TC", "106,", "RONDO_TRAFFIC_CLASS", "106");
    file_named("NCCL_TOPO_DUMP_FILE_RANK", "0x3", "RONDO_TOPO_DUMP_FILE_RANK", "3");
    network_is("", "0x0", "", "", "");
    network_is("", "yes", "", "", "");
    network_is("", "0x1", "", "", "tcp");
    asks_at("localhost:28028", "01", "localhost:28028");
    asks_at("localhost:28028", "yes", "");
    shim_says("NCCL_COMM_BLOCKING", "0x1", blocking_is_1);
    shim_says("NCCL_COMM_BLOCKING", "false", blocking_is_0);
    shim_says("NCCL_COMM_BLOCKING", "2", blocking_is_unset);
    shim_says("NCCL_CTA_POLICY", "2x", policy_is_zero);
    shim_says("NCCL_CTA_POLICY", "|zero|", policy_is_zero);
    shim_says("NCCL_CTA_POLICY", "9", policy_is_unset);
    shim_says("NCCL_CHECK_POINTERS", "2", checks_nothing);
}

/* Of the patterns of NCCL_DEBUG_FILE. */
static void log_files(void)
{
    char host[65] = "", want[600], name[NC_FILE_BYTES];

    (void)gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0'; /* NCCL has no domain there */
    snprintf(want, sizeof want, "/x/%s.%ld.%%h%%.%%q%%", host, (long)getpid());
    nc_log_file("/x/%h.%p.%%h%%.%q%", name);
    CHECK(strcmp(name, want) == 0, "%s, not %s", name, want);
    memset(want, 'y', sizeof want - 1);
    want[sizeof want - 1] = '\0';
    nc_log_file(want, name);
    CHECK(strlen(name) < sizeof name && strncmp(want, name, strlen(name)) == 0, "%s", name);
    setenv("NCCL_DEBUG", " warn ", 1);
    snprintf(want, sizeof want, "/none/%s.%%%%p", host); /* rondo expands it once more */
    file_named("NCCL_DEBUG_FILE", "/none/%h.%%p", "RONDO_DEBUG_FILE", want);
    file_named("NCCL_DEBUG_FILE", "/none/%h.%%p", "RONDO_DEBUG", "warn");
    setenv("NCCL_DEBUG", "VERSION", 1);
    file_named("NCCL_DEBUG_FILE", "/none/none", "RONDO_DEBUG_FILE", "");
    unsetenv("NCCL_DEBUG");
    file_named("NCCL_DEBUG_FILE", "/none/none", "RONDO_DEBUG_FILE", "");
}

static int lines_of(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[200];
    int lines = 0;

    while (f && fgets(line, sizeof line, f))
        lines++;
    if (f)
        fclose(f);
    return lines;
}

/* ncclResetDebugInit has the variables read anew: the first line goes to one file, the third to another, and the second
 * is of a subsystem that is not asked for. */
static void log_anew(void)
{
    char one[] = "/tmp/rondo-nccl-log-XXXXXX", other[] = "/tmp/rondo-nccl-log-XXXXXX";
    int status = -1;
    pid_t child;

    close(mkstemp(one));
    close(mkstemp(other));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        setenv("NCCL_DEBUG", "INFO", 1);
        setenv("NCCL_DEBUG_FILE", one, 1);
        nc_log(NC_SUBSYS_INIT, "the first");
        setenv("NCCL_DEBUG_FILE", other, 1);
        setenv("NCCL_DEBUG_SUBSYS", "COLL", 1);
        pncclResetDebugInit();
        nc_log(NC_SUBSYS_INIT, "the second");
        nc_log(NC_SUBSYS_COLL, "the third");
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(lines_of(one) == 1 && lines_of(other) == 1, "%d and %d lines", lines_of(one), lines_of(other));
    unlink(one);
    unlink(other);
}

static bool shows_init(void)
{
    nc_log(NC_SUBSYS_INIT, "%s", "");
    return nc_log_shows(NC_SUBSYS_INIT) && nc_log_shows(NC_SUBSYS_ENV) && !nc_log_shows(NC_SUBSYS_COLL);
}

static bool shows_calls(void)
{
    nc_log(NC_SUBSYS_INIT, "%s", "");
    return nc_log_shows(NC_SUBSYS_COLL) && !nc_log_shows(NC_SUBSYS_INIT);
}

static bool shows_nothing(void)
{
    nc_log(NC_SUBSYS_INIT, "%s", "");
    return !nc_log_shows(NC_SUBSYS_INIT) && !nc_log_shows(NC_SUBSYS_COLL);
}

static void subsystems(void)
{
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_FILE", "/dev/null", 1);
    shim_says("NCCL_DEBUG_SUBSYS", " coll , NET,", shows_calls);
    shim_says("NCCL_DEBUG_SUBSYS", "^init,env", shows_calls);
    shim_says("NCCL_DEBUG_SUBSYS", "NET,GRAPH", shows_nothing);
    shim_says("NCCL_DEBUG_SUBSYS", "^ALL", shows_nothing);
    shim_says("NCCL_DEBUG_SUBSYS", "COLL,EVN", shows_init); /* as in NCCL, all of it is no list */
    unsetenv("NCCL_DEBUG");
    unsetenv("NCCL_DEBUG_FILE");
}

/* Of a communicator's budgets, in a child of its own; 0: the config leaves it open. */
typedef struct budget {
    const char *variables[2], *values[2];
    int least, most, contexts;                /* of the config */
    int want_least, want_most, want_contexts; /* -1: rondo's default */
} budget_t;

static int budgets_of(const budget_t *b)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    struct {
        ncclConfig_t known;
        int graphs, contexts; /* of 2.29 */
    } later;
    nc_config_t read;

    setenv("RONDO_NCCL_HOST", "1", 1);
    for (int i = 0; i < 2 && b->variables[i]; i++)
        setenv(b->variables[i], b->values[i], 1);
    if (b->least)
        config.minCTAs = b->least;
    if (b->most)
        config.maxCTAs = b->most;
    later.known = config;
    memset((char *)&later + offsetof(ncclConfig_t, nvlinkCentricSched) + sizeof(int), 0, 2 * sizeof(int));
    memcpy((char *)&later + offsetof(ncclConfig_t, nvlinkCentricSched) + 2 * sizeof(int), &b->contexts, sizeof(int));
    later.known.size = sizeof later;
    later.known.version = NCCL_VERSION(2, 29, 0);
    if (nc_config_read(&read, &later.known, NULL, "test") != ncclSuccess)
        return 1;
    if (read.blocks_least == b->want_least && read.blocks == b->want_most && read.contexts == b->want_contexts)
        return 0;
    printf("%s: %d to %d blocks, %d contexts\n", b->variables[0], read.blocks_least, read.blocks, read.contexts);
    return 1;
}

/* The older names of CTAs, and what one-sided operations have. */
static void budgets(void)
{
    static const budget_t all[] = {
        {{NULL}, {NULL}, 2, 6, 3, 2, 6, 3},
        {{"NCCL_MAX_NCHANNELS"}, {"4"}, 0, 0, 0, -1, 4, -1},
        {{"NCCL_MAX_NCHANNELS"}, {"4"}, 0, 6, 0, -1, 4, -1},
        {{"NCCL_MAX_NCHANNELS"}, {"4"}, 0, 2, 0, -1, 2, -1},
        {{"NCCL_MAX_NCHANNELS"}, {"0"}, 0, 0, 0, -1, 1, -1},
        {{"NCCL_MAX_NCHANNELS"}, {"-2"}, 0, 0, 0, -1, -1, -1},
        {{"NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"}, {"9", "3"}, 0, 0, 0, -1, 9, -1},
        {{"NCCL_MAX_NRINGS"}, {"0x10"}, 0, 0, 0, -1, 16, -1},
        {{"NCCL_MAX_NCHANNELS", "RONDO_CUDA_BLOCKS"}, {"4", "7"}, 0, 0, 0, -1, -1, -1},
        {{"NCCL_MIN_NCHANNELS"}, {"32"}, 0, 0, 0, 32, -1, -1},
        {{"NCCL_MIN_NCHANNELS"}, {"32"}, 40, 64, 0, 40, 64, -1},
        {{"NCCL_MIN_NCHANNELS", "NCCL_MAX_CTAS"}, {"32", "8"}, 0, 0, 0, 8, 8, -1},
        {{"NCCL_MIN_NCHANNELS"}, {"-1"}, 0, 0, 0, -1, -1, -1},
        {{"NCCL_NUM_RMA_CTX"}, {"5"}, 0, 0, 3, -1, -1, 5},
        {{"NCCL_NUM_RMA_CTX"}, {"100"}, 0, 0, 0, -1, -1, 64},
        {{"NCCL_NUM_RMA_CTX"}, {"0"}, 0, 0, 3, -1, -1, 3},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int status = -1;
        pid_t child;

        fflush(stdout);
        child = fork();
        if (child == 0) {
            int bad = budgets_of(&all[i]);
            fflush(stdout);
            _exit(bad);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "row %zu", i);
    }
}

static void on_host_memory(void)
{
    const char *rings = "broadcast=ring,reduce=ring,allgather=ring,reduce_scatter=ring,allreduce=ring";

    becomes(1, "Ring", "", "", rings);
    becomes(1, "tree,RING", "Simple", "",
            "broadcast=tree+ring,reduce=tree+ring,allgather=ring,reduce_scatter=ring,allreduce=tree+ring");
    becomes(1, "PAT", "", "", "allgather=pat,reduce_scatter=pat,allreduce=pat");
    becomes(1, "Ring;allreduce:Tree", "", "",
            "broadcast=ring,reduce=ring,allgather=ring,reduce_scatter=ring,allreduce=tree");
    becomes(1, "NVLS", "", "", "");
    becomes(1, "^Tree", "", "", "broadcast=^tree,reduce=^tree,allreduce=^tree");
    becomes(1, "allreduce:^ring,tree,nvls;broadcast:ring", "", "", "broadcast=ring,allreduce=^tree+ring");
    becomes(1, "Ring;allreduce:^NVLS", "", "", "broadcast=ring,reduce=ring,allgather=ring,reduce_scatter=ring");
    /* NCCL refuses these: a word, a function, and a second list for all functions. */
    becomes(1, "Rnig", "", "", "");
    becomes(1, "alltoall:ring", "", "", "");
    becomes(1, "allreduce:ring;tree", "", "", "");
    protocol(1, "Simple", "simple");
    protocol(1, "^LL,LL128", "simple");
    protocol(1, "LL,Simple", "");
    protocol(1, "^Simple;broadcast:Simple", "broadcast=simple");
    protocol(1, "Simple;allreduce:^LL,ll128", "simple");
    protocol(1, "allreduce:Simple", "allreduce=simple");
    protocol(1, "^LL", "^ll");
    protocol(1, "^LL;reduce:Simple;allgather:LL", "broadcast=^ll,reduce=simple,reduce_scatter=^ll,allreduce=^ll");
    becomes(1, "allreduce:Ring", "allreduce:Simple;broadcast:LL", "", "allreduce=ring");
    becomes(1, "allreduce:Ring", "", "ll,simple", "allreduce=ring");
    protocol(1, "LL128", "");
    protocol(1, "Sipmle", "");
}

static void refusals(void)
{
    refused("NCCL_ALGO", "Tree,Rnig", "NCCL_ALGO=Tree,Rnig: there is no algorithm \"Rnig\"; there are Tree, Ring, ");
    refused("NCCL_ALGO", "ring;alltoall:ring", "no function \"alltoall\"; there are Broadcast, ");
    refused("NCCL_ALGO", "allreduce:ring;tree", "only the first list may be without a function");
    refused("NCCL_PROTO", "allreduce:^LL,Sipmle", "no protocol \"Sipmle\"; there are LL, LL128, Simple");
    refused("NCCL_ALGO", "ring,collnetdirect;allreduce:tree,ring;broadcast:^NVLS", "");
    refused("NCCL_PROTO", "LL,Simple;allreduce:^LL", "");
}

static void on_gpus(void)
{
    const char *chains = "broadcast=chain,reduce=chain,allgather=ring,reduce_scatter=ring,allreduce=ring";

    becomes(0, "Ring", "", "", chains);
    becomes(0, "Ring", "Simple", "", chains);
    becomes(0, "Tree", "", "", "broadcast=tree,reduce=tree,allreduce=tree");
    becomes(0, "NVLS,Tree", "LL128", "", "broadcast=tree,reduce=tree,allreduce=tree");
    becomes(0, "PAT,Ring", "", "",
            "broadcast=chain,reduce=chain,allgather=ring+pat,reduce_scatter=ring+pat,allreduce=ring+pat");
    becomes(0, "Tree", "Simple", "", ""); /* trees go by lines */
    becomes(0, "Tree,Ring", "Simple", "", chains);
    becomes(0, "Tree", "Simple", "ll128", "broadcast=tree,reduce=tree,allreduce=tree");
    becomes(0, "allreduce:tree,ring;broadcast:ring", "Simple", "", "broadcast=chain,allreduce=ring");
    becomes(0, "^Ring", "", "", "broadcast=^chain,reduce=^chain,allgather=^ring,reduce_scatter=^ring,allreduce=^ring");
    protocol(0, "LL128", "ll128");
    protocol(0, "^LL,Simple", "ll128");
    protocol(0, "LL,Simple", "^ll128");
    protocol(0, "^Simple", "^simple");
    protocol(0, "LL", "");
    protocol(0, "allreduce:^LL;broadcast:ll128", "broadcast=ll128,allreduce=^ll");
    becomes(0, "Tree", "allreduce:Simple", "", "broadcast=tree,reduce=tree");
}

int main(void)
{
    unsetenv("RONDO_ALGO");
    on_host_memory();
    refusals();
    files();
    networks();
    ib_ports();
    odd_numbers();
    budgets();
    log_files();
    subsystems();
    log_anew();
    file_named("NCCL_CHECK_MODE", "debug_global", "RONDO_CHECK", "1");
    file_named("NCCL_CHECK_MODE", "DEBUG_LOCAL", "RONDO_CHECK", "");
    asks_at("localhost:28028", "", "localhost:28028");
    asks_at("localhost:28028", "1", "localhost:28028");
    asks_at("localhost:28028", "0", "");
    asks_at("", "1", "");
    if (rd_cuda_built())
        on_gpus();
    return failures != 0;
}
