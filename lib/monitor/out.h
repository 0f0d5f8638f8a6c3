/* Where a dump is written to: a descriptor, or a function, with a buffer, so that a writer need not look at each
 * result. Allocates nothing, so that a failing process may write, too. */
#ifndef RD_MONITOR_OUT_H
#define RD_MONITOR_OUT_H

#include <stdbool.h>
#include <stddef.h>

/* Takes what is written, at most RD_OUT_BYTES. Returns false if nothing more is wanted. */
#define RD_OUT_BYTES 8192
typedef bool (*rd_out_sink_fn)(void *arg, const void *bytes, size_t n);

typedef struct rd_out {
    int fd;              /* unless there is a function */
    rd_out_sink_fn sink; /* NULL: none */
    void *arg;
    int error; /* of the first write that failed; 0: none has. Nothing more is written then */
    size_t used;
    char bytes[RD_OUT_BYTES];
} rd_out_t;

void rd_out_begin(rd_out_t *out, int fd);
void rd_out_begin_sink(rd_out_t *out, rd_out_sink_fn sink, void *arg);
void rd_out_bytes(rd_out_t *out, const void *bytes, size_t n);
__attribute__((format(printf, 2, 3))) void rd_out_printf(rd_out_t *out, const char *format,
                                                         ...); /* 1023 bytes at most */
/* A text of any length. */
void rd_out_text(rd_out_t *out, const char *text);
/* The byte, or '?' if it is no printable ASCII: what others chose may do nothing to a terminal but be shown. */
static inline char rd_out_plain(char c)
{
    return c >= ' ' && c < 0x7f ? c : '?';
}
/* The same of a text that has room for `bytes`, which it ends. */
void rd_out_plain_text(char *text, size_t bytes);
/* Writes how a byte of a text stands in a string of JSON, in ASCII. Returns the length. */
#define RD_JSON_CHAR 8
int rd_out_json_char(char c, char text[RD_JSON_CHAR]);
/* A text as a string of JSON, with its quotes. */
void rd_out_json(rd_out_t *out, const char *text);
/* Writes what is left. Returns 0 or the error of the first write that failed. The descriptor stays open. */
int rd_out_end(rd_out_t *out);

#endif
