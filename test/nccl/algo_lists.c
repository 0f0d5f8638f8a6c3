/* NCCL_ALGO as NCCL 2.30 parses it: a table of what its parseList makes of lists, functions, ^ and mistakes, compiled
 * apart and run on each text. What NCCL refuses is refused, and of what it allows for a function RONDO_ALGO allows what
 * rondo has; where that is nothing, the function is left alone or has them all excluded. Variables
 * are read once a process: each text has one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/setting.h"
#include "core/binding.h"
#include "nccl/shim.h"
#include "util/check.h"

/* Of each function, in the order below, the letters of the algorithms that it may use; NULL: it is an error. */
static const struct row {
    const char *text, *allowed;
} rows[] = {
    {"ring", "R R R R R"},
    {"tree", "T T T T T"},
    {"pat", "P P P P P"},
    {"nvls", "n n n n n"},
    {"nvlstree", "N N N N N"},
    {"collnetdirect", "d d d d d"},
    {"collnetchain", "c c c c c"},
    {"Ring", "R R R R R"},
    {"RING", "R R R R R"},
    {"rInG", "R R R R R"},
    {"ring,tree", "TR TR TR TR TR"},
    {"tree,ring,pat", "TRP TRP TRP TRP TRP"},
    {"ring,ring", "R R R R R"},
    {"^ring", "TdcnNP TdcnNP TdcnNP TdcnNP TdcnNP"},
    {"^tree", "RdcnNP RdcnNP RdcnNP RdcnNP RdcnNP"},
    {"^ring,tree", "dcnNP dcnNP dcnNP dcnNP dcnNP"},
    {"^pat", "TRdcnN TRdcnN TRdcnN TRdcnN TRdcnN"},
    {"^nvls", "TRdcNP TRdcNP TRdcNP TRdcNP TRdcNP"},
    {"^ring,tree,pat", "dcnN dcnN dcnN dcnN dcnN"},
    {"^ring,tree,pat,nvls,nvlstree,collnetdirect,collnetchain", "    "},
    {"allreduce:ring", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP R"},
    {"allreduce:tree", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP T"},
    {"AllReduce:Tree", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP T"},
    {"ALLREDUCE:^RING", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP TdcnNP"},
    {"broadcast:ring", "R TRdcnNP TRdcnNP TRdcnNP TRdcnNP"},
    {"reduce:tree", "TRdcnNP T TRdcnNP TRdcnNP TRdcnNP"},
    {"allgather:pat", "TRdcnNP TRdcnNP P TRdcnNP TRdcnNP"},
    {"reducescatter:pat", "TRdcnNP TRdcnNP TRdcnNP P TRdcnNP"},
    {"reducescatter:^pat", "TRdcnNP TRdcnNP TRdcnNP TRdcnN TRdcnNP"},
    {"allgather:^ring", "TRdcnNP TRdcnNP TdcnNP TRdcnNP TRdcnNP"},
    {"ring;allreduce:tree", "R R R R T"},
    {"ring;allreduce:tree;broadcast:tree", "T R R R T"},
    {"tree;allreduce:^tree", "T T T T RdcnNP"},
    {"^tree;allreduce:tree", "RdcnNP RdcnNP RdcnNP RdcnNP T"},
    {"ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", "R Rd Rd Rd Td"},
    {"allreduce:tree;allreduce:ring", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP R"},
    {"allreduce:^tree;allreduce:^ring", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP TdcnNP"},
    {"ring;reduce:^nvls", "R TRdcNP R R R"},
    {"nvls;allreduce:ring", "n n n n R"},
    {"allgather:ring;reducescatter:pat;broadcast:tree;reduce:ring;allreduce:^pat", "T R R P TRdcnN"},
    {"ring;", "R R R R R"},
    {";ring", NULL},
    {";;ring", NULL},
    {"ring,", "R R R R R"},
    {",ring", "R R R R R"},
    {"ring,,tree", "TR TR TR TR TR"},
    {"allreduce:ring,", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP R"},
    {"allreduce:,ring", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP R"},
    {"allreduce:ring;tree", NULL},
    {"ring;tree", NULL},
    {"tree;^ring", NULL},
    {"rnig", NULL},
    {"ring,rnig", NULL},
    {"^rnig", NULL},
    {"allreduce:rnig", NULL},
    {"alltoall:ring", NULL},
    {"sendrecv:ring", NULL},
    {"reduce_scatter:ring", NULL},
    {":ring", "R R R R R"},
    {"allreduce:", NULL},
    {"allreduce", NULL},
    {"allreduce:ring:tree", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP R"},
    {"ring tree", NULL},
    {" ring", NULL},
    {"^^ring", NULL},
    {"^", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP TRdcnNP"},
    {"allreduce:^", "TRdcnNP TRdcnNP TRdcnNP TRdcnNP TRdcnNP"},
    {"ring;alltoall:ring", NULL},
    {"broadcast:ring;allreduce:^^tree", NULL},
    {"ring^", NULL},
};

static const char *const functions[] = {"broadcast", "reduce", "allgather", "reduce_scatter", "allreduce"};
static const char *const algos[] = {"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
static const char letters[] = "TRdcnNP";

/* The list of a function in RONDO_ALGO, "ring+tree,..." or "^ring,..."; NULL: it has none. */
static const char *list_of(const char *value, const char *function)
{
    const size_t n = strlen(function);

    for (const char *p = value; p && *p; p = strchr(p, ','), p = p ? p + 1 : NULL)
        if (strncmp(p, function, n) == 0 && p[n] == '=')
            return p + n + 1;
    return NULL;
}

static bool allows(const char *list, const char *name)
{
    const bool except = list && *list == '^';
    const size_t n = strlen(name);
    bool found = false;

    if (!list)
        return true;
    for (const char *p = list + except; *p && *p != ','; p += strcspn(p, "+,"), p += *p == '+')
        found = found || (strcspn(p, "+,") == n && strncmp(p, name, n) == 0);
    return found != except;
}

static int function_bad(const char *value, int f, const char *set, size_t length)
{
    const char *list = list_of(value, functions[f]);
    int bad = 0, any = 0;

    for (int a = 0; letters[a]; a++) {
        const char *name = rondo_nccl_algo(functions[f], algos[a], strlen(algos[a]), false, NULL);
        any += name && memchr(set, letters[a], length);
    }
    for (int a = 0; letters[a]; a++) {
        const char *name = rondo_nccl_algo(functions[f], algos[a], strlen(algos[a]), false, NULL);
        if (name && (any ? allows(list, name) != !!memchr(set, letters[a], length) : list && *list != '^')) {
            printf("%s: %s\n", functions[f], name);
            bad++;
        }
    }
    return bad;
}

static int row_bad(const struct row *row)
{
    char text[RD_SETTING_BYTES];
    const char *value, *set = row->allowed;
    int bad = 0;

    setenv("RONDO_NCCL_HOST", "1", 1);
    setenv("NCCL_ALGO", row->text, 1);
    nc_settings();
    if (!set || nc_settings_wrong())
        return !!set == !!nc_settings_wrong();
    value = rd_setting_text("RONDO_ALGO", text);
    for (int f = 0; f < 5; f++, set += strcspn(set, " "), set += *set == ' ')
        bad += function_bad(value ? value : "", f, set, strcspn(set, " "));
    if (bad)
        printf("NCCL_ALGO='%s': RONDO_ALGO=%s\n", row->text, value ? value : "");
    return bad;
}

/* Each row in a process of its own. CollNet's algorithms are rondo's, too, where a switch is asked for. */
static void all_rows(const char *collnet)
{
    setenv("NCCL_COLLNET_ENABLE", collnet, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = -1;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int bad = row_bad(&rows[i]);
            fflush(stdout);
            _exit(bad != 0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0,
              "NCCL_ALGO='%s' with NCCL_COLLNET_ENABLE=%s", rows[i].text, collnet);
    }
}

static void asks_for_switch(void)
{
    char text[RD_SETTING_BYTES];

    nc_settings();
    const char *value = rd_setting_text("RONDO_COLLNET", text), *chain = "CollNetChain";
    CHECK(value && strcmp(value, "-1") == 0, "NCCL_COLLNET_ENABLE=1 becomes RONDO_COLLNET=%s", value ? value : "");
    const char *name = rondo_nccl_algo("allreduce", chain, strlen(chain), false, NULL);
    CHECK(name && strcmp(name, "collnet_chain") == 0, "%s is %s", chain, name ? name : "nothing");
    CHECK(!rondo_nccl_algo("allreduce", chain, strlen(chain), true, NULL), "%s is there on GPUs", chain);
}

int main(void)
{
    alarm(100);
    unsetenv("RONDO_ALGO");
    unsetenv("RONDO_COLLNET");
    all_rows("0");
    all_rows("1");
    asks_for_switch();
    return failures != 0;
}
