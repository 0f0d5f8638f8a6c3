/* Where a thread stands, by the words of /proc. */
#ifndef RD_MONITOR_THREAD_TEXT_H
#define RD_MONITOR_THREAD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* `thread 4712 "app": state S, in futex, where the kernel is in futex_wait_queue`. Returns false if there is no such
 * thread. `thread`: its number, as text. */
bool rd_thread_text(pid_t pid, const char *thread, char *text, size_t bytes);
/* Reads a small file of a thread. Returns false if there is none, or it says nothing. */
bool rd_thread_file(pid_t pid, const char *thread, const char *name, char *text, size_t bytes);

#endif
