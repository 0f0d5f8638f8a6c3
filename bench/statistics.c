/* Medians and quartiles. A shared machine makes outliers on one side only, so nothing here averages over turns. */
#include <stdlib.h>
#include <string.h>

#include "perf.h"

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* Between neighbours by proportion: the median of an even number is the mean of the middle two. */
static double at_fraction(const double *sorted, int n, double fraction)
{
    double place = fraction * (n - 1);
    int below = (int)place;

    if (below >= n - 1)
        return sorted[n - 1];
    return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

double percentile(double *values, int n, double fraction)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return at_fraction(values, n, fraction);
}

void stats_of(stats_t *stats, const double *values, int n)
{
    double *sorted = malloc((size_t)n * sizeof *sorted);

    if (!sorted)
        die(NULL, "no memory for %d times", n);
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    *stats = (stats_t){.median = at_fraction(sorted, n, 0.5),
                       .low = at_fraction(sorted, n, 0.25),
                       .high = at_fraction(sorted, n, 0.75),
                       .min = sorted[0],
                       .max = sorted[n - 1]};
    free(sorted);
}

double sum_of_ranks(double mine)
{
    double all[world.nranks], sum = 0;

    world.gather(&mine, 1, all);
    for (int r = 0; r < world.nranks; r++)
        sum += all[r];
    return sum;
}

double most_of_ranks(double mine)
{
    double all[world.nranks], most;

    world.gather(&mine, 1, all);
    most = all[0];
    for (int r = 1; r < world.nranks; r++)
        most = all[r] > most ? all[r] : most;
    return most;
}
