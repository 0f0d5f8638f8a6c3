/* The communicator: one struct of each module, in the order in which they are made. */
#ifndef RD_CORE_COMM_H
#define RD_CORE_COMM_H

#include <stdbool.h>

#include "core/exchanges.h"
#include "cost/prices.h"
#include "monitor/seat.h"
#include "node/team.h"
#include "progress/net_comm.h"
#include "progress/queue.h"
#include "transport/liveness.h"

#define RD_COMM_DESTROYED 0x64657374726f79u /* destroyed: only the struct is left */
#define RD_COMM_ABORTED 0x61626f72746564u   /* aborted: only the struct is left */

/* Bits that rd_comm_mark does not have, and that are added to it while a call with blocking = 0 is under way
 * (background.h): the communicator is being made, or could not be; or such a call uses it. */
#define RD_COMM_MAKING (UINT64_C(1) << 63)
#define RD_COMM_BUSY (UINT64_C(1) << 59)
#define RD_COMM_SUSPENDED (UINT64_C(1) << 58) /* likewise: it has given its memory back (suspend.c) */

struct rondo_comm {
    _Atomic uint64_t alive; /* rd_comm_mark: distinguishes a communicator from a stale or foreign pointer */
    _Atomic int background; /* how its making goes: RONDO_IN_PROGRESS, then the result */
    _Atomic int abandoned;  /* it was aborted while it was being made */
    _Atomic int references;
    _Atomic int closed; /* it is being ended: no thread may enter */
    bool internal;      /* a net sub-communicator, of which the user knows nothing, */
    uint32_t gpu;       /* and the PCI address of the GPU whose data it moves (topo/locality.h); 0: none */
    int roots;          /* ids by which it is made: 0 and 1 are one */
    rd_env_t env;
    rondo_comm_t next; /* of the list in living.h */
    /* What follows is set to zero before each attempt to make it. */
    rd_log_ctx_t ctx;
    int blocking;             /* config.blocking */
    int on_error;             /* RONDO_ON_ERROR_* */
    _Atomic int acted;        /* by that, once */
    int64_t first_timeout_ms; /* until the first call is over; -1: as later */
    rd_health_t health;
    rd_prices_t prices;
    rd_team_t team; /* rank, nranks, device, and all else that the layers below get to know */
    rd_boot_t *boot;
    rd_node_t node;
    rd_conns_t conns;
    rd_transport_t *transports; /* a list that begins with the last one made */
    rd_transport_t *net;        /* the transport among these whose messages have to be polled for; or shared memory */
    rd_tuned_t tuned;           /* who has a say in the choices of the planner, */
    rd_planner_t *planner;
    struct rd_cuda *cuda; /* NULL: a host communicator */
    rd_liveness_t *liveness;
    rd_queue_t queue;
    rd_seat_t seat; /* what rondo-ras shows of this rank */
    rd_exchanges_t exchanges;
    _Atomic bool status_lines; /* it is in status_lines.h; the next one: */
    int64_t status_due_ms;
    bool ras_tcp;        /* it is in ras_tcp.h */
    bool metrics;        /* it is in metrics.h, */
    rd_waited_t *waited; /* and counts its waits for it */
    bool published;
    _Atomic int hooked;     /* hooks, that it has failed */
    bool triggers;          /* it keeps what triggers.h is about */
    bool recorded;          /* it takes part in the record of this process, */
    int *held, nheld;       /* and holds records of others */
    struct rd_shown *shown; /* who watches the calls; NULL: nobody (shown.h) */
    struct {                /* the last blocking collective, if it may be repeated: see rd_call_repeats of submit.h */
        rd_plan_t *plan;    /* NULL: there is none */
        int kind;           /* the collective, or of a v-operation rd_call_kind_v() of it */
        rondo_type_t type;
        rondo_op_t op;
        int root;
        size_t count;  /* of a v-operation 0: its plan has the counts */
        uint64_t hash; /* of the call: monitor/called.h */
        uint64_t tag;
    } last;
    /* Of the group that begins: the call made last. Followers (progress/queue.h) begin ahead of other calls. */
    struct {
        int index; /* -1: none has begun */
        rd_track_t track;
    } latest;
    struct rd_user_op *user_ops;
    struct rd_rma *rma;    /* one-sided operations; NULL: there was no window yet */
    rd_queue_t *rma_net;   /* the net communicator by which their messages go; NULL: there is none */
    int contexts, signals; /* of each rank, for these */
    uint32_t windows;      /* that were made or tried so far */
    /* Which threads are inside, and how the communicator ends: lifetime.h. */
    _Atomic int inside;    /* a thread is in a call */
    _Atomic int queries;   /* threads in queries, which may run concurrently with a call */
    _Atomic int gone;      /* the modules have been taken down; only the struct is left */
    _Atomic int cancelled; /* 1: what was posted here is being taken back, 2: it has been */
    uint64_t sequence;     /* number of collectives, for RONDO_CHECK */
    int32_t rounds;        /* lists of survivors so far (boot/agree_shrink.h) */
    int survived;          /* it was shrunk to its survivors and must not be shrunk again */
};

