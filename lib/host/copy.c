/* The plain copy of more than a line. It is memcpy. */
#include "copy.h"

void rd_copy_block(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}
