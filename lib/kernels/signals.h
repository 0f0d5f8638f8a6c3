/* One-sided operations: the signals in a rank's window, and the arguments of the kernels that put, signal and wait
 * (onesided.cuh). A part of work.h, in plain C. */
#ifndef RD_KERNELS_SIGNALS_H
#define RD_KERNELS_SIGNALS_H

#include <stdint.h>

#define RD_KRANKS 16    /* most ranks whose windows are mapped: more ranks use the proxy path, see below */
#define RD_KSIGNALS 512 /* signals of a pair, in all contexts */

/* Signals of one-sided operations, of each pair of ranks, modulo 2^32. Each word has one writer, for what a rank calls
 * runs in the order of its calls; so nothing has to be added to another GPU's memory, which PCIe does not do well. */
typedef struct rd_ksignals {
    uint32_t sent[RD_KRANKS][RD_KSIGNALS];    /* by this rank, to the peer */
    uint32_t come[RD_KRANKS][RD_KSIGNALS];    /* written by the peer: how many it has sent */
    uint32_t awaited[RD_KRANKS][RD_KSIGNALS]; /* and how many of these this rank has waited for */
} rd_ksignals_t;

typedef struct rd_kput {
    const void *from;
    void *to;       /* in the peer's memory, or in any */
    uint64_t bytes; /* 0: nothing is put */
    uint32_t peer, signal;
    uint32_t signals; /* 1: a signal goes to the peer behind it; 0: none */
} rd_kput_t;

#define RD_KAWAITED 32 /* kinds of signals that a launch waits for, at most: each by a lane of one warp */

typedef struct rd_kawait {
    uint32_t n;
    struct {
        uint16_t peer, signal; /* no two are alike */
        uint32_t count;        /* at most INT32_MAX */
    } of[RD_KAWAITED];
} rd_kawait_t;

#endif
