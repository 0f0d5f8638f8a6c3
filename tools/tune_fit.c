/* Fitting prices to times: one price after the other is made larger or smaller by a factor, and what helps is kept; the
 * factors shrink from round to round. The model is no linear function of its prices (the busiest rank or the shared
 * cores, whichever takes longer), and this wants nothing of it but its values.
 *
 * What helps is, first, that of all that was measured for one operation and size the cheapest is chosen, or one that is
 * not much dearer, and then that the predictions are near. Both count by their logarithm, so that 8 bytes weigh as much
 * as 8 MB, and not by its square, so that a time that was disturbed does not draw the others with it. A slight penalty
 * keeps each price where it was unless the times speak.
 */
#include "tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE 3 /* weight of a choice that is dearer than the best, against a prediction that is as far off */
#define PENALTY                                                                                                        \
    0.002 /* for each factor of e from where a price was, in units of one time's error, times their number */

/* Prices that no time on shared memory depends on, or that are not prices. */
static bool is_fixed(const char *name)
{
    static const char *const beginnings[] = {"net.", "cuda.", "peer"};

    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return strcmp(name, "wire") == 0;
}

/* Times of one operation and size stand together. */
int tune_by_question(const void *x, const void *y)
{
    const tune_time_t *a = x, *b = y;

    if (a->env.nranks != b->env.nranks)
        return a->env.nranks - b->env.nranks;
    if (a->coll != b->coll)
        return (int)a->coll - (int)b->coll;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

double tune_predict(const rd_prices_t *prices, const tune_time_t *t)
{
    rd_cost_env_t env = t->env;

    env.prices = prices;
    return rd_cost_us(&env, t->coll, t->algo, 0, t->proto, t->bytes, t->slice);
}

int tune_answer(tune_answer_t *a, const rd_prices_t *prices, const tune_time_t *times, int first, int count)
{
    int end = first;

    *a = (tune_answer_t){0};
    for (; end < count && tune_by_question(&times[first], &times[end]) == 0; end++) {
        const tune_time_t *t = &times[end];
        const double us = tune_predict(prices, t);

        a->error += fabs(log(us / t->us));
        if (!a->best || t->us < a->best->us)
            a->best = t;
        if (!a->chosen || us < a->predicted) {
            a->chosen = t;
            a->predicted = us;
        }
    }
    return end;
}

tune_miss_t tune_miss(const rd_prices_t *prices, const tune_time_t *times, int count)
{
    tune_miss_t miss = {0, 0};
    tune_answer_t a;
    int asked = 0;

    for (int first = 0; first < count; asked++) {
        first = tune_answer(&a, prices, times, first, count);
        miss.time += a.error;
        miss.choice += log(a.chosen->us / a.best->us);
    }
    miss.time = count ? exp(miss.time / count) : 1;
    miss.choice = asked ? exp(miss.choice / asked) : 1;
    return miss;
}

static double penalty(const rd_prices_t *now, const rd_prices_t *before)
{
    rd_prices_t a = *now, b = *before;
    double all = 0, *x, *y;
    char name[RD_PRICE_NAME];

    for (int i = 0; (x = rd_prices_at(&a, i, name)) && (y = rd_prices_at(&b, i, name)); i++)
        if (*x > 0 && *y > 0)
            all += fabs(log(*x / *y));
    return all * PENALTY;
}

typedef struct fit {
    rd_prices_t *prices;
    rd_prices_t before; /* where they were */
    const tune_time_t *times;
    int count;
    double best; /* the least badness so far */
} fit_t;

static double badness(const fit_t *fit)
{
    tune_miss_t miss = tune_miss(fit->prices, fit->times, fit->count);

    return log(miss.time) + CHOICE * log(miss.choice) + penalty(fit->prices, &fit->before);
}

/* Tries one price by one factor, up and down. Returns true if one of both is better, which it then keeps. */
static bool improve(fit_t *fit, double *price, double factor)
{
    const double was = *price;
    bool better = false;

    for (int k = -1; k <= 1; k += 2) {
        const double now = *price;

        *price = was * pow(factor, k);
        const double bad = badness(fit);
        if (bad < fit->best - 1e-9) {
            fit->best = bad;
            better = true;
        } else {
            *price = now;
        }
    }
    return better;
}

/* Tries all prices by one factor. */
static bool improve_all(fit_t *fit, double factor)
{
    char name[RD_PRICE_NAME];
    bool better = false;
    double *price;

    for (int i = 0; (price = rd_prices_at(fit->prices, i, name)); i++)
        if (!is_fixed(name))
            better |= improve(fit, price, factor);
    return better;
}

void tune_fit(rd_prices_t *prices, tune_time_t *times, int count)
{
    fit_t fit = {.prices = prices, .before = *prices, .times = times, .count = count};

    qsort(times, (size_t)count, sizeof *times, tune_by_question);
    fit.best = badness(&fit);
    for (double factor = 2; factor > 1.01; factor = sqrt(factor))
        for (int round = 0; round < 20 && improve_all(&fit, factor); round++)
            continue;
}
