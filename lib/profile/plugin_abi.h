/* The interface of NCCL's profiler plugins, versions 1 to 7: a plugin is a library that exports a struct of functions,
 * ncclProfiler_v7 for the last version, and gets a descriptor of each event. Here are the layouts and numbers of what
 * rondo emits, written from that interface's facts, because plugins are built against NCCL's own headers.
 *
 * A descriptor begins with the event's type, its parent and the rank; a union follows. Version 1 has numbers where the
 * later ones have words; 2 and 3 still say which communicator in each event; from 4 on that is said once, to `init`,
 * and what 5, 6 and 7 add stands behind what was there. Those versions differ in the width of `type`. Forks of NCCL
 * have other members behind the functions of version 7: they are never called. */
#ifndef RD_PROFILE_PLUGIN_ABI_H
#define RD_PROFILE_PLUGIN_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of events, as bits. */
enum {
    RD_EVENT_GROUP = 1 << 0,
    RD_EVENT_COLL = 1 << 1,
    RD_EVENT_P2P = 1 << 2,
    RD_EVENT_PROXY_OP = 1 << 3,
    RD_EVENT_PROXY_STEP = 1 << 4,
    RD_EVENT_KERNEL_CHANNEL = 1 << 6,
    RD_EVENT_NET_PLUGIN = 1 << 7,
    RD_EVENT_GROUP_API = 1 << 8,
    RD_EVENT_COLL_API = 1 << 9,
    RD_EVENT_P2P_API = 1 << 10,
    RD_EVENT_KERNEL_LAUNCH = 1 << 11,
    RD_EVENT_COPY_ENGINE = 7 << 12 /* three types */
};

/* States that an event passes through. */
enum { RD_STATE_CHANNEL_STOP = 22, RD_STATE_GROUP_START_STOP = 23, RD_STATE_GROUP_END_START = 24 };

typedef struct rd_plugin_v1 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *comm;
            uint64_t comm_id, number;
            uint8_t func;
            const void *in;
            void *out;
            size_t count;
            int root;
            uint8_t type;
            uint32_t op;
            size_t bytes;
            uint8_t channels, warps, algo, proto;
            int collnet, nvls;
        } coll;
        struct {
            const char *comm;
            uint64_t comm_id;
            uint8_t func;
            void *buffer;
            uint8_t type;
            size_t count;
            int peer;
        } p2p;
    };
} rd_plugin_v1_t;

typedef struct rd_plugin_p2p_v2 {
    const char *comm;
    uint64_t comm_id;
    const char *func;
    void *buffer;
    const char *type;
    size_t count;
    int peer;
} rd_plugin_p2p_v2_t;

typedef struct rd_plugin_v2 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *comm;
            uint64_t comm_id, number;
            const char *func;
            const void *in;
            void *out;
            size_t count;
            int root;
            const char *type;
            size_t bytes;
            uint8_t channels, warps;
            const char *algo, *proto;
        } coll;
        rd_plugin_p2p_v2_t p2p;
    };
} rd_plugin_v2_t;

typedef struct rd_plugin_v3 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct {
            const char *comm;
            uint64_t comm_id, number;
            const char *func;
            const void *in;
            void *out;
            size_t count;
            int root;
            const char *type;
            uint8_t channels, warps;
            const char *algo, *proto;
        } coll;
        rd_plugin_p2p_v2_t p2p;
        struct {
            uint8_t channel;
        } channel;
    };
} rd_plugin_v3_t;

/* Version 4, whose `type` is the first of these bytes, to version 7. */
typedef struct rd_plugin_v4 {
    union {
        uint8_t narrow;
        uint64_t wide;
    } type;
    void *parent;
    int rank;
    union {
        struct {
            bool captured;
            int depth;
        } group_api;
        struct {
            const char *func;
            size_t count;
            const char *type;
            int root;
            void *stream;
            bool captured;
            uint64_t tag;
        } coll_api;
        struct {
            const char *func;
            size_t count;
            const char *type;
            void *stream;
            bool captured;
            uint64_t tag;
        } p2p_api;
        struct {
            void *stream;
        } launch;
        struct {
            uint64_t number;
            const char *func;
            const void *in;
            void *out;
            size_t count;
            int root;
            const char *type;
            uint8_t channels, warps;
            const char *algo, *proto;
            void *group;
            const char *variant;
            bool symmetric;
            uint64_t tag;
        } coll;
        struct {
            const char *func;
            void *buffer;
            const char *type;
            size_t count;
            int peer;
            uint8_t channels;
            void *group;
            uint64_t tag;
        } p2p;
        struct {
            uint8_t channel;
            uint64_t timer;
        } channel;
    };
} rd_plugin_v4_t;

/* What goes with a state. */
typedef union rd_plugin_state {
    struct {
        uint64_t timer;
    } channel;
    uint64_t words[2]; /* as long as any version's */
} rd_plugin_state_t;

/* NCCL's way of writing log lines. */
typedef void (*rd_plugin_log_fn)(int level, unsigned long flags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* What a plugin exports. Results are 0 or an error of NCCL's. */
typedef struct rd_plugin_export {
    const char *name;
    union {
        int (*v1)(void **context, int *mask);
        int (*v4)(void **context, int *mask, const char *name, uint64_t id, int nodes, int nranks, int rank,
                  rd_plugin_log_fn log);
        int (*v5)(void **context, uint64_t id, int *mask, const char *name, int nodes, int nranks, int rank,
                  rd_plugin_log_fn log);
    } init;
    int (*start)(void *context, void **handle, void *descriptor);
    int (*stop)(void *handle);
    int (*state)(void *handle, int state, void *args);
    int (*finalize)(void *context);
} rd_plugin_export_t;

#endif
