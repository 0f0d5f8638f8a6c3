/* See model_gpu.h. */
#include "cost/model_gpu.h"

/* Through pinned host memory. Reckoned from a link of 40 GB/s and 1.5 us to look at host memory once; nothing of it has
 * been measured. */
static const rd_gpu_price_t prices_window_host[RD_KERNEL_COPY][RD_GPU_PROTOS] = {
    [RD_KERNEL_ONESHOT] = {{6, 0, 20e3, 5}, {0}, {6.5, 0, 40e3, 5}},
    [RD_KERNEL_TWOSHOT] = {{0}, {0}, {11, 0, 40e3, 5}},
    [RD_KERNEL_RING] = {{7, 4, 20e3, 5}, {0}, {7, 4, 40e3, 5}, {12, 12, 20e3, 0}},
    [RD_KERNEL_CHAIN] = {{3, 4, 20e3, 0}, {0}, {0}, {12, 12, 15e3, 0}},
    [RD_KERNEL_PROGRAM] = {{4, 5, 20e3, 0}},
    [RD_KERNEL_MESSAGES] = {{7, 0, 20e3, 0}, {0}, {0}, {12, 0, 20e3, 0}},
};
_Static_assert(RD_PROTO_SENTINEL == 2 && RD_GPU_PROTOS == 4, "each row has a price for each protocol, in their order");

/* Two barriers, and copies one behind the other: a broadcast on two H200. Both ways at once the links carry 290 GB/s.
 */
static const rd_gpu_price_t price_copy = {21, 0, 388e3, 3};

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

/* Of steps that follow one another and bytes that flow meanwhile: the longer of the two, and a little more where they
 * are nearly alike. So bare rings of eight H200 measure, with 19 % and within 4 %, from 512 KB to 16 MB. */
static double beside(double way, double flow)
{
    double longer = way > flow ? way : flow, part = longer > 0 ? (way + flow - longer) / longer : 0;

    return longer * (1 + 0.19 * part * part * part);
}

/* Of the whole operation, as counts of work are multiples of it. */
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
    double way, flow, pass = p.pass;

    (void)rd_algo_work(algo, &count, &work);
    way = work.hops * p.hop;
    flow = work.link * whole(coll, gpus->nranks, bytes) / (p.rate * part);
    if (kernel == RD_KERNEL_CHAIN || kernel == RD_KERNEL_PROGRAM) {
        double warps = (passes - 1) * pass; /* few fifos: their warps are what takes the time, not the link */
        return p.alpha + way + (warps > flow ? warps : flow);
    }
    /* The parts of the second of two passes are there already: by ranks that share an H200 it cost 0.6 us where it had
     * cost 1.9 (two ranks) and 3.7 (four). */
    if (kernel == RD_KERNEL_TWOSHOT && coll == RD_ALLREDUCE && passes == 2)
        pass /= 3;
    return p.alpha + beside(way, flow) + (passes - 1) * pass;
}
