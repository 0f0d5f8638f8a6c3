/* A CollNet plugin made for NCCL, loaded once in a process, and its calls whatever version it has (coll_abi.h). Unless
 * said otherwise the calls return NCCL's results, 0 or an error. */
#ifndef RD_NETPLUGIN_COLL_LOAD_H
#define RD_NETPLUGIN_COLL_LOAD_H

#include <stdbool.h>

#include "base/env.h"
#include "netplugin/coll_abi.h"

typedef struct rd_coll_plug {
    const rd_coll_export_t *table;
    int version;
    int ndevices;
    const char *name;               /* its own */
    char file[256];                 /* as it was found */
    uint16_t adds[RONDO_NUM_TYPES]; /* operators by type, bits 1u << rondo_op_t */
    bool gathers, scatters;         /* it has these calls */
} rd_coll_plug_t;

/* Loads the first of the libraries that RONDO_NET_PLUGIN names, or NCCL_NET_PLUGIN, or libnccl-net.so, that has a
 * CollNet plugin with a device. The first call decides, and what is loaded stays. Returns NULL, with a sentence in
 * `why`. */
const rd_coll_plug_t *rd_coll_load(const rd_env_t *env, char *why, size_t size);

/* Before version 11 a plugin is initialised once in a process, and *context is NULL. */
int rd_coll_begin(const rd_coll_plug_t *plug, void **context, uint64_t id);
int rd_coll_end(const rd_coll_plug_t *plug, void *context);
/* Sets the kinds of memory that a device takes, as bits of RD_PLUG_HOST, and the longest collective. */
int rd_coll_device(const rd_coll_plug_t *plug, int device, int *memory, size_t *most);
int rd_coll_listen(const rd_coll_plug_t *plug, void *context, int device, void *handle, void **listen);
/* Waits for the others of the group, so it is called without the lock that all others take. */
int rd_coll_connect(const rd_coll_plug_t *plug, void **handles, int nranks, int rank, void *listen, void **comm);
int rd_coll_reg(const rd_coll_plug_t *plug, void *comm, void *data, size_t bytes, void **registration);
int rd_coll_dereg(const rd_coll_plug_t *plug, void *comm, void *registration);
/* May wait for the others, too. */
int rd_coll_close(const rd_coll_plug_t *plug, void *comm);
int rd_coll_close_listen(const rd_coll_plug_t *plug, void *listen);
/* `type` and `op` are such as plug->adds has. *request is NULL if the plugin cannot take it now. */
int rd_coll_allreduce(const rd_coll_plug_t *plug, void *comm, const void *from, void *to, size_t count,
                      rondo_type_t type, rondo_op_t op, void *from_registration, void *to_registration, void **request);
/* Each rank's block of `each` bytes from `from` to all of them at `to`, in the order of the ranks; `ranks` is their
 * number. Only if plug->gathers. */
int rd_coll_allgather(const rd_coll_plug_t *plug, void *comm, const void *from, void *to, size_t each, int ranks,
                      void *registration, void **request);
/* The sum of this rank's block, of `each` bytes, of those that all ranks have at `from`. Only if plug->scatters. */
int rd_coll_reduce_scatter(const rd_coll_plug_t *plug, void *comm, const void *from, void *to, size_t each, int ranks,
                           rondo_type_t type, rondo_op_t op, void *registration, void **request);
/* *bytes stays -1 if the plugin does not say it. */
int rd_coll_test(const rd_coll_plug_t *plug, void *request, int *done, int *bytes);

#endif
