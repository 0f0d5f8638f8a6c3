/* The narrow floating types by their definition: a number is decoded from its bits, and encoded by looking for the
 * nearest one, ties to even. Slow, and written another way than lib/base/narrow.h.
 *
 * And a table of hard values: inputs whose sum, product or average is near the limits of the type, with what every rank
 * must get. */
#ifndef TEST_NARROW_H
#define TEST_NARROW_H

#include <rondo.h>

typedef struct narrow {
    int exponent, mantissa; /* bits */
    unsigned largest;       /* magnitude's bits of the largest finite number */
    unsigned infinity, nan; /* of what becomes of them */
    int saturates;          /* a finite number that is too large becomes the largest */
} narrow_t;

const narrow_t *narrow_of(rondo_type_t type); /* NULL: it is none */
double narrow_decode(const narrow_t *f, unsigned bits);
unsigned narrow_encode(const narrow_t *f, double x);

/* What is done: a built-in op, or PREMULSUM by one of two kinds of scalars. */
typedef enum {
    HARD_SUM,
    HARD_PROD,
    HARD_MIN,
    HARD_MAX,
    HARD_AVG,
    HARD_PREMUL_MEAN,
    HARD_PREMUL_OWN,
    HARD_OPS
} hard_op_t;

#define HARD_COLUMNS 48

const char *hard_name(hard_op_t op);
unsigned hard_value(const narrow_t *f, int column, int rank, int nranks);    /* bits of a rank's contribution */
unsigned hard_scalar(const narrow_t *f, hard_op_t op, int rank, int nranks); /* bits; for the two PREMULSUMs */
/* Returns 1 if `got` is right: scaled sums are rounded once from float32; MIN and MAX are exact; the partial results of
 * SUM and PROD may be rounded in the type, and where they may overflow on the way nothing is asked. */
int hard_right(const narrow_t *f, hard_op_t op, int column, int nranks, unsigned got);
void hard_text(char *text, size_t size, const narrow_t *f, hard_op_t op, int column, int nranks, unsigned got);

#endif
