/* The grammar of NCCL_ALGO and NCCL_PROTO: see lists.h. */
#include "nccl/lists.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/word_list.h"

#define LIST_BYTES 1024

static const char *const functions[NC_LIST_FUNCTIONS] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                                         "AllReduce"};

/* Where to say what NCCL refuses. */
typedef struct refusal {
    const nc_lists_t *of;
    char *why;
    size_t bytes;
} refusal_t;

int nc_list_find(const char *const names[], int count, const char *word, size_t length)
{
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && strncasecmp(names[i], word, length) == 0)
            return i;
    return -1;
}

static int unknown(const refusal_t *to, const char *what, const char *word, size_t length, const char *const names[],
                   int count)
{
    char known[160] = "";
    size_t used = 0;

    for (int i = 0; i < count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
    snprintf(to->why, to->bytes, "NCCL_%s=%.100s: there is no %s \"%.*s\"; there are %s", to->of->name, to->of->text,
             what, (int)(length < 60 ? length : 60), word, known);
    return -1;
}

static int parse_list(const refusal_t *to, const rd_word_list_t *list, nc_allowed_t *allowed)
{
    const nc_lists_t *c = to->of;
    const char *word;
    size_t length;

    *allowed = (nc_allowed_t){0, list->except};
    for (size_t at = 0; rd_word_next(list, &at, &word, &length);) {
        int found = nc_list_find(c->names, c->count, word, length);

        if (found < 0)
            return unknown(to, c->what, word, length, c->names, c->count);
        allowed->words |= 1u << found;
    }
    return 0;
}

/* NCCL parts a text by strtok: what is empty between two marks is none, and a third part of "function:list" has no
 * meaning. Writes the text as it is without those; one that is too long stays as it is. */
static const char *without_empty(const char *text, char plain[LIST_BYTES])
{
    size_t used = 0;

    if (strlen(text) >= LIST_BYTES - 1)
        return text;
    if (*text == ';') /* NCCL's first list is the one at the beginning */
        plain[used++] = ';';
    for (const char *p = text; *p;) {
        const char *end = p + strcspn(p, ";"), *first = p + strspn(p, ":"), *list;
        const size_t n = strcspn(first, ":;"), before = used;
        list = first + n + strspn(first + n, ":");
        if (n && used > 0 && plain[used - 1] != ';')
            plain[used++] = ';';
        used += n ? (size_t)sprintf(plain + used, "%.*s", (int)n, first) : 0;
        if (used > before && strcspn(list, ":;"))
            used += (size_t)sprintf(plain + used, ":%.*s", (int)strcspn(list, ":;"), list);
        p = end + (*end != '\0');
    }
    plain[used] = '\0';
    return plain;
}

int nc_lists_parse(nc_allowed_t allowed[NC_LIST_FUNCTIONS], const nc_lists_t *c, char *why, size_t bytes)
{
    const refusal_t to = {c, why, bytes};
    char plain[LIST_BYTES];
    const char *text = without_empty(c->text, plain);
    rd_word_list_t list;
    nc_allowed_t one;

    for (int f = 0; f < NC_LIST_FUNCTIONS; f++)
        allowed[f] = (nc_allowed_t){0, 1};
    for (size_t at = 0; rd_word_list_next(text, &at, &list);) {
        int named =
            list.operation ? nc_list_find(functions, NC_LIST_FUNCTIONS, list.operation, list.operation_length) : -1;

        if (list.operation && named < 0)
            return unknown(&to, "function", list.operation, list.operation_length, functions, NC_LIST_FUNCTIONS);
        if (parse_list(&to, &list, &one) != 0)
            return -1;
        for (int f = 0; f < NC_LIST_FUNCTIONS; f++)
            if (named < 0 || f == named)
                allowed[f] = one;
    }
    if (rd_word_lists_ordered(text))
        return 0;
    snprintf(why, bytes, "NCCL_%s=%.100s: only the first list may be without a function", c->name, c->text);
    return -1;
}
