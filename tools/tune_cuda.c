/* rondo-tune --device cuda: the prices of the kernels between GPUs.
 *
 * rondo-perf measures every kernel and protocol, forced in turn, from a graph. Each has four prices of its own, which
 * are fitted as those of the host are (tune_fit.c): one after the other is made larger or smaller, and what brings the
 * predictions nearer is kept.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune.h"

#define MOST 4096

typedef struct measured {
    rd_cuda_shape_t shape;
    rd_coll_t coll;
    uint64_t bytes;
    double us;
} measured_t;

typedef struct fit {
    const rd_env_t *env;
    rd_prices_t prices;
    measured_t times[MOST];
    int count;
    const rd_algo_t *algo; /* whose prices are fitted, */
    rd_proto_t proto;      /* by this protocol */
} fit_t;

static const rd_coll_t colls[] = {RD_ALLREDUCE, RD_REDUCE, RD_BROADCAST, RD_ALLGATHER, RD_REDUCE_SCATTER, RD_ALLTOALL};
#define COLLS (int)(sizeof colls / sizeof colls[0])

static double off(const fit_t *f)
{
    double all = 0;

    for (int i = 0; i < f->count; i++) {
        const measured_t *m = &f->times[i];
        double us = rd_cuda_expected(&m->shape, &f->prices, f->env, m->coll, m->bytes, f->algo, f->proto);
        all += fabs(log(us / m->us));
    }
    return all;
}

static void fit(fit_t *f)
{
    rd_gpu_price_t *p = &f->prices.gpu[rd_algo_number(f->algo)][f->proto];
    double *price[] = {&p->alpha, &p->rate, &p->hop, &p->pass}, best = off(f);

    for (double factor = 2; factor > 1.002; factor = sqrt(factor))
        for (int round = 0, better = 1; better && round < 20; round++) {
            better = 0;
            for (int i = 0; i < 8; i++) {
                double was = *price[i / 2], now;
                *price[i / 2] = i % 2 ? was * factor : was / factor;
                now = off(f);
                if (now < best - 1e-9) {
                    best = now;
                    better = 1;
                } else {
                    *price[i / 2] = was;
                }
            }
        }
}

/* Times of one operation by one kernel and protocol. rondo-perf stops where they do not serve it. */
static void measure(fit_t *f, const tune_cuda_t *t, const rd_cuda_shape_t *shape, rd_coll_t coll)
{
    char command[5000], line[512];
    FILE *perf;

    if (rd_cuda_expected(shape, &f->prices, f->env, coll, 8192, f->algo, f->proto) == 0)
        return;
    snprintf(command, sizeof command,
             "'%s' %s --device cuda --graph --ranks %d --algo %s --proto %s -b 8 -e %s -f 4 -c 0 -w 5 --turns %d "
             "--turn-ms %d 2>/dev/null",
             t->perf, rd_coll_name(coll), shape->nranks, f->algo->name, rd_proto_name(f->proto),
             t->flat ? "128K" : "128M", t->flat ? 1 : 2 * t->rounds + 1, t->flat ? 1 : 5);
    if (!(perf = popen(command, "r")))
        return;
    while (f->count < MOST && fgets(line, sizeof line, perf)) {
        measured_t *m = &f->times[f->count];
        size_t size, elements;

        if (sscanf(line, " %zu %zu %lf", &size, &elements, &m->us) != 3 || m->us <= 0)
            continue;
        m->shape = *shape;
        m->coll = coll;
        m->bytes = size;
        f->count += rd_cuda_expected(shape, &f->prices, f->env, coll, size, f->algo, f->proto) > 0;
    }
    pclose(perf);
}

static rd_cuda_shape_t shape_of(const rd_gpu_topo_t *topo, int nranks)
{
    rd_cuda_shape_t shape = {nranks, 132, rd_gpu_farthest(topo, nranks < topo->count ? nranks : topo->count)};

    for (int g = 0; g < topo->count && g < nranks; g++) {
        int sms = topo->gpu[g].sms ? topo->gpu[g].sms : rd_cuda_multiprocessors(topo->gpu[g].bus);
        shape.sms = sms && (g == 0 || sms < shape.sms) ? sms : shape.sms;
    }
    return shape;
}

/* The prices of one algorithm by one protocol. The number of times. */
static int tune_one(fit_t *f, const tune_cuda_t *t, const rd_gpu_topo_t *topo)
{
    double before;

    f->count = 0;
    for (int r = 0; r < t->nranks; r++)
        for (int c = 0; c < COLLS; c++) {
            rd_cuda_shape_t shape = shape_of(topo, t->ranks[r]);
            measure(f, t, &shape, colls[c]);
        }
    if (f->count == 0)
        return 0;
    before = off(f);
    fit(f);
    fprintf(stderr, "rondo-tune: %s %s: %d times, predicted within a factor of %.2f, before %.2f\n", f->algo->name,
            rd_proto_name(f->proto), f->count, exp(off(f) / f->count), exp(before / f->count));
    return f->count;
}

int tune_cuda(rd_prices_t *prices, const tune_cuda_t *t, const rd_env_t *env)
{
    fit_t *f = calloc(1, sizeof *f);
    rd_gpu_topo_t topo;
    int all = 0;

    if (!f || rd_gpu_topo_read(&topo, env->topo_file) != RONDO_SUCCESS) {
        free(f);
        return 0;
    }
    f->env = env;
    f->prices = *prices;
    if (topo.count > 1 && shape_of(&topo, t->ranks[t->nranks - 1]).path.gbps > 0)
        f->prices.links = shape_of(&topo, t->ranks[t->nranks - 1]).path.gbps;
    for (int a = 0; rd_algos[a]; a++) {
        f->algo = rd_algos[a];
        if (f->algo->device.kernel == RD_KERNEL_NONE || f->algo->device.kernel == RD_KERNEL_COPY)
            continue;
        for (f->proto = (rd_proto_t)0; f->proto < RD_GPU_PROTOS; f->proto = (rd_proto_t)(f->proto + 1))
            all += tune_one(f, t, &topo);
    }
    *prices = f->prices;
    free(f);
    return all;
}
