/* Reads ncclConfig_t of callers from version 2.14, whose config ends after `blocking`, to 2.32, whose config has fields
 * that this header does not name. A field is read if the caller's struct is long enough and the caller's version has
 * it: by the length alone, padding at the end of an old struct would be taken for a field.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nccl/shim.h"

#define CONTEXTS_MOST 64 /* as rondo.h says */
#define SIGNALS_MOST 4096
#define BLOCKS_MOST 1024
#define CHANNELS_MOST 8

typedef struct field {
    const char *name;
    size_t offset;
    unsigned since; /* the first NCCL_VERSION that has it */
    int least, most;
    const char *words; /* NCCL's in its log, which programs search; NULL: none */
} field_t;

#define AT(field) offsetof(ncclConfig_t, field)
/* The offsets of fields that came after 2.28. They do not follow from the struct's size, because its end is padded. */
#define AFTER(n) (offsetof(ncclConfig_t, nvlinkCentricSched) + (size_t)(n) * sizeof(int))

static const field_t fields[] = {
    {"blocking", AT(blocking), 21400, 0, 1, "Blocking"},
    {"cgaClusterSize", AT(cgaClusterSize), 21700, 0, INT_MAX, "CGA cluster size"},
    {"minCTAs", AT(minCTAs), 21700, 1, INT_MAX, "Min CTAs"},
    {"maxCTAs", AT(maxCTAs), 21700, 1, INT_MAX, "Max CTAs"},
    {"splitShare", AT(splitShare), 21800, 0, 1, "Split share"},
    {"trafficClass", AT(trafficClass), 22500, INT_MIN, INT_MAX, "Traffic class"},
    {"collnetEnable", AT(collnetEnable), 22700, 0, 1, NULL},
    {"CTAPolicy", AT(CTAPolicy), 22700, 0, 3, NULL},
    {"shrinkShare", AT(shrinkShare), 22700, 0, 1, NULL},
    {"nvlsCTAs", AT(nvlsCTAs), 22700, 1, INT_MAX, NULL},
    {"nChannelsPerNetPeer", AT(nChannelsPerNetPeer), 22800, 1, 64, NULL},
    {"nvlinkCentricSched", AT(nvlinkCentricSched), 22800, 0, 1, NULL},
    {"graphUsageMode", AFTER(1), 22900, 0, 2, NULL},
    {"numRmaCtx", AFTER(2), 22900, 0, INT_MAX, NULL},
    {"maxP2pPeers", AFTER(3), 23000, 1, INT_MAX, NULL},
    {"graphStreamOrdering", AFTER(4), 23005, 0, 1, NULL},
    {"launchOrderImplicit", AFTER(5), 23100, INT_MIN, INT_MAX, NULL},
    {"numRmaSig", AFTER(6), 23100, INT_MIN, INT_MAX, NULL},
    {"rmaEagerInit", AFTER(7), 23100, INT_MIN, INT_MAX, NULL},
    {"hostCftMode", AFTER(8), 23100, 1, 3, NULL},
    {"nvlsHostMode", AFTER(9), 23100, 0, INT_MAX, NULL},
};

static bool has(const ncclConfig_t *given, size_t offset, size_t bytes, unsigned since)
{
    return offset + bytes <= given->size && given->version >= since;
}

static int value(const ncclConfig_t *given, const field_t *f)
{
    int number = NCCL_CONFIG_UNDEF_INT;

    if (has(given, f->offset, sizeof number, f->since))
        memcpy(&number, (const char *)given + f->offset, sizeof number);
    return number;
}

/* It has an effect. */
static bool steers(const field_t *f)
{
    static const char *const names[] = {"blocking",     "minCTAs",   "maxCTAs",   "CTAPolicy",
                                        "trafficClass", "numRmaCtx", "numRmaSig", "nChannelsPerNetPeer"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(f->name, names[i]) == 0)
            return true;
    return false;
}

