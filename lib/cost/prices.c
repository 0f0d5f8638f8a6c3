/* The built-in tables of prices, and the choice of the one for this processor. See prices.h. */
#include "cost/prices.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define KIB 1024.0
#define MANY_CORES 8 /* from here on a machine's cores have a mesh between them */
#define GIGA(bytes_per_second) (1e6 / ((bytes_per_second)*1e9)) /* GB/s to microseconds a byte */

/* Measured by kernels alone on 8 H200 behind an NVSwitch (18 NVLinks each), and by forcing every kernel on 2 and on 4
 * of them, with sums of float32 that were launched from a graph. Chain and messages by ll were not measured. The prices
 * of programs are computed from those of the chain, which uses the same fifos, and are set high, so that no kernel is
 * chosen that has not been measured. Each row has the prices for ll, ll128, sentinel and simple. */
static const rd_gpu_price_t h200[RD_NUM_KERNELS][RD_GPU_PROTOS] = {
    [RD_KERNEL_ONESHOT] = {{2.1, 0, 149e3, 3}, {2.6, 0, 270e3, 3}, {2.05, 0, 290e3, 3}, {2.4, 0, 290e3, 3}},
    [RD_KERNEL_TWOSHOT] = {{3.5, 0, 165e3, 3}, {3.95, 0, 310e3, 3}, {3.5, 0, 336e3, 3}, {3.5, 0, 336e3, 3}},
    [RD_KERNEL_RING] = {{3.2, 0.82, 180e3, 1.5}, {3.2, 0.82, 335e3, 2.5}, {3.2, 0.82, 355e3, 1.5}, {13, 1.2, 322e3, 0}},
    [RD_KERNEL_CHAIN] = {{0.4, 0.9, 180e3, 0.7}, {0.4, 0.9, 326e3, 0.7}, {0.4, 0.9, 326e3, 0}, {2.3, 0.4, 335e3, 0}},
    [RD_KERNEL_PROGRAM] = {{3, 2, 130e3, 0}, {3, 2, 250e3, 0}, {3, 2, 250e3, 0}, {3, 2, 250e3, 0}},
    [RD_KERNEL_MESSAGES] = {{2.9, 0, 120e3, 0}, {4.0, 0, 280e3, 0}, {2.9, 0, 230e3, 0}, {10.2, 0, 330e3, 0}},
};
_Static_assert(RD_PROTO_SENTINEL == 2 && RD_GPU_PROTOS == 4, "each row has a price for each protocol, in their order");

/* The prices of boards were fitted for xeon-many alone. Those of the others are set so high that up to four ranks on
 * two cores go on as they did: there a board spares few stores. */
