/* Memory that others see late and in another order: all that processors and compilers may do with stores that nothing
 * orders. Included by the models.
 *
 * A store is held back first; `memory` makes the held ones seen, one at a time, in any order. A second store by the
 * same writer into the same place may replace the first one while that is held. `released(w)`: all that writer w has
 * stored is seen; a release store, a fence, a barrier and the end of a kernel wait for it before they do anything else.
 * Loads are in the order of the program; one that goes too early, for want of an acquire, is written down as such.
 *
 * The model says before the include:
 *   STORES     how many pairs of a place and a writer there are, at most 32
 *   PLACE(s)   the place of pair s
 *   OWN(w)     a mask of the pairs of writer w
 * and fills seen[] at its beginning if 0 is not what memory holds at rest. */
#ifndef PLACES
#define PLACES STORES
#endif

byte seen[PLACES];
byte held[STORES];
int holding; /* a bit for each pair: it holds a store back */

#define released(w) ((holding & (OWN(w))) == 0)

/* Within a d_step; several stores there are seen in any order all the same. */
inline hold(s, value)
{
    held[s] = value;
    holding = holding | 1 << (s)
}

inline store(s, value)
{
    d_step {
        hold(s, value)
    }
}

#define SEEN(s)                                                                                                        \
    ::d_step {                                                                                                         \
        holding & 1 << (s)->seen[PLACE(s)] = held[s];                                                                  \
        held[s] = 0;                                                                                                   \
        holding = holding & ~(1 << (s));                                                                               \
    }

active proctype memory()
{
end:
    do
    SEEN(0)
#if STORES > 1
    SEEN(1)
#endif
#if STORES > 2
    SEEN(2)
#endif
#if STORES > 3
    SEEN(3)
#endif
#if STORES > 4
    SEEN(4)
#endif
#if STORES > 5
    SEEN(5)
#endif
#if STORES > 6
    SEEN(6)
#endif
#if STORES > 7
    SEEN(7)
#endif
#if STORES > 8
    SEEN(8)
#endif
#if STORES > 9
    SEEN(9)
#endif
#if STORES > 10
    SEEN(10)
#endif
#if STORES > 11
    SEEN(11)
#endif
#if STORES > 12
    SEEN(12)
#endif
#if STORES > 13
    SEEN(13)
#endif
#if STORES > 14
    SEEN(14)
#endif
#if STORES > 15
    SEEN(15)
#endif
#if STORES > 16
    SEEN(16)
#endif
#if STORES > 17
    SEEN(17)
#endif
#if STORES > 18
    SEEN(18)
#endif
#if STORES > 19
    SEEN(19)
#endif
#if STORES > 20
    SEEN(20)
#endif
#if STORES > 21
    SEEN(21)
#endif
#if STORES > 22
    SEEN(22)
#endif
#if STORES > 23
    SEEN(23)
#endif
#if STORES > 24
    SEEN(24)
#endif
#if STORES > 25
    SEEN(25)
#endif
#if STORES > 26
    SEEN(26)
#endif
#if STORES > 27
    SEEN(27)
#endif
#if STORES > 28
    SEEN(28)
#endif
#if STORES > 29
    SEEN(29)
#endif
#if STORES > 30
    SEEN(30)
#endif
#if STORES > 31
    SEEN(31)
#endif
    od
}
