/* See process_barrier.h.
 *
 * The kernel has two kinds. MEMBARRIER_CMD_GLOBAL waits for a grace period of RCU, which is made by threads of the
 * kernel: on a busy machine that is seconds, and where those threads get no core an abort would not return. The
 * expedited kind interrupts the cores that run this process. A process must have registered for that, which is at once
 * while it has one thread, and takes a grace period if it has more. So it is done when the library is loaded, if no
 * other thread is there yet.
 *
 * Where that was too late, or the kernel refuses, this thread sleeps: a store leaves its core's buffer within
 * microseconds, and a thread that is taken from its core in between has stored what it had to. */
#include "base/process_barrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINKS 3 /* of the folder of a process's threads, if it has one: two, and one for each thread */

static __attribute__((constructor)) void join(void)
{
    struct stat threads;

    if (stat("/proc/self/task", &threads) == 0 && threads.st_nlink == LINKS)
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

void rd_process_barrier(void)
{
    struct timespec while_stores_drain = {0, 2000000};

    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return;
    atomic_thread_fence(memory_order_seq_cst);
    while (nanosleep(&while_stores_drain, &while_stores_drain) != 0 && errno == EINTR)
        continue;
}
