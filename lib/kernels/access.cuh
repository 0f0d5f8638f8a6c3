/* Access to the user's buffers, sixteen bytes a lane: `left` bytes from `p` on are the user's, and nothing beyond them
 * is touched. Access is fast where p is aligned, and for one word or two, which the shortest operations carry; else it
 * is made out of line, in the largest pieces that the alignment and the length allow. */
#ifndef RD_KERNELS_ACCESS_CUH
#define RD_KERNELS_ACCESS_CUH

#include <gpu.cuh>

/* `p` + `left` tell the alignment: both are multiples of the element's size. */
RD_DEVICE_FAR uint4 rd_load_pieces(const char *p, uint32_t left)
{
    uint32_t w[4];
    uint32_t odd = (uint32_t)(uintptr_t)p | left;

#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        w[i] = 0;
        if (4 * i >= left)
            continue;
        if (odd % 4 == 0) {
            w[i] = *(const uint32_t *)(p + 4 * i);
        } else if (odd % 2 == 0) {
            w[i] = *(const uint16_t *)(p + 4 * i);
            if (4 * i + 2 < left)
                w[i] |= (uint32_t) * (const uint16_t *)(p + 4 * i + 2) << 16;
        } else {
            for (uint32_t b = 0; b < 4; b++)
                if (4 * i + b < left)
                    w[i] |= (uint32_t) * (const uint8_t *)(p + 4 * i + b) << 8 * b;
        }
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

RD_DEVICE_FAR void rd_store_pieces(char *p, uint32_t left, uint4 v)
{
    const uint32_t w[4] = {v.x, v.y, v.z, v.w};
    uint32_t odd = (uint32_t)(uintptr_t)p | left;

#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        if (4 * i >= left)
            continue;
        if (odd % 4 == 0) {
            *(uint32_t *)(p + 4 * i) = w[i];
        } else if (odd % 2 == 0) {
            *(uint16_t *)(p + 4 * i) = (uint16_t)w[i];
            if (4 * i + 2 < left)
                *(uint16_t *)(p + 4 * i + 2) = (uint16_t)(w[i] >> 16);
        } else {
            for (uint32_t b = 0; b < 4; b++)
                if (4 * i + b < left)
                    *(uint8_t *)(p + 4 * i + b) = (uint8_t)(w[i] >> 8 * b);
        }
    }
}

/* A part of a user's buffer that is cut in tiles: a rank's block, or a chunk of the whole. */
struct rd_part_t {
    char *base;
    uint64_t bytes;
};

RD_DEVICE rd_part_t rd_part(const void *base, uint64_t at, uint64_t end)
{
    rd_part_t part;

    part.base = (char *)const_cast<void *>(base) + at;
    part.bytes = at < end ? end - at : 0;
    return part;
}

/* One word or two from a place for words. */
RD_DEVICE bool rd_few_words(const char *p, uint32_t left)
{
    return left <= 8 && ((uint32_t)(uintptr_t)p | left) % 4 == 0;
}

RD_DEVICE uint4 rd_part_load(const rd_part_t &part, uint64_t at)
{
    const char *p = part.base + at;

    if (at >= part.bytes)
        return make_uint4(0, 0, 0, 0);
    const uint32_t left = part.bytes - at < 16 ? (uint32_t)(part.bytes - at) : 16u;
    if (left == 16 && (uintptr_t)p % 16 == 0)
        return *(const uint4 *)p;
    if (rd_few_words(p, left))
        return make_uint4(*(const uint32_t *)p, left == 8 ? *(const uint32_t *)(p + 4) : 0, 0, 0);
    return rd_load_pieces(p, left);
}

RD_DEVICE void rd_part_store(const rd_part_t &part, uint64_t at, uint4 v)
{
    char *p = part.base + at;

    if (at >= part.bytes)
        return;
    const uint32_t left = part.bytes - at < 16 ? (uint32_t)(part.bytes - at) : 16u;
    if (left == 16 && (uintptr_t)p % 16 == 0) {
        *(uint4 *)p = v;
    } else if (rd_few_words(p, left)) {
        *(uint32_t *)p = v.x;
        if (left == 8)
            *(uint32_t *)(p + 4) = v.y;
    } else {
        rd_store_pieces(p, left, v);
    }
}

/* The same, of a buffer on another GPU. */
RD_DEVICE void rd_part_store_far(const rd_part_t &part, uint64_t at, uint4 v)
{
    char *p = part.base + at;

    if (at < part.bytes && part.bytes - at >= 16 && (uintptr_t)p % 16 == 0)
        far_store(p, v);
    else
        rd_part_store(part, at, v);
}

#endif
