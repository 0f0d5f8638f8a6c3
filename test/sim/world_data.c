/* What the contributions of ranks are. */
#include <string.h>

#include "sim/world_int.h"
#include "util/narrow.h"

/* A value and its place: few values, so that there are ties. Returns its bytes. */
static size_t draw_pair(world_t *w, rondo_type_t type, unsigned char *p)
{
    switch (type) {
    case RONDO_FLOAT32_INT32:
    case RONDO_FLOAT32_FLOAT32: {
        float f[2] = {(float)world_draw(w, 4), (float)world_draw(w, 100)};
        int32_t i = (int32_t)f[1];
        memcpy(p, f, 8);
        if (type == RONDO_FLOAT32_INT32)
            memcpy(p + 4, &i, 4);
        return 8;
    }
    case RONDO_FLOAT64_INT32:
    case RONDO_FLOAT64_FLOAT64: {
        double d[2] = {(double)world_draw(w, 4), (double)world_draw(w, 100)};
        int32_t i = (int32_t)d[1];
        memcpy(p, d, type == RONDO_FLOAT64_INT32 ? 8 : 16);
        if (type == RONDO_FLOAT64_INT32)
            memcpy(p + 8, &i, 4);
        return 16;
    }
    case RONDO_INT32_INT32: {
        int32_t i[2] = {(int32_t)world_draw(w, 4) - 2, (int32_t)world_draw(w, 100)};
        memcpy(p, i, 8);
        return 8;
    }
    default: {
        int64_t v = (int64_t)world_draw(w, 4) - 2;
        int32_t i = (int32_t)world_draw(w, 100);
        memcpy(p, &v, 8);
        memcpy(p + 8, &i, 4);
        return 16;
    }
    }
}

void world_fill(world_t *w, rondo_type_t type, void *to, size_t bytes)
{
    unsigned char *p = to;

    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)world_draw(w, 256);
    for (size_t at = 0; at + 1 <= bytes;) {
        uint64_t x = 0;
        switch (type) {
        case RONDO_FLOAT16:
            memcpy(&x, p + at, 2);
            x = (x & 0x87ff) | 0x3800;
            memcpy(p + at, &x, 2);
            at += 2;
            break;
        case RONDO_BFLOAT16:
            memcpy(&x, p + at, 2);
            x = (x & 0x80ff) | 0x3f00;
            memcpy(p + at, &x, 2);
            at += 2;
            break;
        case RONDO_FLOAT8_E4M3:
            p[at] = (unsigned char)((p[at] & 0x8f) | 0x30);
            at++;
            break;
        case RONDO_FLOAT8_E5M2:
            p[at] = (unsigned char)((p[at] & 0x87) | 0x38);
            at++;
            break;
        case RONDO_FLOAT32:
        case RONDO_COMPLEX64:
            memcpy(&x, p + at, 4);
            x = (x & 0x80ffffff) | 0x3f000000;
            memcpy(p + at, &x, 4);
            at += 4;
            break;
        case RONDO_FLOAT64:
        case RONDO_COMPLEX128:
            memcpy(&x, p + at, 8);
            x = (x & 0x801fffffffffffff) | 0x3fe0000000000000;
            memcpy(p + at, &x, 8);
            at += 8;
            break;
        case RONDO_FLOAT32_INT32:
        case RONDO_FLOAT32_FLOAT32:
        case RONDO_FLOAT64_INT32:
        case RONDO_FLOAT64_FLOAT64:
        case RONDO_INT32_INT32:
        case RONDO_INT64_INT32:
            at += draw_pair(w, type, p + at);
            break;
        case RONDO_BOOL:
            p[at] &= 1;
            at++;
            break;
        default:
            return;
        }
    }
}

void world_fill_hard(world_t *w, rondo_type_t type, void *to, size_t bytes)
{
    const narrow_t *f = narrow_of(type);
    const unsigned number[5] = {f->largest, f->largest - 1, 1, 3, 1u << f->mantissa};
    size_t size = rondo_type_size(type);

    for (size_t at = 0; at + size <= bytes; at += size) {
        unsigned bits = number[world_draw(w, 5)];
        bits |= world_draw(w, 4) ? 0 : 1u << (f->exponent + f->mantissa);
        memcpy((char *)to + at, &bits, size);
    }
}
