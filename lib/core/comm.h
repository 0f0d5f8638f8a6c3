/* The communicator: one struct of each module, in the order in which they are made. */
#ifndef RD_CORE_COMM_H
#define RD_CORE_COMM_H

#include <stdbool.h>

#include "cost/prices.h"
#include "node/team.h"
#include "progress/queue.h"
#include "transport/liveness.h"

#define RD_COMM_DESTROYED 0x64657374726f79u /* destroyed: only the struct is left */
#define RD_COMM_ABORTED 0x61626f72746564u   /* aborted: only the struct is left */

struct rondo_comm {
    _Atomic uint64_t alive; /* rd_comm_mark: distinguishes a communicator from a stale or foreign pointer */
    rd_log_ctx_t ctx;
    rd_health_t health;
    rd_env_t env;
    rd_prices_t prices;
    rd_team_t team; /* rank, nranks, device, and all else that the layers below get to know */
    rd_boot_t *boot;
    rd_node_t node;
    rd_conns_t conns;
    rd_transport_t *transports; /* a list that begins with the last one made */
    rd_transport_t *net;        /* the transport among these whose messages have to be polled for; or shared memory */
    rd_planner_t *planner;
    struct rd_cuda *cuda; /* NULL: a host communicator */
    rd_liveness_t *liveness;
    rd_queue_t queue;
    struct { /* the last blocking collective with a flat plan: see rd_call_repeats of submit.h */
        rd_coll_desc_t desc;
        rd_plan_t *plan; /* NULL: there is none */
    } last;
    struct rd_user_op *user_ops;
    /* Which threads are inside, and how the communicator ends: lifetime.h. */
    _Atomic int inside;  /* a thread is in a call */
    _Atomic int queries; /* threads in queries, which may run concurrently with a call */
    _Atomic int closed;  /* it is being ended: no thread may enter */
    _Atomic int gone;    /* the modules have been taken down; only the struct is left */
    _Atomic int references;
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

/* The mark that this process puts into the communicators that it makes. A forked child has a different mark: what the
 * parent made is not the child's, whose copy has lost its threads and sockets, but still has the memory that the other
 * ranks see. */
extern uint64_t rd_comm_mark;
bool rd_comm_inherited(rondo_comm_t comm);

/* Creates a communicator from an id, for split, shrink and the public calls. While ranks may not have come, `meeting`
 * is the members whose liveness is observed, and `parent` the communicator whose failure, whatever it is, ends the
 * creation; each of the two may be NULL. */
rondo_result_t rd_comm_make(rondo_comm_t *comm, int nranks, const rondo_unique_id_t *id, int rank,
                            const rondo_config_t *config, rd_meeting_t *meeting, rondo_comm_t parent);
/* Refuses what can be refused of a creation before other ranks are concerned: the environment and the config. */
rondo_result_t rd_comm_check(const rondo_config_t *config);
/* Takes down all modules, including any that were never made. The struct stays. */
void rd_comm_take_down(rondo_comm_t comm);

#endif
