/* The findings of rondo-info doctor, kept for a test in place of being printed. Included by one file of a program. */
#ifndef RD_TEST_FOUND_H
#define RD_TEST_FOUND_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../tools/info.h"
#include "util/check.h"

static char said[16384]; /* a line for each: "2 slow node: ... -> what mends it" */
static int counts[3];    /* of each verdict */

void info_found(info_verdict_t verdict, const char *what, const char *remedy, const char *format, ...)
{
    size_t n = strlen(said);
    va_list args;

    counts[verdict]++;
    n += (size_t)snprintf(said + n, sizeof said - n, "%d %s: ", (int)verdict, what);
    va_start(args, format);
    n += (size_t)vsnprintf(said + n, sizeof said - n, format, args);
    va_end(args);
    snprintf(said + n, sizeof said - n, " -> %s\n", remedy ? remedy : "");
    CHECK(verdict == INFO_WELL || remedy || strstr(said, "in all"), "without a remedy: %s", said);
}

#endif
