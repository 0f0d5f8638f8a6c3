/* FNV-1a: numbers for identifiers and texts that are the same on all ranks. It keeps out no attacker. */
#ifndef RD_BASE_HASH_H
#define RD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RD_HASH_EMPTY UINT64_C(0xcbf29ce484222325) /* the hash of nothing, with which one begins */

static inline uint64_t rd_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *b = data;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
