#include "delays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rd_delays_read(rd_delays_t *delays)
{
    static const char *const plants[] = {"", "release", "fence", "lines"};
    const char *seed = getenv("DELAYS_SEED"), *plant = getenv("DELAYS_PLANT");
    uint32_t i = 0;

    memset(delays, 0, sizeof *delays);
    delays->seed = seed ? (uint32_t)strtoul(seed, NULL, 0) : 1;
    while (plant && i < 4 && strcmp(plant, plants[i]) != 0)
        i++;
    if (i == 4) {
        fprintf(stderr, "DELAYS_PLANT=%s: there are release, fence and lines\n", plant);
        exit(2);
    }
    delays->plant = i;
}
