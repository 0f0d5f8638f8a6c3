/* Walks over sets of ends: see cheapest.h. A set is a number whose bits are its ends. */
#include "topo/cheapest.h"

#include <math.h>
#include <stdlib.h>

bool rd_cheapest_make(rd_cheapest_t *room, int ends)
{
    const size_t sets = (size_t)1 << ends, each = (size_t)ends;

    room->paid = malloc(sets * each * sizeof *room->paid);
    room->from = malloc(sets * each);
    room->by = malloc(sets);
    return room->paid && room->from && room->by;
}

void rd_cheapest_free(rd_cheapest_t *room)
{
    free(room->paid);
    free(room->from);
    free(room->by);
}

long rd_cheapest_steps(int ends)
{
    return ((long)ends * ends) << (ends - 1);
}

/* ---- rings ---- */

/* Goes on from `last`, at the end of the ways over `set`, to each end that is not in it. */
static void ring_extend(rd_cheapest_t *room, const double *price, int ends, unsigned set, int last)
{
    const double paid = room->paid[set * (unsigned)ends + (unsigned)last];

    for (int to = 1; to < ends && paid < INFINITY; to++) {
        const size_t at = (set | 1u << to) * (unsigned)ends + (unsigned)to;
        if (!(set & 1u << to) && paid + price[last * ends + to] < room->paid[at]) {
            room->paid[at] = paid + price[last * ends + to];
            room->from[at] = (signed char)last;
        }
    }
}

double rd_cheapest_ring(rd_cheapest_t *room, const double *price, int ends, int *order)
{
    const unsigned all = (1u << ends) - 1;
    double best = INFINITY;
    int last = 0;

    for (size_t i = 0; i < ((size_t)all + 1) * (size_t)ends; i++)
        room->paid[i] = INFINITY;
    room->paid[(size_t)ends] = 0; /* end 0 alone */
    for (unsigned set = 1; set < all; set += 2)
        for (int end = 0; end < ends; end++)
            if (set & 1u << end)
                ring_extend(room, price, ends, set, end);
    for (int end = 1; end < ends; end++)
        if (room->paid[all * (unsigned)ends + (unsigned)end] + price[end * ends] < best) {
            best = room->paid[all * (unsigned)ends + (unsigned)end] + price[end * ends];
            last = end;
        }
    if (best == INFINITY)
        return best;
    unsigned set = all;
    for (int i = ends - 1; i >= 0; i--) {
        order[i] = last;
        last = room->from[set * (unsigned)ends + (unsigned)last];
        set &= ~(1u << order[i]);
    }
    return best;
}

/* ---- trees ---- */

/* Joins each end that is not in `set` to the one in it from which the way is cheapest. */
static void tree_extend(rd_cheapest_t *room, const double *price, int ends, unsigned set)
{
    for (int to = 0; to < ends && room->paid[set] < INFINITY; to++) {
        const unsigned with = set | 1u << to;
        int above = -1;

        if (set == with)
            continue;
        for (int end = 0; end < ends; end++)
            if (set & 1u << end && (above < 0 || price[end * ends + to] < price[above * ends + to]))
                above = end;
        const double paid = room->paid[set] + price[above * ends + to];
        if (paid < room->paid[with]) {
            room->paid[with] = paid;
            room->from[with] = (signed char)to;
            room->by[with] = (signed char)above;
        }
    }
}

double rd_cheapest_tree(rd_cheapest_t *room, const double *price, int ends, int root, int *order, int *above)
{
    const unsigned all = (1u << ends) - 1;
    unsigned set;

    for (set = 1; set <= all; set++)
        room->paid[set] = INFINITY;
    for (int end = 0; end < ends; end++)
        if (root < 0 || root == end)
            room->paid[1u << end] = 0;
    for (set = 1; set < all; set++)
        tree_extend(room, price, ends, set);
    if (room->paid[all] == INFINITY)
        return INFINITY;
    set = all;
    for (int i = ends - 1; i > 0; i--) {
        order[i] = room->from[set];
        above[i] = room->by[set];
        set &= ~(1u << order[i]);
    }
    above[0] = -1;
    for (order[0] = 0; !(set & 1u << order[0]);)
        order[0]++;
    return room->paid[all];
}
