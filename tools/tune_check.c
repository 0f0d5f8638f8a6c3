/* rondo-tune --check: how far the prices are from this machine. For each number of ranks, operation and size: what
 * would be chosen, what that took and was predicted to take, and what was quickest. */
#include <math.h>
#include <stdlib.h>

#include "tune.h"

/* What is asked of a model: the mean error, that of any choice, and how much slower than the best a choice may be. */
#define MEAN 1.2
#define MOST 2.0
#define SLOWER 1.15

typedef struct tally {
    double error, slower; /* sums of logarithms */
    int questions, far, slow;
} tally_t;

static void print(const tune_answer_t *q, double off, double slower, FILE *out)
{
    fprintf(out, "%5d %-15s %9zu  %-9s %-7s %10.2f %10.2f", q->chosen->env.nranks, rd_coll_name(q->chosen->coll),
            q->chosen->bytes, q->chosen->algo, rd_proto_name(q->chosen->proto), q->chosen->us, q->predicted);
    if (slower > SLOWER)
        fprintf(out, "  %.2f x %s %s", slower, q->best->algo, rd_proto_name(q->best->proto));
    if (off > MOST)
        fprintf(out, "  off by %.1f", off);
    fputc('\n', out);
}

static void count_in(tally_t *all, double off, double slower)
{
    all->questions++;
    all->error += log(off);
    all->slower += log(slower);
    all->far += off > MOST;
    all->slow += slower > SLOWER;
}

bool tune_check(const rd_prices_t *prices, tune_time_t *times, int count, FILE *out)
{
    tally_t all = {0};

    qsort(times, (size_t)count, sizeof *times, tune_by_question);
    fprintf(out, "ranks operation           bytes  chosen                 us  predicted\n");
    for (int first = 0; first < count;) {
        tune_answer_t q;

        first = tune_answer(&q, prices, times, first, count);
        const double ratio = q.predicted / q.chosen->us, off = ratio > 1 ? ratio : 1 / ratio;
        const double slower = q.chosen->us / q.best->us;
        print(&q, off, slower, out);
        count_in(&all, off, slower);
    }
    if (!all.questions)
        return false;
    const double mean = exp(all.error / all.questions);
    fprintf(out,
            "%d sizes: predictions off by a factor of %.2f in the mean (at most %.1f is good), %d by more than %.0f; "
            "choices slower than the best by %.2f, %d by more than %.2f\n",
            all.questions, mean, MEAN, all.far, MOST, exp(all.slower / all.questions), all.slow, SLOWER);
    return mean <= MEAN && !all.far && !all.slow;
}
