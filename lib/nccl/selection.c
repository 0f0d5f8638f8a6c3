/* algSelection of a collective's own config: the text becomes what rondo_force_next, or rondo_prefer_next, is told.
 *
 * NCCL's grammar: terms that "," joins, of which any will do; a term is factors that "+" joins, all of which must hold;
 * a factor is the beginning of a name, "^" before it means all other names. A name is an algorithm and a protocol:
 * RING_LL128. Case and blanks do not count. So RING is all of RING's protocols, and SIMPLE is no name.
 *
 * rondo forces algorithms and protocols, each as a list, so a selection that is not each of some algorithms by each of
 * some protocols cannot be kept to. What NCCL has and rondo has not (NVLS, SYMK) serves no call.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/intern.h"
#include "base/word_list.h"
#include "nccl/selection.h"

#define PROTOS 3 /* LL, LL128, Simple: bits 0 to 2 of a row */
#define SELECTIONS_MOST 255

static const char *const protos[PROTOS] = {"LL", "LL128", "SIMPLE"};
/* NCCL's algorithms, by their names in a selection and in NCCL_ALGO, and the protocols that each has. */
static const struct {
    const char *tag, *name;
    unsigned protos;
} algos[] = {{"TREE", "Tree", 7},
             {"RING", "Ring", 7},
             {"COLLNETDIRECT", "CollNetDirect", 4},
             {"COLLNETCHAIN", "CollNetChain", 4},
             {"NVLS", "NVLS", 4},
             {"NVLSTREE", "NVLSTree", 4},
             {"PAT", "PAT", 4},
             {"SYMK", "symmetric kernels", 4}};
#define ALGOS ((int)(sizeof algos / sizeof algos[0]))

static const struct {
    const char *name, *operation;
} functions[] = {{"AllReduce", "allreduce"},
                 {"Broadcast", "broadcast"},
                 {"Reduce", "reduce"},
                 {"AllGather", "allgather"},
                 {"ReduceScatter", "reduce_scatter"}};

/* ---- the grammar ---- */

/* Returns the rows, as bits, whose names begin with this; all have the empty text. */
static uint64_t rows_of(const char *tag, size_t length)
{
    uint64_t rows = 0;
    char name[32];

    for (int a = 0; a < ALGOS; a++)
        for (int p = 0; p < PROTOS; p++) {
            if (!(algos[a].protos >> p & 1))
                continue;
            snprintf(name, sizeof name, "%s_%s", algos[a].tag, protos[p]);
            /* Symmetric kernels have many names, all of which begin so. */
            bool symmetric = strcmp(algos[a].tag, "SYMK") == 0 && length > 4;
            if (strncasecmp(name, tag, symmetric ? 4 : length) == 0)
                rows |= (uint64_t)1 << (a * PROTOS + p);
        }
    return rows;
}

/* Returns the rows of one term; 0: it names none. */
static uint64_t term_rows(const char *term, size_t length)
{
    uint64_t rows = rows_of("", 0);
    int factors = 0;

    for (size_t at = 0; at < length;) {
        size_t n = 0;
        while (at + n < length && term[at + n] != '+')
            n++;
        const bool except = n && term[at] == '^';
        if (n) {
            uint64_t some = n > except ? rows_of(term + at + except, n - except) : 0;
            if (!some)
                return 0;
            rows &= except ? ~some : some;
            factors++;
        }
        at += n + 1;
    }
    return factors ? rows : 0;
}

/* Returns the rows of a selection; 0: a word of it is none, or a term has no row. */
static uint64_t selection_rows(const char *text)
{
    uint64_t rows = 0;

    while (*text) {
        size_t n = strcspn(text, ",");
        uint64_t some = n ? term_rows(text, n) : 0;

        if (n && !some)
            return 0;
        rows |= some;
        text += n + (text[n] == ',');
    }
    return rows;
}

/* ---- what it is in rondo ---- */

/* The protocol, or those that are excluded; NULL: it cannot be said. "": all are allowed. On host memory there is no
 * LL128. */
static const char *protos_in_rondo(unsigned set, bool host)
{
    static const char *const gpus[8] = {NULL, "ll", "ll128", "^simple", "simple", "^ll128", "^ll", ""};
    static const char *const memory[8] = {NULL, "ll", NULL, "ll", "simple", "", "^ll", ""};

    return (host ? memory : gpus)[set & 7];
}

