/* What a communicator says to a profiler plugin: events of its calls, started and stopped in pairs.
 *
 *   GroupApi ── CollApi, P2pApi ── Coll, P2p ── KernelCh
 *            └─ KernelLaunch        Group
 *
 * GroupApi is a group of the user's, until its calls are handed on, or lies around a lone call; CollApi and P2pApi are
 * the call; Group is what a communicator runs of a group; Coll and P2p are an operation, from when it may begin to its
 * end, on a device until it is enqueued. On host memory an operation is one channel, whose KernelCh is the time in
 * which it runs, in nanoseconds of CLOCK_MONOTONIC. As with NCCL an event comes if the plugin wants it or one below it;
 * where a plugin has given no handle, there is no parent.
 *
 * Everything is called from inside the communicator, but for the end of a user's group, which may outlive it. What has
 * started is stopped before the plugin hears of the communicator's end, whatever becomes of the mask. */
#ifndef RD_PROFILE_PROFILE_H
#define RD_PROFILE_PROFILE_H

#include <stdatomic.h>

#include "profile/plugin.h"

typedef struct rd_profile rd_profile_t;
typedef struct rd_profile_group rd_profile_group_t;
typedef struct rd_profile_task rd_profile_task_t;

/* Returns NULL if there is no plugin, or it does not want this communicator. */
rd_profile_t *rd_profile_make(rd_plugin_t *plugin, const rd_plugin_comm_t *comm);
void rd_profile_end(rd_profile_t *profile);

/* A call of the user's, from its entry to its return. */
typedef struct rd_profile_span {
    int mask; /* as it was when the call began: for all its events */
    rd_profile_group_t *group;
    void *api, *launch;
} rd_profile_span_t;

/* `depth`: of this thread's groups; its first call begins the event of the group. `launches`: the call goes to a device
 * at once. */
void rd_profile_call_begin(rd_profile_t *profile, rd_profile_span_t *span, const rd_profile_call_t *call, int depth,
                           bool launches);
void rd_profile_call_end(rd_profile_t *profile, rd_profile_span_t *span);

/* This thread ends a group, whose calls are now handed on; then they have been, or were dropped. */
extern _Atomic bool rd_profile_used; /* a communicator of this process has a profiler */
void rd_profile_open_ends(void);
void rd_profile_open_end(void);

static inline void rd_profile_group_ends(void)
{
    if (atomic_load_explicit(&rd_profile_used, memory_order_relaxed))
        rd_profile_open_ends();
}

static inline void rd_profile_group_end(void)
{
    if (atomic_load_explicit(&rd_profile_used, memory_order_relaxed))
        rd_profile_open_end();
}

/* An operation that the call makes: it is recorded, may begin, runs, ends, and is freed. Returns NULL if nobody wants
 * to know. The others ignore NULL. */
rd_profile_task_t *rd_profile_task(rd_profile_t *profile, const rd_profile_span_t *span, const rd_profile_call_t *call);
void rd_profile_task_begin(rd_profile_task_t *task);
void rd_profile_task_runs(rd_profile_task_t *task);
void rd_profile_task_end(rd_profile_task_t *task);
void rd_profile_task_free(rd_profile_task_t *task);

#endif