static struct {
    const char *name;
    rd_prices_t prices; /* `gpu` is filled in at the first use */
} builtin[] = {
    /* Fitted to 386 times of rondo-perf (7 operations, every algorithm and protocol, 2 and 4 ranks, 8 B to 64 MB, sums
     * of float32) on two cores of a 2 GHz Xeon with 2 MB of second-level cache; the network was UCX over tcp on the
     * loopback device. The prices of short messages (`call`, those of LL, and alpha and message of Simple) were fitted
     * again, to the times of 2 ranks from 8 B to 1 KB, after senders had begun to claim lines ahead. */
    {"xeon",
     {.of = {[RD_PRICE_SHM] = {[RD_PROTO_LL] = {0.113, 0.0143, GIGA(2.5), GIGA(9.8), GIGA(3.6), GIGA(10)},
                               [RD_PROTO_SIMPLE] = {0.14, 0.12, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_CMA] = {0.22, 0.99, 0, GIGA(60), GIGA(11), GIGA(41)},
                               [RD_PROTO_BOARD_LL] = {0.14, 0.08, GIGA(2.5), GIGA(9.8), GIGA(3.6), GIGA(10)},
                               [RD_PROTO_BOARD] = {0.3, 0.6, GIGA(23), GIGA(12), GIGA(30), GIGA(500)}},
             [RD_PRICE_NET] = {[RD_PROTO_LL] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_SIMPLE] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_CMA] = {5, 4.6, 0, GIGA(60), GIGA(9.2), GIGA(41)},
                               [RD_PROTO_BOARD_LL] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_BOARD] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)}}},
      .call = 0.075,
      .turn = 0.76,
      .overlap = 0.046,
      .far = GIGA(16),
      .near = 1536 * KIB,
      .wire = GIGA(1.2),
      .peer = 10, /* not measured; it makes algorithms with thousands of connections the last resort */
      .peers = 64,
      .links = 450,
      .nt_store = RD_NT_STORE_NEVER}},
    /* Fitted by rondo-tune --rounds 2 (456 times, 2 and 4 ranks, 8 B to 8 MB) on two cores of a Zen 4 EPYC under a
     * hypervisor, which shared a third-level cache of 32 MB most of the time. The prices of CMA's bytes are slightly
     * higher than fitted, because its long messages were no faster than slots. Prices between nodes were not measured
     * here. */
    {"zen",
     {.of = {[RD_PRICE_SHM] = {[RD_PROTO_LL] = {0.081, 0.0061, GIGA(10.5), GIGA(27), GIGA(9.3), GIGA(4.7)},
                               [RD_PROTO_SIMPLE] = {0.27, 0.056, GIGA(24), GIGA(37), GIGA(42), GIGA(500)},
                               [RD_PROTO_CMA] = {0.30, 0.92, 0, GIGA(63), GIGA(9.5), GIGA(41)},
                               [RD_PROTO_BOARD_LL] = {0.11, 0.08, GIGA(8), GIGA(20), GIGA(9.3), GIGA(4.7)},
                               [RD_PROTO_BOARD] = {0.4, 0.6, GIGA(24), GIGA(9), GIGA(20), GIGA(500)}},
             [RD_PRICE_NET] = {[RD_PROTO_LL] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_SIMPLE] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_CMA] = {5, 4.6, 0, GIGA(60), GIGA(9.2), GIGA(41)},
                               [RD_PROTO_BOARD_LL] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_BOARD] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)}}},
      .call = 0.054,
      .turn = 1.32,
      .overlap = 0.023,
      .far = GIGA(32),
      .near = 1730 * KIB,
      .wire = GIGA(1.2),
      .peer = 10,
      .peers = 64,
      .links = 450,
      .nt_store = RD_NT_STORE_ADAPT}},
    /* Fitted by rondo-tune --read on a 32-core Xeon of one NUMA node, where lines go from core to core through the
     * mesh: slots and boards to 1,149 times (11 operations, every algorithm and protocol forced, 8, 16 and 32 ranks
     * with a core each, 8 B to 8 MB); lines, boards of lines and CMA again, to the mean of those and of 1,774 times of
     * 2, 8, 16 and 32 ranks. What that second fit gave for slots made messages of 16 KB slower, and its `overlap` took
     * rings for short reductions, which are quick only in a sequence of them: both are as before. Of
     * test/cost/xeon-32.times predictions are off by a factor of 1.32 in the mean, where two machines of this kind
     * differ by 1.35, and choices slower than the best by 1.04. The network's prices are the xeon's. */
    {"xeon-many",
     {.of = {[RD_PRICE_SHM] =
                 {[RD_PROTO_LL] = {0.178, 0.0318, GIGA(4.21), GIGA(8.25), GIGA(17.4), GIGA(13.6), GIGA(10)},
                  [RD_PROTO_SIMPLE] = {0.432, 0.115, GIGA(5.75), GIGA(49.6), GIGA(74.6), GIGA(369), GIGA(12)},
                  [RD_PROTO_CMA] = {0.208, 0.738, 0, GIGA(185), GIGA(7.38), GIGA(41)},
                  [RD_PROTO_BOARD_LL] = {0.136, 0.0313, GIGA(3.4), GIGA(15.8), GIGA(21.9), GIGA(12.3), GIGA(1.41)},
                  [RD_PROTO_BOARD] = {0.6, 0.072, GIGA(11.4), GIGA(14), GIGA(45), GIGA(369), GIGA(24)}},
             [RD_PRICE_NET] = {[RD_PROTO_LL] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_SIMPLE] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_CMA] = {5, 4.6, 0, GIGA(60), GIGA(9.2), GIGA(41)},
                               [RD_PROTO_BOARD_LL] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)},
                               [RD_PROTO_BOARD] = {5, 4.6, GIGA(23), GIGA(18.6), GIGA(46), GIGA(500)}}},
      .call = 0.019,
      .turn = 0.76,
      .overlap = 0.065,
      .contact = 0.02,
      .far = GIGA(86.5),
      .near = 389 * 1e3,
      .memory = GIGA(150),
      .llc = 19.8e6,
      .wire = GIGA(1.2),
      .peer = 10,
      .peers = 64,
      .links = 450,
      .nt_store = RD_NT_STORE_NEVER}},
};
#define BUILTIN (int)(sizeof builtin / sizeof builtin[0])

/* Gives every algorithm the prices of its kernel. */
static void fill(void)
{
    for (int i = 0; i < BUILTIN; i++)
        for (int a = 0; rd_algos[a]; a++)
            memcpy(builtin[i].prices.gpu[a], h200[rd_algos[a]->device.kernel], sizeof h200[0]);
}

const rd_prices_t *rd_prices_builtin(int number)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, fill);
    return number < 0 || number >= BUILTIN ? NULL : &builtin[number].prices;
}

const char *rd_prices_name(int number)
{
    return builtin[number].name;
}

enum { XEON, ZEN, XEON_MANY }; /* the order in `builtin` */

#if defined(__x86_64__)
static void get_maker(char maker[13])
{
    unsigned most, b, c, d;

    memset(maker, 0, 13);
    if (!__get_cpuid(0, &most, &b, &c, &d))
        return;
    memcpy(maker, &b, 4);
    memcpy(maker + 4, &d, 4);
    memcpy(maker + 8, &c, 4);
}

int rd_prices_here(void)
{
    char maker[13];

    get_maker(maker);
    if (strcmp(maker, "AuthenticAMD") == 0 || strcmp(maker, "HygonGenuine") == 0)
        return ZEN;
    return sysconf(_SC_NPROCESSORS_ONLN) >= MANY_CORES ? XEON_MANY : XEON;
}

bool rd_prices_fit_here(void)
{
    char maker[13];

    get_maker(maker);
    return rd_prices_here() == ZEN || strcmp(maker, "GenuineIntel") == 0;
}
#else
int rd_prices_here(void)
{
    return XEON;
}

bool rd_prices_fit_here(void)
{
    return false;
}
#endif

rondo_result_t rd_prices_find(rd_prices_t *prices, int *number, const char *tune, rd_log_ctx_t *ctx)
{
    int n = rd_prices_here();

    for (int i = 0; *tune && i < BUILTIN; i++)
        if (strcmp(tune, builtin[i].name) == 0) {
            *prices = *rd_prices_builtin(i);
            *number = i;
            return RONDO_SUCCESS;
        }
    *prices = *rd_prices_builtin(n);
    *number = *tune ? -1 : n;
    return *tune ? rd_prices_read(prices, tune, ctx) : RONDO_SUCCESS;
}
