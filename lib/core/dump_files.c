/* See dump_files.h. */
#include "core/dump_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/dump_fr.h"

static const struct {
    const char *word, *file;
} formats[RD_DUMP_FORMATS] = {
    [RD_DUMP_AS_JSON] = {"json", "%s/rondo_dump_%d.json"},
    [RD_DUMP_AS_FR] = {"fr", "%s/rondo_trace_%d"},
    [RD_DUMP_AS_CHROME] = {"chrome", "%s/rondo_dump_%d.trace"}, /* not .json: it is no dump to be read again */
};

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    while (*list) {
        size_t length = strcspn(list, ",");
        if (length == n && memcmp(list, word, n) == 0)
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

bool rd_dump_format_wanted(const char *list, rd_dump_format_t format)
{
    return has_word(list, formats[format].word) || (format == RD_DUMP_AS_JSON && has_word(list, "rondo"));
}

void rd_dump_file_path(char *path, size_t room, const char *folder, rd_dump_format_t format, int number)
{
    snprintf(path, room, formats[format].file, folder, number);
}

/* What the process's part takes at most. A call takes less than 512 bytes of JSON, in Chrome's format with arrows and
 * in PyTorch's less than 1024, and there a run of equal calls has up to 2 * RD_STREAM_NEAR of them; a communicator less
 * than 4096. */
static size_t most_bytes(rd_dump_format_t format, const rd_history_t *h)
{
    size_t calls = format == RD_DUMP_AS_FR ? h->nruns * 2 * RD_STREAM_NEAR : h->nruns;

    return calls * (format == RD_DUMP_AS_JSON ? 512 : 1024) + ((size_t)h->ncomms + 2) * 4096;
}

/* A file beyond the limit would raise a signal. */
static bool too_long(rd_dump_format_t format, const rd_dump_t *dump, int process)
{
    struct rlimit limit;
    size_t bytes = 0;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return false;
    for (int i = 0; i < dump->view->nprocesses; i++)
        if (i == process || (format == RD_DUMP_AS_CHROME && rd_dump_has(dump, i)))
            bytes += most_bytes(format, &dump->histories[i]);
    return bytes > limit.rlim_cur;
}

/* Returns 0 or an error. */
static int write_to(int fd, rd_dump_format_t format, const rd_dump_t *dump, const rd_streams_t *streams, int process)
{
    bool good = true;
    rd_out_t out;

    if (too_long(format, dump, process))
        return EFBIG;
    rd_out_begin(&out, fd);
    if (format == RD_DUMP_AS_JSON)
        rd_dump_json(&out, dump, process);
    else
        good = format == RD_DUMP_AS_FR ? rd_dump_fr(&out, dump, streams, process) : rd_dump_chrome(&out, dump);
    int error = rd_out_end(&out);
    return error || good ? error : ENOMEM;
}

int rd_dump_file(const char *path, rd_dump_format_t format, const rd_dump_t *dump, const rd_streams_t *streams,
                 int process)
{
    int fd = rd_fd_high(open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));

    if (fd < 0)
        return errno;
    int error = write_to(fd, format, dump, streams, process);
    if (close(fd) != 0 && !error)
        error = errno;
    if (error)
        unlink(path); /* half a dump would only mislead */
    return error;
}
