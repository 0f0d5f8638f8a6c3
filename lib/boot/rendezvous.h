/* The rendezvous: where the ranks of one id meet. A thread of the process that serves it. */
#ifndef RD_BOOT_RENDEZVOUS_H
#define RD_BOOT_RENDEZVOUS_H

#include <stdbool.h>

#include "boot/id.h"

#define RD_MOST_RANKS (1 << 22)
#define RD_BOOT_ROUNDS 22 /* log2 of it: rounds of an exchange, neighbours above */

/* Records between a rank and the rendezvous. */
enum {
    RD_REC_JOIN = 1, /* rank: rd_join_t */
    RD_REC_MOVE,     /* rendezvous: others are on other hosts, listen on the interface */
    RD_REC_ADDR,     /* rank: rd_addr_t, where it listens now */
    RD_REC_TABLE,    /* rendezvous: its salt, rd_place_t of each neighbour above */
    RD_REC_READY,    /* rank: has all its neighbours, leaves */
    RD_REC_FAIL,     /* either: rd_fail_t */
    RD_REC_DATA,     /* between neighbours: a part of an allgather's block */
    RD_REC_FAREWELL, /* between neighbours: rd_fail_t without text */
    RD_REC_STATE,    /* in a agreement (agree_shrink.h), to the leader: rd_member_state_t */
    RD_REC_LIST,     /* from the leader: rd_agree_shrink_list_t */
    RD_REC_PREPARE,  /* likewise: the round, int32 */
    RD_REC_KEEP      /* likewise */
};

typedef struct rd_join {
    char whois[RD_WHOIS];
    rd_addr_t addr;      /* where it listens */
    unsigned char near;  /* it reached the rendezvous on its own host */
    unsigned char fixed; /* its address is RONDO_IFACE's: it will not move */
    unsigned char zero[2];
} rd_join_t;

/* Drawn by a rendezvous: what the ranks prove to each other from then on holds for this meeting only. */
typedef struct rd_salt {
    unsigned char bytes[16];
} rd_salt_t;

typedef struct rd_place {
    rd_addr_t addr;
    char whois[RD_WHOIS];
} rd_place_t;

typedef struct rd_fail {
    int32_t code, failed_rank;
    char text[RD_WHOIS * 4];
} rd_fail_t;

/* Serves id's rendezvous on `listener` (taken over). Ends when all have come and left, when timeout_ms has passed since
 * the first came (0: never), or at process exit. */
rondo_result_t rd_rendezvous_start(const rd_id_t *id, int listener, int64_t timeout_ms, rd_log_ctx_t *ctx);
/* A rank of this process is through with id's creation: if the rendezvous is in this process too, waits until it has
 * ended. `code`: how the creation went here; after a failure the others are given a second to come and hear of it,
 * after an abort none. */
void rd_rendezvous_leave(const rd_id_t *id, rondo_result_t code);
/* For a communicator of one rank: ends id's rendezvous if it is here and nobody has come. True: it has ended. */
bool rd_rendezvous_cancel(const rd_id_t *id);

#endif
