/* Lists of words by operation: see word_list.h. libnccl.so.2 has this file, too. */
#include "base/word_list.h"

#include <ctype.h>
#include <string.h>

bool rd_word_is(const char *name, const char *word, size_t length)
{
    const char *end = word + length;

    for (;; name++, word++) {
        while (*name == '_')
            name++;
        while (word < end && *word == '_')
            word++;
        if (word == end || !*name)
            return word == end && !*name;
        if (tolower((unsigned char)*name) != tolower((unsigned char)*word))
            return false;
    }
}

int rd_word_index(const char *words, char between, const char *word, size_t length)
{
    const char ends[] = {between, 0};

    for (int i = 0; *words; i++) {
        size_t n = strcspn(words, ends);

        if (n == length && memcmp(words, word, n) == 0)
            return i;
        words += n + (words[n] == between);
    }
    return -1;
}

bool rd_word_has(const char *words, char between, const char *word)
{
    return rd_word_index(words, between, word, strlen(word)) >= 0;
}

static bool is_rondos(const char *text)
{
    return strchr(text, '=') != NULL;
}

bool rd_word_list_next(const char *text, size_t *at, rd_word_list_t *list)
{
    const char *p = text + *at;

    if (!*p) /* as most texts are, in a message's path */
        return false;
    const size_t length = strcspn(p, is_rondos(text) ? ",;" : ";"), key = strcspn(p, ":=");
    *at += length + (p[length] != '\0');
    *list = (rd_word_list_t){.words = p, .length = length};
    if (key < length)
        *list =
            (rd_word_list_t){.operation = p, .operation_length = key, .words = p + key + 1, .length = length - key - 1};
    if (list->length && *list->words == '^') {
        list->except = true;
        list->words++;
        list->length--;
    }
    return true;
}

bool rd_word_next(const rd_word_list_t *list, size_t *at, const char **word, size_t *length)
{
    while (*at < list->length) {
        size_t begin = *at;

        while (*at < list->length && list->words[*at] != ',' && list->words[*at] != '+')
            ++*at;
        *word = list->words + begin;
        *length = *at - begin;
        ++*at;
        if (*length)
            return true;
    }
    return false;
}

bool rd_word_list_find(const char *text, const char *operation, rd_word_list_t *list)
{
    bool found = false, named = false;
    rd_word_list_t next;

    for (size_t at = 0; rd_word_list_next(text, &at, &next);) {
        bool own = next.operation && rd_word_is(operation, next.operation, next.operation_length);

        if (own && named && is_rondos(text))
            continue;
        if (own || (!next.operation && !named)) {
            *list = next;
            found = true;
        }
        named |= own;
    }
    return found;
}

bool rd_word_lists_ordered(const char *text)
{
    rd_word_list_t list;
    size_t at = 0;

    for (int n = 0; rd_word_list_next(text, &at, &list); n++)
        if (n > 0 && !list.operation && !is_rondos(text))
            return false;
    return true;
}
