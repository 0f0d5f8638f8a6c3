/* Starting again with a folder in which the loader looks for libraries: it reads the variable when a program starts. */
#ifndef TEST_UTIL_START_WITH_H
#define TEST_UTIL_START_WITH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns if the program was started with LD_LIBRARY_PATH set to that folder; otherwise it is started anew so. */
static inline void start_with(const char *folder, char **argv)
{
    const char *now = getenv("LD_LIBRARY_PATH");

    if (now && strcmp(now, folder) == 0)
        return;
    setenv("LD_LIBRARY_PATH", folder, 1);
    execv("/proc/self/exe", argv);
    perror("execv");
    exit(1);
}

#endif
