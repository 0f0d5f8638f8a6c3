/* Which algorithms and protocols a collective's own config selects. */
#ifndef RD_NCCL_SELECTION_H
#define RD_NCCL_SELECTION_H

#include "core/binding.h"
#include "nccl/shim.h"

typedef struct nc_selection {
    const char *function; /* a constant: "AllReduce" */
    bool force, host;
    char text[128]; /* without blanks */
    bool has_algo, has_proto;
    char algo[64], proto[16]; /* for rondo_force_next */
} nc_selection_t;

/* Sets *to, which lasts; NULL: there is nothing to be told to rondo. Refuses what cannot be kept to with `force`. */
ncclResult_t nc_selection(const char *text, bool force, const char *function, const nc_selection_t **to);

/* For the next call of this thread, and after it. */
void nc_selection_begin(const nc_selection_t *selection);
void nc_selection_end(void);

#endif
