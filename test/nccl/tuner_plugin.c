/* A tuner plugin of version VERSION, as others would build it: it includes nothing of rondo's and nothing of NCCL's.
 * What it answers is said by TEST_TUNER, a list "WHAT[@RANK];...": rank RANK alone does so, where it has one. As
 * plugins are not told their rank, the test gives each process its own by TEST_TUNER_RANK.
 *
 *   cell=A,P,US   writes the time into the table; version 2 names the cell
 *   bytes=N       what follows counts for this length alone
 *   row=F,N,M,A,P the cell is the cheapest for function F and N to M bytes, as a line of a table says it to others'
 *   channels=N    the number of channels
 *   error, refuse, beside, undefined
 *                 an error of the choice, or of the beginning; a number behind the table; version 2: an algorithm alone
 *   chunk=N       version 6: the length of slices
 *   print         a line for each question
 *
 * TEST_TUNER_NAME is the plugin's name. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALGOS 7
#define PROTOS 3

typedef void (*log_fn)(int level, unsigned long flags, const char *file, int line, const char *format, ...);

typedef struct answer {
    int error, algo, proto;
} answer_t;

static long number_after(const char *text, const char *word)
{
    size_t n = strlen(word);

    return strncmp(text, word, n) == 0 ? strtol(text + n, NULL, 10) : -1;
}

/* Returns 1 if this process is the one that the word names, or it names none. Cuts that name off. */
static int is_here(char *word)
{
    char *at = strchr(word, '@');
    const char *rank = getenv("TEST_TUNER_RANK");

    if (!at)
        return 1;
    *at = '\0';
    return rank && strcmp(at + 1, rank) == 0;
}

#define EACH(word)                                                                                                     \
    char all_[512], *next_ = all_;                                                                                     \
    snprintf(all_, sizeof all_, "%s", getenv("TEST_TUNER") ? getenv("TEST_TUNER") : "");                               \
    for (char *word; (word = strsep(&next_, ";")) != NULL;)                                                            \
        if (is_here(word))

static int asked(const char *what)
{
    int found = 0;

    EACH(word)
    found |= strcmp(word, what) == 0;
    return found;
}

static void print_table(int func, size_t bytes, const float *table)
{
    char line[512];
    int used = snprintf(line, sizeof line, "asked: version %d, function %d, %zu bytes:", VERSION, func, bytes);

    for (int i = 0; table && i < ALGOS * PROTOS; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, " %.3g", (double)table[i]);
    fprintf(stderr, "%s\n", line);
}

/* The cell that a row names, if it is for such a call. */
static answer_t row_answer(const char *word, int func, size_t bytes, float *table, answer_t a)
{
    int its, algo, proto;
    size_t from, to;

    if (sscanf(word, "row=%d,%zu,%zu,%d,%d", &its, &from, &to, &algo, &proto) != 5 || its != func || bytes < from ||
        bytes > to)
        return a;
    if (table)
        table[algo * PROTOS + proto] = 0;
    a.algo = algo;
    a.proto = proto;
    return a;
}

static answer_t answer(int func, size_t bytes, float *table, int *channels)
{
    answer_t a = {asked("error") ? 3 : 0, -1, -1};
    size_t only = bytes;

    if (asked("print"))
        print_table(func, bytes, table);
    EACH(word)
    {
        char us[32] = "";

        if (number_after(word, "bytes=") >= 0)
            only = (size_t)number_after(word, "bytes=");
        if (only != bytes)
            continue;
        a = row_answer(word, func, bytes, table, a);
        if (strncmp(word, "channels=", 9) == 0)
            *channels = atoi(word + 9);
        if (strcmp(word, "undefined") == 0)
            a.algo = 1;
        if (strcmp(word, "beside") == 0 && table)
            table[ALGOS * PROTOS + 2] = 1;
        if (sscanf(word, "cell=%d,%d,%31s", &a.algo, &a.proto, us) == 3 && table)
            table[a.algo * PROTOS + a.proto] = strtof(us, NULL);
    }
    return a;
}

#if VERSION <= 4
static int start(size_t nranks, size_t nnodes, log_fn log, void **context)
{
    log(3, 0, __FILE__, __LINE__, "the test's tuner for %zu ranks on %zu nodes", nranks, nnodes);
    *context = NULL;
    return asked("refuse") ? 2 : 0;
}
#else
typedef struct {
    int domains, fewest, most;
} domains_t;

static int start(void **context, uint64_t id, size_t nranks, size_t nnodes, log_fn log, domains_t *domains,
                 double *constants)
{
    log(3, 0, __FILE__, __LINE__, "the test's tuner for %zu ranks on %zu nodes, from %d to %d ranks on each", nranks,
        nnodes, domains->fewest, domains->most);
    constants[ALGOS * PROTOS * 4 + 59] = 17; /* the last one */
    *context = (void *)(uintptr_t)(id | 1);
    return asked("refuse") ? 2 : 0;
}
#endif

#if VERSION == 2
static int choose(void *context, int func, size_t bytes, int collnet, int nvls, int pipelined, int *algo, int *proto,
                  int *channels)
{
    answer_t a = answer(func, bytes, NULL, channels);

    (void)context;
    if (collnet || nvls || pipelined != 1)
        return 3;
    *algo = a.algo;
    *proto = a.proto;
    return a.error;
}
#elif VERSION == 3
static int choose(void *context, int func, size_t bytes, int pipelined, float **table, int nalgos, int nprotos,
                  int *channels)
{
    (void)context;
    if (nalgos != ALGOS || nprotos != PROTOS || pipelined != 1)
        return 3;
    return answer(func, bytes, (float *)table, channels).error;
}
#else
static int choose(void *context, int func, size_t bytes, int pipelined, float **table, int nalgos, int nprotos,
                  int registered, int *channels)
{
    (void)context;
    if (nalgos != ALGOS || nprotos != PROTOS || pipelined != 1 || registered)
        return 3;
    return answer(func, bytes, (float *)table, channels).error;
}
#endif

static int finish(void *context)
{
    (void)context;
    return 0;
}

#if VERSION == 6
static int chunk_size(void *context, int func, size_t bytes, int algo, int proto, int channels, size_t *chunk)
{
    (void)context;
    (void)func;
    (void)bytes;
    (void)algo;
    (void)proto;
    EACH(word)
    {
        if (number_after(word, "chunk=") >= 0)
            *chunk = (size_t)number_after(word, "chunk=");
    }
    return channels > 0 ? 0 : 3;
}
#endif

#define GLUE(a, b) a##b
#define SYMBOL(version) GLUE(ncclTunerPlugin_v, version)

typedef struct {
    const char *name;
    void (*functions[4])(void);
} export_t;

extern export_t SYMBOL(VERSION);
__attribute__((visibility("default")))
export_t SYMBOL(VERSION) = {"test",
                            {(void (*)(void))start, (void (*)(void))choose, (void (*)(void))finish,
#if VERSION == 6
                             (void (*)(void))chunk_size
#endif
                            }};
