/* See hashes.h. */
#include "core/hashes.h"

#include <stdlib.h>

#include "core/extents.h"

static void add(void *arg, const void *buffer, size_t at, size_t count, rondo_type_t type)
{
    rd_hashed_t *blocks = arg;

    if (buffer && count)
        blocks->blocks[blocks->n++] =
            (rd_hashed_block_t){(const char *)buffer + at * rondo_type_size(type), count * rondo_type_size(type)};
}

/* Returns room for as many blocks as a table may have, or NULL. */
static rd_hashed_t *make(int blocks)
{
    rd_hashed_t *made = malloc(sizeof *made + (size_t)blocks * sizeof made->blocks[0]);

    if (made)
        made->n = 0;
    return made;
}

void rd_hashes_collective(const struct rondo_comm *comm, const rd_call_t *call, uint64_t *input, rd_hashed_t **output)
{
    rd_hashed_t *blocks = make(comm->team.nranks);

    *input = 0;
    *output = blocks;
    if (!blocks)
        return;
    rd_extents_read(comm, call, add, blocks);
    *input = rd_hashed_hash(blocks);
    blocks->n = 0;
    rd_extents_written(comm, call, add, blocks);
}

void rd_hashes_message(const rd_message_t *m, uint64_t *input, rd_hashed_t **output)
{
    rd_hashed_t *blocks = make(1);

    *input = 0;
    *output = blocks;
    if (!blocks)
        return;
    add(blocks, m->buffer, 0, m->bytes, RONDO_UINT8);
    if (!m->send)
        return;
    *input = rd_hashed_hash(blocks);
    blocks->n = 0;
}
