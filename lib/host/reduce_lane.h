/* The loops for one element type and one instruction set. No include guard: reduce_isa.h includes this file once for
 * every lane, after defining
 *
 *   LANE(name)    the lane's prefix put before a name
 *   ACC, ELEM     the C type that is computed with, the one that lies in memory
 *   WIDEN, NARROW from a vector of ELEM to one of ACC and back (nothing, where they are the same)
 *   LANE_NAN      the bits of the quiet NaN that MIN and MAX yield; 0 for integers
 *
 * and for the instruction set RD_W (bytes of a vector), RD_PART, load_part, store_part. GCC's vector extension, and not
 * loops left to the vectoriser, because dst may be one of the sources, because it needs no -O3, and because one then
 * sees what is computed. A select is written (a & m) | (b & ~m), which both compilers turn into a blend or a min.
 *
 * Integers are unsigned except for MIN and MAX, so that nothing overflows. `op` is a constant wherever these are
 * called, so each switch is gone after inlining. */

typedef ACC LANE(v) __attribute__((vector_size(RD_W)));
typedef ELEM LANE(h) __attribute__((vector_size(RD_W / sizeof(ACC) * sizeof(ELEM))));
typedef __typeof__((LANE(v)){0} < (LANE(v)){0}) LANE(m); /* all ones where true */

RD_INLINE LANE(v) LANE(pick)(LANE(m) m, LANE(v) a, LANE(v) b)
{
    return (LANE(v))(((LANE(m))a & m) | ((LANE(m))b & ~m));
}

/* Called with one vector twice it finds the NaNs; written out, compilers warn of a comparison with itself. */
RD_INLINE LANE(m) LANE(differ)(LANE(v) a, LANE(v) b)
{
    return a != b;
}

/* MIN and MAX: NaN where either is one. */
RD_INLINE LANE(v) LANE(quiet)(LANE(v) a, LANE(v) b, LANE(v) result)
{
    LANE(m) nan = LANE(differ)(a, a) | LANE(differ)(b, b);
    return (LANE(v))(((LANE(m))result & ~nan) | (nan & LANE_NAN));
}

RD_INLINE LANE(v) LANE(apply)(int op, LANE(v) a, LANE(v) b)
{
    LANE(m) x = (LANE(m))a, y = (LANE(m))b;

    switch (op) {
    case RONDO_SUM:
        return a + b;
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
        return LANE(quiet)(a, b, LANE(pick)(a < b, a, b));
    case RONDO_MAX:
        return LANE(quiet)(a, b, LANE(pick)(a > b, a, b));
    case RONDO_BAND:
        return (LANE(v))(x & y);
    case RONDO_BOR:
        return (LANE(v))(x | y);
    case RONDO_BXOR:
        return (LANE(v))(x ^ y);
    case RONDO_LAND:
        return (LANE(v))(((x != 0) & (y != 0)) & 1);
    case RONDO_LOR:
        return (LANE(v))(((x | y) != 0) & 1);
    default: /* RONDO_LXOR */
        return (LANE(v))(((x != 0) ^ (y != 0)) & 1);
    }
}

RD_INLINE LANE(v) LANE(load)(const char *p)
{
    LANE(h) h;
    __builtin_memcpy(&h, p, sizeof h);
    return WIDEN(h);
}

RD_INLINE void LANE(store)(char *p, LANE(v) v)
{
    LANE(h) h = NARROW(v);
    __builtin_memcpy(p, &h, sizeof h);
}

RD_INLINE LANE(v) LANE(load_one)(const char *p)
{
    ELEM x;
    __builtin_memcpy(&x, p, sizeof x);
    LANE(h) h = {x};
    return WIDEN(h);
}

RD_INLINE void LANE(store_one)(char *p, LANE(v) v)
{
    LANE(h) h = NARROW(v);
    ELEM x = h[0];
    __builtin_memcpy(p, &x, sizeof x);
}

/* Less than a vector: in one piece where the instruction set has masks, else one by one. A few elements go one by one
 * in any case: a masked access waits for stores to the same line that a plain one would take from the store buffer. */
RD_INLINE void LANE(tail)(char *d, const void *const *src, int n, size_t at, size_t bytes, int op)
{
    if (RD_PART && bytes - at > 2 * sizeof(ELEM)) {
        size_t part = bytes - at;
        LANE(h) h;
        load_part(&h, sizeof h, (const char *)src[0] + at, part);
        LANE(v) v = WIDEN(h);
        for (int k = 1; k < n; k++) {
            load_part(&h, sizeof h, (const char *)src[k] + at, part);
            v = LANE(apply)(op, v, WIDEN(h));
        }
        h = NARROW(v);
        store_part(d + at, &h, sizeof h, part);
        return;
    }
    for (; at < bytes; at += sizeof(ELEM)) {
        LANE(v) v = LANE(load_one)((const char *)src[0] + at);
        for (int k = 1; k < n; k++)
            v = LANE(apply)(op, v, LANE(load_one)((const char *)src[k] + at));
        LANE(store_one)(d + at, v);
    }
}

