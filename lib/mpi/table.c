/* The table of RONDO_MPI_TABLE: which of the two was quicker, the MPI or rondo, for each operation, number of bytes and
 * number of ranks. It is a text file, to which rank 0 appends what was measured (measure.c), a line for each:
 *
 *     Open_MPI_v4.1.4 4 allreduce 512 0.91 1.64
 *
 * which are the MPI, ranks, operation, bytes, rondo's microseconds and the MPI's.
 *
 * The lines of the MPI in use for the nearest number of ranks count. An operation goes to the MPI for those classes of
 * bytes, powers of two, for which the nearest measured one was quicker there by more than a tenth. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/interpose.h"

#define LINE 256
#define CLASSES 64

/* "Open_MPI_v4.1.4" */
static void name_of_mpi(char name[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int length = 0;

    PMPI_Get_library_version(name, &length);
    name[strcspn(name, ",\n")] = 0;
    for (char *at = name; *at; at++) {
        if (*at == ' ' || *at == '\t')
            *at = '_';
    }
}

/* 0 for 0 bytes, k for 2^(k-1) to 2^k - 1 */
static int class_of(uint64_t bytes)
{
    return bytes ? 64 - __builtin_clzll(bytes) : 0;
}

static int find(const char *name)
{
    for (int what = 0; what < RD_MPI_NUM; what++) {
        if (strcmp(rd_mpi_names[what], name) == 0)
            return what;
    }
    return -1;
}

/* Reads one line; false: it is none of this MPI's. */
static bool parse(const char *line, const char *mpi, rd_mpi_timing_t *t)
{
    char name[LINE], operation[LINE];
    unsigned long long bytes;

    if (sscanf(line, "%255s %d %255s %llu %lf %lf", name, &t->nranks, operation, &bytes, &t->rondo_us, &t->mpi_us) != 6)
        return false;
    t->what = find(operation);
    t->bytes = bytes;
    return t->what >= 0 && t->nranks > 0 && strcmp(name, mpi) == 0;
}

static bool nearer(int nranks, int a, int b)
{
    double from_a = (double)(a > nranks ? a : nranks) / (a > nranks ? nranks : a);
    double from_b = (double)(b > nranks ? b : nranks) / (b > nranks ? nranks : b);

    return from_a < from_b;
}

/* Returns what the file has for the nearest number of ranks, and how many timings that is. To be freed. */
static rd_mpi_timing_t *load(FILE *file, int nranks, int *num)
{
    char line[LINE], mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    rd_mpi_timing_t t, *all = NULL, *more;

    *num = 0;
    name_of_mpi(mpi);
    while (fgets(line, sizeof line, file)) {
        if (!parse(line, mpi, &t) || (*num && nearer(nranks, all[0].nranks, t.nranks)))
            continue;
        if (*num && t.nranks != all[0].nranks && nearer(nranks, t.nranks, all[0].nranks))
            *num = 0;
        if (*num && t.nranks != all[0].nranks)
            continue; /* as near as the one that was there before */
        more = realloc(all, ((size_t)*num + 1) * sizeof *all);
        if (!more)
            break;
        all = more;
        all[(*num)++] = t;
    }
    return all;
}

/* Has the last timing of the class nearest to `class` the MPI quicker? */
static bool is_mpis(const rd_mpi_timing_t *timings, int num, int what, int class)
{
    int best = 2 * CLASSES;
    bool quicker = false;

    for (int i = 0; i < num; i++) {
        int distance = abs(class_of(timings[i].bytes) - class);
        if (timings[i].what != what || distance > best)
            continue;
        best = distance;
        quicker = timings[i].mpi_us * 1.1 < timings[i].rondo_us;
    }
    return quicker;
}

/* The first run of classes that rondo serves, within what the user allows, is what the short ways look at. */
static void first_range(rd_mpi_rules_t *rules, int what)
{
    uint64_t mpis = rules->mpis[what];
    int first = 0, last;

    while (first < CLASSES && mpis >> first & 1)
        first++;
    last = first;
    while (last < CLASSES && !(mpis >> last & 1))
        last++;
    if (first == CLASSES) {
        rules->least[what] = 1;
        rules->most[what] = 0;
        return;
    }
    if (first && rules->least[what] < UINT64_C(1) << (first - 1))
        rules->least[what] = UINT64_C(1) << (first - 1);
    if (last < CLASSES && rules->most[what] >= UINT64_C(1) << (last - 1))
        rules->most[what] = last ? (UINT64_C(1) << (last - 1)) - 1 : 0;
}

void rd_mpi_table_use(rd_mpi_rules_t *rules, const rd_mpi_timing_t *timings, int num)
{
    for (rd_mpi_what_t what = 0; what < RD_MPI_NUM; what++) {
        if ((rules->reproducible && rd_mpi_reduces(what)) || rules->least[what] > rules->most[what])
            continue;
        rules->widest[what][0] = rules->least[what];
        rules->widest[what][1] = rules->most[what];
        for (int k = 0; k < CLASSES; k++) {
            if (is_mpis(timings, num, what, k))
                rules->mpis[what] |= UINT64_C(1) << k;
        }
        first_range(rules, what);
    }
}

static bool is_widest(const rd_mpi_rules_t *rules, int kind, uint64_t bytes)
{
    return bytes >= rules->widest[kind][0] && bytes <= rules->widest[kind][1];
}

bool rd_mpi_allowed_else(const rd_mpi_rules_t *rules, int kind, uint64_t bytes)
{
    int class = class_of(bytes);

    return class < CLASSES && is_widest(rules, kind, bytes) && !(rules->mpis[kind] >> class & 1);
}

int rd_mpi_not_allowed(const rd_mpi_comm_t *c, const rd_mpi_call_t *call, uint64_t bytes)
{
    int kind = rd_mpi_kind(call);
    bool by_table = kind < RD_MPI_NUM && c->rules->mpis[kind] && is_widest(c->rules, kind, bytes);

    return RD_MPI_HAND_ON(by_table ? RD_MPI_SLOWER : RD_MPI_SIZE);
}

int rd_mpi_table_read(const char *path, int nranks, rd_mpi_rules_t *rules)
{
    FILE *file = fopen(path, "re");
    rd_mpi_timing_t *timings;
    int num, found;

    if (!file) {
        if (errno != ENOENT)
            fprintf(stderr, "rondo: RONDO_MPI_TABLE=%s cannot be read: %s\n", path, strerror(errno));
        return 0;
    }
    timings = load(file, nranks, &num);
    fclose(file);
    found = num ? timings[0].nranks : 0;
    rd_mpi_table_use(rules, timings, num);
    free(timings);
    return found;
}

/* In one write, for other jobs may append to the file, too. */
void rd_mpi_table_write(const char *path, const rd_mpi_timing_t *timings, int num)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING], *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    int fd;

    if (!stream)
        return;
    name_of_mpi(mpi);
    for (int i = 0; i < num; i++)
        fprintf(stream, "%s %d %s %llu %.2f %.2f\n", mpi, timings[i].nranks, rd_mpi_names[timings[i].what],
                (unsigned long long)timings[i].bytes, timings[i].rondo_us, timings[i].mpi_us);
    fclose(stream);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, text, length) != (ssize_t)length)
        fprintf(stderr, "rondo: RONDO_MPI_TABLE=%s cannot be written: %s; this job uses what it has measured\n", path,
                strerror(errno));
    if (fd >= 0)
        close(fd);
    free(text);
}