/* Fills what is forced for an operation. Returns NULL, or why it cannot be. */
static const char *translate(nc_selection_t *s, uint64_t rows, const char *operation)
{
    size_t used = 0;
    unsigned set = 0;

    for (int a = 0; a < ALGOS; a++) {
        unsigned some = (unsigned)(rows >> (a * PROTOS) & 7);
        const char *name =
            some ? rondo_nccl_algo(operation, algos[a].name, strlen(algos[a].name), !s->host, NULL) : NULL;

        if (!name)
            continue;
        some = some == algos[a].protos ? 7 : some;
        if (used && some != set)
            return "its algorithms differ in their protocols, which rondo cannot force for one call";
        set = some;
        used += (size_t)snprintf(s->algo + used, sizeof s->algo - used, used ? "+%s" : "%s=%s", used ? name : operation,
                                 name);
    }
    if (!used)
        return "rondo has none of these algorithms for it";
    const char *proto = protos_in_rondo(set, s->host);
    if (!proto)
        return "host memory has no LL128";
    snprintf(s->proto, sizeof s->proto, "%s", proto);
    return NULL;
}

/* As in NCCL, what a variable forces for an operation comes before the call's own. */
static bool forced_by(const char *variable, const char *operation)
{
    char text[300];
    rd_word_list_t list;

    return rondo_setting_get(variable, text, sizeof text) == RONDO_SUCCESS && rd_word_list_find(text, operation, &list);
}

static const char *make(nc_selection_t *s, const char *function)
{
    const char *operation = NULL, *why;
    uint64_t rows = selection_rows(s->text);

    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        if (strcmp(functions[f].name, function) == 0)
            operation = functions[f].operation;
    if (!rows)
        return "it names no algorithm of NCCL's, such as RING, TREE_LL128 or ^PAT";
    if (!operation)
        return "NCCL has no algorithms to be selected for it";
    if ((why = translate(s, rows, operation)))
        return why;
    s->has_algo = !forced_by("RONDO_ALGO", operation);
    s->has_proto = *s->proto && !forced_by("RONDO_PROTO", operation);
    return NULL;
}

static bool same(const void *one, const void *other)
{
    const nc_selection_t *a = one, *b = other;

    return strcmp(a->text, b->text) == 0 && strcmp(a->function, b->function) == 0 && a->host == b->host &&
           a->force == b->force;
}

static const nc_selection_t *keep(const nc_selection_t *made)
{
    static _Atomic(void *) table[SELECTIONS_MOST];
    static const rd_intern_t selections = {
        .same = same, .bytes = sizeof *made, .most = SELECTIONS_MOST, .table = table};
    const int number = rd_intern(&selections, made);

    return number < 0 ? NULL : rd_interned(&selections, number);
}

ncclResult_t nc_selection(const char *text, bool force, const char *function, const nc_selection_t **to)
{
    nc_selection_t s = {.function = function, .force = force, .host = nc_settings_host()};
    size_t used = 0;
    const char *why;

    *to = NULL;
    for (const char *p = text; *p && used < sizeof s.text - 1; p++)
        if (!isspace((unsigned char)*p))
            s.text[used++] = (char)*p;
    if (!used)
        return ncclSuccess;
    why = make(&s, function);
    if (!why && !(*to = keep(&s)))
        why = "the process has selected too many different ones";
    if (!why)
        return ncclSuccess;
    if (force)
        return nc_error(NULL, ncclInvalidArgument, "nccl%sConfig: config->algSelection \"%.60s\" cannot be kept to: %s",
                        function, text, why);
    nc_log(NC_SUBSYS_COLL, "nccl%sConfig: config->algSelection \"%.60s\" has no effect: %s", function, text, why);
    return ncclSuccess;
}

void nc_selection_begin(const nc_selection_t *s)
{
    const char *algo = s->has_algo ? s->algo : NULL, *proto = s->has_proto ? s->proto : NULL;

    (void)(s->force ? rondo_force_next(algo, proto) : rondo_prefer_next(algo, proto));
}

void nc_selection_end(void)
{
    (void)rondo_force_next(NULL, NULL); /* a call that was refused has not taken it */
}
