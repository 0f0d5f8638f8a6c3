/* A machine that runs the CUDA kernels on CPU threads: every CUDA thread is a fiber, and a scheduler with a seed
 * decides which fiber goes on. What a GPU leaves open is made as bad as it may be:
 *
 *   order     any fiber that can go on may be next; ranks run ahead and fall behind
 *   memory    what a kernel writes into windows lies in a buffer of its fiber and comes out in any order: a 16-byte
 * store in halves, a line of a warp as a whole; fence_sys() and the end of the kernel empty it. With SIM_IN_ORDER in
 * the environment, or where ThreadSanitizer looks on (order.h), stores come out at once, as on a machine that is better
 * than it must be
 *
 * Kernels are compiled by the C++ compiler with this folder's gpu.cuh in place of lib/kernels/ptx. */
#ifndef TEST_SIM_MACHINE_H
#define TEST_SIM_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rd_sim_launch {
    const void *function; /* takes one const rd_kwork_t & */
    unsigned blocks, threads;
    size_t shared;    /* bytes of a block */
    const void *work; /* rd_kwork_t; stays */
    /* For ThreadSanitizer: lines order whatever their threads do. That is too much, for they are relaxed, and so it may
     * hide faults. But where a program in place overwrites what another warp has read, what it writes was made of that,
     * and there is no other way to say so. */
    int depends;
} rd_sim_launch_t;

/* Runs one grid on the calling thread until it ends; other grids run beside it on other threads, or in other processes.
 * After `rd_sim_patience` seconds in which nothing moved it says who waits for what, and ends the process. Returns 0.
 */
int rd_sim_grid(const void *function, unsigned blocks, unsigned threads, size_t shared, const void *work);

/* Runs the queues of all ranks on the calling thread alone: launches[rank * depth + i], a rank's next when its last has
 * ended. The same seed gives the same run. Returns 0, or -1 when nobody can go on: `text` says who waits for what. */
int rd_sim_queues(const rd_sim_launch_t *launches, int ranks, int depth, uint64_t seed, char *text, size_t size);

/* A hash of which threads the calling thread's last rd_sim_queues had go on, in their order. */
uint64_t rd_sim_trace(void);

/* For ThreadSanitizer, behind rd_sim_queues: the host of a rank reads what its kernels have left there. It knows what
 * they have done, and nothing of other ranks. */
void rd_sim_read(int rank, const void *p, size_t bytes);

void rd_sim_seed(uint64_t seed); /* of rd_sim_grid */
void rd_sim_patience(int seconds);

/* A kernel that is wrong on purpose, in the calling thread: */
typedef enum {
    RD_SIM_SOUND,
    RD_SIM_NO_FENCE,   /* fence_sys() does nothing */
    RD_SIM_NO_FENCE_1, /* the first, third, ... of each thread of a kernel does nothing */
    RD_SIM_NO_FENCE_2, /* the second, fourth, ... */
    RD_SIM_NO_CLEAN,   /* now and then a line is not put back */
    RD_SIM_TORN_LINES, /* lines of a warp come out in parts */
    RD_SIM_NO_GATE,    /* words between `from` and `to` read as if they were far ahead */
    RD_SIM_UNASKED,    /* such words that nobody has ever written read as a promise of the first place */
    /* Where ThreadSanitizer looks on (order.h); it alone sees these: */
    RD_SIM_NO_ACQUIRE, /* word_acquire is word_load */
    RD_SIM_NO_BARRIER, /* barriers wait, and order nothing */
    RD_SIM_NO_BEGIN,   /* gpu_begin() does nothing */
    RD_SIM_NO_FOLLOW   /* stores_follow() does nothing */
} rd_sim_fault_t;
void rd_sim_break(rd_sim_fault_t fault, const void *from, const void *to);

#ifdef __cplusplus
}
#endif

#endif
