/* The file of RONDO_METRICS: its name, how it is replaced, and its end. What lies there is locked (flock) as long as
 * the process that wrote it lives, so that another one which means the same name sees that it has an owner, and takes
 * a name with its process number instead; and so that the file of a process that was killed is replaced. */
#ifndef RD_CORE_METRICS_FILE_H
#define RD_CORE_METRICS_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "core/metrics_text.h"

/* Writes what `pattern` stands for in this process. A relative name is one of the working directory as it is now.
 * Returns false if it is too long. */
bool rd_metrics_file_name(char path[PATH_MAX], const char *pattern);

/* All others are the monitor thread's, and may take as long as a file server does. */
void rd_metrics_file_begin(const char *path); /* another job: what is left of the one before is removed */
void rd_metrics_file_replace(const rd_metrics_look_t *look); /* says in the log, once, that it cannot */
void rd_metrics_file_remove(void);
void rd_metrics_file_forget(void); /* in a forked child: it is the parent's */

#endif
