/* The count of failures is one for all files of a program: what CHECK finds in a file that several tests share makes
 * each of them fail. */
#include "util/check.h"

void counts_other(void);

int main(void)
{
    counts_other();
    const int counted = failures;

    CHECK(counted == 1, "of the one that is planted in another file, %d are counted", counted);
    return counted != 1;
}
