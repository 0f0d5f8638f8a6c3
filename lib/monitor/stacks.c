/* See stacks.h. */
#include "monitor/stacks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "monitor/process_int.h"
#include "monitor/symbols.h"

/* ---- what a record says ---- */

rd_stacks_t *rd_stacks_make(size_t n)
{
    return calloc(1, sizeof(rd_stacks_t) + n * sizeof(rd_stack_t));
}

static const char *file_of(const char *path)
{
    const char *last = strrchr(path, '/');

    return last ? last + 1 : path;
}

static void locate(const rd_stacks_t *s, const rd_monitor_module_t *modules, uint64_t address, rd_frame_t *frame)
{
    frame->module = -1;
    frame->at = address;
    for (int i = 0; i < s->nmodules; i++)
        if (address >= modules[i].begin && address < modules[i].end) {
            frame->module = i;
            frame->at = address - modules[i].base;
            snprintf(frame->text, sizeof frame->text, "%.96s+0x%llx", file_of(s->modules[i]),
                     (unsigned long long)frame->at);
            return;
        }
    snprintf(frame->text, sizeof frame->text, "0x%llx", (unsigned long long)address);
}

/* Returns NULL if there are none, or there is no memory. */
static rd_stacks_t *read_record(const rd_reader_t *reader)
{
    rd_monitor_module_t modules[RD_MONITOR_MODULES];
    rd_monitor_stack_t stack;
    size_t n = 0;

    for (uint32_t i = 0; i < reader->head.nstacks; i++)
        n += rd_reader_stack(reader, (int)i, &stack);
    rd_stacks_t *s = n ? rd_stacks_make(n) : NULL;
    if (!s)
        return NULL;
    for (uint32_t i = 0; i < reader->head.nmodules; i++)
        if (rd_reader_module(reader, (int)i, &modules[s->nmodules])) {
            memcpy(s->modules[s->nmodules], modules[s->nmodules].path, RD_MONITOR_PATH);
            s->nmodules++;
        }
    for (uint32_t i = 0; i < reader->head.nstacks && s->n < n; i++) {
        rd_stack_t *to = &s->stacks[s->n];
        if (!rd_reader_stack(reader, (int)i, &stack))
            continue;
        to->index = i + 1;
        to->nframes = (int)stack.nframes;
        for (int k = 0; k < to->nframes; k++)
            locate(s, modules, stack.frames[k], &to->frames[k]);
        s->n++;
    }
    return s;
}

const rd_stack_t *rd_stacks_find(const rd_stacks_t *s, uint64_t index)
{
    for (size_t i = 0; s && index && i < s->n; i++)
        if (s->stacks[i].index == index)
            return &s->stacks[i];
    return NULL;
}

/* ---- names ---- */

static int by_address(const void *a, const void *b)
{
    const rd_symbol_t *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* The frame's address is behind the call, which may be the last thing in its function. */
static int gather(const rd_stacks_t *s, int module, rd_symbol_t *symbols)
{
    int n = 0;

    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->stacks[i].nframes; k++)
            if (s->stacks[i].frames[k].module == module)
                symbols[n++] = (rd_symbol_t){.at = s->stacks[i].frames[k].at - 1};
    qsort(symbols, (size_t)n, sizeof *symbols, by_address);
    return n;
}

static void name_frames(rd_stacks_t *s, int module, const rd_symbol_t *symbols, int n)
{
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->stacks[i].nframes; k++) {
            rd_frame_t *frame = &s->stacks[i].frames[k];
            const rd_symbol_t wanted = {.at = frame->at - 1};
            const rd_symbol_t *found =
                frame->module == module ? bsearch(&wanted, symbols, (size_t)n, sizeof *symbols, by_address) : NULL;
            if (found && found->name[0])
                snprintf(frame->text, sizeof frame->text, "%s+0x%llx (%.60s)", found->name,
                         (unsigned long long)(frame->at - found->from), file_of(s->modules[module]));
        }
}

