/* Lists of words by operation: the words that each of these texts has for an operation. */
#include <stdio.h>
#include <string.h>

#include "base/word_list.h"
#include "util/check.h"

/* What applies to `operation` in `text`, as "^a b"; "-": nothing does. */
static void has(const char *text, const char *operation, const char *want)
{
    char got[128] = "-";
    rd_word_list_t list;

    if (rd_word_list_find(text, operation, &list)) {
        size_t at = 0, used = 0, length;
        const char *word;

        used += (size_t)snprintf(got, sizeof got, "%s", list.except ? "^" : "");
        for (int n = 0; rd_word_next(&list, &at, &word, &length); n++)
            used += (size_t)snprintf(got + used, sizeof got - used, "%s%.*s", n ? " " : "", (int)length, word);
    }
    CHECK(strcmp(got, want) == 0, "\"%s\" for %s: \"%s\", not \"%s\"", text, operation, got, want);
}

int main(void)
{
    has("", "allreduce", "-");
    has("ring", "allreduce", "ring");
    /* rondo's */
    has("allreduce=ring,broadcast=tree", "allreduce", "ring");
    has("allreduce=ring,broadcast=tree", "broadcast", "tree");
    has("allreduce=ring,broadcast=tree", "reduce", "-");
    has("ring,allreduce=^tree+pat", "allreduce", "^tree pat");
    has("allreduce=^tree+pat,ring", "allreduce", "^tree pat");
    has("allreduce=tree,ring", "reduce", "ring");
    has("ring+tree", "reduce", "ring tree");
    has("allreduce=tree,allreduce=ring", "allreduce", "tree"); /* the first one */
    /* NCCL's */
    has("ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", "allreduce", "tree collnetdirect");
    has("ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", "broadcast", "ring");
    has("ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring", "reduce", "ring collnetdirect");
    has("^tree", "reduce", "^tree");
    has("allreduce:^tree", "reduce", "-");
    has("^LL128;AllReduce:LL128", "allreduce", "LL128");
    has("ReduceScatter:ring", "reduce_scatter", "ring");
    has("reduce:ring", "reduce_scatter", "-");
    has("reduce_scatter:ring", "reduce", "-");
    has("allreduce:ring;allreduce:tree", "allreduce", "tree"); /* the last one */
    has("ring,,tree,", "reduce", "ring tree");
    has(";;allreduce:", "allreduce", "");
    has("^", "allreduce", "^");

    CHECK(rd_word_lists_ordered("ring;allreduce:tree") && rd_word_lists_ordered("allreduce=tree,ring"));
    CHECK(!rd_word_lists_ordered("allreduce:tree;ring") && !rd_word_lists_ordered("ring;tree"));
    CHECK(rd_word_index("auto|0|1", '|', "0,1", 1) == 1 && rd_word_index("auto|0|1", '|', "a", 1) < 0);
    CHECK(rd_word_has("json,fr", ',', "fr") && rd_word_has("json,fr,", ',', "json") &&
          !rd_word_has("json", ',', "js") && !rd_word_has("", ',', "json"));
    CHECK(rd_word_is("ll128", "LL128", 5) && !rd_word_is("ll128", "LL128", 4) && !rd_word_is("ll", "LL128", 5));
    CHECK(rd_word_is("reduce_scatter", "ReduceScatter", 13) && rd_word_is("allgather", "all_gather", 10));
    CHECK(!rd_word_is("ring", "", 0) && rd_word_is("ring", "RING+tree", 4));
    return failures != 0;
}
