/* Does every pair of GPUs move data right? Asked of the GPUs themselves, in processes of their own that are ended when
 * they take too long. */
#ifndef RD_DOCTOR_PAIRS_H
#define RD_DOCTOR_PAIRS_H

typedef enum {
    PAIR_WELL,
    PAIR_NO_ACCESS, /* CUDA says that there is no peer access */
    PAIR_CORRUPT,   /* a copy arrived otherwise than it was sent */
    PAIR_HANGS,     /* nothing came within the limit */
    PAIR_KERNELS,   /* copies are well, an allreduce by rondo's kernels is not */
    PAIR_ERROR      /* a call of CUDA failed: `text` */
} pair_verdict_t;

typedef struct pair {
    int from, to; /* devices of CUDA */
    pair_verdict_t verdict;
    double gbps; /* WELL: of a copy */
    char text[160];
    char bus[2][20];
} pair_t;

/* Tries all pairs of the devices that CUDA shows, each within `limit_ms`. The number of devices; -1: CUDA cannot be
 * used, `why` says why. */
int doctor_pairs(int limit_ms, void (*tried)(void *arg, const pair_t *pair), void *arg, char why[160]);

#endif
