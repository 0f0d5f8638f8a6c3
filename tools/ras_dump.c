/* rondo-ras dump and trace: what the records say, in files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitor/dump_fr.h"
#include "monitor/stacks.h"
#include "ras.h"

#define NAMES_MS 8000 /* within which functions of stacks get names, or none */

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
    const rd_streams_t *streams;
    int process;
} one_t;

static bool write_json(rd_out_t *out, void *arg)
{
    const one_t *one = arg;

    rd_dump_json(out, one->dump, one->process);
    return true;
}

static bool write_fr(rd_out_t *out, void *arg)
{
    const one_t *one = arg;

    return rd_dump_fr(out, one->dump, one->streams, one->process);
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
    {"fr", "%s/rondo_trace_%d", write_fr},
};

static const format_t *format_of(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(name, formats[i].name) == 0)
            return &formats[i];
    return NULL;
}

/* Is this the first process that has the communicator? */
static bool is_first(const rd_dump_t *dump, int process, uint64_t id)
{
    for (int i = 0; i < process; i++)
        for (int k = 0; k < dump->histories[i].ncomms; k++)
            if (dump->histories[i].comms[k].id == id)
                return false;
    return true;
}

static bool has_uncounted(const rd_streams_t *streams, uint64_t id)
{
    for (size_t i = 0; i < streams->nstreams; i++)
        if (streams->streams[i].id == id && streams->streams[i].left_out)
            return true;
    return false;
}

/* What fr cannot say is not passed over in silence. Returns false if there is no memory. */
static bool warn_of_fr(const rd_dump_t *dump, const rd_streams_t *streams)
{
    bool known = true;

    for (int i = 0; i < dump->view->nprocesses; i++)
        for (int k = 0; known && k < dump->histories[i].ncomms; k++) {
            const rd_monitor_comm_t *c = &dump->histories[i].comms[k];
            int *members = is_first(dump, i, c->id) ? rd_dump_members(dump, c, &known) : NULL;
            if (!is_first(dump, i, c->id))
                continue;
            if (!members && known)
                fprintf(
                    stderr,
                    "rondo-ras: '%s' is left out: fr needs the number of each of its %d ranks in the job, and not all "
                    "have a record here (or a process has several of them); dump json on every host, and convert\n",
                    c->name, c->size);
            else if (members && has_uncounted(streams, c->id))
                fprintf(stderr,
                        "rondo-ras: some messages in '%s' are left out: they are counted from the first one on, on "
                        "both sides, and "
                        "a record has not kept that (RONDO_MONITOR_EVENTS), or is not here\n",
                        c->name);
            known |= members != NULL;
            free(members);
        }
    return known;
}

/* Nothing is written over, so that no file of an earlier dump is taken for one of this. */
static int write_processes(const rd_dump_t *dump, const rd_streams_t *streams, const format_t *format, const char *dir)
{
    int bad = ras_make_folder(dir), files = 0;
    char path[4096];

    for (int i = 0; i < dump->view->nprocesses && !bad; i++) {
        one_t one = {dump, streams, i};
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
        return ras_replace_file(to, 0600, write_chrome, dump);
    rd_streams_t streams = {0};
    int bad =
        strcmp(format, "fr") != 0 || (rd_streams_find(&streams, dump) && warn_of_fr(dump, &streams)) ? 0 : RAS_NOTHING;
    if (bad)
        fprintf(stderr, "rondo-ras: no memory\n");
    else
        bad = write_processes(dump, &streams, format_of(format), to);
    rd_streams_free(&streams, dump);
    return bad;
}

bool ras_is_format(const char *format)
{
    if (strcmp(format, "chrome") == 0 || format_of(format))
        return true;
    fprintf(stderr, "rondo-ras: there is no format '%s': json, fr or chrome\n", format);
    return false;
}

/* ---- commands ---- */

/* What to do with it. Nothing may come behind a trace that is the output. */
static void say_next(const char *format, const char *to)
{
    if (strcmp(format, "json") == 0)
        printf("    see: rondo-ras analyse %s\n", to);
    else if (strcmp(format, "fr") == 0)
        printf("    see: torchfrtrace %s, or rondo-ras analyse %s\n", to, to);
    else if (strcmp(to, "-") != 0)
        printf("a trace in %s\n    see: ui.perfetto.dev or chrome://tracing opens it\n", to);
}

static int dump_as(rd_view_t *view, const ras_options_t *options, const char *format)
{
    rd_dump_t dump;

    if (!ras_one_job(view, options))
        return RAS_USAGE;
    const bool looked = ras_look_again(view, options);
    if (looked)
        rd_stacks_read(view, NAMES_MS);
    if (!looked || !rd_dump_read(&dump, view, options->job)) {
        fprintf(stderr, "rondo-ras: no memory\n");
        return RAS_NOTHING;
    }
    int bad = ras_write_dump(&dump, format, options->out);
    rd_dump_free(&dump);
    if (!bad)
        say_next(format, options->out);
    return bad;
}

int ras_dump(rd_view_t *view, const ras_options_t *options)
{
    const char *format = options->format ? options->format : "json";

    if (!options->out) {
        fprintf(stderr, "rondo-ras: dump needs a folder for its files: -o DIR (chrome: a file)\n");
        return RAS_USAGE;
    }
    if (!ras_is_format(format))
        return RAS_USAGE;
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
