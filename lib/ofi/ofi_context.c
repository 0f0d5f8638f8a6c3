/* The endpoint of one communicator: its objects, its memory, and the buffers that are posted for what comes.
 *
 * A provider may want all memory registered that it sends from or receives into (FI_MR_LOCAL). So there are few pieces:
 * one arena with the buffers and the requests that copy, slabs of further requests, and, of the communicator's memory,
 * the mirror of each connection from when it first sends a message out of a slot. The rest of that memory is reserved
 * for all pairs of ranks and hardly ever touched, and what is registered is pinned. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "ofi/ofi.h"
#include "transport/network/net_fork.h"

#define SLAB 64        /* requests */
#define SHORT_LEAST 64 /* buffers for short messages, */
#define SHORT_MOST 512 /* if there are many peers */
#define LONG_LEAST 8   /* the same for long ones: a peer that stops in the middle of a message holds one */
#define LONG_MOST 64
#define AHEAD (RD_LINE - sizeof(rd_net_header_t)) /* bytes before a header, so that the payload begins a line */

/* Providers promise nothing for a child that is forked while there is an endpoint: those of cards map registers and pin
 * memory. */
static rd_net_fork_t at_fork = {.why = RD_NET_FORKED("libfabric"), .known = ATOMIC_FLAG_INIT};

const char *rd_ofi_unusable(void)
{
    const char *missing = rd_ofi_load();
    return missing ? missing : rd_net_fork_orphaned(&at_fork);
}

rondo_result_t rd_ofi_enter(rd_log_ctx_t *ctx, rd_net_quiet_t *quiet)
{
    const char *why = rd_ofi_unusable();
    if (why)
        return rd_error(ctx, RONDO_ERR_UNSUPPORTED, "%s", why);
    rd_net_quiet_begin(quiet);
    return RONDO_SUCCESS;
}

static rondo_result_t failed(const rd_ofi_net_t *net, const char *what, long error)
{
    return rd_error(net->base.ctx, RONDO_ERR_SYSTEM,
                    "libfabric's provider %s gives no %s on %s: %s (RONDO_OFI_PROVIDER names another, RONDO_IFACE and "
                    "RONDO_NET other devices)",
                    net->info->fabric_attr->prov_name, what, net->info->domain_attr->name, rd_ofi_strerror(error));
}

static size_t up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* ---- registered memory */

static long mr_enable(rd_ofi_net_t *net, rd_ofi_memory_t *m)
{
    long error = 0;
    if (net->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        error = fi_mr_bind(m->mr, &net->ep->fid, 0);
        if (error == 0)
            error = fi_mr_enable(m->mr);
    }
    return error;
}

static void unreg(rd_ofi_memory_t *m)
{
    if (m->mr)
        (void)fi_close(&m->mr->fid);
    m->mr = NULL;
}

static rondo_result_t reg(rd_ofi_net_t *net, rd_ofi_memory_t *m)
{
    if (!net->regs || m->bytes == 0)
        return RONDO_SUCCESS;
    long error = fi_mr_reg(net->domain, m->base, m->bytes, FI_SEND | FI_RECV, 0, net->key++, 0, &m->mr, NULL);
    if (error == 0)
        error = mr_enable(net, m);
    if (error != 0) {
        unreg(m);
        return rd_error(net->base.ctx, RONDO_ERR_SYSTEM,
                        "libfabric's provider %s cannot register %zu bytes of memory: %s (is `ulimit -l` unlimited?)",
                        net->info->fabric_attr->prov_name, m->bytes, rd_ofi_strerror(error));
    }
    m->desc = fi_mr_desc(m->mr);
    return RONDO_SUCCESS;
}

rondo_result_t rd_ofi_mirror(rd_ofi_net_t *net, const char *slot, void **desc)
{
    *desc = NULL;
    if (!net->regs)
        return RONDO_SUCCESS;
    size_t number = (size_t)(slot - net->mirrored) / net->piece;
    rd_ofi_memory_t *m = &net->mirrors[number];
    rondo_result_t result = RONDO_SUCCESS;
    if (!m->mr) {
        *m = (rd_ofi_memory_t){.base = net->mirrored + number * net->piece, .bytes = net->piece};
        result = reg(net, m);
    }
    *desc = m->desc;
    return result;
}

static bool map(rd_ofi_memory_t *m, size_t bytes)
{
    m->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    m->bytes = m->base != MAP_FAILED ? bytes : 0;
    return m->bytes != 0;
}

static void unmap(rd_ofi_memory_t *m)
{
    unreg(m);
    if (m->bytes != 0)
        munmap(m->base, m->bytes);
    m->bytes = 0;
}

/* ---- requests */

