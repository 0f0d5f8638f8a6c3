/* A profiler plugin of NCCL's, loaded once in a process: how it is found, and how an event is said to it in the words
 * of its version (plugin_abi.h).
 *
 * What a plugin does is its own affair: its errors are counted and ignored. It stays loaded to the end of the process,
 * because threads of its own may run. */
#ifndef RD_PROFILE_PLUGIN_H
#define RD_PROFILE_PLUGIN_H

#include <rondo.h>
#include <stdbool.h>

#include "base/error.h"
#include "profile/plugin_abi.h"
#include "sched/program.h"

/* What is called: a collective of rd_coll_t, one with tables, or a message. */
typedef enum rd_profile_func {
    RD_FUNC_ALLGATHERV = RD_NUM_COLLS,
    RD_FUNC_REDUCE_SCATTERV,
    RD_FUNC_ALLTOALLV,
    RD_FUNC_GATHERV,
    RD_FUNC_SCATTERV,
    RD_FUNC_SEND,
    RD_FUNC_RECV,
    RD_NUM_FUNCS
} rd_profile_func_t;

/* A call, as plugins are shown it. */
typedef struct rd_profile_call {
    int func;       /* rd_profile_func_t */
    uint64_t count; /* as the caller gave it; of blocks of different lengths, this rank's own elements */
    rondo_type_t type;
    rondo_op_t op;
    int root; /* or the peer */
    const void *in;
    void *out;
    void *stream;
    const char *algo, *proto; /* names that last; NULL: not known */
    int channels;             /* that have events of their own */
} rd_profile_call_t;

typedef struct rd_plugin_event {
    int type; /* one bit */
    void *parent;
    void *group; /* the event of type GROUP, which up to version 4 is the parent of COLL and P2P */
    const rd_profile_call_t *call;
    uint64_t number;
    int depth;
    uint64_t timer; /* nanoseconds */
    const char *comm;
    uint64_t comm_id;
    int rank;
} rd_plugin_event_t;

typedef struct rd_plugin {
    const rd_plugin_export_t *table;
    int version;
    _Atomic int mask; /* of all communicators: the plugin has its address, and may change it at any time */
    _Atomic uint64_t errors;
} rd_plugin_t;

/* Loads the plugin `name` at the first call. Returns NULL if there is none. `asked`: somebody wants it, and reads in
 * the log why it is not there. */
rd_plugin_t *rd_plugin_load(const char *name, bool asked);

typedef struct rd_plugin_comm {
    const char *name; /* stays as long as the communicator */
    uint64_t id;
    int nodes, nranks, rank;
} rd_plugin_comm_t;

/* Returns false if the plugin refuses this communicator. */
bool rd_plugin_init(rd_plugin_t *plugin, const rd_plugin_comm_t *comm, void **context);

/* Return the event's handle, or NULL: the plugin, or its version, does not want it. */
void *rd_plugin_start(rd_plugin_t *plugin, void *context, const rd_plugin_event_t *event);
/* These ignore NULL. */
void rd_plugin_state(rd_plugin_t *plugin, void *handle, int state, uint64_t timer);
void rd_plugin_stop(rd_plugin_t *plugin, void *handle);
void rd_plugin_finalize(rd_plugin_t *plugin, void *context);

/* NCCL's words and numbers (plugin_words.c). A word that NCCL lacks is rondo's own, a number that it lacks 255. */
const char *rd_plugin_func(int func);
const char *rd_plugin_type(rondo_type_t type);
const char *rd_plugin_algo(const char *algo);
const char *rd_plugin_proto(const char *proto);
uint8_t rd_plugin_func_number(int func);
uint8_t rd_plugin_type_number(rondo_type_t type);
uint8_t rd_plugin_algo_number(const char *algo);
uint8_t rd_plugin_proto_number(const char *proto);
uint32_t rd_plugin_op_number(rondo_op_t op);

#endif
