/* Float16 on CPUs that convert it: this is done on the way from and to memory, since taking a vector apart would cost
 * as much as converting it. Included by reduce_avx2.c and reduce_avx512.c, which name the instructions: F16_WIDEN of
 * half a vector and F16_NARROW of a whole one. */
typedef float floats_t __attribute__((vector_size(RD_W)));
typedef long long halves_t __attribute__((vector_size(RD_W / 2), aligned(1), may_alias));

RD_INLINE floats_t f16_load_half(const char *p)
{
    floats_t f = (floats_t)F16_WIDEN(*(const halves_t *)p);

    __asm__("" : "+v"(f)); /* keeps clang 14 from moving a comparison before it, one element at a time */
    return f;
}

RD_INLINE void f16_store_half(char *p, floats_t f)
{
    *(halves_t *)p = F16_NARROW(f);
}
