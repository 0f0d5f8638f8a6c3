/* What kernels that were compiled with test/delays/gpu.cuh are told: the seed of their delays, and which fault they
 * shall have. From the environment:
 *
 *   DELAYS_SEED=N     (1)
 *   DELAYS_PLANT=     release   warp_release and group_release order nothing
 *                     fence     fence_sys orders nothing
 *                     lines     of a line of 128 bytes the part with the flag goes first */
#ifndef TEST_DELAYS_H
#define TEST_DELAYS_H

#include <stdint.h>

#define RD_DELAYS_TURNS 256

typedef enum { RD_PLANT_NOTHING, RD_PLANT_RELEASE, RD_PLANT_FENCE, RD_PLANT_LINES } rd_plant_t;

typedef struct rd_delays {
    uint32_t seed, plant;
    uint32_t turns[RD_DELAYS_TURNS]; /* kernels that a block of this number has run: each draws other delays */
} rd_delays_t;

#ifdef __cplusplus
extern "C" {
#endif

/* By the environment; a bad value ends the process. */
void rd_delays_read(rd_delays_t *delays);
/* Each file of kernels has a struct of its own, and says here, before main, where: on a GPU, the variable's name to the
 * runtime. */
int rd_delays_register(void *symbol);

#ifdef __cplusplus
}
#endif

#endif
