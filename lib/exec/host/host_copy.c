/* The plain copy of more than a line, which is memcpy. Through eight slots of 64 KB between two cores it moved 9.5,
 * 11.1, 8.3 and 6.2 GB/s for messages of 256 KB, 1 MB, 16 MB and 128 MB; "rep movsb" 9.9, 10.5, 8.6 and 5.9; a loop
 * over 64-byte registers 8.8, 9.8, 6.8 and 5.2. Stores past the caches into the user's buffer were slower below 16 MB.
 *
 * Slots are different. A plain store into a slot must first fetch the line from the cache of the reader, which has read
 * the slot's last message, and the reader must then fetch it back from the writer's cache: two journeys of a line, each
 * of which is waited for. On two cores of a Zen 4 that share no third-level cache, eight slots of 16 or 64 KB between
 * them moved 1.7 to 3.7 GB/s by memcpy and 10 to 18 past the caches; if they share it, 6 to 11 and 9 to 16. The stores
 * of AVX-512 are no faster than those of SSE2. */
#include "exec/host/host_copy.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

void rd_copy_block(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

#if defined(__x86_64__)
void rd_copy_past(void *dst, const void *src, size_t bytes)
{
    const char *from = src;
    char *to = dst;

    for (; bytes >= 64; bytes -= 64, from += 64, to += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)from), b = _mm_loadu_si128((const __m128i *)(from + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(from + 32)), d = _mm_loadu_si128((const __m128i *)(from + 48));
        _mm_stream_si128((__m128i *)to, a);
        _mm_stream_si128((__m128i *)(to + 16), b);
        _mm_stream_si128((__m128i *)(to + 32), c);
        _mm_stream_si128((__m128i *)(to + 48), d);
    }
    memcpy(to, from, bytes);
    _mm_sfence(); /* a release does not wait for these stores */
}
#else
void rd_copy_past(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}
#endif
