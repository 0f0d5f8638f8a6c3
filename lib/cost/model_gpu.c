/* The cost model of operations between GPUs: see model_gpu.h. */
#include "cost/model_gpu.h"

/* Prices of kernels whose windows lie in pinned host memory. They are computed from a link of 40 GB/s and 1.5 us for
 * one load from host memory; none of them has been measured. */
static const rd_gpu_price_t prices_window_host[RD_KERNEL_COPY][RD_GPU_PROTOS] = {
    [RD_KERNEL_ONESHOT] = {{6, 0, 20e3, 5}, {0}, {6.5, 0, 40e3, 5}},
    [RD_KERNEL_TWOSHOT] = {{0}, {0}, {11, 0, 40e3, 5}},
    [RD_KERNEL_RING] = {{7, 4, 20e3, 5}, {0}, {7, 4, 40e3, 5}, {12, 12, 20e3, 0}},
    [RD_KERNEL_CHAIN] = {{3, 4, 20e3, 0}, {0}, {0}, {12, 12, 15e3, 0}},
    [RD_KERNEL_PROGRAM] = {{4, 5, 20e3, 0}},
    [RD_KERNEL_MESSAGES] = {{7, 0, 20e3, 0}, {0}, {0}, {12, 0, 20e3, 0}},
};
_Static_assert(RD_PROTO_SENTINEL == 2 && RD_GPU_PROTOS == 4, "each row has a price for each protocol, in their order");

/* The price of two barriers and of copies one after the other, measured with a broadcast on two H200. With traffic in
 * both directions at once the links carry 290 GB/s. */
static const rd_gpu_price_t price_copy = {21, 0, 388e3, 3};

/* What staging adds is reckoned, not measured: a further meeting from the two of price_copy, a copy within a GPU from
 * the rate of an H200's memory, which is read and written. */
#define STAGING_MEETING 8.0 /* us */
#define STAGING_RATE 1.5e6  /* bytes per us */

rd_gpu_price_t rd_cost_gpu_price(const rd_cost_gpus_t *gpus, const rd_algo_t *algo, rd_proto_t proto)
{
    const rd_prices_t *prices = gpus->prices ? gpus->prices : rd_prices_builtin(0);
    rd_gpu_price_t p;

    if (algo->device.kernel == RD_KERNEL_COPY)
        p = price_copy;
    else if (gpus->host_windows)
        p = prices_window_host[algo->device.kernel][proto];
    else
        p = prices->gpu[rd_algo_number(algo)][proto];
    if (gpus->gbps > 0 && !gpus->host_windows)
        p.rate *= gpus->gbps / prices->links;
    return p;
}

/* Returns the time of steps that follow one another (`latency`) while bytes flow (`flow`): the longer of the two times,
 * and up to 19 % more the closer the two are to each other. With these 19 % the formula agrees within 4 % with rings of
 * eight H200 from 512 KB to 16 MB. */
static double beside(double latency, double flow)
{
    double longer = latency > flow ? latency : flow, part = longer > 0 ? (latency + flow - longer) / longer : 0;

    return longer * (1 + 0.19 * part * part * part);
}

/* Returns the bytes of the whole operation, in which counts of work are expressed. */
static double whole(rd_coll_t coll, int n, uint64_t bytes)
{
    return coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST ? (double)bytes : (double)bytes * n;
}

double rd_cost_gpu_us(const rd_cost_gpus_t *gpus, rd_coll_t coll, const rd_algo_t *algo, rd_proto_t proto,
                      uint64_t bytes, uint32_t passes, double part)
{
    const rd_count_t count = rd_count(coll, gpus->nranks, 1, gpus->nranks, algo->device.param);
    const rd_gpu_price_t p = rd_cost_gpu_price(gpus, algo, proto);
    rd_kernel_t kernel = algo->device.kernel;
    rd_work_t work = {.hops = 0};
    double latency, flow, pass = p.pass;

    (void)rd_algo_work(algo, &count, &work);
    latency = work.hops * p.hop;
    flow = work.link * whole(coll, gpus->nranks, bytes) / (p.rate * part);
    if (kernel == RD_KERNEL_CHAIN || kernel == RD_KERNEL_PROGRAM) {
        double warps = (passes - 1) * pass; /* with few fifos, their warps are the bottleneck, not the link */
        return p.alpha + latency + (warps > flow ? warps : flow);
    }
    /* The parts of the second of two passes have arrived by then: for ranks that share an H200 the pass cost 0.6 us,
     * where it had cost 1.9 us (two ranks) and 3.7 us (four ranks). */
    if (kernel == RD_KERNEL_TWOSHOT && coll == RD_ALLREDUCE && passes == 2)
        pass /= 3;
    return p.alpha + beside(latency, flow) + (passes - 1) * pass;
}

double rd_cost_staging_us(uint32_t nranks, bool each, uint64_t bytes, uint32_t turns)
{
    const double blocks = each ? nranks - 1 : 1, copies = blocks * turns + (nranks - 1.0) * (turns - 1.0);

    /* All but the first turn is put while others are taken. */
    return (turns - 1.0) * STAGING_MEETING + copies * price_copy.pass + blocks * (double)bytes / turns / STAGING_RATE;
}
