/* A net plugin made for NCCL, loaded once in a process, and its calls whatever version it has (plug_abi.h). */
#ifndef RD_NETPLUGIN_PLUG_LOAD_H
#define RD_NETPLUGIN_PLUG_LOAD_H

#include "base/env.h"
#include "netplugin/plug_abi.h"

typedef struct rd_plug {
    const rd_plug_export_t *table;
    int version;
    int ndevices;
    const char *name; /* its own */
    char file[256];   /* as it was found */
} rd_plug_t;

void rd_plug_log(int level, unsigned long flags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Loads the plugin that RONDO_NET_PLUGIN names, or NCCL_NET_PLUGIN, or libnccl-net.so. The first call decides, and a
 * plugin that is loaded stays, because it may have threads of its own. Returns NULL, with a sentence in `why`. */
const rd_plug_t *rd_plug_load(const rd_env_t *env, char *why, size_t size);
const rd_plug_t *rd_plug_loaded(void); /* NULL: there is none yet */

/* What a device is called, and what it takes. */
typedef struct rd_plug_device {
    const char *name;
    const char *path; /* its folder below /sys; NULL: it is no PCI device, or the plugin does not know */
    int memory;       /* bits of RD_PLUG_HOST */
    int offload;      /* nonzero: it needs a kernel of NCCL's */
    int mbps, most_comms;
    size_t most_bytes; /* of a message */
} rd_plug_device_t;

/* Each returns 0, or an error of NCCL's. */
int rd_plug_begin(const rd_plug_t *plug, void **context, uint64_t id); /* for a communicator */
int rd_plug_end(const rd_plug_t *plug, void *context);
int rd_plug_device(const rd_plug_t *plug, int device, rd_plug_device_t *what);
/* Sets the number of the device that RONDO_NET calls "mlx5_0:1" or "eth0"; -1: there is none. */
int rd_plug_device_named(const rd_plug_t *plug, const char *name, int *device);
int rd_plug_count(const rd_plug_t *plug, int *count); /* of devices */
int rd_plug_listen(const rd_plug_t *plug, void *context, int device, void *handle, void **listen);
int rd_plug_connect(const rd_plug_t *plug, void *context, int device, void *handle, void **send);
int rd_plug_accept(const rd_plug_t *plug, void *listen, void **recv);
int rd_plug_reg(const rd_plug_t *plug, void *comm, void *data, size_t bytes, void **registration);
int rd_plug_dereg(const rd_plug_t *plug, void *comm, void *registration);
int rd_plug_test(const rd_plug_t *plug, void *request, int *done, int *bytes);
typedef enum { RD_PLUG_END_SEND, RD_PLUG_END_RECV, RD_PLUG_END_LISTEN } rd_plug_end_t;
int rd_plug_close_comm(const rd_plug_t *plug, rd_plug_end_t end, void *comm);
int rd_plug_send(const rd_plug_t *plug, void *comm, void *data, size_t bytes, int tag, void *registration,
                 void **request);
int rd_plug_recv(const rd_plug_t *plug, void *comm, void *data, size_t bytes, int tag, void *registration,
                 void **request);

/* Writes "connect: system error (2)". */
const char *rd_plug_failure(const char *call, int error, char *text, size_t size);

#endif