static ncclResult_t check(const ncclConfig_t *given, const char *call)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int number = value(given, &fields[i]);

        if (number == NCCL_CONFIG_UNDEF_INT)
            continue;
        if (number < fields[i].least || number > fields[i].most)
            return nc_error(NULL, ncclInvalidArgument, "%s: config->%s is %d: %d to %d, or NCCL_CONFIG_UNDEF_INT", call,
                            fields[i].name, number, fields[i].least, fields[i].most);
        if (!steers(&fields[i]) || fields[i].words)
            nc_log(NC_SUBSYS_INIT, "%s: config->%s: %s %d%s", call, fields[i].name,
                   fields[i].words ? fields[i].words : "it is", number,
                   steers(&fields[i]) ? "" : ", which steers nothing in rondo");
    }
    int least = value(given, &fields[2]), most = value(given, &fields[3]);
    if (least != NCCL_CONFIG_UNDEF_INT && most != NCCL_CONFIG_UNDEF_INT && least > most)
        return nc_error(NULL, ncclInvalidArgument, "%s: config->minCTAs is %d, more than maxCTAs, %d", call, least,
                        most);
    return ncclSuccess;
}

/* NCCL's built-in networks. Another name is a plugin's, which rondo does not load. `by`: who names it. */
static void network_named(nc_config_t *config, const char *name, const char *by, const char *call)
{
    static const char *const networks[][2] = {{"Socket", "tcp"}, {"IB", "ib"}};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if (strcasecmp(name, networks[i][0]) == 0) {
            nc_log(NC_SUBSYS_INIT, "%s: %s: Using network %s between nodes: UCX's transports %s", call, by,
                   networks[i][0], networks[i][1]);
            config->network = networks[i][1];
            return;
        }
    nc_log(NC_SUBSYS_INIT, "%s: %s is \"%s\": it steers nothing in rondo, which knows Socket and IB", call, by, name);
}

/* In NCCL, too, NCCL_NET stands above a config; without InfiniBand there are its sockets. */
static void network(const ncclConfig_t *given, nc_config_t *config, const char *call)
{
    const char *name = nc_settings_text("NET", "RONDO_UCX_TLS");
    const char *off = nc_settings_text("IB_DISABLE", "RONDO_UCX_TLS");

    if (off && !nc_number_is(off, 0))
        network_named(config, "Socket", "NCCL_IB_DISABLE", call);
    else if (name)
        network_named(config, name, "NCCL_NET", call);
    else if (given && has(given, AT(netName), sizeof given->netName, 21700) && given->netName)
        network_named(config, given->netName, "config->netName", call);
}

/* Of one-sided operations. More than rondo can have is as many as it can: an index beyond
 * that is refused where it is used. 0 contexts are none in NCCL, and one here. */
static void one_sided(const ncclConfig_t *given, nc_config_t *config)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int number = value(given, &fields[i]);

        if (number == NCCL_CONFIG_UNDEF_INT || number < 1)
            continue;
        if (strcmp(fields[i].name, "numRmaCtx") == 0)
            config->contexts = number < CONTEXTS_MOST ? number : CONTEXTS_MOST;
        if (strcmp(fields[i].name, "numRmaSig") == 0)
            config->signals = number < SIGNALS_MOST ? number : SIGNALS_MOST;
    }
}

/* NCCL's policies are bits: of the last two, zero counts. Their numbers are rondo's. */
static void cta_policy(const ncclConfig_t *given, nc_config_t *config)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int bits = value(given, &fields[i]);

        if (strcmp(fields[i].name, "CTAPolicy") == 0 && bits != NCCL_CONFIG_UNDEF_INT)
            config->cta_policy = bits & NCCL_CTA_POLICY_ZERO ? NCCL_CTA_POLICY_ZERO : bits;
    }
}

/* Of what is counted for each communicator. In NCCL, too, the environment stands above a config. */
typedef struct counted {
    size_t field; /* of `fields` */
    int limit;    /* what rondo has fewer of is as many as it can have */
    const char *variable, *rondo;
} counted_t;

static void count(const counted_t *c, const ncclConfig_t *given, int *to)
{
    const char *text = nc_settings_text(c->variable, c->rondo);
    long long number = given ? value(given, &fields[c->field]) : NCCL_CONFIG_UNDEF_INT, said;

    if (text) {
        if (!nc_number(text, &said) || said < 1)
            nc_log(NC_SUBSYS_ENV, "NCCL_%s=%s has no effect: it must be 1 or more", c->variable, text);
        else
            number = said;
    }
    if (number != NCCL_CONFIG_UNDEF_INT)
        *to = number < c->limit ? (int)number : c->limit;
}

