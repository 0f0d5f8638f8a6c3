/* Lists of words by operation, as RONDO_ALGO, RONDO_PROTO, NCCL_ALGO and NCCL_PROTO have them:
 *
 *     ring                                 one list, for all operations
 *     ring,tree;allreduce:^tree            NCCL's: a list for all, and one for an operation by name; ^: all but these
 *     ring,allreduce=tree+ring             rondo's: the same, with = and + that leave the comma for the next list
 *
 * A text that contains "=" is of the last kind. Case does not count, nor does "_": ReduceScatter is reduce_scatter.
 */
#ifndef RD_BASE_WORD_LIST_H
#define RD_BASE_WORD_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* One list; its texts are parts of the whole one, and not terminated. */
typedef struct rd_word_list {
    const char *operation; /* NULL: the list is for all operations */
    size_t operation_length;
    bool except; /* all words but these */
    const char *words;
    size_t length;
} rd_word_list_t;

/* Takes the next list; *at is 0 at first. Returns false if there is none. */
bool rd_word_list_next(const char *text, size_t *at, rd_word_list_t *list);

/* Takes the next word of a list; *at is 0 at first. Returns false if there is none. */
bool rd_word_next(const rd_word_list_t *list, size_t *at, const char **word, size_t *length);

/* Finds the list that applies to an operation: the one with its name, or else the last one for all operations. Of two
 * with its name the last one counts, as in NCCL, but in rondo's kind of text the first. Returns false if there is none.
 */
bool rd_word_list_find(const char *text, const char *operation, rd_word_list_t *list);

/* Returns the index of a word among those that `between` parts, as in "json,fr" or "auto|0|1"; -1: it is not there.
 * Case and "_" count. */
int rd_word_index(const char *words, char between, const char *word, size_t length);

/* Is it there? */
bool rd_word_has(const char *words, char between, const char *word);

/* Returns true if the word is this name. */
bool rd_word_is(const char *name, const char *word, size_t length);

/* Returns true if, as NCCL demands it, no list but the first is for all operations, or if the text is rondo's kind. */
bool rd_word_lists_ordered(const char *text);

#endif
