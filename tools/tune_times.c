/* Files of times: what was measured on a machine, so that prices can be fitted to it, or compared with it, elsewhere
 * and later. Text; `#` begins a comment, and a line is
 *
 *     ranks operation algorithm protocol bytes message us predicted
 *
 * where `bytes` is the whole operation's, `message` the most bytes of a message, and what follows `us` is not read. The
 * first line says on how many cores: "# cores 32". Without it each rank had one of its own. */
#include <stdlib.h>

#include "tune.h"

#define NAME 16

int tune_times_write(const char *file, const tune_time_t *times, int count, const rd_prices_t *prices)
{
    FILE *f = fopen(file, "w");

    if (!f)
        return -1;
    fprintf(f, "# cores %d\n# ranks operation algorithm protocol bytes message us predicted\n",
            count ? times[0].env.cores : 0);
    for (int i = 0; i < count; i++) {
        const tune_time_t *time = &times[i];

        fprintf(f, "%d %s %s %s %zu %zu %.3f %.3f\n", time->env.nranks, rd_coll_name(time->coll), time->algo,
                rd_proto_name(time->proto), time->bytes, time->slice, time->us, tune_predict(prices, time));
    }
    return fclose(f);
}

/* Reads one line. Returns false if it is none, or if this version has no such algorithm. */
static bool time_read(const char *line, int cores, tune_time_t *t)
{
    char coll[NAME], proto[NAME];
    rd_work_t work;
    int nranks;

    *t = (tune_time_t){0};
    if (sscanf(line, "%d %15s %15s %15s %zu %zu %lf", &nranks, coll, t->algo, proto, &t->bytes, &t->slice, &t->us) !=
            7 ||
        nranks < 2 || !t->slice || !(t->us > 0) || rd_coll_parse(coll, &t->coll) != 0 ||
        rd_proto_parse(proto, &t->proto) != 0)
        return false;
    t->env = (rd_cost_env_t){nranks, 1, nranks, cores ? cores : nranks, nranks, NULL, 0};
    return rd_cost_work(&t->env, t->coll, t->algo, 0, &work) == 0;
}

int tune_times_read(const char *file, tune_time_t *times, int most)
{
    FILE *f = fopen(file, "r");
    int count = 0, cores = 0, number = 0;
    char line[512];

    if (!f) {
        fprintf(stderr, "rondo-tune: cannot read %s\n", file);
        return -1;
    }
    while (fgets(line, sizeof line, f) && count < most) {
        number++;
        if (sscanf(line, "# cores %d", &cores) == 1 || *line == '#' || *line == '\n')
            continue;
        if (time_read(line, cores, &times[count]))
            count++;
        else
            fprintf(stderr, "rondo-tune: %s:%d is no time of an operation, an algorithm and a protocol known here: %s",
                    file, number, line);
    }
    fclose(f);
    if (!count)
        fprintf(stderr, "rondo-tune: %s has no times: rondo-tune --times FILE writes them\n", file);
    return count;
}
