/* Prices: what hops, messages and bytes take on a machine, in microseconds. The cost model (model.h) multiplies counts
 * by them, and so the choices follow them.
 *
 * A few tables are built in, each measured on a processor that its comment names; a communicator takes the one for its
 * processor. A file of rondo-tune, which RONDO_TUNE names, stands in their place. Either way all ranks must use the
 * same numbers, or they would choose differently and wait for each other: they compare them when the communicator is
 * made.
 */
#ifndef RD_COST_PRICES_H
#define RD_COST_PRICES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/slot_store.h"
#include "base/proto.h"
#include "sched/algo.h"

typedef enum { RD_PRICE_SHM, RD_PRICE_NET, RD_NUM_PRICES } rd_price_transport_t;

/* Microseconds. Per byte: one core copies a byte, reading and writing it. */
typedef struct rd_price {
    double alpha;   /* from the last store of a message to the first use by a receiver that waits for it */
    double message; /* one end of one message: flag, credit, the step's own path */
    double start;   /* per byte of the first 4 KiB of each message received: fetched before the prefetchers run */
    double beta;    /* per byte moved, in the caches */
    double cross;   /* per byte received: from another core's cache; CMA: from another rank's memory */
    double gamma;   /* per byte added to a sum */
} rd_price_t;

/* Between GPUs, of an algorithm by a protocol. */
typedef struct rd_gpu_price {
    double alpha; /* us, the shortest */
    double hop;   /* us for each step from rank to rank that follows the one before */
    double rate;  /* bytes a us that leave a GPU */
    double pass;  /* us for each pass but the first */
} rd_gpu_price_t;

typedef struct rd_prices {
    rd_price_t of[RD_NUM_PRICES][RD_NUM_PROTOS];
    double call;    /* one call of an operation, plan at hand */
    double turn;    /* ranks outnumber cores: one rank gives up its core and another goes on */
    double overlap; /* the part of a hop, and of a start, that is left in a sequence of rooted operations */
    double far;     /* per byte moved or received beyond `near`, added: memory instead of caches */
    double near;    /* bytes of an operation */
    double wire;    /* per byte that leaves a node */
    double peer;    /* a connection beyond the first `peers`: memory, descriptor, and making it, spread over uses */
    double peers;
    rd_gpu_price_t gpu[RD_ALGOS_MOST][RD_GPU_PROTOS]; /* by rd_algo_number; of those that have a kernel */
    double links;           /* no price: GB/s each way, by the data sheet, between the GPUs where `gpu` was measured */
    rd_nt_store_t nt_store; /* no price: how slots are written here */
} rd_prices_t;

const rd_prices_t *rd_prices_builtin(int number); /* NULL: there are not so many; 0 always is */
const char *rd_prices_name(int number);
int rd_prices_here(void); /* the number of this processor's */

/* What RONDO_TUNE names: a built-in table or a file. *number: the built-in one's, or -1. With "" the table is this
 * processor's. */
rondo_result_t rd_prices_find(rd_prices_t *prices, int *number, const char *tune, rd_log_ctx_t *ctx);

/* The file is text, a name and a number to a line, `#` before a comment; names that are missing keep what `prices` has.
 * prices_file.c has the names. */
rondo_result_t rd_prices_read(rd_prices_t *prices, const char *file, rd_log_ctx_t *ctx);
void rd_prices_write(const rd_prices_t *prices, FILE *file);
uint64_t rd_prices_hash(const rd_prices_t *prices); /* never 0 */

/* The number at `i` in the order of the file, or NULL behind the last; its name into `name`, RD_PRICE_NAME bytes. */
#define RD_PRICE_NAME 64
double *rd_prices_at(rd_prices_t *prices, int i, char *name);

#endif
