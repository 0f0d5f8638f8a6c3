/* See dump_files.h. */
#include "core/dump_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/word_list.h"
#include "monitor/dump_fr.h"

static const struct {
    const char *word, *file;
} formats[RD_DUMP_FORMATS] = {
    [RD_DUMP_AS_JSON] = {"json", "%s/rondo_dump_%d.json"},
    [RD_DUMP_AS_FR] = {"fr", "%s/rondo_trace_%d"},
    [RD_DUMP_AS_CHROME] = {"chrome", "%s/rondo_dump_%d.trace"}, /* not .json: it is no dump to be read again */
};

bool rd_dump_format_wanted(const char *list, rd_dump_format_t format)
{
    return rd_word_has(list, ',', formats[format].word) ||
           (format == RD_DUMP_AS_JSON && rd_word_has(list, ',', "rondo"));
}

void rd_dump_file_path(char *path, size_t room, const char *folder, rd_dump_format_t format, int number)
{
    snprintf(path, room, formats[format].file, folder, number);
}

/* PyTorch's analyser takes the digits at a name's end for the rank, and wants what stands before them to be alike for
 * all: so that has the number of the first communicator, which all ranks of a job know. */
void rd_dump_own_path(char *path, size_t room, const char *folder, rd_dump_format_t format, int serial,
                      const rd_dump_t *dump, int process)
{
    const rd_history_t *h = &dump->histories[process];

    if (format == RD_DUMP_AS_FR)
        snprintf(path, room, "%s/rondo_trace_%016llx_%d_%d", folder, h->ncomms ? (unsigned long long)h->comms[0].id : 0,
                 serial, dump->numbers[process]);
    else
        snprintf(path, room, "%s/rondo_dump.%d.%d.%s", folder, (int)getpid(), serial,
                 format == RD_DUMP_AS_JSON ? "json" : "trace");
}

void rd_dump_own_folder(char *path, size_t room, const char *folder, int serial)
{
    snprintf(path, room, "%s/rondo_dump.%d.%d", folder, (int)getpid(), serial);
}

/* Returns 0 or an error. */
static int write_to(int fd, rd_dump_format_t format, const rd_dump_t *dump, const rd_streams_t *streams, int process)
{
    bool good = true;
    rd_out_t out;

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
