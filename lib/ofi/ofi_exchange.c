/* The exchange of addresses, over the authenticated bootstrap. All ranks see the same records, so all go on or all give
 * up, in a sentence that names the rank that differs or failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/ofi.h"

typedef struct part {
    uint32_t bytes; /* of the address; 0: the rank's own part failed */
    uint32_t version;
    uint32_t protocol, protocol_version; /* of the provider, on the wire */
    char address[RD_OFI_ADDRESS];
} part_t;

static rondo_result_t part_own(const rd_ofi_net_t *net, part_t *own)
{
    size_t bytes = sizeof own->address;
    *own = (part_t){.version = rd_fi.version(),
                    .protocol = net->info->ep_attr->protocol,
                    .protocol_version = net->info->ep_attr->protocol_version};
    int error = fi_getname(&net->ep->fid, own->address, &bytes);
    if (error != 0 || bytes > sizeof own->address)
        return rd_error(net->base.ctx, RONDO_ERR_SYSTEM, "libfabric's provider %s gives no usable address: %s",
                        net->info->fabric_attr->prov_name, rd_ofi_strerror(error));
    own->bytes = (uint32_t)bytes;
    return RONDO_SUCCESS;
}

/* What is on the wire is the provider's own matter, and has a number. */
static rondo_result_t protocols_check(const rd_ofi_net_t *net, const part_t *parts)
{
    for (int r = 1; r < net->base.nranks; r++) {
        if (parts[r].protocol == parts[0].protocol && parts[r].protocol_version == parts[0].protocol_version)
            continue;
        rd_boot_farewell_alike(net->base.boot);
        return rd_error(net->base.ctx, RONDO_ERR_UNSUPPORTED,
                        "the provider %s speaks protocol %u.%u on rank 0 (%s, libfabric %u.%u), %u.%u on rank %d (%s, "
                        "libfabric %u.%u): let all nodes load the same libfabric",
                        net->info->fabric_attr->prov_name, parts[0].protocol, parts[0].protocol_version,
                        rd_boot_whois(net->base.boot, 0), FI_MAJOR(parts[0].version), FI_MINOR(parts[0].version),
                        parts[r].protocol, parts[r].protocol_version, r, rd_boot_whois(net->base.boot, r),
                        FI_MAJOR(parts[r].version), FI_MINOR(parts[r].version));
    }
    return RONDO_SUCCESS;
}

static rondo_result_t parts_take(rd_ofi_net_t *net, const part_t *parts, const char *why)
{
    for (int r = 0; r < net->base.nranks; r++)
        if (parts[r].bytes == 0 || parts[r].bytes > RD_OFI_ADDRESS)
            return rd_net_has_failed(&net->base, r, "has no working libfabric", why);
    rondo_result_t result = protocols_check(net, parts);
    for (int r = 0; result == RONDO_SUCCESS && r < net->base.nranks; r++) {
        if (!rd_net_peer(&net->base, r)->remote)
            continue;
        memcpy(&rd_ofi_peer(net, r)->at, parts[r].address, sizeof rd_ofi_peer(net, r)->at);
        int n = fi_av_insert(net->av, parts[r].address, 1, &rd_ofi_peer(net, r)->address, 0, NULL);
        if (n != 1)
            result = rd_error(net->base.ctx, RONDO_ERR_SYSTEM,
                              "libfabric's provider %s does not take the address of rank %d (%s): %s",
                              net->info->fabric_attr->prov_name, r, rd_boot_whois(net->base.boot, r),
                              n < 0 ? rd_ofi_strerror(n) : "it is of another kind");
    }
    return result;
}

rondo_result_t rd_ofi_exchange(rd_ofi_net_t *net, rondo_result_t opened)
{
    part_t *parts = calloc((size_t)net->base.nranks, sizeof *parts);
    char why[RD_ERROR_BYTES]; /* the error of this rank; the exchange may report more */
    if (!parts)
        return rd_error(net->base.ctx, RONDO_ERR_NO_MEMORY, "no memory for %d addresses", net->base.nranks);
    if (opened == RONDO_SUCCESS)
        opened = part_own(net, &parts[net->base.rank]);
    snprintf(why, sizeof why, "%s", rd_thread_error());
    rondo_result_t result = rd_boot_allgather(net->base.boot, parts, sizeof *parts);
    if (result == RONDO_SUCCESS)
        result = parts_take(net, parts, why);
    if (opened != RONDO_SUCCESS) {
        result = opened;
        rd_thread_error_set(why);
    }
    free(parts);
    return result;
}
