/* Dumps that are being written, and who waits for them: the end of the process, which would cut them off. It waits for
 * RONDO_DUMP_WAIT_MS at most, in exit and where a failure ends the process, because a file server may take for ever. */
#ifndef RD_CORE_DUMP_WAIT_H
#define RD_CORE_DUMP_WAIT_H

#include <stdint.h>

/* A dump begins, and ends. Any thread. In between the end of the process waits for at most `most_ms`, as the last
 * dump that began has given it. */
void rd_dump_wait_begin(int64_t most_ms);
void rd_dump_wait_end(void);
/* Waits until none is under way, or the time is over. A forked child, which has no such thread, waits for nothing. */
void rd_dump_wait(void);

#endif
