/* The rendezvous: where the ranks of one id meet. It is a thread of the process that serves it. */
#ifndef RD_BOOT_RENDEZVOUS_H
#define RD_BOOT_RENDEZVOUS_H

#include <stdbool.h>

#include "boot/id.h"

#define RD_MOST_RANKS (1 << 22)
#define RD_BOOT_ROUNDS 22 /* its log2: rounds of an exchange, and neighbours with higher ranks */

/* Records between a rank and the rendezvous. */
enum {
    RD_REC_JOIN = 1, /* rank: rd_join_t */
    RD_REC_MOVE,     /* rendezvous: there are ranks on other hosts, so listen on the interface */
    RD_REC_ADDR,     /* rank: rd_addr_t, its new listening address */
    RD_REC_TABLE,    /* rendezvous: its salt, and the rd_contact_t of each neighbour above */
    RD_REC_READY,    /* rank: it has all its neighbours and leaves */
    RD_REC_FAIL,     /* either: rd_fail_t */
    RD_REC_DATA,     /* between neighbours: a part of an allgather's block */
    RD_REC_FAREWELL, /* between neighbours: see leave.c */
    RD_REC_DEATH,    /* between neighbours: see deaths.c */
    RD_REC_LEFT,     /* likewise */
    RD_REC_LETTER,   /* between neighbours, for any rank: see ask.c */
    RD_REC_STATE,    /* in an agreement (agree_shrink.h), to the leader: rd_member_state_t */
    RD_REC_LIST,     /* from the leader: rd_agree_shrink_list_t */
    RD_REC_PREPARE,  /* from the leader: the round, int32 */
    RD_REC_KEEP,     /* from the leader: the round, int32 */
    RD_REC_ROOTS,    /* rank, before JOIN, where there are several rendezvous: rd_roots_head_t, rd_root_t... */
    RD_REC_ASK,      /* between those: rd_roots_head_t */
    RD_REC_BLOCK,    /* likewise: contacts, as many as fit */
    RD_REC_LOST,     /* between neighbours: see deaths.c */
    RD_REC_NAME,     /* likewise: see names.c */
    RD_REC_CALL      /* between neighbours, before a round's data: what the exchange is for, a word */
};

typedef struct rd_join {
    char whois[RD_WHOIS];
    rd_addr_t addr;      /* its listening address */
    unsigned char near;  /* it reached the rendezvous on its own host */
    unsigned char fixed; /* its address comes from RONDO_IFACE: it will not move */
    unsigned char zero[2];
} rd_join_t;

/* A random number of the rendezvous: it limits what the ranks later prove to each other to this meeting. */
typedef struct rd_salt {
    unsigned char bytes[16];
} rd_salt_t;

typedef struct rd_contact {
    rd_addr_t addr;
    char whois[RD_WHOIS];
} rd_contact_t;

typedef struct rd_fail {
    int32_t code, failed_rank;
    char text[RD_WHOIS * 4];
} rd_fail_t;

/* Serves the rendezvous of `id` on `listener`, which it takes over. It ends when all ranks have come and left, when
 * timeout_ms has passed since the first one came (0: never), or at process exit. After stall_ms (0: never) the log says
 * who has not come.
 *
 * `own`: in a process that has no descriptor left. The thread takes `listener` into a table of its own, and it stays
 * the caller's in that of the process. */
rondo_result_t rd_rendezvous_start(const rd_id_t *id, int listener, bool own, int64_t timeout_ms, int64_t stall_ms,
                                   rd_log_ctx_t *ctx);
/* Serves the rendezvous of a derived id on the caller's thread, where there is none for it: for `ms` at most all that
 * come, but the caller's rank, which is number 0, hear why. `listener` stays the caller's. */
void rd_rendezvous_refuse_all(const rd_id_t *id, int listener, const char *why, int64_t ms);
/* Rank `rank`, of this process, has finished the creation from these ids, with the result `code`. If rendezvous of them
 * are in this process too, it hands them its failure and waits until they have ended. After a failure the other ranks
 * get a second in all to come and hear of it; after an abort they get none. */
void rd_rendezvous_leave(const rd_id_t *ids, int nids, int rank, rondo_result_t code);
/* Copies the sentence with which a rendezvous of this process has failed. Returns false if there is none. */
bool rd_rendezvous_failure(const rd_id_t *id, char sentence[RD_ERROR_BYTES]);
bool rd_rendezvous_is_here(const rd_id_t *id); /* this process serves it, and it has not ended */
/* For a communicator of one rank: ends the rendezvous of `id` if it is in this process and nobody has come. Returns
 * true if it has ended. */
bool rd_rendezvous_cancel(const rd_id_t *id);

#endif
