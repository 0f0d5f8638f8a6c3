/* The names of functions, by a file's own table of symbols. */
#ifndef RD_MONITOR_SYMBOLS_H
#define RD_MONITOR_SYMBOLS_H

#include <stdint.h>

#define RD_SYMBOL_NAME 96

typedef struct rd_symbol {
    uint64_t at;               /* an address in the file */
    uint64_t from;             /* where the function that has it begins */
    char name[RD_SYMBOL_NAME]; /* as the linker knows it; "": the file does not say */
} rd_symbol_t;

/* Names all of them, which must be sorted by `at`. It reads the file, which may take as long as a file server likes. */
void rd_symbols_name(const char *path, rd_symbol_t *symbols, int n);

#endif
