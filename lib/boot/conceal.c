/* Ids on their way between the ranks of a bootstrap. Its records are authenticated, but whoever reads the network can
 * read them, and an id has the secret by which a rank may join. */
#include <sodium.h>

#include "boot/boot_int.h"

#define NONCE crypto_secretbox_NONCEBYTES

_Static_assert(sizeof(rd_concealed_id_t) == sizeof(rondo_unique_id_t) + NONCE + crypto_secretbox_MACBYTES,
               "its length");

void rd_boot_conceal(const rd_boot_t *b, const rondo_unique_id_t *id, rd_concealed_id_t *concealed)
{
    unsigned char key[32], *nonce = concealed->bytes;

    rd_boot_key(b, "conceal", key);
    randombytes_buf(nonce, NONCE);
    crypto_secretbox_easy(nonce + NONCE, (const unsigned char *)id, sizeof *id, nonce, key);
    sodium_memzero(key, sizeof key);
}

rondo_result_t rd_boot_reveal(const rd_boot_t *b, const rd_concealed_id_t *concealed, rondo_unique_id_t *id)
{
    const unsigned char *nonce = concealed->bytes;
    unsigned char key[32];

    rd_boot_key(b, "conceal", key);
    int bad = crypto_secretbox_open_easy((unsigned char *)id, nonce + NONCE, sizeof *concealed - NONCE, nonce, key);
    sodium_memzero(key, sizeof key);
    if (bad)
        return rd_error(b->ctx, RONDO_ERR_SYSTEM,
                        "an id came over the bootstrap that no rank of this communicator has concealed");
    return RONDO_SUCCESS;
}

rondo_result_t rd_boot_id_check(const rd_boot_t *b, const rondo_unique_id_t *id, int maker)
{
    char why[RD_ID_CARRIED];
    rondo_result_t code = rd_id_carried(id, why);

    if (code == RONDO_SUCCESS)
        return code;
    return rd_error(b->ctx, code, "rank %d (%s) could not make the unique id: %s", maker, rd_boot_whois(b, maker), why);
}
