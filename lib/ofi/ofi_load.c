/* Opens libfabric when it is first needed (transport/network/net_load.h says why, and how). A path that configure was
 * given by --with-libfabric is in the run path of librondo, which dlopen follows.
 *
 * libfabric looks for its providers in the first call of fi_getinfo, so that is as quiet as loading it is. */
#include "ofi/ofi_load.h"

#include <pthread.h>
#include <stdio.h>

#include "transport/network/net_load.h"

rd_fi_t rd_fi;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static rd_net_load_t libfabric = {
    .file = "libfabric.so.1",
    .name = "libfabric",
    .needs = "rondo needs libfabric 1.11 or newer",
    .advice = "install it (libfabric1 in Debian and Ubuntu, libfabric in Fedora and RHEL) or name its folder in "
              "LD_LIBRARY_PATH, or unset RONDO_TRANSPORT to go by UCX",
};

static void *open_quietly(void)
{
    rd_net_quiet_t quiet;
    rd_net_quiet_begin(&quiet);
    void *library = rd_net_load_open(&libfabric);
    rd_net_quiet_end(&quiet);
    return library;
}

/* tcp's providers put short messages into a buffer of their own where the socket is full, and call them sent; the rest
 * goes out when this rank polls again, which may be never. They read at their first use that they are to have no such
 * buffer. */
static void begin_unstaged(void)
{
    static const rd_net_preset_t presets[] = {
        {"FI_TCP_STAGING_SBUF_SIZE", "FI_TCP_STAGING_SBUF_SIZE=0", true},
        {"FI_NET_STAGING_SBUF_SIZE", "FI_NET_STAGING_SBUF_SIZE=0", true},
    };
    static rd_net_environ_t its;
    struct fi_info *all = NULL;
    rd_net_quiet_t quiet;
    if (!rd_net_environ_begin(&its, presets, sizeof presets / sizeof presets[0]))
        return;
    rd_net_quiet_begin(&quiet);
    if (rd_fi.getinfo(RD_OFI_VERSION, NULL, NULL, 0, NULL, &all) == 0)
        rd_fi.freeinfo(all);
    rd_net_environ_end(&its);
    rd_net_quiet_end(&quiet);
}

static void load(void)
{
    void *library = open_quietly();
    if (!library)
        return;
#define RD_FI_FIND(name) rd_net_load_find(&libfabric, library, "fi_" #name, &rd_fi.name, sizeof rd_fi.name);
    RD_FI_FUNCTIONS(RD_FI_FIND)
#undef RD_FI_FIND
    if (*libfabric.why)
        return;
    uint32_t version = rd_fi.version();
    if (version < RD_OFI_VERSION)
        snprintf(libfabric.why, sizeof libfabric.why, "libfabric %u.%u is too old: rondo needs 1.11 or newer",
                 FI_MAJOR(version), FI_MINOR(version));
    else
        begin_unstaged();
}

const char *rd_ofi_load(void)
{
    pthread_once(&once, load);
    return *libfabric.why ? libfabric.why : NULL;
}

const char *rd_ofi_strerror(long error)
{
    return rd_fi.strerror((int)(error < 0 ? -error : error));
}
