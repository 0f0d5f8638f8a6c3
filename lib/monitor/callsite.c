/* See callsite.h. */
#define _GNU_SOURCE
#include "monitor/callsite.h"

#include <execinfo.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "monitor/process_int.h"

#define PROBES 32 /* entries of the table in which a stack may be */

/* Modules that have code at some of the frames. */
typedef struct found {
    void *const *frames;
    int nframes, n;
    rd_monitor_module_t modules[RD_MONITOR_FRAMES];
} found_t;

static bool has_frame(const found_t *f, uint64_t begin, uint64_t end)
{
    for (int i = 0; i < f->nframes; i++)
        if ((uintptr_t)f->frames[i] >= begin && (uintptr_t)f->frames[i] < end)
            return true;
    return false;
}

/* The program itself has no name there. */
static int find_module(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    found_t *f = arg;
    (void)bytes;

    for (int i = 0; i < info->dlpi_phnum && f->n < RD_MONITOR_FRAMES; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uint64_t begin = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || !has_frame(f, begin, begin + part->p_memsz))
            continue;
        rd_monitor_module_t *m = &f->modules[f->n++];
        *m = (rd_monitor_module_t){.begin = begin, .end = begin + part->p_memsz, .base = info->dlpi_addr};
        if (info->dlpi_name && *info->dlpi_name)
            strncpy(m->path, info->dlpi_name, sizeof m->path - 1);
        else if (readlink("/proc/self/exe", m->path, sizeof m->path - 1) < 0)
            m->path[0] = 0;
    }
    return 0;
}

/* One that is there stays; one that has no room is not known. */
static void add_module(const rd_record_t *record, const rd_monitor_module_t *found)
{
    for (int i = 0; i < RD_MONITOR_MODULES; i++) {
        rd_monitor_module_t *m = &record->modules[i];
        const uint64_t begin = atomic_load_explicit(&m->begin, memory_order_relaxed);
        if (begin == found->begin && m->end == found->end)
            return;
        if (begin)
            continue;
        m->end = found->end;
        m->base = found->base;
        memcpy(m->path, found->path, sizeof m->path);
        atomic_store_explicit(&m->begin, found->begin, memory_order_release);
        return;
    }
}

/* The loader's lock is not taken inside the record's: a constructor of a library that is being loaded may make a
 * communicator. */
static void write_stack(const rd_record_t *record, rd_monitor_stack_t *stack, void *const *frames, int n)
{
    found_t found = {.frames = frames, .nframes = n};

    dl_iterate_phdr(find_module, &found);
    rd_record_lock();
    for (int i = 0; i < found.n; i++)
        add_module(record, &found.modules[i]);
    rd_record_unlock();
    for (int i = 0; i < n; i++)
        stack->frames[i] = (uintptr_t)frames[i];
    atomic_store_explicit(&stack->nframes, (uint64_t)n, memory_order_release);
}

bool rd_callsite_begin(const rd_seat_t *seat)
{
    const rd_record_t *record = seat->record;
    void *frame;

    return record && record->stacks && backtrace(&frame, 1) >= 0;
}

/* The first frame is this function's own. */
uint64_t rd_callsite(const rd_seat_t *seat)
{
    const rd_record_t *record = seat->record;
    void *frames[1 + RD_MONITOR_FRAMES];
    const int n = backtrace(frames, 1 + RD_MONITOR_FRAMES) - 1;

    if (n <= 0)
        return 0;
    const uint64_t hash = rd_hash(RD_HASH_EMPTY, &frames[1], (size_t)n * sizeof frames[1]) | 1;
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        const uint64_t i = ((hash >> 32) + probe) & (RD_MONITOR_STACKS - 1);
        uint64_t had = atomic_load_explicit(&record->stacks[i].hash, memory_order_relaxed);
        if (!had && atomic_compare_exchange_strong(&record->stacks[i].hash, &had, hash)) {
            write_stack(record, &record->stacks[i], &frames[1], n);
            had = hash;
        }
        if (had == hash)
            return i + 1;
    }
    return 0;
}
