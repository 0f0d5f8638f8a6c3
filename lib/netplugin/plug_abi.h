/* The interface of NCCL's net plugins, versions 8 to 11: a plugin is a library that exports a struct of functions,
 * ncclNetPlugin_v11 for the last version. Here are its layouts and numbers, written from that interface's facts,
 * because plugins are built against NCCL's own headers.
 *
 * A plugin has devices. A receiver listens on one and gets a handle, bytes that a sender connects to; what both then
 * have is called a comm, and has one direction. `connect` and `accept` give NULL until it is made. Memory is registered
 * with a comm. A send or a receive gives NULL while it would block, else a request, which is over when `test` says so;
 * that is also where a plugin makes progress. Receives match sends of their tag in order.
 *
 * From version 9 on lengths are size_t, from 10 on a message has a handle for a profiler, and in version 11 a
 * communicator has a context. All members are pointers, so the versions lie in one struct. */
#ifndef RD_NETPLUGIN_PLUG_ABI_H
#define RD_NETPLUGIN_PLUG_ABI_H

#include <stddef.h>
#include <stdint.h>

#define RD_PLUG_NEWEST 11
#define RD_PLUG_OLDEST 8
#define RD_PLUG_HANDLE 128 /* bytes of a handle */
#define RD_PLUG_HOST 1     /* memory that the host has; 2: CUDA's, 4: by a dmabuf */

#define RD_PLUG_ANY_CLASS (-1) /* of traffic */

typedef struct rd_plug_properties_v8 {
    char *name, *pci_path;
    uint64_t guid;
    int memory, registers_once; /* bits of RD_PLUG_HOST; a registration counts for all comms */
    int mbps, port;
    float latency_us;
    int most_comms, most_receives; /* of one irecv */
    int offload, offload_version;  /* 0: the host does everything */
} rd_plug_properties_v8_t;

/* Version 9 to 11, whose last member only version 11 has. */
typedef struct rd_plug_properties_v9 {
    char *name, *pci_path;
    uint64_t guid;
    int memory, registers_once, flushes;
    int mbps, port;
    float latency_us;
    int most_comms, most_receives;
    int offload, offload_version;
    int nparts, parts[4]; /* of a device that is made of several */
    size_t most_bytes, most_bytes_collective;
    int most_requests;
} rd_plug_properties_v9_t;

typedef struct rd_plug_config {
    int traffic_class;
} rd_plug_config_t;

/* NCCL's way of writing log lines, by its levels: 1 version, 2 warning, 3 information, 4 abort, 5 trace. */
typedef void (*rd_plug_log_fn)(int level, unsigned long flags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Where a plugin tells a profiler of its own events; rondo takes none. */
typedef int (*rd_plug_event_fn)(void **event, int kind, void *parent, int64_t id, void *data);

/* What a plugin exports. Results are 0 or an error of NCCL's. */
typedef struct rd_plug_export {
    const char *name;
    union {
        int (*v8)(rd_plug_log_fn log);
        int (*v10)(rd_plug_log_fn log, rd_plug_event_fn event);
        int (*v11)(void **context, uint64_t id, rd_plug_config_t *config, rd_plug_log_fn log, rd_plug_event_fn event);
    } init;
    int (*devices)(int *count);
    int (*properties)(int device, void *properties);
    union {
        int (*v8)(int device, void *handle, void **listen);
        int (*v11)(void *context, int device, void *handle, void **listen);
    } listen;
    union {
        int (*v8)(int device, void *handle, void **send, void **offload);
        int (*v10)(int device, rd_plug_config_t *config, void *handle, void **send, void **offload);
        int (*v11)(void *context, int device, void *handle, void **send, void **offload);
    } connect;
    int (*accept)(void *listen, void **recv, void **offload);
    int (*reg)(void *comm, void *data, size_t bytes, int memory, void **registration);
    int (*reg_dmabuf)(void *comm, void *data, size_t bytes, int memory, uint64_t offset, int fd, void **registration);
    int (*dereg)(void *comm, void *registration);
    union {
        int (*v8)(void *comm, void *data, int bytes, int tag, void *registration, void **request);
        int (*v9)(void *comm, void *data, size_t bytes, int tag, void *registration, void **request);
        int (*v10)(void *comm, void *data, size_t bytes, int tag, void *registration, void *event, void **request);
    } send;
    union {
        int (*v8)(void *comm, int n, void **data, int *bytes, int *tags, void **registrations, void **request);
        int (*v9)(void *comm, int n, void **data, size_t *bytes, int *tags, void **registrations, void **request);
        int (*v10)(void *comm, int n, void **data, size_t *bytes, int *tags, void **registrations, void **events,
                   void **request);
    } recv;
    int (*flush)(void *comm, int n, void **data, int *bytes, void **registrations, void **request);
    int (*test)(void *request, int *done, int *bytes);
    int (*close_send)(void *comm);
    int (*close_recv)(void *comm);
    int (*close_listen)(void *listen);
    int (*device_registration)(void *comm, void *registration, void **on_device);
    int (*consumed)(void *comm, int n, void *request);
    int (*make_device)(int *device, void *parts); /* from version 9 on */
    int (*finalize)(void *context);               /* version 11, as what follows */
    int (*attributes)(void *context, void *attributes);
} rd_plug_export_t;

#endif
