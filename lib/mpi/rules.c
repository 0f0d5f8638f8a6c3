/* The switches, RONDO_MPI_*. Their meaning for a communicator is agreed when it is set up (setup.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/interpose.h"

#define AFTER 8 /* calls on a communicator before rondo's is made: see doc/mpi.md */

rd_mpi_settings_t rd_mpi_settings;
#define ALL_NAMES(before, after)                                                                                       \
    before "barrier" after, before "bcast" after, before "reduce" after, before "allreduce" after,                     \
        before "reduce_scatter_block" after, before "reduce_scatter" after, before "scan" after,                       \
        before "exscan" after, before "gather" after, before "gatherv" after, before "scatter" after,                  \
        before "scatterv" after, before "allgather" after, before "allgatherv" after, before "alltoall" after,         \
        before "alltoallv" after
const char *const rd_mpi_names[RD_MPI_KINDS] = {ALL_NAMES("", ""), ALL_NAMES("i", ""), ALL_NAMES("", "_init")};

static void refuse(const char *what, const char *text)
{
    fprintf(stderr,
            "rondo: RONDO_MPI_SERVE: '%s' is not %s: it is not looked at. Write off, all, or a list as "
            "allreduce,bcast=0-64K,-alltoall\n",
            text, what);
}

/* Digits alone, without a sign or a blank. Returns what is behind them; NULL: there are none, or too many. */
static const char *digits(const char *text, uint64_t most, uint64_t *value)
{
    char *after;

    if (*text < '0' || *text > '9')
        return NULL;
    errno = 0;
    *value = strtoull(text, &after, 10);
    return errno || *value > most ? NULL : after;
}

/* "64K" */
static bool bytes_of(const char *text, const char *end, uint64_t *bytes)
{
    uint64_t value;
    const char *after = digits(text, UINT64_MAX, &value);
    int shift = 0;

    switch (after && after < end ? *after : 0) {
    case 'K':
    case 'k':
        shift = 10;
        break;
    case 'M':
    case 'm':
        shift = 20;
        break;
    case 'G':
    case 'g':
        shift = 30;
        break;
    }
    if (!after || after + (shift > 0) != end || value > UINT64_MAX >> shift)
        return false;
    *bytes = value << shift;
    return true;
}

static int find(const char *text, size_t length)
{
    for (int kind = 0; kind < RD_MPI_KINDS; kind++) {
        if (strlen(rd_mpi_names[kind]) == length && memcmp(rd_mpi_names[kind], text, length) == 0)
            return kind;
    }
    return -1;
}

static void all(rd_mpi_rules_t *rules, bool served)
{
    for (int kind = 0; kind < RD_MPI_KINDS; kind++) {
        rules->least[kind] = served ? 0 : 1;
        rules->most[kind] = served ? UINT64_MAX : 0;
    }
}

/* One word of the list: NAME, -NAME, NAME=LEAST-MOST, NAME=-MOST, NAME=LEAST-. */
static void word(rd_mpi_rules_t *rules, const char *text, const char *end)
{
    bool without = *text == '-';
    const char *name = text + without, *equals = memchr(name, '=', (size_t)(end - name));
    int kind = find(name, (size_t)((equals ? equals : end) - name));
    uint64_t least = 0, most = UINT64_MAX;
    char shown[64];

    snprintf(shown, sizeof shown, "%.*s", (int)(end - text), text);
    if (kind < 0) {
        refuse("an operation", shown);
        return;
    }
    if (equals) {
        const char *dash = memchr(equals, '-', (size_t)(end - equals));
        if (!dash || (dash > equals + 1 && !bytes_of(equals + 1, dash, &least)) ||
            (dash + 1 < end && !bytes_of(dash + 1, end, &most))) {
            refuse("a range of bytes", shown);
            return;
        }
    }
    rules->least[kind] = without ? 1 : least;
    rules->most[kind] = without ? 0 : most;
}

/* A list that begins with a name serves those that it names, one that begins with -NAME all others. */
static void serve(rd_mpi_settings_t *s, const char *text)
{
    all(&s->rules, true);
    if (!text || !*text || strcmp(text, "all") == 0)
        return;
    if (strcmp(text, "off") == 0 || strcmp(text, "0") == 0) {
        s->off = true;
        return;
    }
    all(&s->rules, *text == '-' || strncmp(text, "all,", 4) == 0);
    if (strncmp(text, "all,", 4) == 0)
        text += 4;
    while (*text) {
        const char *end = text + strcspn(text, ",");
        if (end > text)
            word(&s->rules, text, end);
        text = *end ? end + 1 : end;
    }
}

static int64_t number(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    const char *end;
    uint64_t value;

    if (!text || !*text)
        return otherwise;
    end = digits(text, INT64_MAX, &value);
    if (!end || *end) {
        fprintf(stderr, "rondo: %s=%s is not a number: %lld is taken\n", name, text, (long long)otherwise);
        return otherwise;
    }
    return (int64_t)value;
}

void rd_mpi_settings_read(void)
{
    rd_mpi_settings_t *s = &rd_mpi_settings;

    serve(s, getenv("RONDO_MPI_SERVE"));
    s->after = number("RONDO_MPI_AFTER", AFTER);
    s->rules.compare = number("RONDO_MPI_COMPARE", 0);
    s->rules.reproducible = number("RONDO_MPI_REPRODUCIBLE", 0);
    s->table = getenv("RONDO_MPI_TABLE");
    if (s->table && (!*s->table || strcmp(s->table, "off") == 0)) {
        s->rules.choose = *s->table ? RD_MPI_CHOOSE_NONE : RD_MPI_CHOOSE_MOVES;
        s->table = NULL;
    } else {
        s->rules.choose = s->table ? RD_MPI_CHOOSE_ALL : RD_MPI_CHOOSE_MOVES;
    }
    s->log = number("RONDO_MPI_LOG", 0) != 0;
    s->report = number("RONDO_MPI_REPORT", 0) != 0 || s->rules.compare != 0;
}
