/* The version of the library as it was built. A caller's header may be another version, which is why this is a
 * function. */
#include <rondo.h>

int rondo_version(void)
{
    return RONDO_VERSION;
}
