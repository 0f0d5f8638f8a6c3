/* The cost model: what an operation takes by an algorithm and a protocol, in microseconds, by formula.
 *
 * Everything that an algorithm costs is counted first, in units that know no machine (rd_work_t: hops, messages,
 * bytes); one table of measured constants (rd_cost_table) turns the counts into time:
 *
 *     T = call + alpha (hops + again (passes - 1)) + message messages passes
 *       + start (the first 4 KiB of each) + beta moved + cross received + gamma summed + the slices that fill a
 * pipeline
 *
 * On a node the ranks' cores do all the moving, so beta counts every byte that a core reads and writes, cross what it
 * must fetch from another core's cache besides, and where ranks outnumber cores, the work of all of them shares the
 * cores, and a hop costs the round through the scheduler that lets each of them run. Rooted operations flow one way:
 * nobody waits for an answer, so one call's hops overlap with the next call's (`overlap`), but for PULL, whose senders
 * wait until they have been read: a hop more. PULL copies what is received once, from memory to memory; the moves into
 * and out of slots that `moved` counts do not take place.
 */
#ifndef RD_COST_H
#define RD_COST_H

#include "proto.h"
#include "sched/program.h"

typedef enum { RD_COST_SHM, RD_COST_NET, RD_NUM_COSTS } rd_cost_transport_t;

/* What the ranks agreed on at creation. */
typedef struct rd_cost_env {
    int nranks, nnodes;
    int local;   /* ranks on the fullest node */
    int cores;   /* of a machine, for its ranks, at least 1 */
    int sharing; /* ranks that share these cores: more than `local` where nodes are played on one machine; 0: `local` */
} rd_cost_env_t;

/* Microseconds. Per byte: one core copies a byte, reading and writing it. */
typedef struct rd_cost {
    double alpha;   /* from the last store of a message to the first use by a receiver that waits for it */
    double message; /* one end of one message: flag, credit, the step's own path */
    double start;   /* per byte of the first 4 KiB of each message received: fetched before the prefetchers run */
    double beta;    /* per byte moved, in the caches */
    double cross;   /* per byte received: from another core's cache; PULL: from another rank's memory */
    double gamma;   /* per byte added to a sum */
} rd_cost_t;

typedef struct rd_cost_constants {
    rd_cost_t of[RD_NUM_COSTS][RD_NUM_PROTOS];
    double call;    /* one call of an operation, plan at hand */
    double turn;    /* ranks outnumber cores: one rank gives up its core and another goes on */
    double overlap; /* the part of a hop that is left in a sequence of rooted operations */
    double far;     /* per byte moved or received beyond `near`, added: memory instead of caches */
    double near;    /* bytes of an operation */
    double wire;    /* per byte that leaves a node */
    double
        peer; /* a connection beyond the first `peers`: its memory, its descriptor, and making it, spread over uses */
    double peers;
} rd_cost_constants_t;

extern const rd_cost_constants_t rd_cost_table;

/* The counts. A pass carries one slice of every chunk; `moved` and `summed` are of the whole operation, as multiples of
 * its bytes (rd_choose_args_t.bytes), a copy counting 1, a step (sources + destinations) / 2. */
typedef struct rd_work {
    int chunks;           /* into which the operation's bytes are cut */
    double hops;          /* messages that wait for one another until the first slice is through */
    double again;         /* the same for each further pass */
    double fill;          /* slices that are moved one after another before the pipeline is full */
    double messages;      /* sent and received by the busiest rank in a pass */
    double received;      /* from other ranks, by the rank that receives most */
    double moved, summed; /* by the busiest rank */
    double received_all, moved_all, summed_all;
    double leave; /* bytes that leave the busiest node */
    /* Of hops, messages and received: what stays on a node. All of them where there is one node only. */
    double near_hops, near_messages, near_received;
    double peers; /* on other nodes, of one rank, where they are many; 0: a few */
    double least; /* the part of `messages` that is left when all but one chunk are empty */
} rd_work_t;

/* 0, or -1: no formula for this algorithm and operation. */
int rd_cost_work(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_work_t *work);

/* Microseconds; negative: no formula. `slice`: bytes of a message at most. */
double rd_cost_us(const rd_cost_env_t *env, rd_coll_t coll, const char *algo, int param, rd_proto_t proto, size_t bytes,
                  size_t slice);

/* Bytes of the longest chunk when `bytes` are cut into `chunks`: whole lines, as the planner cuts. */
size_t rd_cost_chunk(rd_coll_t coll, size_t bytes, int chunks);

#endif
