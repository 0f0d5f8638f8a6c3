/* rondo-ras dump: what the records say, in files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ras.h"

bool ras_one_job(const rd_view_t *view, const ras_options_t *options)
{
    int job = options->job;

    for (int i = 0; !options->job && i < view->nprocesses; i++) {
        if (job && view->processes[i].job != job) {
            fprintf(stderr, "rondo-ras: there are several jobs, among them %d and %d: choose one with --job\n", job,
                    view->processes[i].job);
            return false;
        }
        job = view->processes[i].job;
    }
    return true;
}

static int complain(const char *what, int error)
{
    fprintf(stderr, "rondo-ras: cannot write %s: %s%s\n", what, strerror(error),
            error == EEXIST ? "; it is of an earlier dump" : "");
    return RAS_NOTHING;
}

/* Nothing is written over, so that no file of an earlier dump is taken for one of this. */
static int write_process(const rd_dump_t *dump, int process, const char *dir)
{
    char path[4096];
    rd_out_t out;

    if ((size_t)snprintf(path, sizeof path, "%s/rondo_dump_%d.json", dir, dump->numbers[process]) >= sizeof path)
        return complain(dir, ENAMETOOLONG);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return complain(path, errno);
    rd_out_begin(&out, fd);
    rd_dump_json(&out, dump, process);
    int error = rd_out_end(&out);
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error)
        return 0;
    unlink(path); /* half a dump would only mislead */
    return complain(path, error);
}

static int write_all(const rd_dump_t *dump, const char *dir)
{
    int bad = 0, files = 0;

    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return complain(dir, errno);
    for (int i = 0; i < dump->view->nprocesses && !bad; i++) {
        if (!rd_dump_has(dump, i))
            continue;
        bad = write_process(dump, i, dir);
        files += !bad;
    }
    if (!bad)
        printf("%d dump%s in %s\n", files, files == 1 ? "" : "s", dir);
    return bad;
}

int ras_dump(rd_view_t *view, const ras_options_t *options)
{
    rd_dump_t dump;

    if (!options->out) {
        fprintf(stderr, "rondo-ras: dump needs a folder: -o DIR\n");
        return RAS_USAGE;
    }
    if (!ras_one_job(view, options))
        return RAS_USAGE;
    if (!ras_look_again(view, options) || !rd_dump_read(&dump, view, options->job)) {
        fprintf(stderr, "rondo-ras: no memory\n");
        return RAS_NOTHING;
    }
    int bad = write_all(&dump, options->out);
    rd_dump_free(&dump);
    return bad;
}
