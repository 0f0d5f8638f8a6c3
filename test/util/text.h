/* What a file has by now, as a text: a log that is still written, a dump, a file of metrics. */
#ifndef RD_TEST_TEXT_H
#define RD_TEST_TEXT_H

#include <stdio.h>

/* Reads a file from its beginning into `text`, which has room for `bytes` bytes with the 0 at its end. Returns how many
 * were read; none and "": it cannot be opened, or is empty. */
static inline size_t text_read(const char *path, char *text, size_t bytes)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, bytes - 1, f) : 0;

    text[n] = 0;
    if (f)
        fclose(f);
    return n;
}

#endif