static size_t request_bytes(bool copying)
{
    return up(sizeof(rd_ofi_request_t) + (copying ? RD_OFI_COPY : 0), RD_LINE);
}

static void requests_put(rd_ofi_request_t **list, const rd_ofi_memory_t *memory, int n, bool copying)
{
    for (int i = 0; i < n; i++) {
        rd_ofi_request_t *r = (rd_ofi_request_t *)(void *)(memory->base + (size_t)i * request_bytes(copying));
        r->copies = copying;
        r->own_desc = memory->desc;
        r->next = *list;
        *list = r;
    }
}

static bool slab_add(rd_ofi_net_t *net)
{
    rd_ofi_memory_t *more = realloc(net->slabs, (size_t)(net->nslabs + 1) * sizeof *more);
    if (!more)
        return false;
    net->slabs = more;
    rd_ofi_memory_t *slab = &more[net->nslabs];
    memset(slab, 0, sizeof *slab);
    if (!map(slab, SLAB * request_bytes(false)))
        return false;
    net->nslabs++;
    if (reg(net, slab) != RONDO_SUCCESS)
        return false;
    requests_put(&net->free, slab, SLAB, false);
    return true;
}

/* What the provider had when its endpoint was closed, and what waited, is never complete. */
static void slab_free(rd_ofi_memory_t *slab)
{
    for (size_t i = 0; i < SLAB; i++)
        free(((rd_ofi_request_t *)(void *)(slab->base + i * request_bytes(false)))->joined);
    unmap(slab);
}

/* Where no space for a copy is left, the message stays in its slot. */
rd_ofi_request_t *rd_ofi_request(rd_ofi_net_t *net, bool copying)
{
    rd_ofi_request_t **list = copying && net->free_copying ? &net->free_copying : &net->free;
    if (!*list && !slab_add(net))
        return NULL;
    rd_ofi_request_t *r = *list;
    *list = r->next;
    return r;
}

/* ---- buffers */

/* `least` counts where the two contradict each other. */
static int clamp(int n, int least, int most)
{
    n = n > most ? most : n;
    return n < least ? least : n;
}

static size_t buffer_bytes(size_t payload)
{
    return up(RD_LINE + payload, RD_LINE);
}

/* The provider says how many may be posted. Where a message can wait in the sender's socket, few are better than many:
 * they are used in turn, and stay in the cache. */
static void buffers_count(rd_ofi_net_t *net)
{
    int most = (int)(net->info->rx_attr->size < 4096 ? net->info->rx_attr->size : 4096);
    bool few = rd_ofi_is_tcp(net->info);
    int nlong = clamp(net->base.nremotes + 1, few ? 2 : LONG_LEAST, LONG_MOST);
    int nshort = clamp(2 * net->base.nremotes + 14, few ? 16 : SHORT_LEAST, SHORT_MOST);
    nlong = clamp(nlong, 1, most / 4);
    net->nshort = clamp(nshort, 1, most - nlong);
    net->nbuffers = net->nshort + nlong;
}

static void buffers_put(rd_ofi_net_t *net, char *at)
{
    for (int i = 0; i < net->nbuffers; i++) {
        rd_ofi_buffer_t *b = &net->buffers[i];
        b->tag = i < net->nshort ? RD_OFI_TAG_SHORT : RD_OFI_TAG_LONG;
        b->at = at + AHEAD;
        at += buffer_bytes(b->tag == RD_OFI_TAG_SHORT ? RD_OFI_SHORT : net->longest);
    }
}

static rondo_result_t memory_make(rd_ofi_net_t *net)
{
    buffers_count(net);
    size_t requests = RD_OFI_COPIES * request_bytes(true);
    size_t bytes = requests + (size_t)net->nshort * buffer_bytes(RD_OFI_SHORT) +
                   (size_t)(net->nbuffers - net->nshort) * buffer_bytes(net->longest);
    net->buffers = calloc((size_t)net->nbuffers, sizeof *net->buffers);
    if (!net->buffers || !map(&net->arena, bytes))
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for %zu bytes of network buffers", bytes);
    if (net->regs && !(net->mirrors = calloc(net->npieces ? net->npieces : 1, sizeof *net->mirrors)))
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for the %zu pieces of network buffers",
                        net->npieces);
    rondo_result_t result = reg(net, &net->arena);
    if (result != RONDO_SUCCESS)
        return result;
    requests_put(&net->free_copying, &net->arena, RD_OFI_COPIES, true);
    buffers_put(net, net->arena.base + requests);
    return slab_add(net) ? RONDO_SUCCESS
                         : rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for network requests");
}

/* ---- the endpoint */

