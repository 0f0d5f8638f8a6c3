/* rondo-info doctor --network: what is known of the nodes of a job and of each way between two of them, how it is found
 * out (doctor_nodes.c, doctor_reach.c, doctor_pair.c), shown (doctor_matrix.c), and judged (doctor_find.c, which needs
 * the tables alone). */
#ifndef RD_DOCTOR_NODES_H
#define RD_DOCTOR_NODES_H

#include <stdint.h>

#include "boot/sock.h"
#include "info.h"
#include "transport/transport.h"

/* An interface, as others need to know it. */
typedef struct nodes_interface {
    char name[16], address[46]; /* "": there is none */
    int prefix;                 /* bits of the network's part of the address; -1: unknown */
    int mbit, mtu;              /* -1: unknown */
    char loopback, device, running;
} nodes_interface_t;

/* What the first rank of a node says of it. */
typedef struct nodes_node {
    char boot[40], space[48]; /* of the kernel and its network: ranks with the same of both can share memory ... */
    char hostid[64];          /* ... unless RONDO_HOSTID keeps them apart */
    char name[96];            /* the host's; with RONDO_HOSTID "host/hostid" */
    int rank;
    uint64_t token;                  /* with which it answers */
    char played;                     /* kept from another node by RONDO_HOSTID alone */
    char shared;                     /* on one machine with another node */
    nodes_interface_t meet, fastest; /* in use; the one of the others that is up, a device and has the most Mbit/s */
    rd_addr_t at;                    /* where it listens; family 0: it cannot, and `why` says the reason */
    char version[48];                /* of the network library; "": there is none, and `why` says the reason */
    char devices[160];               /* by which data would go */
    char fabric[32];                 /* an InfiniBand device that the host has; "": none */
    int gpus;
    char cuda, gdr; /* the library's transports take device memory; RONDO_GDR allows it */
    char why[320];
} nodes_node_t;

/* How far a pair has come. */
typedef enum {
    WAY_UNTRIED,  /* something before has failed */
    WAY_BLOCKED,  /* the address of the other node cannot be connected to */
    WAY_NO_START, /* it can, but no communicator could be made */
    WAY_NO_SMALL, /* no message of a few bytes has come through */
    WAY_NO_LARGE, /* a message of a few bytes has, a long one not */
    WAY_DONE
} way_stage_t;

#define WAY_TEXT 200
#define NODES_LISTED 16 /* more are not printed one by one */

/* One direction of a pair. */
typedef struct nodes_way {
    way_stage_t stage;
    int error;       /* errno of a connection; 0: it was made */
    double us, gbps; /* of WAY_DONE: one way of a short message, the median; the rate of long ones */
    double resent;   /* the part of its TCP segments that the sender has sent again meanwhile; 0: none, or not known */
    char *text;      /* what the library said; NULL: nothing */
} nodes_way_t;

typedef struct nodes_view {
    int n;
    const nodes_node_t *node;
    nodes_way_t *way; /* [from * n + to] */
    int reach_ms;     /* how long a connection was waited for */
} nodes_view_t;

static inline nodes_way_t *nodes_way(const nodes_view_t *view, int from, int to)
{
    return &view->way[(size_t)from * (size_t)view->n + (size_t)to];
}

/* ---- finding out */

typedef struct nodes_listener nodes_listener_t;
/* Answers everyone who connects to `fd` with a token of this process, on a thread of its own, until it is ended. NULL:
 * there is no thread, or no memory. */
nodes_listener_t *doctor_listen(int fd, uint64_t token);
void doctor_listen_end(nodes_listener_t *listener);
/* Fills in all but `rank` and `played`, and listens. NULL: it cannot. */
nodes_listener_t *doctor_self(nodes_node_t *self, const rd_env_t *env);
/* Connects to each of `n` addresses but `self` and waits for the token of that node; error[i] is 0 or an errno:
 * ETIMEDOUT after limit_ms, EBADMSG if somebody else has answered. */
void doctor_reach(const nodes_node_t *node, int n, int self, int limit_ms, int *error);

/* What one side of a pair has seen. */
typedef struct pair_result {
    way_stage_t stage;
    double us, gbps; /* gbps: of what this side has sent */
    double resent;   /* nodes_way_t's, of this side */
    char text[WAY_TEXT];
} pair_result_t;
/* For RONDO_CREATE_TIMEOUT_MS, where a pair's id is served and, by its environment, in the processes that try it. */
#define DOCTOR_CREATE_MS "10000"
/* Collective over the two nodes of a pair, `side` 0 and 1. */
void doctor_pair(const rondo_unique_id_t *id, int side, pair_result_t *result);
int doctor_pair_child(int side); /* what the process does that doctor_pair starts; its exit status */
/* The same within this process, which may be caught in the network library. `tell` hears of each stage before the
 * last. */
void doctor_pair_try(const rondo_unique_id_t *id, int side, pair_result_t *result,
                     void (*tell)(const pair_result_t *so_far));
/* TCP segments since the host was started. Returns false if the file, /proc/net/snmp, does not say. */
typedef struct nodes_segments {
    int64_t sent, resent;
} nodes_segments_t;
bool doctor_segments(const char *file, nodes_segments_t *segments);
double doctor_resent(const nodes_segments_t *before, const nodes_segments_t *after); /* the part of them */
/* The opponent of player `self` in a round of a tournament of n, where all meet once in doctor_rounds(n) rounds; -1: it
 * rests. */
int doctor_rounds(int n);
int doctor_opponent(int n, int round, int self);

/* ---- showing and judging */

void doctor_matrix(const nodes_view_t *view);
/* Calls info_found for everything that is said of the nodes and the ways between them. */
void doctor_find(const nodes_view_t *view);
/* Its parts: what is set up wrongly, what cannot be connected, what is slow, what loses packets. */
void doctor_find_setup(const nodes_view_t *view);
void doctor_find_blocked(const nodes_view_t *view);
void doctor_find_slow(const nodes_view_t *view);
void doctor_find_lost(const nodes_view_t *view);

#endif
