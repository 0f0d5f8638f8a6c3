/* File names from the user's patterns. */
#ifndef RD_BASE_FILE_NAME_H
#define RD_BASE_FILE_NAME_H

#include <stddef.h>

/* Writes the pattern with `host` for "%h", this process's number for "%p" and "%" for "%%"; any other "%" means itself.
 * Returns 0; or -1 and errno = ENAMETOOLONG if that takes more than `bytes` with its terminating zero, and `name` is
 * what fits. */
int rd_file_name(char *name, size_t bytes, const char *pattern, const char *host);

#endif
