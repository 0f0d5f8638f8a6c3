/* See file_name.h. */
#include "base/file_name.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int rd_file_name(char *name, size_t bytes, const char *pattern, const char *host)
{
    size_t used = 0;

    name[0] = '\0';
    for (; *pattern; pattern++) {
        const char of = *pattern == '%' ? pattern[1] : '\0';
        int n;

        if (of == 'h')
            n = snprintf(name + used, bytes - used, "%s", host);
        else if (of == 'p')
            n = snprintf(name + used, bytes - used, "%ld", (long)getpid());
        else
            n = snprintf(name + used, bytes - used, "%c", *pattern);
        if (n < 0 || (size_t)n >= bytes - used) {
            errno = ENAMETOOLONG;
            return -1;
        }
        used += (size_t)n;
        pattern += of == 'h' || of == 'p' || of == '%';
    }
    return 0;
}
