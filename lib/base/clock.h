/* The kernel's clocks. The C library reads the fine ones in the process, by the processor's time stamp counter; where a
 * process has forbidden itself to read that (prctl with PR_SET_TSC, as sandboxes and recorders do), each reading would
 * end it by SIGSEGV, and the kernel is asked instead. Which of the two is found out at the first reading. */
#ifndef RD_BASE_CLOCK_H
#define RD_BASE_CLOCK_H

#include <stdbool.h>
#include <time.h>

void rd_clock_read(clockid_t clock, struct timespec *now);
/* Returns true if this process may read x86's time stamp counter. */
bool rd_clock_has_counter(void);

#endif
