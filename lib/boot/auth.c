/* The handshake and the records, on bytes alone, so that tests can flip every bit of them.
 *
 *   hello:   0 "RNDO"   4 version   5 purpose   6 role   7 zero   8 job (16)   24 nonce (16)
 *           40 rank   44 nranks   48 slot   52 zero, all little-endian */
#include "boot/auth.h"

#include <sodium.h>
#include <string.h>

#define WIRE_VERSION 2

static void put32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get32(const unsigned char *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static void hello_head(unsigned char *hello, const rd_creds_t *creds, int purpose, int server)
{
    memset(hello, 0, RD_HELLO);
    memcpy(hello, "RNDO", 4);
    hello[4] = WIRE_VERSION;
    hello[5] = (unsigned char)purpose;
    hello[6] = server ? 's' : 'c';
    memcpy(hello + 8, creds->job, 16);
}

void rd_auth_begin(rd_auth_t *a, const rd_creds_t *creds, int server, const void *endpoint, size_t bytes,
                   const rd_hello_t *mine)
{
    memset(a, 0, sizeof(*a));
    a->creds = *creds;
    a->server = server;
    memcpy(a->endpoint, endpoint, bytes < RD_ENDPOINT ? bytes : RD_ENDPOINT);
    unsigned char *hello = a->hello[server];
    hello_head(hello, creds, mine->purpose, server);
    randombytes_buf(hello + 24, 16);
    put32(hello + 40, (uint32_t)mine->rank);
    put32(hello + 44, (uint32_t)mine->nranks);
    put32(hello + 48, (uint32_t)mine->slot);
}

bool rd_auth_plausible(const rd_auth_t *a, const unsigned char *bytes, size_t have)
{
    unsigned char expect[RD_HELLO];
    hello_head(expect, &a->creds, a->hello[a->server][5], !a->server);
    return memcmp(bytes, expect, have < 24 ? have : 24) == 0;
}

int rd_auth_hello(rd_auth_t *a, const unsigned char hello[RD_HELLO], rd_hello_t *theirs)
{
    if (!rd_auth_plausible(a, hello, RD_HELLO))
        return -1;
    memcpy(a->hello[!a->server], hello, RD_HELLO);
    theirs->purpose = (rd_purpose_t)hello[5];
    theirs->rank = (int)get32(hello + 40);
    theirs->nranks = (int)get32(hello + 44);
    theirs->slot = (int)get32(hello + 48);
    return 0;
}

/* HMAC(secret; label, both hellos, the server's address). Distinct labels make proofs and keys unrelated. */
static void over_hellos(const rd_auth_t *a, const char *label, unsigned char out[32])
{
    unsigned char text[2 * RD_HELLO + RD_ENDPOINT];
    memcpy(text, a->hello, 2 * RD_HELLO);
    memcpy(text + 2 * RD_HELLO, a->endpoint, RD_ENDPOINT);
    rd_id_key(&a->creds, label, text, sizeof(text), out);
}

void rd_auth_prove(const rd_auth_t *a, unsigned char proof[RD_PROOF])
{
    over_hellos(a, a->server ? "server proof" : "client proof", proof);
}

int rd_auth_check(const rd_auth_t *a, const unsigned char proof[RD_PROOF])
{
    unsigned char expect[RD_PROOF];
    over_hellos(a, a->server ? "client proof" : "server proof", expect);
    return sodium_memcmp(expect, proof, RD_PROOF);
}

void rd_auth_keys(rd_auth_t *a)
{
    over_hellos(a, "key from client", a->server ? a->key_in : a->key_out);
    over_hellos(a, "key from server", a->server ? a->key_out : a->key_in);
}

static void record_mac(const unsigned char key[32], uint64_t count, const unsigned char *record, size_t bytes,
                       unsigned char mac[RD_PROOF])
{
    crypto_auth_hmacsha256_state state;
    unsigned char number[8];
    put32(number, (uint32_t)count);
    put32(number + 4, (uint32_t)(count >> 32));
    crypto_auth_hmacsha256_init(&state, key, 32);
    crypto_auth_hmacsha256_update(&state, number, sizeof(number));
    crypto_auth_hmacsha256_update(&state, record, bytes);
    crypto_auth_hmacsha256_final(&state, mac);
}

void rd_auth_seal(rd_auth_t *a, int type, const void *data, size_t bytes, unsigned char *out)
{
    put32(out, (uint32_t)bytes);
    put32(out + 4, (uint32_t)type);
    if (bytes)
        memcpy(out + RD_RECORD_HEAD, data, bytes);
    record_mac(a->key_out, a->count_out++, out, RD_RECORD_HEAD + bytes, out + RD_RECORD_HEAD + bytes);
}

size_t rd_auth_length(const unsigned char *head)
{
    size_t bytes = get32(head);
    return bytes > RD_RECORD_DATA ? 0 : RD_RECORD_HEAD + bytes + RD_PROOF;
}

int rd_auth_open(rd_auth_t *a, const unsigned char *record, int *type)
{
    unsigned char mac[RD_PROOF];
    size_t signed_bytes = RD_RECORD_HEAD + get32(record);
    record_mac(a->key_in, a->count_in, record, signed_bytes, mac);
    if (sodium_memcmp(mac, record + signed_bytes, RD_PROOF) != 0)
        return -1;
    a->count_in++;
    *type = (int)get32(record + 4);
    return 0;
}
