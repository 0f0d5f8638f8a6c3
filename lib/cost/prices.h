/* Prices: the time, in microseconds, that hops, messages and bytes take on a machine. The cost model (model.h)
 * multiplies counts by them, so the choices depend on them.
 *
 * A few tables are built in, each measured on a processor that its comment names; a communicator takes the one for its
 * processor. A file written by rondo-tune, which RONDO_TUNE names, replaces it. Either way all ranks must use the same
 * numbers, or they would choose differently and wait for each other: the ranks compare them when the communicator is
 * made.
 */
#ifndef RD_COST_PRICES_H
#define RD_COST_PRICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/slot_store.h"
#include "base/proto.h"
#include "sched/algo.h"

typedef enum { RD_PRICE_SHM, RD_PRICE_NET, RD_NUM_PRICES } rd_price_transport_t;

/* Prices in microseconds. "Per byte moved" means that one core copies a byte, reading and writing it. */
typedef struct rd_price {
    double alpha;   /* from the last store of a message to the first use by a receiver that waits for it */
    double message; /* one end of one message: flag, credit, the step's own path */
    double start;   /* per byte of the first 4 KiB of each message received, fetched before the prefetchers run */
    double beta;    /* per byte moved, in the caches */
    double cross;   /* per byte received: from another core's cache; CMA: from another rank's memory */
    double gamma;   /* per byte added to a sum */
    double store; /* in addition, per byte stored where other cores read it: they have the line until they give it up */
} rd_price_t;

/* The price of an algorithm by a protocol between GPUs. */
typedef struct rd_gpu_price {
    double alpha; /* us of the shortest operation */
    double hop;   /* us for each step from rank to rank that follows the one before */
    double rate;  /* bytes per us that leave a GPU */
    double pass;  /* us for each pass but the first */
} rd_gpu_price_t;

typedef struct rd_prices {
    rd_price_t of[RD_NUM_PRICES][RD_NUM_PROTOS];
    double call;    /* one call of an operation whose plan is in the cache */
    double turn;    /* if ranks outnumber cores: one rank gives up its core and another goes on */
    double overlap; /* the part of a hop, and of a start, that is left in a sequence of rooted operations */
    double contact; /* the first message of a call to or from a peer on the node, in addition */
    double far;     /* in addition, per byte moved or received beyond `near`: memory instead of caches */
    double near;    /* bytes of an operation that the caches hold */
    double memory;  /* per byte moved or received by any rank of the machine beyond `llc`: its memory's rate */
    double llc;     /* bytes that the caches of the whole machine hold */
    double wire;    /* per byte that leaves a node */
    double peer;    /* a connection beyond the first `peers`: memory, descriptor, and making it, spread over uses */
    double peers;
    rd_gpu_price_t gpu[RD_ALGOS_MOST][RD_GPU_PROTOS]; /* by rd_algo_number; of those that have a kernel */
    double links;           /* not a price: data-sheet GB/s, each way, between the GPUs where `gpu` was measured */
    rd_nt_store_t nt_store; /* not a price: how slots are written here */
} rd_prices_t;

const rd_prices_t *rd_prices_builtin(int number); /* returns NULL if there is no such table; 0 always exists */
const char *rd_prices_name(int number);
int rd_prices_here(void); /* returns the number of this processor's table */
/* Returns false if that table was measured on processors of another maker, because there is none for this one. */
bool rd_prices_fit_here(void);

/* Finds the table that RONDO_TUNE names: a built-in one or a file; "" names this processor's. *number is then the
 * number of the built-in table, or -1. */
rondo_result_t rd_prices_find(rd_prices_t *prices, int *number, const char *tune, rd_log_ctx_t *ctx);

/* Read and write a file of prices. It is text, with a name and a number in each line, and `#` begins a comment. Prices
 * that the file does not name keep their value in `prices`. The names are in prices_file.c. */
rondo_result_t rd_prices_read(rd_prices_t *prices, const char *file, rd_log_ctx_t *ctx);
void rd_prices_write(const rd_prices_t *prices, FILE *file);
uint64_t rd_prices_hash(const rd_prices_t *prices); /* never 0 */

/* Returns the number at `i` in the order of the file, or NULL behind the last one, and puts its name into `name`, which
 * has RD_PRICE_NAME bytes. */
#define RD_PRICE_NAME 64
double *rd_prices_at(rd_prices_t *prices, int i, char *name);

#endif
