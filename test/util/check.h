/* What a test that needs no ranks expects: each thing that is not so is said and counted, and the test goes on. All
 * files of a program have one count, whichever of them sees to the program's status. */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <stdarg.h>
#include <stdio.h>

__attribute__((weak)) int failures;
__attribute__((weak)) const char *check_now; /* what is tried; may be NULL */

__attribute__((format(printf, 4, 5))) static void check_failed(const char *file, int line, const char *condition,
                                                               const char *more, ...)
{
    va_list args;

    failures++;
    printf("%s:%d: FAILED: %s%s%s:", file, line, check_now ? check_now : "", check_now ? ": " : "", condition);
    va_start(args, more);
    vprintf(more, args);
    va_end(args);
    printf("\n");
}

/* With a format and its arguments, or without. */
#define CHECK(condition, ...) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition, " " __VA_ARGS__))

#endif
