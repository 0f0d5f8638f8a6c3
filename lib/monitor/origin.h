/* Where a record was written: by which process, in which name space, on which boot of which host. Its writer says so,
 * and a reader has to know whether the same numbers mean the same process for him. */
#ifndef RD_MONITOR_ORIGIN_H
#define RD_MONITOR_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor/record.h"

typedef struct rd_origin {
    uint64_t pid_space;                                /* inode of /proc/self/ns/pid; 0: unknown */
    char host[RD_MONITOR_NAME], boot[RD_MONITOR_NAME]; /* the kernel's boot id; "": unknown */
} rd_origin_t;

void rd_origin_find(rd_origin_t *origin);

/* What /proc says of a process. */
typedef struct rd_process_stat {
    char state;                     /* R S D T t Z ... */
    unsigned long long user_system; /* ticks of processor time */
    int threads;
    unsigned long long started; /* ticks since the boot: tells the process from a later one of its number */
} rd_process_stat_t;

/* `who` is a process's number, or "self". Returns false with errno; 0: the file makes no sense. */
bool rd_process_stat(const char *who, rd_process_stat_t *now);
/* Has it ended, and not only its first thread? */
static inline bool rd_process_over(const rd_process_stat_t *now)
{
    return now->state == 'X' || (now->state == 'Z' && now->threads <= 1);
}
/* Returns for how many nanoseconds the threads of a process were ready to run and had no core, all together; 0:
 * unknown. *ran: for how many they had one. */
uint64_t rd_process_queued(const char *who, uint64_t *ran);

#endif
