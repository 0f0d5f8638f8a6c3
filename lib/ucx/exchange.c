/* The exchange of worker addresses: over the authenticated bootstrap alone, in pieces, since a worker with many devices
 * has a long address. Before it, the ranks exchange which version of UCX they have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx.h"

#define PIECE 32768         /* bytes of an address that one exchange carries */
#define ADDRESS_MAX 1048576 /* a longer one is a mistake */
/* The versions that were tried together, over tcp. UCX promises nothing about different versions that talk to each
 * other. */
#define TRIED_FIRST 11300
#define TRIED_LAST 12299

/* Gets the address of this rank's worker, in memory from malloc. */
static rondo_result_t address_own(rd_ucx_net_t *net, char **address, uint32_t *bytes)
{
    /* Network devices only: the part for shared memory is of no use between nodes, but where the user names it, because
     * the nodes are played. UCX counts cuda_ipc as shared memory, too. */
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
                              .address_flags =
                                  net->base.transport.cuda || net->shares ? 0 : UCP_WORKER_ADDRESS_FLAG_NET_ONLY};
    ucs_status_t status = rd_ucp.worker_query(net->worker, &attr);
    if (status != UCS_OK || attr.address_length > ADDRESS_MAX) {
        return rd_error(net->base.ctx, RONDO_ERR_SYSTEM, "UCX gives no usable worker address: %s",
                        rd_ucp.status_string(status));
    }
    *address = malloc(attr.address_length);
    if (*address) {
        memcpy(*address, attr.address, attr.address_length);
        *bytes = (uint32_t)attr.address_length;
    }
    rd_ucp.worker_release_address(net->worker, attr.address);
    return *address ? RONDO_SUCCESS : rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for a worker address");
}

/* Exchanges bytes [from, from + each) of the addresses of all ranks into net->addresses, with `stride` bytes for each
 * rank. */
static rondo_result_t piece_exchange(rd_ucx_net_t *net, const char *own, uint32_t own_bytes, size_t from, size_t each,
                                     size_t stride, char *all)
{
    char *mine = all + (size_t)net->base.rank * each;
    size_t have = own_bytes > from ? own_bytes - from : 0;
    memset(mine, 0, each);
    memcpy(mine, own + (have != 0 ? from : 0), have < each ? have : each);
    rondo_result_t result = rd_boot_allgather(net->base.boot, all, each);
    for (int r = 0; result == RONDO_SUCCESS && r < net->base.nranks; r++)
        memcpy(net->addresses + (size_t)r * stride + from, all + (size_t)r * each, each);
    return result;
}

/* What a rank tells the others of its UCX before they exchange addresses. */
typedef struct part {
    uint32_t bytes;        /* bytes of the address; 0: the rank's own part failed */
    uint32_t version;      /* 10000 * major + 100 * minor + patch */
    uint32_t tcp;          /* nonzero: it uses no other transport */
    uint32_t sends, takes; /* as in rd_ucx_net_t */
} part_t;

static part_t part_own(const rd_ucx_net_t *net, uint32_t bytes, const rd_env_t *env)
{
    unsigned major, minor, patch;
    rd_ucp.get_version(&major, &minor, &patch);
    return (part_t){bytes, 10000 * major + 100 * minor + patch, strcmp(env->ucx_tls, "tcp") == 0, net->sends,
                    net->takes};
}

