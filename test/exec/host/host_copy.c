/* rd_copy moves exactly the bytes asked for, at every length around its inlined sizes, at every misalignment, and onto
 * itself. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exec/host/host_copy.h"

enum { LONGEST = 200, PLACES = 17, ROOM = LONGEST + 2 * PLACES + 32 };

static int wrong(size_t bytes, size_t from, size_t to)
{
    unsigned char src[ROOM], dst[ROOM], expected[ROOM];

    for (int i = 0; i < ROOM; i++) {
        src[i] = (unsigned char)(i * 7 + 1);
        dst[i] = expected[i] = (unsigned char)(200 - i);
    }
    for (size_t i = 0; i < bytes; i++)
        expected[to + i] = src[from + i];
    rd_copy(dst + to, src + from, bytes);
    if (memcmp(dst, expected, ROOM) != 0)
        return 1;
    rd_copy(dst + to, dst + to, bytes);
    return memcmp(dst, expected, ROOM) != 0;
}

int main(void)
{
    int failures = 0;

    alarm(20);
    for (size_t bytes = 0; bytes <= LONGEST; bytes++) {
        for (size_t place = 0; place < PLACES * PLACES; place++) {
            if (wrong(bytes, 16 + place % PLACES, 16 + place / PLACES) && failures++ < 10)
                printf("%zu bytes from +%zu to +%zu\n", bytes, place % PLACES, place / PLACES);
        }
    }
    return failures != 0;
}
