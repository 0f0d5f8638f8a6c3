/* The names of the kernels that GPUs run: an algorithm's card requests one, and a launch runs one (kernels/launch.h).
 */
#ifndef RD_BASE_KERNEL_H
#define RD_BASE_KERNEL_H

typedef enum {
    RD_KERNEL_NONE,
    /* The kernels of algorithms. All but PROGRAM are written by hand, each for one algorithm. */
    RD_KERNEL_ONESHOT,
    RD_KERNEL_TWOSHOT,
    RD_KERNEL_RING,
    RD_KERNEL_CHAIN,
    RD_KERNEL_PROGRAM, /* runs any schedule of lib/sched */
    RD_KERNEL_MESSAGES,
    RD_KERNEL_COPY, /* the barriers around copies by copy engines */
    /* The rest. */
    RD_KERNEL_SINGLE,
    RD_KERNEL_WRITE,
    RD_KERNEL_NOTHING,
    RD_KERNEL_STALL,
    RD_KERNEL_PROXIED,
    RD_KERNEL_PROXIED_MESSAGES,
    RD_KERNEL_PUT,
    RD_KERNEL_AWAIT,
    RD_KERNEL_STREAMS,
    RD_KERNEL_MIXED,
    RD_KERNEL_FUSED,
    RD_KERNEL_GDR,
    RD_NUM_KERNELS
} rd_kernel_t;

#endif
