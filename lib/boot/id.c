/* The unique id: 128 bytes that a user carries from one rank to the others.
 *
 *     0 "rndo"   4 version   5 kind   6 zero
 *     an address:   8 address, port (20)   28 job (16)   44 secret (32)   76 maker (36)
 *     an error:     8 code (4)  12 text (100)
 *   112 checksum (16)
 *
 * The checksum detects damage and garbage, not forgery: whoever can write an id can also write its checksum. Several
 * roots are several ids (roots.h), so the format has room for one address only. */
#include "boot/id.h"

#include <sodium.h>
#include <string.h>
#include <unistd.h>

#define ID_VERSION 1
#define CHECKED 112

enum { KIND_ADDRESS = 1, KIND_ERROR = 2, KIND_DERIVED = 3 };

static void checksum(const unsigned char *bytes, unsigned char out[16])
{
    crypto_generichash(out, 16, bytes, CHECKED, NULL, 0);
}

static void begin(rondo_unique_id_t *id, int kind)
{
    memset(id, 0, sizeof(*id));
    memcpy(id->bytes, "rndo", 4);
    id->bytes[4] = ID_VERSION;
    id->bytes[5] = (unsigned char)kind;
}

void rd_id_pack(rondo_unique_id_t *id, const rd_id_t *in)
{
    begin(id, in->derived ? KIND_DERIVED : KIND_ADDRESS);
    memcpy(id->bytes + 8, &in->addr, 20);
    memcpy(id->bytes + 28, in->creds.job, 16);
    memcpy(id->bytes + 44, in->creds.secret, 32);
    memcpy(id->bytes + 76, in->maker, 36);
    checksum(id->bytes, id->bytes + CHECKED);
}

void rd_id_pack_error(rondo_unique_id_t *id, rondo_result_t code, const char *text)
{
    begin(id, KIND_ERROR);
    id->bytes[8] = (unsigned char)code;
    memcpy(id->bytes + 12, text, strnlen(text, RD_ID_CARRIED - 1));
    checksum(id->bytes, id->bytes + CHECKED);
}

rondo_result_t rd_id_carried(const rondo_unique_id_t *id, char text[RD_ID_CARRIED])
{
    if (memcmp(id->bytes, "rndo", 4) != 0 || id->bytes[5] != KIND_ERROR)
        return RONDO_SUCCESS;
    memcpy(text, id->bytes + 12, RD_ID_CARRIED - 1);
    text[RD_ID_CARRIED - 1] = 0;
    rondo_result_t code = (rondo_result_t)id->bytes[8];
    return code <= RONDO_IN_PROGRESS || code > RD_LAST_RESULT ? RONDO_ERR_INTERNAL : code;
}

rondo_result_t rd_id_unpack(rd_id_t *out, const rondo_unique_id_t *id, rd_log_ctx_t *ctx)
{
    unsigned char sum[16];
    char why[RD_ID_CARRIED];
    if (memcmp(id->bytes, "rndo", 4) != 0)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "these 128 bytes are not a unique id: fill them with rondo_unique_id_create on one rank and "
                        "carry them to the others");
    if (id->bytes[4] != ID_VERSION)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "the unique id has version %d, this library reads version %d: use one rondo on all ranks",
                        id->bytes[4], ID_VERSION);
    checksum(id->bytes, sum);
    if (sodium_memcmp(sum, id->bytes + CHECKED, 16) != 0)
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT,
                        "the unique id was damaged on its way (wrong checksum): all 128 bytes must arrive unchanged");
    if (id->bytes[5] == KIND_ERROR)
        return rd_error(ctx, rd_id_carried(id, why), "the rank that makes the unique id could not make one: %s", why);
    memcpy(&out->addr, id->bytes + 8, 20);
    memcpy(out->creds.job, id->bytes + 28, 16);
    memcpy(out->creds.secret, id->bytes + 44, 32);
    memcpy(out->maker, id->bytes + 76, 36);
    out->maker[35] = 0;
    out->derived = id->bytes[5] == KIND_DERIVED;
    if ((id->bytes[5] != KIND_ADDRESS && !out->derived) || (out->addr.family != 4 && out->addr.family != 6))
        return rd_error(ctx, RONDO_ERR_INVALID_ARGUMENT, "the unique id holds no address: it was not made by rondo");
    return RONDO_SUCCESS;
}

void rd_id_key(const rd_creds_t *creds, const char *label, const void *data, size_t bytes, unsigned char out[32])
{
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, creds->secret, sizeof(creds->secret));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)label, strlen(label) + 1);
    crypto_auth_hmacsha256_update(&state, creds->job, sizeof(creds->job));
    crypto_auth_hmacsha256_update(&state, data, bytes);
    crypto_auth_hmacsha256_final(&state, out);
}

void rd_id_derive(rd_creds_t *out, const rd_creds_t *creds, const char *label, const void *data, size_t bytes)
{
    char part[64];
    unsigned char job[32];

    snprintf(part, sizeof part, "%s job", label);
    rd_id_key(creds, part, data, bytes, job);
    snprintf(part, sizeof part, "%s secret", label);
    rd_id_key(creds, part, data, bytes, out->secret);
    memcpy(out->job, job, sizeof out->job);
}

rondo_result_t rd_crypto_init(rd_log_ctx_t *ctx)
{
    if (sodium_init() >= 0)
        return RONDO_SUCCESS;
    return rd_error(ctx, RONDO_ERR_SYSTEM, "libsodium finds no source of random numbers on this system");
}

void rd_whois(char text[RD_WHOIS])
{
    char host[65] = "?";
    gethostname(host, sizeof(host) - 1);
    snprintf(text, RD_WHOIS, "%s:%d", host, (int)getpid());
}
