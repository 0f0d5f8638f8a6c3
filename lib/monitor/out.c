/* See out.h. */
#include "monitor/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void rd_out_begin(rd_out_t *out, int fd)
{
    out->fd = fd;
    out->error = 0;
    out->used = 0;
}

static void flush(rd_out_t *out)
{
    size_t done = 0;

    while (!out->error && done < out->used) {
        ssize_t n = write(out->fd, out->bytes + done, out->used - done);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR)
            out->error = errno;
    }
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

void rd_out_json(rd_out_t *out, const char *text)
{
    rd_out_bytes(out, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            rd_out_printf(out, "\\%c", *at);
        else if (*at < 0x20 || *at >= 0x7f)
            rd_out_printf(out, "\\u%04x", *at);
        else
            rd_out_bytes(out, at, 1);
    }
    rd_out_bytes(out, "\"", 1);
}

int rd_out_end(rd_out_t *out)
{
    flush(out);
    return out->error;
}
