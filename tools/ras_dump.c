/* rondo-ras dump and trace: what the records say, in files. */
#include <stdio.h>
#include <string.h>

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

/* ---- formats ---- */

typedef struct one {
    const rd_dump_t *dump;
    int process;
} one_t;

static bool write_json(rd_out_t *out, void *arg)
{
    const one_t *one = arg;

    rd_dump_json(out, one->dump, one->process);
    return true;
}

static bool write_chrome(rd_out_t *out, void *arg)
{
    return rd_dump_chrome(out, arg);
}

typedef struct format {
    const char *name;
    const char *file; /* in the folder, with a number */
    ras_writer_fn write_it;
} format_t;

static const format_t formats[] = {
    {"json", "%s/rondo_dump_%d.json", write_json},
};

static const format_t *format_of(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(name, formats[i].name) == 0)
            return &formats[i];
    return NULL;
}

/* Nothing is written over, so that no file of an earlier dump is taken for one of this. */
static int write_processes(const rd_dump_t *dump, const format_t *format, const char *dir)
{
    int bad = ras_make_folder(dir), files = 0;
    char path[4096];

    for (int i = 0; i < dump->view->nprocesses && !bad; i++) {
        one_t one = {dump, i};
        if (!rd_dump_has(dump, i))
            continue;
        snprintf(path, sizeof path, format->file, dir, dump->numbers[i]);
        bad = ras_make_file(path, format->write_it, &one);
        files += !bad;
    }
    if (!bad)
        printf("%d dump%s in %s\n", files, files == 1 ? "" : "s", dir);
    return bad;
}

int ras_write_dump(rd_dump_t *dump, const char *format, const char *to)
{
    if (strcmp(format, "chrome") == 0)
        return ras_replace_file(to, write_chrome, dump);
    if (format_of(format))
        return write_processes(dump, format_of(format), to);
    fprintf(stderr, "rondo-ras: there is no format '%s': json or chrome\n", format);
    return RAS_USAGE;
}

/* ---- commands ---- */

static int dump_as(rd_view_t *view, const ras_options_t *options, const char *format)
{
    rd_dump_t dump;

    if (!ras_one_job(view, options))
        return RAS_USAGE;
    if (!ras_look_again(view, options) || !rd_dump_read(&dump, view, options->job)) {
        fprintf(stderr, "rondo-ras: no memory\n");
        return RAS_NOTHING;
    }
    int bad = ras_write_dump(&dump, format, options->out);
    rd_dump_free(&dump);
    return bad;
}

int ras_dump(rd_view_t *view, const ras_options_t *options)
{
    const char *format = options->format ? options->format : "json";

    if (!options->out) {
        fprintf(stderr, "rondo-ras: dump needs a folder for its files: -o DIR\n");
        return RAS_USAGE;
    }
    if (!format_of(format)) {
        fprintf(stderr, "rondo-ras: dump has the format json; for chrome there is rondo-ras trace -o FILE\n");
        return RAS_USAGE;
    }
    return dump_as(view, options, format);
}

int ras_trace(rd_view_t *view, const ras_options_t *options)
{
    if (!options->out) {
        fprintf(stderr, "rondo-ras: trace needs a file: -o FILE (-: the output)\n");
        return RAS_USAGE;
    }
    return dump_as(view, options, "chrome");
}
