/* Reading dumps: see load.h. */
#include "load.h"

#include "monitor/ticks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- records ---- */

bool load_make(load_t *l, size_t ncomms, uint64_t nevents)
{
    uint64_t room = 1;

    while (room < nevents)
        room *= 2;
    memset(l, 0, sizeof *l);
    l->bytes = RD_MONITOR_PAGE + ncomms * sizeof *l->comms + (size_t)room * sizeof *l->events;
    l->base = aligned_alloc(64, l->bytes);
    l->later = calloc(ncomms + 1, sizeof *l->later);
    if (!l->base || !l->later) {
        load_drop(l);
        return false;
    }
    memset(l->base, 0, l->bytes);
    l->head = (rd_monitor_head_t *)(void *)l->base;
    l->comms = (rd_monitor_comm_t *)(void *)(l->base + RD_MONITOR_PAGE);
    l->events = (rd_monitor_event_t *)(void *)(l->comms + ncomms);
    l->head->magic = RD_MONITOR_MAGIC;
    l->head->version = RD_MONITOR_VERSION;
    l->head->head_bytes = RD_MONITOR_PAGE;
    l->head->comm_bytes = sizeof *l->comms;
    l->head->ncomms = (uint32_t)ncomms;
    l->head->used = ncomms;
    l->head->event_bytes = sizeof *l->events;
    l->head->nevents = (uint32_t)room;
    l->head->comms_at = RD_MONITOR_PAGE;
    l->head->events_at = RD_MONITOR_PAGE + ncomms * sizeof *l->comms;
    l->head->bytes = l->bytes;
    l->head->clock = RD_TICKS_NS; /* the dump has made times of ticks */
    return true;
}

void load_drop(load_t *l)
{
    free(l->base);
    free(l->later);
    memset(l, 0, sizeof *l);
}

void load_event(load_t *l, uint64_t index, const rd_monitor_event_t *event)
{
    rd_monitor_event_t *to = &l->events[index & (l->head->nevents - 1)];

    *to = *event;
    to->stamp = (index + 1) << 8 | 2;
    l->head->next = index + 1;
}

/* ---- files ---- */

/* "rondo_trace_12" has the number 12; -1: there is none at its end. */
static int number_of(const char *name)
{
    const char *at = name + strlen(name);
    char *end;

    while (at > name && at[-1] >= '0' && at[-1] <= '9')
        at--;
    unsigned long n = strtoul(at, &end, 10);
    return *at && n <= INT32_MAX ? (int)n : -1;
}

/* Returns the bytes, or NULL with *why. */
static unsigned char *read_file(int fd, size_t *n, const char **why)
{
    struct stat st;
    unsigned char *bytes = NULL;
    size_t have = 0;

    *why = "it is no file, or too long";
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= VALUE_FILE_MOST)
        bytes = malloc((size_t)st.st_size + 1);
    for (ssize_t got = 1; bytes && have < (size_t)st.st_size && got > 0;) {
        got = read(fd, bytes + have, (size_t)st.st_size - have);
        have += got > 0 ? (size_t)got : 0;
    }
    *n = have;
    return bytes;
}

const char *load_bytes(load_t *l, const unsigned char *bytes, size_t n, int number)
{
    values_t values = {0};
    bool pickle = n > 0 && bytes[0] == 0x80;
    const value_t *file =
        pickle ? value_read_pickle(&values, bytes, n) : value_read_json(&values, (const char *)bytes, n);
    const char *why = !file ? values.why : pickle ? load_fr(l, file, number) : load_json(l, file);

    value_free(&values);
    return why;
}

/* The loaded records, until the view has looked at them twice. */
typedef struct past {
    rd_view_t *view;
    load_t *loads; /* of each of the view's processes */
} past_t;

static bool say(const char *path, const char *why)
{
    fprintf(stderr, "rondo-ras: cannot read %s: %s\n", path, why);
    return false;
}

