/* Access to the user's buffers, in which each lane reads or writes 16 bytes. Of these, the `left` bytes from `p` on
 * belong to the user, and nothing beyond them is touched. Access is inlined and fast where `p` is aligned to 16 bytes,
 * and for one or two 4-byte words, which are what the shortest operations carry. In all other cases a function that is
 * not inlined accesses the memory in the largest pieces that alignment and length allow. */
#ifndef RD_KERNELS_ACCESS_CUH
#define RD_KERNELS_ACCESS_CUH

#include <gpu.cuh>

/* Both `p` and `left` are multiples of the element's size, so together they tell the alignment. */
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

/* A part of a user's buffer that is cut into tiles: a rank's block, or a chunk of the whole. */
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

/* Returns true if the bytes are one or two 4-byte words that are aligned as words. */
RD_DEVICE bool rd_few_words(const char *p, uint32_t left)
{
    return left <= 8 && ((uint32_t)(uintptr_t)p | left) % 4 == 0;
}

RD_DEVICE void rd_part_prefetch(const rd_part_t &part, uint64_t at)
{
    if (at < part.bytes)
        gpu_prefetch(part.base + at);
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

/* Does the same as rd_part_store for a buffer on another GPU. */
RD_DEVICE void rd_part_store_far(const rd_part_t &part, uint64_t at, uint4 v)
{
    char *p = part.base + at;

    if (at < part.bytes && part.bytes - at >= 16 && (uintptr_t)p % 16 == 0)
        far_store(p, v);
    else
        rd_part_store(part, at, v);
}

#endif
