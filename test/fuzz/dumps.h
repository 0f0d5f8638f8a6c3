/* What is done with the bytes of a dump, by the fuzz target and by test/monitor/dumps_forged.c. */
#ifndef FUZZ_DUMPS_H
#define FUZZ_DUMPS_H

#include <stdbool.h>
#include <stddef.h>

#include "monitor/view.h"

/* Reads a dump, twice, as if two processes had the same, so that there is something to compare; judges it, and writes
 * it in every format. Counts *taken up for each time that it was no refused one. Returns false if a record that was
 * made of it is refused, or there is no memory. */
bool dumps_read(const unsigned char *bytes, size_t n, int *taken);

/* Writes a view that has looked twice in every format of dumps, to nowhere. Returns false if that fails. */
bool dumps_write(const rd_view_t *view);

#endif
