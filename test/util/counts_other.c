/* See counts.c. */
#include "util/check.h"

void counts_other(void);

void counts_other(void)
{
    check_now = "planted";
    CHECK(0);
}
