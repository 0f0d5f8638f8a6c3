/* A locale with a comma for the point: what a program has that calls setlocale(LC_ALL, "") in many countries. */
#ifndef TEST_UTIL_COMMA_H
#define TEST_UTIL_COMMA_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* Sets one that is installed, or else one that is made. Returns false, and says so, if there is none. */
static int comma_set(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "it_IT.UTF-8", "de_DE"};
    char dir[] = "/tmp/rondo-locale-XXXXXX", line[256], number[16];
    int set = 0;

    for (size_t i = 0; !set && i < sizeof names / sizeof names[0]; i++)
        set = setlocale(LC_ALL, names[i]) != NULL;
    if (!set && mkdtemp(dir)) {
        snprintf(line, sizeof line, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", dir);
        if (system(line) != 0) /* it warns, or is not there: the locale says */
            printf("localedef is not content\n");
        setenv("LOCPATH", dir, 1);
        set = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
        unsetenv("LOCPATH");
        snprintf(line, sizeof line, "rm -rf %s", dir); /* what is set is in memory */
        set = system(line) == 0 && set;
    }
    snprintf(number, sizeof number, "%.1f", 1.5);
    if (set && number[1] == ',')
        return 1;
    setlocale(LC_ALL, "C");
    printf("no locale with a comma is installed, and localedef makes none: that numbers have points is not tried\n");
    return 0;
}

#endif
