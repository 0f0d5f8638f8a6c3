/* Numbers of bytes as people write them. */
#ifndef RD_BASE_BYTES_H
#define RD_BASE_BYTES_H

#include <stdint.h>

/* "64K" -> 65536: parses digits and an optional K, M or G (powers of 1024). Returns 0 or -1. */
int rd_bytes_parse(const char *text, uint64_t *bytes);
/* Returns the shortest exact form: 65536 -> "64K". `text` holds at least 24 characters. */
const char *rd_bytes_print(uint64_t bytes, char *text);

#endif
