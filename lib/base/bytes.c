/* See bytes.h. */
#include "base/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int rd_bytes_parse(const char *text, uint64_t *bytes)
{
    unsigned long long value;
    int shift = 0;
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno)
        return -1;
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    }
    if (end[shift != 0] != '\0' || value > UINT64_MAX >> shift)
        return -1;
    *bytes = (uint64_t)value << shift;
    return 0;
}

const char *rd_bytes_print(uint64_t bytes, char *text)
{
    static const char suffix[] = {'\0', 'K', 'M', 'G'};
    int k = 0;

    while (k < 3 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        k++;
    }
    snprintf(text, 24, "%llu%c", (unsigned long long)bytes, suffix[k]);
    return text;
}
