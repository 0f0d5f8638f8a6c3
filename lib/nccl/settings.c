/* Passes NCCL_ variables to rondo, by rondo_setting_set; a RONDO_ variable in the environment takes precedence. They
 * stand in the environment or in NCCL's configuration files, and are read once in a process, at the first call that
 * needs them. What rondo has no setting for is logged once at NCCL_DEBUG=INFO and is no error: a script written for
 * NCCL must not fail for it. A word that NCCL refuses is refused here, too.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/setting.h"
#include "core/binding.h"
#include "nccl/conf_file.h"
#include "nccl/lists.h"
#include "nccl/shim.h"
#include "nccl/table.h"
#include "nccl/tuner.h"

#define VALUE_BYTES 256

static struct {
    int host, blocking, has_blocking, cta_policy, has_cta_policy, checks_pointers;
    const char *proto[5]; /* the one protocol of each function; NULL: none was requested */
    char wrong[400];      /* why no communicator can be made; "": it can */
} settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *variable(const char *name)
{
    char whole[64];
    const char *text;

    snprintf(whole, sizeof whole, "NCCL_%s", name);
    text = nc_env(whole);
    return text && *text ? text : NULL;
}

/* Returns what RONDO_'s own variable says, or NULL: the environment before a file, and either before the value that
 * NCCL_`name` of the same place would set. */
static const char *own_value(const char *name, const char *rondo)
{
    const char *own = getenv(rondo);
    char whole[64];

    if (own && *own)
        return own;
    snprintf(whole, sizeof whole, "NCCL_%s", name);
    return getenv(whole) ? NULL : nc_conf_value(rondo);
}

static void hand_on(const char *name, const char *rondo, const char *value)
{
    const char *own = own_value(name, rondo);

    if (own)
        nc_log(NC_SUBSYS_ENV, "NCCL_%s: %s=%s takes precedence", name, rondo, own);
    else if (rondo_setting_set(rondo, value) == RONDO_SUCCESS)
        nc_log(NC_SUBSYS_ENV, "NCCL_%s: taken as %s=%s", name, rondo, value);
}

static void not_taken(const char *name, const char *text, const char *why)
{
    nc_log(NC_SUBSYS_ENV, "NCCL_%s=%s has no effect: %s", name, text, why);
}

static void debug(const char *text)
{
    static const char *const words[] = {[NC_LOG_NONE] = "none",
                                        [NC_LOG_VERSION] = "warn",
                                        [NC_LOG_WARN] = "warn",
                                        [NC_LOG_INFO] = "info",
                                        [NC_LOG_TRACE] = "trace"};
    const nc_log_level_t level = nc_log_level(text);

    if (level != NC_LOG_UNKNOWN)
        hand_on("DEBUG", "RONDO_DEBUG", words[level]);
}

/* As a name in which nothing is left to expand, so that rondo's lines go to the same file: to rondo, the host's name is
 * longer. As in NCCL, there is no file below WARN. */
static void debug_file(const char *text)
{
    const char *level = variable("DEBUG");
    char name[NC_FILE_BYTES], value[2 * NC_FILE_BYTES];
    size_t used = 0;

    if (!level || nc_log_level(level) <= NC_LOG_VERSION)
        return;
    nc_log_file(text, name);
    for (const char *c = name; *c; c++)
        used += (size_t)sprintf(value + used, *c == '%' ? "%%%%" : "%c", *c);
    hand_on("DEBUG_FILE", "RONDO_DEBUG_FILE", value);
}

static void interface(void)
{
    const char *names = variable("SOCKET_IFNAME"), *family = variable("SOCKET_FAMILY");
    const char *name = names ? "SOCKET_IFNAME" : "SOCKET_FAMILY";
    char text[VALUE_BYTES];
    int kind = 0;

    if (family)
        kind = strcmp(family, "AF_INET") == 0 ? AF_INET : strcmp(family, "AF_INET6") == 0 ? AF_INET6 : 0;
    if (family && !kind)
        not_taken("SOCKET_FAMILY", family, "it must be AF_INET or AF_INET6");
    if (!names && !kind)
        return;
    if (nc_address_find(names, kind, text, sizeof text))
        hand_on(name, "RONDO_IFACE", text);
    else
        not_taken(name, variable(name), "no interface that is up fits");
}

