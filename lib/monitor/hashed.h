/* RONDO_HASH: what a call reads and writes on this rank, as two numbers of 64 bits in its event. Ranks that should have
 * got the same have the same number; who looks at dumps of all finds the first call after which they have not.
 *
 * A hash is of bytes, block by block, so it does not depend on where they lie. It is made to find errors, and keeps out
 * no attacker. */
#ifndef RD_MONITOR_HASHED_H
#define RD_MONITOR_HASHED_H

#include "monitor/seat.h"

typedef struct rd_hashed_block {
    const void *at;
    size_t bytes;
} rd_hashed_block_t;

/* What is hashed together, in one piece of memory. */
typedef struct rd_hashed {
    size_t n;
    rd_hashed_block_t blocks[];
} rd_hashed_t;

/* Returns the hash of all blocks, never 0; but of no byte 0. */
uint64_t rd_hashed_hash(const rd_hashed_t *blocks);
/* The call with that event has written the blocks, and is about to end. */
void rd_hashed_note(const rd_hashed_t *blocks, rd_seat_t *seat, uint64_t entry);

#endif
