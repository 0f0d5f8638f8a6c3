/* Fuzz target: the 128 bytes of a unique id. As they come, and once more with the right checksum, so that what lies
 * behind it is reached; what was accepted must come out again as it went in. */
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "boot/id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void unpack(const rondo_unique_id_t *id)
{
    rondo_unique_id_t again;
    rd_id_t open;
    char text[RD_ADDR_TEXT];

    if (rd_id_unpack(&open, id, NULL) != RONDO_SUCCESS) {
        if (!*rd_thread_error())
            abort();
        return;
    }
    if (strlen(open.maker) >= sizeof open.maker || strlen(rd_addr_print(&open.addr, text)) >= sizeof text)
        abort();
    rd_id_pack(&again, &open);
    if (memcmp(again.bytes + 8, id->bytes + 8, 68) != 0) /* address, job and secret */
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int ready;
    rondo_unique_id_t id;

    if (!ready && rd_crypto_init(NULL) != RONDO_SUCCESS)
        abort();
    ready = 1;
    memset(&id, 0, sizeof id);
    memcpy(id.bytes, data, bytes < sizeof id ? bytes : sizeof id);
    unpack(&id);
    crypto_generichash(id.bytes + 112, 16, id.bytes, 112, NULL, 0);
    unpack(&id);
    return 0;
}