static rondo_result_t domain_make(rd_ofi_net_t *net)
{
    long error = rd_fi.fabric(net->info->fabric_attr, &net->fabric, NULL);
    if (error != 0)
        return failed(net, "fabric", error);
    error = fi_domain(net->fabric, net->info, &net->domain, NULL);
    return error != 0 ? failed(net, "domain", error) : RONDO_SUCCESS;
}

/* The queue has space for all that may complete before it is read: a queue that overflows is lost. */
static rondo_result_t endpoint_make(rd_ofi_net_t *net)
{
    size_t tx = net->info->tx_attr->size, rx = net->info->rx_attr->size;
    net->most = (int)(tx < 1024 ? tx : 1024);
    struct fi_av_attr av = {.type = net->info->domain_attr->av_type, .count = (size_t)net->base.nranks};
    struct fi_cq_attr cq = {
        .size = (rx < 4096 ? rx : 4096) + (size_t)net->most, .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
    if (av.type == FI_AV_UNSPEC)
        av.type = FI_AV_TABLE;
    long error = fi_av_open(net->domain, &av, &net->av, NULL);
    if (error != 0)
        return failed(net, "address vector", error);
    error = fi_cq_open(net->domain, &cq, &net->cq, NULL);
    if (error != 0)
        return failed(net, "completion queue", error);
    error = fi_endpoint(net->domain, net->info, &net->ep, NULL);
    if (error == 0)
        error = fi_ep_bind(net->ep, &net->av->fid, 0);
    if (error == 0)
        error = fi_ep_bind(net->ep, &net->cq->fid, FI_TRANSMIT | FI_RECV);
    if (error == 0)
        error = fi_enable(net->ep);
    return error != 0 ? failed(net, "endpoint", error) : RONDO_SUCCESS;
}

rondo_result_t rd_ofi_open(rd_ofi_net_t *net)
{
    rd_net_quiet_t quiet;
    rd_fd_noted_t noted;
    rondo_result_t result = rd_ofi_enter(net->base.ctx, &quiet);
    if (result != RONDO_SUCCESS)
        return result;
    rd_fd_note(&noted);
    rd_fd_guard_begin(); /* connections that are made later */
    net->guarded = true;
    rd_net_fork_begin(&at_fork);
    net->regs = (net->info->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
    net->joins = net->info->tx_attr->iov_limit < 2;
    result = domain_make(net);
    if (result == RONDO_SUCCESS)
        result = endpoint_make(net);
    if (result == RONDO_SUCCESS)
        result = memory_make(net);
    if (result == RONDO_SUCCESS)
        rd_ofi_post(net);
    rd_fd_close_on_exec(&noted, true);
    rd_net_quiet_end(&quiet);
    return result;
}

/* The endpoint is closed, and with it all that it had is complete. No verdict follows, because it is this rank that
 * gives up. */
void rd_ofi_cut(rd_ofi_net_t *net)
{
    for (rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p)) {
        rd_ofi_peer_lost(p, "given up");
        net->base.nlost -= !p->base.left && !p->base.judged;
        p->base.judged = true;
        p->base.pending = p->base.zcopies = 0;
    }
    rd_log(net->base.ctx, RD_LOG_INFO, "gave up libfabric's endpoint, which had yet to send %d messages of the user's",
           net->base.transport.zcopy_pending);
    rd_ofi_sockets_note(net);
    (void)fi_close(&net->ep->fid);
    net->ep = NULL;
    net->flying = net->outstanding = net->base.transport.zcopy_pending = 0;
}

void rd_ofi_mirrors_back(rd_ofi_net_t *net)
{
    for (size_t i = 0; net->mirrors && i < net->npieces; i++)
        unreg(&net->mirrors[i]);
}

/* The endpoint goes first: from then on nothing uses the memory. */
void rd_ofi_close(rd_ofi_net_t *net)
{
    if (net->ep) {
        rd_ofi_sockets_note(net);
        (void)fi_close(&net->ep->fid);
    }
    rd_ofi_mirrors_back(net);
    free(net->mirrors);
    unmap(&net->arena);
    for (int i = 0; i < net->nslabs; i++)
        slab_free(&net->slabs[i]);
    free(net->slabs);
    free(net->buffers);
    if (net->cq)
        (void)fi_close(&net->cq->fid);
    if (net->av)
        (void)fi_close(&net->av->fid);
    if (net->domain)
        (void)fi_close(&net->domain->fid);
    if (net->fabric)
        (void)fi_close(&net->fabric->fid);
    rd_ofi_sockets_close(net);
    if (net->info)
        rd_fi.freeinfo(net->info);
    if (net->guarded) {
        rd_fd_guard_end();
        rd_net_fork_end(&at_fork);
    }
}