/* Return the communicator that a queue, or a team, belongs to. */
static inline rondo_comm_t rd_comm_of(rd_queue_t *queue)
{
    return (rondo_comm_t)(void *)((char *)queue - offsetof(struct rondo_comm, queue));
}

static inline const struct rondo_comm *rd_comm_of_team(const rd_team_t *team)
{
    return (const struct rondo_comm *)(const void *)((const char *)team - offsetof(struct rondo_comm, team));
}

/* Checks a communicator that was passed as an argument. A NULL, destroyed or foreign one, and the parent's after a
 * fork, is refused with a sentence; one that was just aborted gives RONDO_ERR_ABORTED. */
rondo_result_t rd_comm_valid(rondo_comm_t comm, const char *call);

/* The same for a call that a suspended one serves, too. */
rondo_result_t rd_comm_valid_suspended(rondo_comm_t comm, const char *call);

/* The mark that this process puts into the communicators that it makes. A forked child has a different mark: what the
 * parent made is not the child's, whose copy has lost its threads and sockets, but still has the memory that the other
 * ranks see. */
extern uint64_t rd_comm_mark;
bool rd_comm_not_own(rondo_comm_t comm);
static inline bool rd_comm_inherited(rondo_comm_t comm) /* it is the parent's */
{
    return atomic_load_explicit(&comm->alive, memory_order_relaxed) != rd_comm_mark && rd_comm_not_own(comm);
}

static inline bool rd_comm_on_device(const struct rondo_comm *comm) /* whichever thread aborts it meanwhile */
{
    return comm->team.device >= 0;
}

static inline bool rd_comm_busy(rondo_comm_t comm) /* a call with blocking = 0 uses it */
{
    return atomic_load_explicit(&comm->alive, memory_order_acquire) == (rd_comm_mark | RD_COMM_BUSY);
}

/* Allocates the struct of a communicator that is yet to be made. If `env` is NULL, the settings are read from the
 * environment. */
rondo_result_t rd_comm_allocate(rondo_comm_t *comm, const rd_env_t *env);
/* Makes a communicator from an id, or from the first of comm->roots ids, for split, shrink and the public calls. While
 * ranks may not have come, `meeting` is the members whose liveness is observed, and `parent` the communicator whose
 * failure, whatever it is, ends the creation; each of the two may be NULL. It is not valid for users yet:
 * rd_comm_publish makes it so. After an error only the struct is left, and it may be tried again. */
rondo_result_t rd_comm_build(rondo_comm_t comm, int nranks, const rondo_unique_id_t *id, int rank,
                             const rondo_config_t *config, rd_meeting_t *meeting, rondo_comm_t parent);
/* Takes a built communicator back, which nobody has used: the others that have built it hear of an abort. */
void rd_comm_unbuild(rondo_comm_t comm);
/* Fails a communicator because this rank aborts it, unless it has failed. */
void rd_comm_fail_aborted(rondo_comm_t comm);
/* Makes a built communicator valid for the user's calls, and known to whoever watches this process. */
void rd_comm_publish(rondo_comm_t comm);
/* Ends the creation of a communicator with RONDO_ERR_ABORTED. Any thread. */
void rd_comm_abandon(rondo_comm_t comm);
/* Allocates, builds and publishes a communicator, for a caller that waits. With `env` it is made by `parent` for
 * itself, and a failure of the parent ends the creation to its very end. `gpu`: the PCI address of the GPU whose data
 * it moves; 0: none. */
rondo_result_t rd_comm_make(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                            const rondo_config_t *config, const rd_env_t *env, uint32_t gpu, rondo_comm_t parent);
/* A public call of a rank that joins by an id, with all checks; `call` is its name. */
rondo_result_t rd_comm_join(const char *call, rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                            const rondo_config_t *config);
/* Returns the config that was given, or the defaults for NULL. An older caller's is shorter: the fields that it lacks
 * have their defaults. One that is too short to be a config keeps its size, for which rd_comm_config refuses it. */
rondo_config_t rd_config_of(const rondo_config_t *given);
/* The same, checked. */
rondo_result_t rd_comm_config(rondo_config_t *full, const rondo_config_t *given);
void rd_config_over(rd_env_t *env, const rondo_config_t *config); /* puts what the config sets over the variables */
/* In a forked child: forgets which questions of rondo_explain the parent's threads were about to answer. */
void rd_explain_forget(void);

/* Refuses what can be refused of a creation before other ranks are concerned: the environment and the config. */
rondo_result_t rd_comm_check(const rondo_config_t *config);
/* How net communicators are made and ended. */
extern const rd_net_comm_ops_t rd_comm_net_ops;
/* Ends a communicator that no job uses, once what is under way is complete: rondo_comm_destroy, and for those of the
 * library's own, also while the thread has a group. */
rondo_result_t rd_comm_end(rondo_comm_t comm);
/* Tells the other ranks that this one leaves, which after a failure is not leaving in order, and takes the modules
 * down.
 */
void rd_comm_end_modules(rondo_comm_t comm);

#endif
