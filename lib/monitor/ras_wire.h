/* The connection of rondo-ras to a process of another host: dumps over TCP, for who has the secret of a file.
 *
 *     server -> client   magic, version, its ephemeral public key
 *     client -> server   its ephemeral public key, proof
 *     server -> client   records, each a length and what it holds, encrypted: an empty one, files, and an end
 *
 * The two ephemeral keys (X25519) are new for each connection, so nothing can be replayed, and what was recorded is not
 * read by who gets the secret later. The key of the connection is a BLAKE2b of what they agree on and of both public
 * keys, keyed by the secret; the client proves that it has it (HMAC-SHA-256), before it learns or causes anything, and
 * the server by encrypting with it (XChaCha20-Poly1305, the nonce of a record is its number, so none can be left out).
 * Lengths are checked before use; whoever does not get on in time is dropped. */
#ifndef RD_MONITOR_RAS_WIRE_H
#define RD_MONITOR_RAS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RD_WIRE_MAGIC "rondoras"
#define RD_WIRE_VERSION 1
#define RD_WIRE_RECORD 16384      /* bytes of one record at most */
#define RD_WIRE_LEAST 32          /* bytes of a secret */
#define RD_WIRE_IDLE_MS 2000      /* without a byte */
#define RD_WIRE_PROVE_MS 4000     /* until a client has proved that it has the secret */
#define RD_WIRE_GREETING_MS 10000 /* without the server's first byte: others may be served before */

/* What a record is, its first byte. */
enum { RD_WIRE_HELLO = 'H', RD_WIRE_FILE = 'F', RD_WIRE_DATA = 'D', RD_WIRE_END = 'E' };

typedef struct rd_wire {
    int fd;
    int64_t until_ms;      /* of rd_clock_ms: what is not over then has failed */
    int idle_ms;           /* without a byte */
    unsigned char key[32]; /* of the connection, once both have it */
    uint64_t records;      /* so far; they go one way only */
} rd_wire_t;

typedef struct rd_wire_secret {
    unsigned char bytes[32];
} rd_wire_secret_t;

/* Reads the file of the secret, which must be the user's own and nobody else's to read. Returns NULL, or why not. */
const char *rd_wire_secret(rd_wire_secret_t *secret, const char *path);
void rd_wire_forget(rd_wire_secret_t *secret);

/* Both sides of a connection, which may last for so long. Return NULL, or why there is none. */
const char *rd_wire_serve(rd_wire_t *wire, int fd, const rd_wire_secret_t *secret, int64_t ms);
const char *rd_wire_ask(rd_wire_t *wire, int fd, const rd_wire_secret_t *secret, int64_t ms);
/* Forgets the keys. */
void rd_wire_end(rd_wire_t *wire);

/* Sends one record. Returns false if it cannot be. */
bool rd_wire_send(rd_wire_t *wire, int what, const void *bytes, size_t n);
/* Receives one into `bytes`, which has room for RD_WIRE_RECORD. Returns what it is, or 0. */
int rd_wire_receive(rd_wire_t *wire, void *bytes, size_t *n);

#endif
