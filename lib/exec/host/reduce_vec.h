/* A vector of one element type and what the operators do to it. No include guard: reduce_isa.h includes this file once
 * for every type that is computed with, after defining
 *
 *   VEC(name)  the type's prefix put before a name
 *   TYPE       the C type of an element
 *   PLUS, PRODUCT (a, b)    a + b and a * b; of two NaNs it is a, wherever it is used
 *   LEAST, GREATEST (a, b)  a < b ? a : b and a > b ? a : b; if either is NaN, any NaN
 *   SETTLE(a)  puts the NaN that MIN and MAX promise in the place of any
 *
 * GCC's vector extension, and not loops left to the vectoriser, because the result may overwrite a source, because it
 * needs no -O3, and because one then sees what is computed. Integers are unsigned except for MIN and MAX, so that
 * nothing overflows. `op` is a constant wherever these are called: each switch is gone after inlining, where the
 * compiler optimises. */

typedef TYPE VEC(v) __attribute__((vector_size(RD_W)));
typedef VEC(v) VEC(h);                                /* as it lies in memory */
typedef __typeof__((VEC(v)){0} < (VEC(v)){0}) VEC(m); /* all ones where true */

/* Both compilers recognise this as a blend or a minimum. */
RD_INLINE VEC(v) VEC(pick)(VEC(m) m, VEC(v) a, VEC(v) b)
{
    return (VEC(v))(((VEC(m))a & m) | ((VEC(m))b & ~m));
}

RD_INLINE VEC(v) VEC(apply)(int op, VEC(v) a, VEC(v) b)
{
    VEC(m) x = (VEC(m))a, y = (VEC(m))b;

    switch (op) {
    case RONDO_SUM:
        return PLUS(a, b);
    case RONDO_PROD:
        return PRODUCT(a, b);
    case RONDO_MIN:
        return (VEC(v))LEAST(a, b);
    case RONDO_MAX:
        return (VEC(v))GREATEST(a, b);
    case RONDO_BAND:
        return (VEC(v))(x & y);
    case RONDO_BOR:
        return (VEC(v))(x | y);
    case RONDO_BXOR:
        return (VEC(v))(x ^ y);
    case RONDO_LAND:
        return (VEC(v))(((x != 0) & (y != 0)) & 1);
    case RONDO_LOR:
        return (VEC(v))(((x | y) != 0) & 1);
    default: /* RONDO_LXOR */
        return (VEC(v))(((x != 0) ^ (y != 0)) & 1);
    }
}

RD_INLINE VEC(v) VEC(settle)(int op, VEC(v) a)
{
    return op == RONDO_MIN || op == RONDO_MAX ? (VEC(v))SETTLE(a) : a;
}

RD_INLINE VEC(v) VEC(widen)(VEC(h) h)
{
    return h;
}

RD_INLINE VEC(h) VEC(narrow)(VEC(v) v)
{
    return v;
}

RD_INLINE VEC(v) VEC(load)(const char *p)
{
    VEC(v) v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

RD_INLINE void VEC(store)(char *p, VEC(v) v)
{
    __builtin_memcpy(p, &v, sizeof v);
}

#undef VEC
#undef TYPE
#undef PLUS
#undef PRODUCT
#undef LEAST
#undef GREATEST
#undef SETTLE
