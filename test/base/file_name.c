/* Names of files from patterns: what stands for %h, %p and %%, and names that are too long. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file_name.h"
#include "util/check.h"

/* `want` may have one "%ld", for this process. */
static void becomes(const char *pattern, const char *want)
{
    char name[64], whole[64];

    snprintf(whole, sizeof whole, want, (long)getpid());
    CHECK(rd_file_name(name, sizeof name, pattern, "node7") == 0, "%s: too long", pattern);
    CHECK(strcmp(name, whole) == 0, "%s: %s, not %s", pattern, name, whole);
}

/* `bytes` are too few for "node7.log". */
static void is_cut(size_t bytes, const char *want)
{
    char name[16];

    errno = 0;
    CHECK(rd_file_name(name, bytes, "%h.log", "node7") == -1 && errno == ENAMETOOLONG, "%zu bytes: %d", bytes, errno);
    CHECK(strcmp(name, want) == 0, "%zu bytes: %s, not %s", bytes, name, want);
}

int main(void)
{
    char name[10];

    becomes("", "");
    becomes("rondo.log", "rondo.log");
    becomes("/tmp/%h/%p.log", "/tmp/node7/%ld.log");
    becomes("%%h%%p%%%%.%h", "%%h%%p%%%%.node7");
    becomes("%q.%", "%%q.%%");
    becomes("%%%p%", "%%%ld%%");
    is_cut(9, "node7.lo");
    is_cut(6, "node7");
    is_cut(3, "no");
    is_cut(1, "");
    CHECK(rd_file_name(name, sizeof name, "%h.log", "node7") == 0 && strcmp(name, "node7.log") == 0, "%s", name);
    return failures != 0;
}
