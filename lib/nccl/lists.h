/* The lists of NCCL_ALGO and NCCL_PROTO: "ring,tree;allreduce:^tree;broadcast:ring" allows words, or all but some, for
 * all functions or for one. */
#ifndef RD_NCCL_LISTS_H
#define RD_NCCL_LISTS_H

#include <stddef.h>

#define NC_LIST_FUNCTIONS 5 /* Broadcast, Reduce, AllGather, ReduceScatter, AllReduce */

/* For one function: the words that are allowed, as bits, or those that are not. */
typedef struct nc_allowed {
    unsigned words;
    int except;
} nc_allowed_t;

typedef struct nc_lists {
    const char *name, *text; /* NCCL_`name`=`text` */
    const char *what;        /* the words that it has */
    const char *const *names;
    int count;
} nc_lists_t;

/* Parses the text as NCCL does: the first list may be for all functions, each of the others names its function and
 * replaces what came before for it. Returns -1 where NCCL refuses it, and says why: communicators that are to be made
 * fail. */
int nc_lists_parse(nc_allowed_t allowed[NC_LIST_FUNCTIONS], const nc_lists_t *lists, char *why, size_t bytes);
/* Returns the index of the word among the names, whatever its case, or -1. */
int nc_list_find(const char *const names[], int count, const char *word, size_t length);

#endif
