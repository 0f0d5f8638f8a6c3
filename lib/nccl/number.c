/* Numbers of NCCL's variables, read as NCCL reads them: what is written in front of a text as C writes integers, also
 * 0x10. So "1x" is 1, and a word such as "true" is 0.
 */
#include <errno.h>
#include <stdlib.h>

#include "nccl/shim.h"

bool nc_number(const char *text, long long *number)
{
    long long value;

    errno = 0;
    value = strtoll(text, NULL, 0);
    if (errno)
        return false;
    *number = value;
    return true;
}

bool nc_number_is(const char *text, long long wanted)
{
    long long number;

    return nc_number(text, &number) && number == wanted;
}
