/* Fuzz target: the environment. Lines NAME=VALUE, as rondo-info --check and a communicator's creation read them: a
 * value is taken or refused with a sentence that names the variable. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void one_line(char *line)
{
    char *value = strchr(line, '='), text[64];
    uint64_t size;

    if (!value || value == line)
        return;
    *value++ = 0;
    if (rd_env_check(line, value) != RONDO_SUCCESS && !strstr(rd_thread_error(), "RONDO_") &&
        strncmp(line, "RONDO_", 6) == 0)
        abort();
    if (rd_bytes_parse(value, &size) == 0)
        rd_bytes_print(size, text);
    if (strncmp(line, "RONDO_", 6) == 0 && strcmp(line, "RONDO_DEBUG") != 0)
        setenv(line, value, 1);
}

static void forget(char *line)
{
    if (strncmp(line, "RONDO_", 6) == 0 && strcmp(line, "RONDO_DEBUG") != 0)
        unsetenv(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1), *at, *end;
    rd_env_t env;

    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;
    for (at = text; at < text + bytes; at = end + 1) {
        end = at + strcspn(at, "\n");
        *end = 0;
        one_line(at);
    }
    if (rd_env_read(&env) != RONDO_SUCCESS && !*rd_thread_error())
        abort();
    for (at = text; at < text + bytes; at += strlen(at) + 1) /* names end where their '=' was */
        forget(at);
    free(text);
    return 0;
}
