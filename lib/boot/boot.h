/* Bootstrap: how the ranks of one communicator find each other and exchange small records, authenticated.
 *
 * A unique id names one address and carries a secret. Its maker serves a rendezvous there (a thread that ends when all
 * ranks have come or the deadline has passed); each rank listens on a socket of its own, tells the rendezvous its
 * address, and gets back those of its log2(n) dissemination neighbours; from then on rounds of Bruck's allgather run
 * over those connections alone. Every connection starts with a mutual handshake; every record after it carries a
 * bounded length, a direction, a counter and a MAC. Bulk data is not protected. See doc/security.md.
 */
#ifndef RD_BOOT_BOOT_H
#define RD_BOOT_BOOT_H

#include "base/env.h"
#include "base/wait.h"

typedef struct rd_boot rd_boot_t;

/* On failure the id carries the error: rd_boot_create returns it on every rank. */
rondo_result_t rd_boot_id_create(rondo_unique_id_t *id, const rd_env_t *env);

/* Collective over the ranks that hold the id. Ends early on `stop`; late ranks are waited for env->create_timeout_ms,
 * then named. Wrong inputs (rank claimed twice, nranks differ, stale id) give every rank an error that names both
 * sides. */
rondo_result_t rd_boot_create(rd_boot_t **boot, const rondo_unique_id_t *id, int rank, int nranks, const rd_env_t *env,
                              rd_log_ctx_t *ctx, rd_stop_t *stop);

/* A rank that could not even begin to join, for lack of memory: if it is this process that serves the rendezvous, those
 * who come are told. (Else they wait for this rank as for any other that does not come.) */
void rd_boot_cancel(const rondo_unique_id_t *id, rondo_result_t code);

/* Collective: blocks of `each` bytes (at most 64 KiB), own block at all + rank * each on entry; all of them on return.
 * O(log n) rounds. */
rondo_result_t rd_boot_allgather(rd_boot_t *boot, void *all, size_t each);

/* Exchanges so far, and the bytes of one rank's blocks in all of them. */
void rd_boot_exchanged(const rd_boot_t *boot, int *exchanges, size_t *bytes);
/* What a bootstrap of `nranks` ranks costs a rank for good: sockets to neighbours, and memory. */
void rd_boot_size(int nranks, int *sockets, size_t *bytes);

/* The id under which `members` (ranks of this bootstrap, ascending, without duplicates, the caller among them) meet
 * again without a further exchange: derived from the secret, the members and `epoch`. members[0] serves the rendezvous
 * on the listener that it has kept. What shrink uses when dead ranks leave no way to exchange anything. The same id may
 * be derived and used again, also by ranks of which some failed at it the last time. */
rondo_result_t rd_boot_id_derive(rd_boot_t *boot, const int *members, int nmembers, uint64_t epoch,
                                 rondo_unique_id_t *id);

/* A key of 32 bytes for another purpose ("node", "ucx"), the same on all ranks, derived from the secret. */
void rd_boot_key(const rd_boot_t *boot, const char *purpose, unsigned char key[32]);
int rd_boot_nranks(const rd_boot_t *boot);
/* The host and process of a rank, "host:pid", learnt at creation; for messages. */
const char *rd_boot_whois(const rd_boot_t *boot, int rank);
/* The IP address on which this rank listens, "10.0.0.1" or "::1": other transports keep to its interface. */
#define RD_BOOT_ADDRESS 46
void rd_boot_address(const rd_boot_t *boot, char text[RD_BOOT_ADDRESS]);

/* After creation: the neighbours' sockets watch each other. A neighbour's socket that ends without a farewell is a
 * dead rank. rd_boot_farewell tells the neighbours that this rank leaves in order (destroy) or has failed (`code`,
 * `failed rank`): they pass a failure on. Never blocks. */
int rd_boot_sockets(const rd_boot_t *boot, int *fds, int *ranks, int most); /* how many */
void rd_boot_farewell(rd_boot_t *boot, rondo_result_t code, int failed_rank);
/* The same of what another rank has found out: its number plus one; 0: this rank. */
void rd_boot_pass_on(rd_boot_t *boot, rondo_result_t code, int failed_rank, int reporter);
/* Of a rank that gives up over what the last exchange has brought, as all will: nobody is told, so that each of them
 * finds it for itself, in the same words. */
void rd_boot_farewell_alike(rd_boot_t *boot);
/* For waits during creation, when no watch looks yet: has a neighbour died or reported a failure? Sets `stop` and
 * passes it on. Never blocks. */
rondo_result_t rd_boot_check(rd_boot_t *boot);

typedef struct rd_boot_news {
    int left;        /* the neighbour has said an orderly farewell */
    int silent;      /* its socket ended without one */
    int failed_rank; /* with an error: who died or failed */
    int reporter;    /* who found that out, plus one; 0: this rank itself */
    char text[200];  /* likewise: the sentence */
} rd_boot_news_t;

/* What rank `from` has said, that it stopped with `said` because of `failed rank`, as a sentence and an error of this
 * rank. `reporter`: who found it out, plus one; 0, or what is no rank's: `from` itself. */
rondo_result_t rd_boot_report(const rd_boot_t *boot, int from, int said, int failed_rank, int reporter, char *text,
                              size_t size);

/* Reads what the socket has: RONDO_SUCCESS (nothing of note, or an orderly farewell), or RONDO_ERR_REMOTE. Never
 * blocks. Does nothing during an allgather, which looks itself: wait for edges (EPOLLET), not for levels. */
rondo_result_t rd_boot_socket_ready(rd_boot_t *boot, int fd, rd_boot_news_t *news);

void rd_boot_destroy(rd_boot_t *boot);

#endif