/* Other transports have names of their own for devices. */
static void ib_ports(const char *text)
{
    const char *transport = nc_env("RONDO_TRANSPORT");
    char ports[RD_SETTING_BYTES];
    const char *why = transport && *transport && strcmp(transport, "ucx") != 0
                          ? "RONDO_TRANSPORT names another transport than UCX"
                          : nc_ib_ports(text, ports, sizeof ports);

    if (why)
        not_taken("IB_HCA", text, why);
    else
        hand_on("IB_HCA", "RONDO_NET", ports);
}

static const char *const of_rondo[NC_LIST_FUNCTIONS] = {"broadcast", "reduce", "allgather", "reduce_scatter",
                                                        "allreduce"};
static const char *const algos[] = {"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
static const char *const protos[] = {"LL", "LL128", "Simple"};
#define COUNT(names) ((int)(sizeof(names) / sizeof(names)[0]))

/* Returns the one protocol that a function is to use, or NULL. A list in RONDO_PROTO is rondo's own affair. */
static const char *proto_forced(int function)
{
    const char *own = own_value("PROTO", "RONDO_PROTO");

    if (own)
        return own[strcspn(own, ",;:=+^")] ? NULL : own;
    return settings.proto[function];
}

/* Appends rondo's algorithms for those of NCCL that are allowed for a function, or that are not. Those of NCCL that
 * rondo does not have are never chosen, so there is nothing to exclude, and nothing to choose if they are all. */
static size_t add_algos(char value[VALUE_BYTES], size_t used, int function, nc_allowed_t allowed)
{
    const char *proto = allowed.except ? NULL : proto_forced(function);
    const size_t begin = used;

    for (int i = 0; i < COUNT(algos); i++) {
        const char *name = allowed.words >> i & 1
                               ? rondo_nccl_algo(of_rondo[function], algos[i], strlen(algos[i]), !settings.host, proto)
                               : NULL;
        if (!name || used >= VALUE_BYTES)
            continue;
        if (used == begin)
            used += (size_t)snprintf(value + used, VALUE_BYTES - used, "%s%s=%s%s", used ? "," : "", of_rondo[function],
                                     allowed.except ? "^" : "", name);
        else
            used += (size_t)snprintf(value + used, VALUE_BYTES - used, "+%s", name);
    }
    return used;
}

static void algo(const char *text)
{
    nc_allowed_t allowed[NC_LIST_FUNCTIONS];
    char value[VALUE_BYTES] = "";
    size_t used = 0;

    if (nc_lists_parse(allowed, &(nc_lists_t){"ALGO", text, "algorithm", algos, COUNT(algos)}, settings.wrong,
                       sizeof settings.wrong) != 0)
        return;
    for (int f = 0; f < NC_LIST_FUNCTIONS; f++)
        used = add_algos(value, used, f, allowed[f]);
    if (used)
        hand_on("ALGO", "RONDO_ALGO", value);
    else
        not_taken("ALGO", text, "rondo has Ring, Tree and PAT, on GPUs Ring alone by Simple");
}

/* What NCCL's words that are allowed become: bit 0 is LL, 1 is LL128, 2 is Simple. On GPUs all three are rondo's own;
 * LL alone serves no long operations, so that it is not forced. Host memory has no LL128, and LL serves short
 * operations alone. NULL: nothing is forced. */
static const char *proto_words(unsigned words)
{
    static const char *const gpus[8] = {NULL, NULL, "ll128", "^simple", "simple", "^ll128", "^ll", NULL};
    static const char *const host[8] = {NULL, NULL, NULL, NULL, "simple", NULL, "^ll", NULL};

    return (settings.host ? host : gpus)[words];
}

static void proto(const char *text)
{
    const unsigned all = (1u << COUNT(protos)) - 1;
    const char *becomes[NC_LIST_FUNCTIONS];
    nc_allowed_t allowed[NC_LIST_FUNCTIONS];
    char value[VALUE_BYTES] = "";
    size_t used = 0;
    int alike = 1;

    if (nc_lists_parse(allowed, &(nc_lists_t){"PROTO", text, "protocol", protos, COUNT(protos)}, settings.wrong,
                       sizeof settings.wrong) != 0)
        return;
    for (int f = 0; f < NC_LIST_FUNCTIONS; f++) {
        becomes[f] = proto_words(allowed[f].except ? ~allowed[f].words & all : allowed[f].words);
        settings.proto[f] = becomes[f] && *becomes[f] != '^' ? becomes[f] : NULL;
        alike &= becomes[f] == becomes[0];
        if (becomes[f])
            used += (size_t)snprintf(value + used, sizeof value - used, "%s%s=%s", used ? "," : "", of_rondo[f],
                                     becomes[f]);
    }
    if (used)
        hand_on("PROTO", "RONDO_PROTO", alike ? becomes[0] : value); /* for messages, too, if nothing differs */
    else
        not_taken("PROTO", text,
                  settings.host ? "in host memory rondo can force Simple, or exclude LL"
                                : "on GPUs rondo does not force LL alone");
}

static void peer_memory(const char *name, const char *text)
{
    const bool level = isdigit((unsigned char)*text) && nc_number_is(text, 0);

    if (strcmp(name, "P2P_DISABLE") == 0 ? nc_number_is(text, 1) : strcmp(text, "LOC") == 0 || level)
        hand_on(name,
                strcmp(name, "NET_GDR_LEVEL") == 0 ? "RONDO_GDR"
                : settings.host                    ? "RONDO_CMA"
                                                   : "RONDO_P2P",
                "0");
}

static void slot_bytes(const char *text)
{
    char value[32];
    long long bytes = 0;

    (void)nc_number(text, &bytes);
    bytes = bytes / 8 / 64 * 64;
    if (bytes < 64 || bytes > 16 << 20) {
        not_taken("BUFFSIZE", text, "a slot is an eighth of it, which must be from 64 bytes to 16 MiB");
        return;
    }
    snprintf(value, sizeof value, "%lld", bytes);
    hand_on("BUFFSIZE", "RONDO_SLOT_BYTES", value);
}

static void blocking(const char *text)
{
    settings.blocking = nc_number_is(text, 1);
    settings.has_blocking = settings.blocking || nc_number_is(text, 0);
    if (!settings.has_blocking)
        not_taken("COMM_BLOCKING", text, "it must be 0 or 1");
}

static void check_pointers(const char *text)
{
    settings.checks_pointers = nc_number_is(text, 1);
}

static void check_mode(const char *text)
{
    static const char *const modes[] = {"DEFAULT", "DEBUG_LOCAL", "DEBUG_GLOBAL"};
    const int mode = nc_list_find(modes, COUNT(modes), text, strlen(text));

    if (mode < 0)
        not_taken("CHECK_MODE", text, "it must be DEFAULT, DEBUG_LOCAL or DEBUG_GLOBAL");
    else if (mode > 0) /* DEFAULT leaves NCCL_CHECK_POINTERS as it is, as in NCCL */
        settings.checks_pointers = 1;
    if (mode == 2)
        hand_on("CHECK_MODE", "RONDO_CHECK", "1");
}

/* NCCL's three policies, by a digit in front, or as words between bars; of the last two the last one counts. */
static int policy_of(const char *text)
{
    static const char *const words[] = {"DEFAULT", "EFFICIENCY", "ZERO"};
    int policy = -1;

    if (isdigit((unsigned char)*text))
        return *text <= '2' ? *text - '0' : -1;
    for (const char *at = text; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        for (int i = 0; i < COUNT(words); i++)
            if (strcspn(at, "|") == strlen(words[i]) && strncasecmp(at, words[i], strlen(words[i])) == 0)
                policy = i > policy ? i : policy;
    return policy;
}

static void cta_policy(const char *text)
{
    settings.cta_policy = policy_of(text);
    settings.has_cta_policy = settings.cta_policy >= 0;
    if (!settings.has_cta_policy)
        not_taken("CTA_POLICY", text, "it must be DEFAULT, EFFICIENCY or ZERO");
}

/* Logs an NCCL_ variable if it has no effect. */
static void name_other(const char *name, size_t n)
{
    const nc_variable_t *known = NULL;

    if (strncmp(name, "NCCL_", 5) != 0)
        return;
    for (int i = 0; i < nc_nvariables && !known; i++)
        if (strlen(nc_variables[i].name) == n - 5 && strncmp(nc_variables[i].name, name + 5, n - 5) == 0)
            known = &nc_variables[i];
    if (!known)
        nc_log(NC_SUBSYS_ENV, "%.*s means nothing to rondo", (int)n, name);
    else if (known->kind == NC_NO_EFFECT)
        nc_log(NC_SUBSYS_ENV, "%.*s has no effect: %s", (int)n, name, known->note);
}

static void name_others(void)
{
    extern char **environ;

    for (char **e = environ; e && *e; e++)
        name_other(*e, strcspn(*e, "="));
    for (const nc_conf_line_t *l = nc_conf_lines(); l; l = l->next)
        name_other(l->name, strlen(l->name));
}

/* A file may hold rondo's own variables, too. */
static void take_rondo_lines(void)
{
    for (const nc_conf_line_t *l = nc_conf_lines(); l; l = l->next)
        if (strncmp(l->name, "RONDO_", 6) == 0 && rondo_setting_set(l->name, l->value) == RONDO_SUCCESS)
            nc_log(NC_SUBSYS_ENV, "%s=%s: from a configuration file", l->name, l->value);
}

/* As NCCL does, looks for a plugin of the plain name if none is named. */
static void profiler(void)
{
    const char *text = variable("PROFILER_PLUGIN"), *own = own_value("PROFILER_PLUGIN", "RONDO_PROFILER");

    if (text)
        hand_on("PROFILER_PLUGIN", "RONDO_PROFILER", text);
    else if (!own)
        (void)rondo_setting_set("RONDO_PROFILER", "libnccl-profiler.so");
}

/* Unlike NCCL, rondo opens no port that nobody has asked for. */
static void ras(void)
{
    const char *text = variable("RAS_ADDR"), *on = variable("RAS_ENABLE");

    if (text && on && !nc_number_is(on, 1))
        not_taken("RAS_ADDR", text, "NCCL_RAS_ENABLE is not 1");
    else if (text)
        hand_on("RAS_ADDR", "RONDO_RAS_NCCL", text);
}

/* Files of topologies and graphs. One that is to be read and is not there is no error in NCCL. */
static void files(void)
{
    static const struct {
        const char *name, *rondo;
        bool read;
    } all[] = {{"TOPO_FILE", "RONDO_TOPO_FILE", true},
               {"TOPO_DUMP_FILE", "RONDO_TOPO_DUMP_FILE", false},
               {"GRAPH_FILE", "RONDO_GRAPH_FILE", true},
               {"GRAPH_DUMP_FILE", "RONDO_GRAPH_DUMP_FILE", false}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *text = variable(all[i].name);
        if (text && all[i].read && access(text, R_OK) != 0)
            not_taken(all[i].name, text, strerror(errno));
        else if (text)
            hand_on(all[i].name, all[i].rondo, text);
    }
}

/* The rank that writes a file, as a number of NCCL's. */
static void rank_of_dump(const char *name, const char *rondo)
{
    const char *text = variable(name);
    long long rank;
    char value[32];

    if (text && nc_number(text, &rank)) {
        snprintf(value, sizeof value, "%lld", rank);
        hand_on(name, rondo, value);
    }
}

/* The timeout of creation, which is as long as PyTorch's own. NCCL waits for late ranks without a limit, and ranks are
 * late: PyTorch creates a communicator at the first call, when another rank may still be reading its data. */
static void patience(void)
{
    const char *own = nc_env("RONDO_CREATE_TIMEOUT_MS");

    if (!own || !*own)
        (void)rondo_setting_set("RONDO_CREATE_TIMEOUT_MS", "1800000");
}

static void collnet(const char *text)
{
    hand_on("COLLNET_ENABLE", "RONDO_COLLNET", nc_number_is(text, 1) ? "-1" : "0");
}

static void traffic_class(const char *text)
{
    char value[32];
    long long number = -1;

    if (!nc_number(text, &number) || number < 0 || number > 255) {
        not_taken("IB_TC", text, "a class is 0 to 255");
        return;
    }
    snprintf(value, sizeof value, "%lld", number);
    hand_on("IB_TC", "RONDO_TRAFFIC_CLASS", value);
}

static void read_all(void)
{
    static const struct {
        const char *name;
        void (*take)(const char *text);
    } taken[] = {{"COLLNET_ENABLE", collnet},
                 {"DEBUG", debug},
                 {"DEBUG_FILE", debug_file},
                 {"PROTO", proto},
                 {"ALGO", algo},
                 {"BUFFSIZE", slot_bytes},
                 {"CHECK_POINTERS", check_pointers},
                 {"CHECK_MODE", check_mode},
                 {"COMM_BLOCKING", blocking},
                 {"IB_HCA", ib_ports},
                 {"IB_TC", traffic_class},
                 {"CTA_POLICY", cta_policy}};
    static const char *const peers[] = {"P2P_DISABLE", "P2P_LEVEL", "NET_GDR_LEVEL"};
    const char *host = nc_env("RONDO_NCCL_HOST"), *hostid = variable("HOSTID"), *text;

    take_rondo_lines();
    settings.host = host && strcmp(host, "1") == 0;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if ((text = variable(taken[i].name)) != NULL)
            taken[i].take(text);
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++)
        if ((text = variable(peers[i])) != NULL)
            peer_memory(peers[i], text);
    if (hostid)
        hand_on("HOSTID", "RONDO_HOSTID", hostid);
    files();
    rank_of_dump("TOPO_DUMP_FILE_RANK", "RONDO_TOPO_DUMP_FILE_RANK");
    rank_of_dump("GRAPH_DUMP_FILE_RANK", "RONDO_GRAPH_DUMP_FILE_RANK");
    interface();
    profiler();
    ras();
    if ((text = variable("NET_PLUGIN")) != NULL)
        hand_on("NET_PLUGIN", "RONDO_NET_PLUGIN", text);
    nc_tuner(variable("TUNER_PLUGIN"));
    patience();
    name_others();
    nc_log_version();
}

void nc_settings(void)
{
    pthread_once(&once, read_all);
}

const char *nc_settings_wrong(void)
{
    nc_settings();
    return *settings.wrong ? settings.wrong : NULL;
}

bool nc_settings_host(void)
{
    nc_settings();
    return settings.host;
}

bool nc_settings_checks_pointers(void)
{
    return settings.checks_pointers;
}

bool nc_settings_blocking(int *value)
{
    nc_settings();
    if (settings.has_blocking)
        *value = settings.blocking;
    return settings.has_blocking;
}

bool nc_settings_cta_policy(int *value)
{
    nc_settings();
    if (settings.has_cta_policy)
        *value = settings.cta_policy;
    return settings.has_cta_policy;
}

const char *nc_settings_text(const char *name, const char *rondo)
{
    nc_settings();
    return own_value(name, rondo) ? NULL : variable(name);
}
