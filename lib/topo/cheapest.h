/* The cheapest ring, and the cheapest tree, among a few ends, where the way from each to each other one has a price.
 * All are compared, by sets of ends: what a ring has paid when it has visited a set and stands at one of it does not
 * depend on the order in which it went, so sets are walked over and not orders (Bellman, Held and Karp). The steps
 * double with each end.
 */
#ifndef RD_TOPO_CHEAPEST_H
#define RD_TOPO_CHEAPEST_H

#include <stdbool.h>

#define RD_CHEAPEST_ENDS 14 /* the most that there may be */

/* Room for the sets. */
typedef struct rd_cheapest {
    double *paid;           /* of each set and end: the least */
    signed char *from, *by; /* the end before; in a tree the one that was joined last, and the one above it */
} rd_cheapest_t;

/* Returns false if there is no memory. The caller frees the room by rd_cheapest_free in either case. */
bool rd_cheapest_make(rd_cheapest_t *room, int ends);
void rd_cheapest_free(rd_cheapest_t *room);
/* Returns about how many steps a search among `ends` ends takes. */
long rd_cheapest_steps(int ends);

/* price[a * ends + b]: of the way from `a` to `b`; INFINITY: there is none. Both return what it costs, INFINITY if
 * there is none, and are the same for the same prices: of equal ones the first is taken. */

/* The ring that visits all ends, order[0] = 0 first. Of two ends or more. */
double rd_cheapest_ring(rd_cheapest_t *room, const double *price, int ends, int *order);
/* The tree by which data goes from one end, `root` or, if that is -1, whichever is best, to all others: order[0] is the
 * root, and each further one gets the data from above[i], an end that stands before it in the order. */
double rd_cheapest_tree(rd_cheapest_t *room, const double *price, int ends, int root, int *order, int *above);

#endif
