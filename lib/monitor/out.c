/* See out.h. */
#include "monitor/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

void rd_out_begin(rd_out_t *out, int fd)
{
    out->fd = fd;
    out->sink = NULL;
    out->error = 0;
    out->used = 0;
}

void rd_out_begin_sink(rd_out_t *out, rd_out_sink_fn sink, void *arg)
{
    rd_out_begin(out, -1);
    out->sink = sink;
    out->arg = arg;
}

static void flush(rd_out_t *out)
{
    if (out->used && !out->error && !out->sink)
        out->error = rd_fd_write_all(out->fd, out->bytes, out->used);
    else if (out->used && !out->error && !out->sink(out->arg, out->bytes, out->used))
        out->error = EPIPE;
    out->used = 0;
}

void rd_out_bytes(rd_out_t *out, const void *bytes, size_t n)
{
    for (const char *at = bytes; n > 0 && !out->error;) {
        size_t room = sizeof out->bytes - out->used, part = n < room ? n : room;
        memcpy(out->bytes + out->used, at, part);
        out->used += part;
        at += part;
        n -= part;
        if (out->used == sizeof out->bytes)
            flush(out);
    }
}

void rd_out_printf(rd_out_t *out, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        rd_out_bytes(out, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void rd_out_text(rd_out_t *out, const char *text)
{
    rd_out_bytes(out, text, strlen(text));
}

void rd_out_plain_text(char *text, size_t bytes)
{
    text[bytes - 1] = 0;
    for (char *at = text; *at; at++)
        *at = rd_out_plain(*at);
}

/* Does it stand in a string of JSON as it is? */
static bool is_plain(char c)
{
    return c == rd_out_plain(c) && c != '"' && c != '\\';
}

int rd_out_json_char(char c, char text[RD_JSON_CHAR])
{
    if (is_plain(c))
        return snprintf(text, RD_JSON_CHAR, "%c", c);
    return snprintf(text, RD_JSON_CHAR, c == '"' || c == '\\' ? "\\%c" : "\\u%04x", (unsigned char)c);
}

void rd_out_json(rd_out_t *out, const char *text)
{
    char one[RD_JSON_CHAR];

    rd_out_bytes(out, "\"", 1);
    while (*text) {
        size_t n = 0;
        while (is_plain(text[n]))
            n++;
        rd_out_bytes(out, text, n);
        text += n;
        if (*text)
            rd_out_bytes(out, one, (size_t)rd_out_json_char(*text++, one));
    }
    rd_out_bytes(out, "\"", 1);
}

int rd_out_end(rd_out_t *out)
{
    flush(out);
    return out->error;
}
