#include "util/runs.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_kind(test_runs_t *r, const char *name)
{
    for (int kind = TEST_PROCESSES; kind <= TEST_THREADS; kind++)
        if (strcmp(name, test_kind_name((test_kind_t)kind)) == 0) {
            r->kinds = 1u << kind;
            return true;
        }
    return false;
}

bool test_runs_option(test_runs_t *r, int option)
{
    switch (option) {
    case 's':
        r->seed = strtoull(optarg, NULL, 0);
        return true;
    case 'n':
        r->ranks = atoi(optarg);
        return r->ranks > 0;
    case 'k':
        return read_kind(r, optarg);
    case 'd':
        r->ranks = r->nodes ? r->nodes(optarg) : 0;
        r->kinds = 1u << TEST_PROCESSES;
        return r->ranks > 0;
    default:
        return false;
    }
}

bool test_runs_has(const test_runs_t *r, int nranks, test_kind_t kind)
{
    return (r->ranks == 0 || r->ranks == nranks) && r->kinds >> kind & 1;
}

int test_runs_run(const test_runs_t *r, int nranks, test_kind_t kind, int seconds, test_body_fn body, void *arg)
{
    int64_t began = test_clock_us();
    int bad = test_run(kind, nranks, seconds, body, arg);

    printf("%s: %d %s, seed %llu: %s, %.1f s\n", r->name, nranks, test_kind_name(kind), (unsigned long long)r->seed,
           bad ? "WRONG" : "right", (double)(test_clock_us() - began) * 1e-6);
    return bad;
}