/* Adds what a file says. */
static bool load_text(past_t *past, const char *path, const unsigned char *bytes, size_t n)
{
    load_t l = {0}, *more;
    const char *why = load_bytes(&l, bytes, n, number_of(path));

    more = why ? NULL : realloc(past->loads, (size_t)(past->view->nprocesses + 1) * sizeof *more);
    if (!why && !more)
        why = "there is no memory for it";
    if (!why) {
        past->loads = more;
        past->loads[past->view->nprocesses] = l;
        why = rd_view_add_past(past->view, l.base, l.bytes, &l.then);
        l.base = NULL; /* the view's, or gone */
    }
    if (!why)
        return true;
    free(l.then.stacks);
    load_drop(&l);
    return say(path, why);
}

static bool load_file(past_t *past, const char *path, int fd)
{
    const char *why;
    size_t n;
    unsigned char *bytes = read_file(fd, &n, &why);

    if (!bytes)
        return say(path, why);
    bool good = load_text(past, path, bytes, n);
    free(bytes);
    return good;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    int x = number_of((*a)->d_name), y = number_of((*b)->d_name);

    return x != y ? (x > y) - (x < y) : strcmp((*a)->d_name, (*b)->d_name);
}

static int is_dump(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return e->d_name[0] != '.' && ((n > 5 && strcmp(e->d_name + n - 5, ".json") == 0) || number_of(e->d_name) >= 0);
}

static bool begins_with(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* With several formats (RONDO_DUMP_FORMAT) a process has left its calls twice: rondo's own dumps, where there are any,
 * say more. */
static bool has_own(struct dirent **names, int n)
{
    for (int i = 0; i < n; i++)
        if (begins_with(names[i]->d_name, "rondo_dump"))
            return true;
    return false;
}

/* A file that cannot be read is left out, with a line that says so: one dump may have been cut short by the end of its
 * process, and the others tell what there is to know. Returns false if none can be read. */
static bool load_folder(past_t *past, const char *path)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, is_dump, by_name), good = 0;
    bool own = has_own(names, n);
    char name[4096];

    if (n <= 0)
        say(path, n < 0 ? strerror(errno) : "there is no dump in it: *.json, or names that end in a number");
    for (int i = 0; i < n; i++) {
        if (own && begins_with(names[i]->d_name, "rondo_trace_"))
            continue;
        snprintf(name, sizeof name, "%s/%s", path, names[i]->d_name);
        int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        good += fd >= 0 ? load_file(past, name, fd) : say(name, strerror(errno));
        if (fd >= 0)
            close(fd);
    }
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
    return good > 0;
}

/* The view looks twice, as it did when the dumps were made. */
static bool look_twice(past_t *past, int job)
{
    bool good = rd_view_look(past->view, job);

    for (int i = 0; i < past->view->nprocesses; i++) {
        load_t *l = &past->loads[i];
        memcpy(l->comms, l->later, l->head->ncomms * sizeof *l->comms);
    }
    return (good && rd_view_look(past->view, job)) || say("the dumps", "there is no memory for them");
}

/* Ends the loading. Returns whether there is something to look at. */
static bool finish(past_t *past, bool good, int job)
{
    good = good && look_twice(past, job);
    for (int i = 0; i < past->view->nprocesses; i++)
        free(past->loads[i].later);
    free(past->loads);
    if (!good)
        rd_view_free(past->view);
    return good;
}

bool load_files(rd_view_t *view, const load_file_t *files, int n, int job)
{
    past_t past = {.view = view};
    int good = 0;

    memset(view, 0, sizeof *view);
    for (int i = 0; i < n; i++)
        good += load_text(&past, files[i].from, files[i].bytes, files[i].n);
    return finish(&past, good > 0, job);
}

bool load_dumps(rd_view_t *view, const char *path)
{
    past_t past = {.view = view};
    struct stat st;

    memset(view, 0, sizeof *view);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0)
            close(fd);
        return say(path, strerror(errno));
    }
    bool good = S_ISDIR(st.st_mode) ? load_folder(&past, path) : load_file(&past, path, fd);
    close(fd);
    return finish(&past, good, 0);
}
