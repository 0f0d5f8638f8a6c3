/* What the files of rondo-ras share. */
#ifndef RAS_H
#define RAS_H

#include "monitor/verdict.h"

enum { RAS_NOTHING = 1, RAS_USAGE = 2 }; /* exit statuses beside those of verdicts */

typedef struct ras_options {
    const char *dir; /* also records in this folder; NULL: none */
    int job;         /* this one alone; 0: all */
    bool json, all;
    int count;      /* pages of top; 0: until it is interrupted */
    double seconds; /* between two */
} ras_options_t;

/* Finds all records that this user may read, and looks at them. Returns false if there is no memory. */
bool ras_find(rd_view_t *view, const ras_options_t *options);

/* Prints a text as a string of JSON. */
void ras_print_json(const char *text);

/* ---- the commands; each returns the exit status ---- */

int ras_list(rd_view_t *view, const ras_options_t *options);
int ras_status(rd_view_t *view, const ras_options_t *options);
int ras_who(rd_view_t *view, const ras_options_t *options);
int ras_top(rd_view_t *view, const ras_options_t *options);

#endif
