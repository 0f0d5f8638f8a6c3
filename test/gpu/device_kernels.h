/* Kernels that try what rondo_device.cuh promises, each a litmus test that runs for many rounds: what a rank reads is
 * what the others have put for this round, by however they were told. They are compiled for GPUs and for the machine of
 * test/sim. */
#ifndef TEST_DEVICE_KERNELS_H
#define TEST_DEVICE_KERNELS_H

#include <rondo.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LITMUS_THREADS 64
#define LITMUS_UNITS_MOST 8 /* groups of a rank */

typedef enum {
    LITMUS_BARRIER, /* all put to all, and meet at a barrier */
    LITMUS_READ,    /* each writes its own part, they meet, and all read all */
    LITMUS_SIGNAL,  /* round the ring: put and signal one way, "I have read it" the other */
    LITMUS_SET,     /* the same by values that are set */
    LITMUS_ADD,     /* every warp puts a share and adds to one signal, and one block waits for all of them */
    LITMUS_NOTHING, /* nobody comes */
    LITMUS_NOWHERE, /* a barrier that does not exist */
    LITMUS_BEYOND,  /* a put behind the end of a window */
    LITMUS_KINDS = LITMUS_NOTHING
} litmus_kind_t;

typedef enum { LITMUS_BY_BLOCK, LITMUS_BY_WARP, LITMUS_BY_THREAD, LITMUS_GROUPS } litmus_group_t;

typedef struct {
    rondo_device_t device;
    rondo_device_window_t window;
    uint32_t *source; /* litmus_source_bytes, of the rank's own */
    uint32_t *round;  /* LITMUS_UNITS_MOST of them: how many a group has done, in all launches together */
    uint32_t *wrong;  /* counts words that are not what they should be, */
    uint32_t *left;   /* and groups that had to leave */
    uint32_t kind, group;
    uint32_t rounds; /* of this launch */
    uint32_t words;  /* of a message, */
    uint32_t shift;  /* which begins so many bytes behind a multiple of 16; a multiple of 4 */
} litmus_t;

/* A kernel's argument, as long as the machine of test/sim takes it to be; before it lies what that looks at. */
typedef union {
    struct {
        char nothing[1024];
        litmus_t litmus;
    } is;
    char whole[4096];
} litmus_work_t;

/* The kernel, for cudaLaunchKernelExC; its groups on so many blocks; and bytes. */
const void *litmus_kernel(void);
uint32_t litmus_units(uint32_t group, uint32_t blocks);
size_t litmus_window_bytes(uint32_t nranks, uint32_t words);
size_t litmus_source_bytes(uint32_t words);
uint32_t litmus_signals(void);

#ifdef __cplusplus
}
#endif

#endif