/* Channels, which are blocks: NCCL keeps to the most and the least of them beside those of CTAs. They had another name
 * once. */
static bool channels_said(const char *name, const char *older, const char *rondo, long long *number)
{
    const char *text = nc_settings_text(name, rondo);

    text = text ? text : nc_settings_text(older, rondo);
    return text && nc_number(text, number) && *number != -2; /* -2 is NCCL's for "not set" */
}

static void channels_bound(nc_config_t *config)
{
    long long n;

    if (channels_said("MAX_NCHANNELS", "MAX_NRINGS", "RONDO_CUDA_BLOCKS", &n)) {
        n = n < 1 ? 1 : n < BLOCKS_MOST ? n : BLOCKS_MOST;
        config->blocks = config->blocks > 0 && config->blocks < n ? config->blocks : (int)n;
    }
    if (channels_said("MIN_NCHANNELS", "MIN_NRINGS", "RONDO_CUDA_BLOCKS_LEAST", &n) && n > 0) {
        n = n < BLOCKS_MOST ? n : BLOCKS_MOST;
        config->blocks_least = config->blocks_least > n ? config->blocks_least : (int)n;
    }
}

static void budgets(const ncclConfig_t *given, nc_config_t *config)
{
    static const counted_t least = {2, BLOCKS_MOST, "MIN_CTAS", "RONDO_CUDA_BLOCKS_LEAST"},
                           most = {3, BLOCKS_MOST, "MAX_CTAS", "RONDO_CUDA_BLOCKS"},
                           channels = {10, CHANNELS_MOST, "NCHANNELS_PER_NET_PEER", "RONDO_PROXY_THREADS"},
                           contexts = {13, CONTEXTS_MOST, "NUM_RMA_CTX", ""};

    count(&least, given, &config->blocks_least);
    count(&most, given, &config->blocks);
    count(&channels, given, &config->net_channels);
    count(&contexts, NULL, &config->contexts); /* what the config says is in: one_sided */
    channels_bound(config);
    if (config->blocks > 0 && config->blocks_least > config->blocks)
        config->blocks_least = config->blocks;
}

ncclResult_t nc_config_read(nc_config_t *config, const ncclConfig_t *given, const nc_config_t *inherited,
                            const char *call)
{
    nc_config_t new = {.blocking = 1,
                       .signals = -1,
                       .contexts = -1,
                       .blocks = -1,
                       .blocks_least = -1,
                       .net_channels = -1,
                       .cta_policy = -1,
                       .traffic_class = -1};
    ncclResult_t result;

    if (inherited && !given)
        new = *inherited;
    new.name[0] = '\0'; /* a name is not inherited */
    if (given) {
        if (given->magic != NCCL_API_MAGIC || given->size < offsetof(ncclConfig_t, blocking))
            return nc_error(NULL, ncclInvalidArgument, "%s: initialise the config with NCCL_CONFIG_INITIALIZER", call);
        if ((result = check(given, call)))
            return result;
        int blocking = value(given, &fields[0]);
        if (blocking != NCCL_CONFIG_UNDEF_INT)
            new.blocking = blocking;
        int traffic = value(given, &fields[5]);
        if (traffic >= 0 && traffic <= 255)
            new.traffic_class = traffic;
        else if (traffic != NCCL_CONFIG_UNDEF_INT) /* NCCL leaves it to the network */
            nc_log(NC_SUBSYS_INIT, "%s: config->trafficClass steers nothing in rondo: a class is 0 to 255", call);
        one_sided(given, &new);
        cta_policy(given, &new);
        if (has(given, AT(commName), sizeof given->commName, 22700) && given->commName)
            snprintf(new.name, sizeof new.name, "%s", given->commName);
    }
    budgets(given, &new);
    network(given, &new, call);
    (void)nc_settings_blocking(&new.blocking);
    (void)nc_settings_cta_policy(&new.cta_policy);
    *config = new;
    return ncclSuccess;
}
