/* The handshake and the records of a bootstrap connection, on bytes alone (no sockets).
 *
 *   client                                server
 *   hello (its nonce, rank, nranks)  -->
 *                                    <--  hello (its nonce, rank, nranks), proof
 *   proof                            -->
 *
 * A proof is HMAC(secret; role, both hellos, the server's address): fresh by both nonces, bound to this connection's
 * end by the address, and useless when reflected because the role differs. Each direction has a key of its own, derived
 * from the same text; a record is {length, type} + payload + HMAC(key; counter, header, payload). */
#ifndef RD_BOOT_AUTH_H
#define RD_BOOT_AUTH_H

#include <stdbool.h>

#include "boot/id.h"

#define RD_HELLO 56
#define RD_PROOF 32
#define RD_RECORD_HEAD 8
#define RD_RECORD_DATA 16384 /* payload of one record, at most */
#define RD_RECORD_MOST (RD_RECORD_HEAD + RD_RECORD_DATA + RD_PROOF)
#define RD_ENDPOINT 32 /* what identifies a server: its address, or the name of its unix socket */

/* What a connection is for. */
typedef enum {
    RD_FOR_MEETING = 'm',
    RD_FOR_NEIGHBOUR = 'n',
    RD_FOR_NODE = 'u',
    RD_FOR_AGREE_SHRINK = 'r',
    RD_FOR_LIFELINE = 'l'
} rd_purpose_t;

#define RD_SLOT_ROOT 1 /* comes as another root, whose number is `rank`: see roots.h */

typedef struct rd_hello {
    rd_purpose_t purpose;
    int rank, nranks; /* a rendezvous sends -1 and 0 */
    int slot;         /* of a neighbour: its number among the neighbours; of a meeting: RD_SLOT_ROOT, or 0 */
} rd_hello_t;

typedef struct rd_auth {
    rd_creds_t creds;
    int server;
    unsigned char endpoint[RD_ENDPOINT];
    unsigned char hello[2][RD_HELLO]; /* the client's, the server's */
    unsigned char key_in[32], key_out[32];
    uint64_t count_in, count_out; /* records received, records sent */
} rd_auth_t;

void rd_auth_begin(rd_auth_t *a, const rd_creds_t *creds, int server, const void *endpoint, size_t bytes,
                   const rd_hello_t *mine);
/* Returns true if these first `have` bytes may be the beginning of a hello of this job. */
bool rd_auth_plausible(const rd_auth_t *a, const unsigned char *bytes, size_t have);
int rd_auth_hello(rd_auth_t *a, const unsigned char hello[RD_HELLO],
                  rd_hello_t *theirs); /* 0, or -1 if it is not of this job */
void rd_auth_prove(const rd_auth_t *a, unsigned char proof[RD_PROOF]);
int rd_auth_check(const rd_auth_t *a, const unsigned char proof[RD_PROOF]); /* 0 or -1 */
void rd_auth_keys(rd_auth_t *a); /* to be called after both proofs have been checked */

/* `out` holds RD_RECORD_HEAD + bytes + RD_PROOF. */
void rd_auth_seal(rd_auth_t *a, int type, const void *data, size_t bytes, unsigned char *out);
/* Returns the length of the whole record that begins here, of which at least RD_RECORD_HEAD bytes have arrived; 0 if it
 * is not a record. */
size_t rd_auth_length(const unsigned char *head);
int rd_auth_open(rd_auth_t *a, const unsigned char *record,
                 int *type); /* 0 or -1; the payload begins at record + RD_RECORD_HEAD */

#endif
