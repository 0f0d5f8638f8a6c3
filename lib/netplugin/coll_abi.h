/* The interface of NCCL's plugins for collective networks (CollNet), versions 8 to 11: a library exports a struct of
 * functions, ncclCollNetPlugin_v11 for the last version, as a rule beside that of a net plugin. Layouts and numbers are
 * written here from that interface's facts; plug_abi.h has what both kinds have in common.
 *
 * All ranks of a group listen on a device and exchange the handles; each connects to all of them at once, in one call
 * that waits for the others. What it has then, a comm, adds: an allreduce is a request like a send. */
#ifndef RD_NETPLUGIN_COLL_ABI_H
#define RD_NETPLUGIN_COLL_ABI_H

#include "netplugin/plug_abi.h"

/* A part of the memory of an allgather's result, or of what a reduce_scatter takes. */
typedef struct rd_coll_part_v8 {
    void *registration, *at;
    uint32_t bytes;
} rd_coll_part_v8_t;

typedef struct rd_coll_part_v9 {
    void *registration, *at;
    size_t bytes;
} rd_coll_part_v9_t;

/* `parts` have the type of the version. A window is what a call is about of the whole vector, all ranks' blocks of
 * `bytes_each` one behind the other. */
typedef struct rd_coll_export {
    const char *name;
    union {
        int (*v8)(rd_plug_log_fn log);
        int (*v11)(void **context, uint64_t id, rd_plug_log_fn log);
    } init;
    int (*devices)(int *count);
    int (*properties)(int device, void *properties);
    union {
        int (*v8)(int device, void *handle, void **listen);
        int (*v11)(void *context, int device, void *handle, void **listen);
    } listen;
    int (*connect)(void *handles[], int nranks, int rank, void *listen, void **comm);
    int (*supports)(int type, int op, int *supported);
    int (*reg)(void *comm, void *data, size_t bytes, int memory, void **registration);
    int (*reg_dmabuf)(void *comm, void *data, size_t bytes, int memory, uint64_t offset, int fd, void **registration);
    int (*dereg)(void *comm, void *registration);
    union {
        int (*v8)(void *comm, void *from, void *to, int count, int type, int op, void *from_registration,
                  void *to_registration, void **request);
        int (*v9)(void *comm, void *from, void *to, size_t count, int type, int op, void *from_registration,
                  void *to_registration, void **request);
    } allreduce;
    int (*allgather)(void *comm, void *from, int nparts, void *parts, size_t bytes_each, size_t window_offset,
                     size_t window_bytes, void *registration, void **request);
    int (*reduce_scatter)(void *comm, int nparts, void *parts, void *to, size_t bytes_each, size_t window_offset,
                          size_t window_bytes, int type, int op, void *registration, void **request);
    int (*flush)(void *comm, void *data, int bytes, void *registration, void **request);
    int (*test)(void *request, int *done, int *bytes);
    int (*close_comm)(void *comm);
    int (*close_listen)(void *listen);
    int (*make_device)(int *device, void *parts); /* from version 9 on */
    int (*finalize)(void *context);               /* version 11 */
} rd_coll_export_t;

#endif
