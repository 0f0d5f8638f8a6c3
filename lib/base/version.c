/* The version of the library as it was built; a caller's header may be another one, which is why it is a function. */
#include <rondo.h>

int rondo_version(void)
{
    return RONDO_VERSION;
}
