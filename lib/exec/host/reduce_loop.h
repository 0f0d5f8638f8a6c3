/* The loops for one element type and one instruction set. No include guard: reduce_isa.h includes this file once for
 * every lane, after defining
 *
 *   LANE(name)  the lane's prefix put before a name
 *   ELEM, ACC   the C type that lies in memory, the one that is computed with
 *
 * and, by reduce_vec.h or by hand, the types and functions LANE(h) (a vector as it lies in memory), LANE(v) (the same
 * opened up for computing), LANE(widen), LANE(narrow), LANE(load), LANE(store), LANE(apply), LANE(settle);
 * and for the instruction set RD_PART, load_part, store_part. */

RD_INLINE LANE(v) LANE(load_one)(const char *p)
{
    ELEM x;
    __builtin_memcpy(&x, p, sizeof x);
    LANE(h) h = {x};
    return LANE(widen)(h);
}

RD_INLINE void LANE(store_one)(char *p, LANE(v) v)
{
    LANE(h) h = LANE(narrow)(v);
    ELEM x = h[0];
    __builtin_memcpy(p, &x, sizeof x);
}

/* Reduces less than a vector: in one piece if the instruction set has masks, else element by element. A few elements go
 * one by one in any case: a masked access waits for stores to the same line that a plain one would take from the store
 * buffer. */
RD_INLINE void LANE(tail)(char *d, const void *const *src, int n, size_t at, size_t bytes, int op)
{
    if (RD_PART && bytes - at > 4 * sizeof(ELEM)) {
        size_t part = bytes - at;
        LANE(h) h;
        load_part(&h, sizeof h, (const char *)src[0] + at, part);
        LANE(v) v = LANE(widen)(h);
        for (int k = 1; k < n; k++) {
            load_part(&h, sizeof h, (const char *)src[k] + at, part);
            v = LANE(apply)(op, v, LANE(widen)(h));
        }
        h = LANE(narrow)(LANE(settle)(op, v));
        store_part(d + at, &h, sizeof h, part);
        return;
    }
    for (; at < bytes; at += sizeof(ELEM)) {
        LANE(v) v = LANE(load_one)((const char *)src[0] + at);
        for (int k = 1; k < n; k++)
            v = LANE(apply)(op, v, LANE(load_one)((const char *)src[k] + at));
        LANE(store_one)(d + at, LANE(settle)(op, v));
    }
}

/* Returns the bytes to be reduced separately so that the stores that follow lie on a vector's boundary, if that is
 * worth it: user buffers from malloc are 16 bytes off, and one that is reduced in place then has no split access at
 * all. */
RD_INLINE size_t LANE(head)(const void *dst, size_t bytes)
{
    size_t over = (size_t)(uintptr_t)dst % RD_W;
    return bytes < 2048 || over == 0 || over % sizeof(ELEM) != 0 ? 0 : RD_W - over;
}

/* Reduces any number of sources, four vectors at a time. */
RD_INLINE void LANE(any)(void *dst, const void *const *src, int n, size_t count, int op)
{
    const size_t step = sizeof(LANE(h));
    size_t bytes = count * sizeof(ELEM), at = LANE(head)(dst, bytes);
    char *d = dst;

    if (at)
        LANE(tail)(d, src, n, 0, at, op);
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
        LANE(store)(d + at, LANE(settle)(op, a));
        LANE(store)(d + at + step, LANE(settle)(op, b));
        LANE(store)(d + at + 2 * step, LANE(settle)(op, c));
        LANE(store)(d + at + 3 * step, LANE(settle)(op, e));
    }
    for (; bytes - at >= step; at += step) {
        LANE(v) a = LANE(load)((const char *)src[0] + at);
        for (int k = 1; k < n; k++)
            a = LANE(apply)(op, a, LANE(load)((const char *)src[k] + at));
        LANE(store)(d + at, LANE(settle)(op, a));
    }
    LANE(tail)(d, src, n, at, bytes, op);
}

/* For reductions that have to be fast: two sources, the commonest number, are known to the compiler. Doing the same for
 * 3, 4 and 8 was measured and gave nothing: the sums of four vectors are in registers in any case. */
RD_INLINE void LANE(fast)(void *dst, const void *const *src, int n, size_t count, int op)
{
    if (n == 2)
        LANE(any)(dst, src, 2, count, op);
    else
        LANE(any)(dst, src, n, count, op);
}

#undef LANE
#undef ACC
#undef ELEM
