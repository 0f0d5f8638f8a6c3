/* The version stands in configure.ac; the header's macros and the library must say the same. */
#include <stdio.h>
#include <string.h>
#include <rondo.h>

#include "config.h"

int main(void)
{
    char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
    if (strcmp(text, PACKAGE_VERSION) != 0) {
        fprintf(stderr, "rondo.h says %s, configure.ac %s\n", text, PACKAGE_VERSION);
        return 1;
    }
    if (rondo_version() != RONDO_VERSION) {
        fprintf(stderr, "rondo.h says %d, the library %d\n", RONDO_VERSION, rondo_version());
        return 1;
    }
    return 0;
}