/* Any number of sources, four vectors at a time. */
RD_INLINE void LANE(any)(void *dst, const void *const *src, int n, size_t count, int op)
{
    const size_t step = sizeof(LANE(h));
    size_t bytes = count * sizeof(ELEM), at = 0;
    char *d = dst;

    for (; bytes - at >= 4 * step; at += 4 * step) {
        const char *s = (const char *)src[0] + at;
        LANE(v) a = LANE(load)(s), b = LANE(load)(s + step);
        LANE(v) c = LANE(load)(s + 2 * step), e = LANE(load)(s + 3 * step);
        for (int k = 1; k < n; k++) {
            s = (const char *)src[k] + at;
            a = LANE(apply)(op, a, LANE(load)(s));
            b = LANE(apply)(op, b, LANE(load)(s + step));
            c = LANE(apply)(op, c, LANE(load)(s + 2 * step));
            e = LANE(apply)(op, e, LANE(load)(s + 3 * step));
        }
        LANE(store)(d + at, a);
        LANE(store)(d + at + step, b);
        LANE(store)(d + at + 2 * step, c);
        LANE(store)(d + at + 3 * step, e);
    }
    for (; bytes - at >= step; at += step) {
        LANE(v) a = LANE(load)((const char *)src[0] + at);
        for (int k = 1; k < n; k++)
            a = LANE(apply)(op, a, LANE(load)((const char *)src[k] + at));
        LANE(store)(d + at, a);
    }
    LANE(tail)(d, src, n, at, bytes, op);
}

/* A number of sources known to the compiler: 2, 3, 4 or 8. All are loaded before the first is used. */
RD_INLINE void LANE(fixed)(char *d, const void *const *src, const int n, size_t bytes, int op)
{
    const size_t step = sizeof(LANE(h));
    const char *s0 = src[0], *s1 = src[1], *s2 = src[n > 2 ? 2 : 0], *s3 = src[n > 3 ? 3 : 0];
    const char *s4 = src[n > 4 ? 4 : 0], *s5 = src[n > 4 ? 5 : 0], *s6 = src[n > 4 ? 6 : 0], *s7 = src[n > 4 ? 7 : 0];
    size_t at = 0;

    for (; bytes - at >= step; at += step) {
        LANE(v) a = LANE(load)(s0 + at), b = LANE(load)(s1 + at);
        LANE(v) c = n > 2 ? LANE(load)(s2 + at) : b, e = n > 3 ? LANE(load)(s3 + at) : b;
        LANE(v) f = n > 4 ? LANE(load)(s4 + at) : b, g = n > 4 ? LANE(load)(s5 + at) : b;
        LANE(v) h = n > 4 ? LANE(load)(s6 + at) : b, i = n > 4 ? LANE(load)(s7 + at) : b;
        a = LANE(apply)(op, a, b);
        a = n > 2 ? LANE(apply)(op, a, c) : a;
        a = n > 3 ? LANE(apply)(op, a, e) : a;
        a = n > 4 ? LANE(apply)(op, a, f) : a;
        a = n > 4 ? LANE(apply)(op, a, g) : a;
        a = n > 4 ? LANE(apply)(op, a, h) : a;
        a = n > 4 ? LANE(apply)(op, a, i) : a;
        LANE(store)(d + at, a);
    }
    LANE(tail)(d, src, n, at, bytes, op);
}

/* For what has to be fast. */
RD_INLINE void LANE(fast)(void *dst, const void *const *src, int n, size_t count, int op)
{
    size_t bytes = count * sizeof(ELEM);

    if (n == 2)
        LANE(fixed)(dst, src, 2, bytes, op);
    else if (n == 3)
        LANE(fixed)(dst, src, 3, bytes, op);
    else if (n == 4)
        LANE(fixed)(dst, src, 4, bytes, op);
    else if (n == 8)
        LANE(fixed)(dst, src, 8, bytes, op);
    else
        LANE(any)(dst, src, n, count, op);
}

static inline void LANE(times)(void *dst, const void *src, size_t count, const void *arg)
{
    const size_t step = sizeof(LANE(h));
    size_t bytes = count * sizeof(ELEM), at = 0;
    char *d = dst;
    const char *s = src;
    ACC factor;

    __builtin_memcpy(&factor, arg, sizeof factor);
    for (; bytes - at >= step; at += step)
        LANE(store)(d + at, LANE(load)(s + at) * factor);
    for (; at < bytes; at += sizeof(ELEM))
        LANE(store_one)(d + at, LANE(load_one)(s + at) * factor);
}

#undef LANE
#undef ACC
#undef ELEM
#undef WIDEN
#undef NARROW
#undef LANE_NAN
