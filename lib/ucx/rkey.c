/* Keys by which one rank's UCX fetches from another rank's memory.
 *
 * To map memory and pack its key takes UCX some microseconds, and from 1.20 on many more, because it then looks up in
 * /sys how far away each device is. So the last used keys are kept. An own key is kept with its memory mapped, if the
 * memory has a number, which distinguishes its allocation from others that have lain there. A peer's key is recognised
 * by its bytes, and UCX only gets it when the destination of a message is known. */
#include <stdlib.h>
#include <string.h>

#include "ucx/ucx_gdr.h"

#define KEPT 16 /* more only while they are in use */
/* UCX reads a key as far as the key itself says: a part of up to 255 bytes for each transport, and then parts for
 * devices, up to one without a number. */
#define ROOM ((size_t)66 * 256)
_Static_assert(ROOM > RD_UCX_KEY_MOST, "room for a key");

static void unmap(rd_ucx_net_t *net, rd_ucx_rkey_t *key)
{
    (void)rd_ucp.mem_unmap(net->context, key->memh);
    key->memh = NULL;
}

static void key_free(rd_ucx_net_t *net, rd_ucx_rkey_t *key)
{
    if (key->memh) {
        rd_ucp.rkey_buffer_release(key->packed);
        unmap(net, key);
    }
    if (key->rkey)
        rd_ucp.rkey_destroy(key->rkey);
    free(key);
}

void rd_ucx_keys_free(rd_ucx_net_t *net, rd_ucx_rkey_t **keys)
{
    while (*keys) {
        rd_ucx_rkey_t *key = *keys;
        *keys = key->next;
        key_free(net, key);
    }
}

/* Frees keys, except those in use and the last used ones. */
static void trim(rd_ucx_net_t *net, rd_ucx_rkey_t **keys)
{
    int n = 0;
    while (*keys) {
        rd_ucx_rkey_t *key = *keys;
        int known =
            key->whole.bytes == 0 || key->whole.number != 0; /* a peer's key, or memory that is known to be unchanged */
        if (key->users != 0 || (known && n < KEPT)) {
            keys = &key->next;
            n++;
        } else {
            *keys = key->next;
            key_free(net, key);
        }
    }
}

static rd_ucx_rkey_t *use(rd_ucx_rkey_t **keys, rd_ucx_rkey_t *key)
{
    key->next = *keys;
    *keys = key;
    key->users++;
    return key;
}

/* Returns NULL if the key cannot be used; it is kept all the same. */
static rd_ucx_rkey_t *use_own(rd_ucx_net_t *net, rd_ucx_rkey_t *key)
{
    key = use(&net->keys, key);
    if (key->memh)
        return key;
    key->users--;
    return NULL;
}

/* Takes a key out of the list; it will be put in front again. */
static rd_ucx_rkey_t *taken_out(rd_ucx_rkey_t **at)
{
    rd_ucx_rkey_t *key = *at;
    *at = key->next;
    return key;
}

void rd_ucx_rkey_release(rd_ucx_net_t *net, rd_ucx_rkey_t **key)
{
    if (*key && --(*key)->users == 0 && (*key)->memh && (*key)->whole.number == 0)
        trim(net, &net->keys);
    *key = NULL;
}

/* Memory that UCX cannot map, or has no key for, gets a key without `memh`: to try again costs time, and UCX may
 * complain. */
static rd_ucx_rkey_t *map(rd_ucx_net_t *net, const rd_net_memory_t *whole, int device)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
                                   .address = whole->base,
                                   .length = whole->bytes,
                                   .memory_type = device ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST};
    rd_ucx_rkey_t *key = calloc(1, sizeof *key);
    if (!key)
        return NULL;
    key->whole = *whole;
    if (rd_ucp.mem_map(net->context, &params, &key->memh) != UCS_OK) {
        key->memh = NULL;
    } else if (rd_ucp.rkey_pack(net->context, key->memh, &key->packed, &key->bytes) != UCS_OK) {
        unmap(net, key);
    } else if (key->bytes > RD_UCX_KEY_MOST) {
        rd_ucp.rkey_buffer_release(key->packed);
        unmap(net, key);
    }
    return key;
}

rd_ucx_rkey_t *rd_ucx_rkey_own(rd_ucx_net_t *net, const rd_net_memory_t *whole, int device)
{
    for (rd_ucx_rkey_t **at = &net->keys; *at; at = &(*at)->next) {
        const rd_net_memory_t *has = &(*at)->whole;
        if (has->base == whole->base && has->bytes == whole->bytes && has->number == whole->number)
            return use_own(net, taken_out(at));
    }
    trim(net, &net->keys);
    rd_ucx_rkey_t *key = map(net, whole, device);
    return key ? use_own(net, key) : NULL;
}

rd_ucx_rkey_t *rd_ucx_rkey_of(rd_ucx_net_t *net, rd_ucx_gdr_t *d, const void *packed, size_t bytes)
{
    for (rd_ucx_rkey_t **at = &d->keys; *at; at = &(*at)->next)
        if ((*at)->bytes == bytes && memcmp((*at)->packed, packed, bytes) == 0)
            return use(&d->keys, taken_out(at));
    trim(net, &d->keys);
    rd_ucx_rkey_t *key = calloc(1, sizeof *key + bytes);
    if (!key)
        return NULL;
    key->packed = memcpy(key + 1, packed, bytes);
    key->bytes = bytes;
    return use(&d->keys, key);
}

/* The key is copied to a longer buffer, in case it claims to be longer than it is. */
ucs_status_t rd_ucx_rkey_unpack(rd_ucx_peer_t *peer, rd_ucx_rkey_t *key)
{
    char room[ROOM];
    if (key->rkey)
        return UCS_OK;
    memset(room, 0xff, sizeof room);
    room[sizeof room - 1] = 0; /* a part may be a name */
    memcpy(room, key->packed, key->bytes);
    return rd_ucp.ep_rkey_unpack(peer->ep, room, &key->rkey);
}
