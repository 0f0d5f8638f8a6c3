/* The host's part of what goes between kernels and proxies by flagged lines: see kernels/brief.cuh. */
#include "stage.h"

#include <string.h>

static char *lines_of(const rd_crew_t *crew, uint32_t number)
{
    return crew->stage->brief + (size_t)((number - 1) & (crew->stage->k.slots - 1)) * 4 * RD_KBRIEF;
}

int rd_brief_come(const rd_crew_t *crew, uint32_t number, char *to, size_t bytes)
{
    const uint64_t *line = (const uint64_t *)(const void *)lines_of(crew, number);
    uint32_t flag = number | RD_KVALID;

    for (size_t at = 0; at < bytes; at += 4) {
        uint64_t half = __atomic_load_n(line + at / 4, __ATOMIC_ACQUIRE);
        uint32_t word = (uint32_t)half;
        if ((uint32_t)(half >> 32) != flag)
            return 0;
        memcpy(to + at, &word, 4);
    }
    return 1;
}

/* Whole lines of 16 bytes of data: a kernel's thread waits for as many. */
void rd_brief_give(const rd_crew_t *crew, uint32_t number, const char *from, size_t bytes)
{
    uint64_t *line = (uint64_t *)(void *)(lines_of(crew, number) + 2 * RD_KBRIEF);
    uint64_t flag = (uint64_t)(number | RD_KVALID) << 32;

    for (size_t at = 0; at < (bytes + 15) / 16 * 16; at += 4) {
        uint32_t word;
        memcpy(&word, from + at, 4);
        __atomic_store_n(line + at / 4, flag | word, __ATOMIC_RELEASE);
    }
}