static const char *version_print(uint32_t version, char text[16])
{
    snprintf(text, 16, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return text;
}

/* All ranks see the same parts, so all refuse or all go on. Patch releases of one version go together. */
static rondo_result_t versions_check(const rd_ucx_net_t *net, const part_t *parts)
{
    int first = 0, last = 0, tcp = 1;
    char one[16], other[16];
    for (int r = 0; r < net->base.nranks; r++) {
        first = parts[r].version < parts[first].version ? r : first;
        last = parts[r].version > parts[last].version ? r : last;
        tcp &= parts[r].tcp != 0;
    }
    if (parts[first].version / 100 == parts[last].version / 100 ||
        (tcp && parts[first].version >= TRIED_FIRST && parts[last].version <= TRIED_LAST))
        return RONDO_SUCCESS;
    rd_boot_farewell_alike(net->base.boot);
    return rd_error(
        net->base.ctx, RONDO_ERR_UNSUPPORTED,
        "ranks have different versions of UCX: rank %d (%s) has %s, rank %d (%s) has %s: let all nodes load "
        "the same one (only 1.13 to 1.22 are known to go together, and only over RONDO_UCX_TLS=tcp)",
        first, rd_boot_whois(net->base.boot, first), version_print(parts[first].version, one), last,
        rd_boot_whois(net->base.boot, last), version_print(parts[last].version, other));
}

/* UCX ends a process that receives a longer segment than it takes. */
static rondo_result_t segments_check(const rd_ucx_net_t *net, const part_t *parts)
{
    int most = 0, least = -1;
    for (int r = 0; r < net->base.nranks; r++) {
        most = parts[r].sends > parts[most].sends ? r : most;
        if (parts[r].takes != 0 && (least < 0 || parts[r].takes < parts[least].takes))
            least = r;
    }
    if (least < 0 || parts[most].sends <= parts[least].takes)
        return RONDO_SUCCESS;
    rd_boot_farewell_alike(net->base.boot);
    return rd_error(net->base.ctx, RONDO_ERR_INVALID_USAGE,
                    "rank %d (%s) sends segments of %u bytes by UCX's tcp, rank %d (%s) takes %u at most: set "
                    "UCX_TCP_RX_SEG_SIZE alike on all ranks, or not at all",
                    most, rd_boot_whois(net->base.boot, most), parts[most].sends, least,
                    rd_boot_whois(net->base.boot, least), parts[least].takes);
}

/* The longest address is the stride of the table. A rank whose own part failed, for the reason `why`, takes part with
 * length 0, so that all ranks learn of it and all give up. */
static rondo_result_t parts_exchange(rd_ucx_net_t *net, part_t own, const char *why, part_t *parts, size_t *stride)
{
    parts[net->base.rank] = own;
    rondo_result_t result = rd_boot_allgather(net->base.boot, parts, sizeof *parts);
    *stride = 0;
    for (int r = 0; result == RONDO_SUCCESS && r < net->base.nranks; r++) {
        if (parts[r].bytes == 0 || parts[r].bytes > ADDRESS_MAX)
            return rd_net_has_failed(&net->base, r, "has no working UCX", why);
        *stride = parts[r].bytes > *stride ? parts[r].bytes : *stride;
    }
    if (result == RONDO_SUCCESS)
        result = versions_check(net, parts);
    return result == RONDO_SUCCESS ? segments_check(net, parts) : result;
}

rondo_result_t rd_ucx_exchange(rd_ucx_net_t *net, const rd_env_t *env, rondo_result_t opened)
{
    char *own = NULL, *all = NULL;
    uint32_t own_bytes = 0;
    size_t stride = 0, n = (size_t)net->base.nranks;
    if (opened == RONDO_SUCCESS)
        opened = address_own(net, &own, &own_bytes);
    char why[RD_ERROR_BYTES]; /* the error of this rank; the exchange may report more */
    snprintf(why, sizeof why, "%s", rd_thread_error());
    part_t *parts = calloc(n, sizeof *parts);
    if (!parts) {
        free(own);
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for the lengths of %zu addresses", n);
    }
    rondo_result_t result =
        parts_exchange(net, part_own(net, opened == RONDO_SUCCESS ? own_bytes : 0, env), why, parts, &stride);
    if (opened != RONDO_SUCCESS) {
        result = opened;
        rd_thread_error_set(why);
    }
    if (result != RONDO_SUCCESS)
        goto free_own;
    size_t piece = stride < PIECE ? stride : PIECE;
    net->addresses = calloc(n, stride);
    all = malloc(n * piece);
    if (!net->addresses || !all) {
        result = rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu worker addresses", n);
        goto free_own;
    }
    for (size_t from = 0; result == RONDO_SUCCESS && from < stride; from += piece) {
        size_t each = stride - from < piece ? stride - from : piece;
        result = piece_exchange(net, own, own_bytes, from, each, stride, all);
    }
    for (size_t r = 0; result == RONDO_SUCCESS && r < n; r++) {
        rd_ucx_peer(net, r)->address =
            rd_net_peer(&net->base, (int)r)->remote ? (const ucp_address_t *)(net->addresses + r * stride) : NULL;
    }
free_own:
    free(all);
    free(own);
    free(parts);
    return result;
}