static void name_all(rd_stacks_t *s)
{
    rd_symbol_t *symbols = calloc(s->n * RD_MONITOR_FRAMES, sizeof *symbols);

    for (int module = 0; symbols && module < s->nmodules; module++) {
        const int n = gather(s, module, symbols);
        if (n)
            rd_symbols_name(s->modules[module], symbols, n);
        name_frames(s, module, symbols, n);
    }
    free(symbols);
}

/* Copies that a thread names, and those for which they are meant. Whoever comes last frees them. */
typedef struct naming {
    _Atomic int users, over;
    int n;
    rd_stacks_t *copies[];
} naming_t;

static void drop(naming_t *naming)
{
    if (atomic_fetch_sub(&naming->users, 1) != 1)
        return;
    for (int i = 0; i < naming->n; i++)
        free(naming->copies[i]);
    free(naming);
}

static void *name_copies(void *arg)
{
    naming_t *naming = arg;

    for (int i = 0; i < naming->n; i++)
        if (naming->copies[i])
            name_all(naming->copies[i]);
    atomic_store(&naming->over, 1);
    drop(naming);
    return NULL;
}

static rd_stacks_t *copy_of(const rd_stacks_t *s)
{
    rd_stacks_t *copy = s ? rd_stacks_make(s->n) : NULL;

    if (copy)
        memcpy(copy, s, sizeof *s + s->n * sizeof s->stacks[0]);
    return copy;
}

static naming_t *start(const rd_view_t *view, const bool *fresh)
{
    naming_t *naming = calloc(1, sizeof *naming + (size_t)view->nprocesses * sizeof naming->copies[0]);
    pthread_t thread;

    if (!naming)
        return NULL;
    naming->n = view->nprocesses;
    atomic_init(&naming->users, 2);
    for (int i = 0; i < naming->n; i++)
        naming->copies[i] = fresh[i] ? copy_of(view->processes[i].stacks) : NULL;
    if (rd_thread_start(&thread, name_copies, naming) == 0) {
        pthread_detach(thread);
        return naming;
    }
    drop(naming);
    drop(naming);
    return NULL;
}

/* Without a thread there are no names. */
static void name_within(rd_view_t *view, const bool *fresh, int64_t ms)
{
    const struct timespec pause = {0, 1000000};
    naming_t *naming = start(view, fresh);

    if (!naming)
        return;
    while (!atomic_load(&naming->over) && ms-- > 0)
        nanosleep(&pause, NULL);
    for (int i = 0; atomic_load(&naming->over) && i < naming->n; i++)
        if (naming->copies[i]) {
            free(view->processes[i].stacks);
            view->processes[i].stacks = naming->copies[i];
            naming->copies[i] = NULL;
        }
    drop(naming);
}

void rd_stacks_read(rd_view_t *view, int64_t ms)
{
    bool *fresh = calloc((size_t)view->nprocesses + 1, sizeof *fresh), any = false;

    for (int i = 0; fresh && i < view->nprocesses; i++) {
        rd_view_process_t *p = &view->processes[i];
        if (p->stacks || !p->reader.head.nstacks)
            continue;
        p->stacks = read_record(&p->reader);
        fresh[i] = p->stacks;
        any |= fresh[i];
        if (ms < 0 && fresh[i])
            name_all(p->stacks);
    }
    if (any && ms > 0)
        name_within(view, fresh, ms);
    free(fresh);
}

/* The record stays for whoever has joined it. */
rd_stacks_t *rd_stacks_own(int64_t ms)
{
    rd_view_process_t own = {0};
    rd_view_t view = {.processes = &own, .nprocesses = 1};

    rd_record_lock();
    const rd_record_t *record = rd_record();
    if (record && record->stacks && !rd_reader_memory(&own.reader, record->head, record->bytes))
        own.stacks = read_record(&own.reader);
    rd_record_unlock();
    const bool fresh = own.stacks;
    if (fresh && ms > 0)
        name_within(&view, &fresh, ms);
    return own.stacks;
}
