/* The unique id, unpacked. */
#ifndef RD_BOOT_ID_H
#define RD_BOOT_ID_H

#include "boot/sock.h"

#define RD_WHOIS 80 /* "host:pid" */

/* What a handshake proves: that the other side has the secret of this job. */
typedef struct rd_creds {
    unsigned char job[16];
    unsigned char secret[32];
} rd_creds_t;

typedef struct rd_id {
    rd_addr_t addr; /* the address of the rendezvous */
    rd_creds_t creds;
    char maker[36]; /* "host:pid" of the process that serves it, shortened; for messages */
    int derived;    /* nonzero: derived from the id of another communicator, to which all the ranks belong */
} rd_id_t;

void rd_id_pack(rondo_unique_id_t *id, const rd_id_t *in);
void rd_id_pack_error(rondo_unique_id_t *id, rondo_result_t code, const char *text);
/* The error that such an id carries, and its text. RONDO_SUCCESS: it carries none. */
#define RD_ID_CARRIED 101
rondo_result_t rd_id_carried(const rondo_unique_id_t *id, char text[RD_ID_CARRIED]);
/* Returns RONDO_SUCCESS, or an error reported through rd_error: it is not an id, it is damaged or of another version,
 * or it carries an error itself. */
rondo_result_t rd_id_unpack(rd_id_t *out, const rondo_unique_id_t *id, rd_log_ctx_t *ctx);

/* out = HMAC(secret; label, job, data). Yields keys and secrets, each for one purpose. */
void rd_id_key(const rd_creds_t *creds, const char *label, const void *data, size_t bytes, unsigned char out[32]);
/* Derives further credentials from `creds` and `data`. */
void rd_id_derive(rd_creds_t *out, const rd_creds_t *creds, const char *label, const void *data, size_t bytes);

rondo_result_t rd_crypto_init(rd_log_ctx_t *ctx);
void rd_whois(char text[RD_WHOIS]); /* of this process */

#endif
