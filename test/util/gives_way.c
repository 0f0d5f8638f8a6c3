/* MPICH's ranks look for messages again and again, and never give way to each other, of whom there are more here than
 * cores: each then waits for those that wait to have had their time. Preloaded, whoever finds nothing gives way. An
 * MPICH that is not on UCX does not call this. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*real)(void *);
    unsigned count;

    if (!real)
        real = (unsigned (*)(void *))dlsym(RTLD_NEXT, "ucp_worker_progress");
    count = real(worker);
    if (count == 0)
        sched_yield();
    return count;
}
