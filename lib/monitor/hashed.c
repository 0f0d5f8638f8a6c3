/* See hashed.h. */
#include "monitor/hashed.h"

#include <string.h>

#include "monitor/called.h"

#define LANES 4 /* multiplications that do not wait for one another */

/* Takes in some bytes, words in turns to each lane. */
static uint64_t take_in(uint64_t hash, const unsigned char *at, size_t bytes)
{
    uint64_t lanes[LANES], word;
    size_t i = 0;

    for (uint64_t k = 0; k < LANES; k++)
        lanes[k] = rd_sign_mix(hash, k + 1);
    for (; bytes - i >= sizeof lanes; i += sizeof lanes)
        for (size_t k = 0; k < LANES; k++) {
            memcpy(&word, at + i + k * sizeof word, sizeof word);
            lanes[k] = rd_sign_mix(lanes[k], word);
        }
    for (size_t k = 0; i < bytes; i += sizeof word, k++) {
        word = 0;
        memcpy(&word, at + i, bytes - i < sizeof word ? bytes - i : sizeof word);
        lanes[k] = rd_sign_mix(lanes[k], word);
    }
    for (size_t k = 0; k < LANES; k++)
        hash = rd_sign_mix(hash, lanes[k]);
    return hash;
}

uint64_t rd_hashed_hash(const rd_hashed_t *blocks)
{
    uint64_t hash = 0;
    size_t bytes = 0;

    for (size_t i = 0; i < blocks->n; i++) {
        hash = take_in(hash, blocks->blocks[i].at, blocks->blocks[i].bytes);
        bytes += blocks->blocks[i].bytes;
    }
    hash = rd_sign_mix(hash, bytes);
    return !bytes ? 0 : hash ? hash : 1;
}

void rd_hashed_note(const rd_hashed_t *blocks, rd_seat_t *seat, uint64_t entry)
{
    rd_monitor_output(seat, entry, rd_hashed_hash(blocks));
}
