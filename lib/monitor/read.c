/* Reading records: see read.h. */
#include "monitor/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/out.h"
#include "monitor/ticks.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* Words are copied one by one, as they were stored, and each before those behind it: a call that is seen to have ended
 * is seen to have failed, as the board has that behind the number of those that have ended. */
static void load_words(void *to, const void *from, size_t bytes)
{
    const _Atomic uint64_t *at = from;

    for (size_t i = 0; i < bytes / sizeof *at; i++) {
        uint64_t word = atomic_load_explicit(&at[i], memory_order_acquire);
        memcpy((char *)to + i * sizeof word, &word, sizeof word);
    }
}

static uint64_t load(const void *at)
{
    return atomic_load_explicit((const _Atomic uint64_t *)at, memory_order_acquire);
}

/* Returns true if `count` items of `each` bytes at `offset` lie within the record, where words may be loaded. */
static bool within(const rd_reader_t *r, uint64_t offset, uint64_t count, uint64_t each)
{
    return offset % 64 == 0 && offset <= r->bytes && count <= (r->bytes - offset) / each;
}

static const char *check_head(const rd_reader_t *r)
{
    const rd_monitor_head_t *h = &r->head;

    if (h->magic != RD_MONITOR_MAGIC)
        return "it is not a record of rondo, or not whole yet";
    if (h->version != RD_MONITOR_VERSION)
        return "it is of another version of rondo";
    if (h->bytes > r->bytes)
        return "it has been cut short";
    if (h->comm_bytes != sizeof(rd_monitor_comm_t) || h->event_bytes != sizeof(rd_monitor_event_t) || h->nevents == 0 ||
        (h->nevents & (h->nevents - 1)) || h->ncomms > 65536 || !within(r, h->comms_at, h->ncomms, h->comm_bytes) ||
        !within(r, h->events_at, h->nevents, h->event_bytes) ||
        (h->nstacks &&
         (h->stack_bytes != sizeof(rd_monitor_stack_t) || h->module_bytes != sizeof(rd_monitor_module_t) ||
          h->nmodules > RD_MONITOR_MODULES || !within(r, h->stacks_at, h->nstacks, h->stack_bytes) ||
          !within(r, h->modules_at, h->nmodules, h->module_bytes))))
        return "its head makes no sense";
    return NULL;
}

const char *rd_reader_memory(rd_reader_t *r, const void *base, size_t bytes)
{
    memset(r, 0, sizeof *r);
    if (bytes < RD_MONITOR_PAGE)
        return "it is too short for a record";
    r->base = base;
    r->bytes = bytes;
    load_words(&r->head, base, sizeof r->head);
    rd_out_plain_text(r->head.host, RD_MONITOR_NAME);
    rd_out_plain_text(r->head.program, RD_MONITOR_NAME);
    rd_out_plain_text(r->head.library, RD_MONITOR_NAME);
    rd_out_plain_text(r->head.boot, RD_MONITOR_NAME);
    return check_head(r);
}

/* A file may be cut short by whoever may write it, and a mapping of it would then raise a signal. */
static char *copy_file(int fd, size_t bytes)
{
    char *copy = aligned_alloc(64, (bytes + 63) / 64 * 64);
    size_t have = 0;

    while (copy && have < bytes) {
        ssize_t n = pread(fd, copy + have, bytes - have, (off_t)have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    if (copy && have == bytes)
        return copy;
    free(copy);
    return NULL;
}

static void drop(const char *base, size_t bytes, bool mapped)
{
    if (base && mapped)
        munmap((void *)(uintptr_t)base, bytes);
    else
        free((void *)(uintptr_t)base);
}

const char *rd_reader_open(rd_reader_t *r, int fd)
{
    struct stat st;

    memset(r, 0, sizeof *r);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < RD_MONITOR_PAGE)
        return "it is too short for a record";
    if ((uint64_t)st.st_size > RD_READ_MOST)
        return "it is too long for a record";
    size_t bytes = (size_t)st.st_size;
    int seals = fcntl(fd, F_GET_SEALS);
    bool mapped = seals >= 0 && (seals & SEALS) == SEALS;
    void *at = mapped ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : copy_file(fd, bytes);
    if (!at || at == MAP_FAILED)
        return "it cannot be read";
    const char *why = rd_reader_memory(r, at, bytes);
    r->mapped = mapped;
    r->dev = (uint64_t)st.st_dev;
    r->ino = (uint64_t)st.st_ino;
    if (why)
        rd_reader_close(r);
    return why;
}

void rd_reader_close(rd_reader_t *r)
{
    drop(r->base, r->bytes, r->mapped);
    r->base = NULL;
}

int rd_reader_comms(const rd_reader_t *r)
{
    uint64_t used = load(r->base + offsetof(rd_monitor_head_t, used));

    return (int)(used < r->head.ncomms ? used : r->head.ncomms);
}

/* The first word is the version of what follows it: the whole is copied while it stays the same, and none of the
 * versions that say "being written". Lines that change meanwhile do so word by word. */
static bool copy_steady(void *to, const char *at, size_t bytes, uint64_t being_written, uint64_t *version)
{
    for (int i = 0; i < RD_READ_TRIES; i++) {
        *version = load(at);
        if ((*version & being_written) == 1)
            continue;
        load_words(to, at, bytes);
        atomic_thread_fence(memory_order_acquire);
        if (load(at) == *version)
            return true;
    }
    return false;
}

/* Has the track had the same event before and after its numbers were read? Where a run begins it has none. */
static bool same_run(const rd_monitor_calls_t *before, const rd_monitor_calls_t *after)
{
    return before->entry == after->entry && before->bytes == after->bytes && (after->entry || !after->begun);
}

/* The numbers of a track are read one after the other, while its calls go on. Of one that never holds still, the event
 * is left out, to which the numbers need not belong. */
static bool copy_comm(rd_monitor_comm_t *comm, const char *at, uint64_t *version)
{
    rd_monitor_comm_t before;
    bool same = false;

    if (!copy_steady(comm, at, sizeof *comm, 1, version))
        return false;
    for (int i = 0; i < RD_READ_TRIES && !same; i++) {
        before = *comm;
        if (!copy_steady(comm, at, sizeof *comm, 1, version))
            return false;
        same = true;
        for (int t = 0; t < RD_TRACKS; t++)
            same = same && same_run(&before.calls[t], &comm->calls[t]);
    }
    for (int t = 0; t < RD_TRACKS; t++) {
        rd_monitor_calls_t *calls = &comm->calls[t];
        if (!same_run(&before.calls[t], calls))
            calls->entry = 0;
        if (calls->ended > calls->begun) /* which was read first */
            calls->begun = calls->ended;
    }
    return true;
}

bool rd_reader_comm(const rd_reader_t *r, int i, rd_monitor_comm_t *comm)
{
    uint64_t version;

    if (i < 0 || i >= rd_reader_comms(r) ||
        !copy_comm(comm, r->base + r->head.comms_at + (size_t)i * sizeof *comm, &version))
        return false;
    rd_out_plain_text(comm->name, RD_MONITOR_NAME);
    return version && comm->state > RD_MONITOR_FREE && comm->state <= RD_MONITOR_ENDED && comm->size > 0 &&
           comm->rank >= 0 && comm->rank < comm->size;
}

bool rd_reader_failure(const rd_reader_t *r, uint64_t comm, int rank, rd_monitor_failure_t *failure)
{
    uint64_t version;

    for (size_t i = 0; i < RD_MONITOR_FAILURES; i++) {
        const char *at = r->base + offsetof(rd_monitor_head_t, failures) + i * sizeof *failure;
        if (!copy_steady(failure, at, sizeof *failure, 1, &version) || !version || failure->comm != comm ||
            failure->rank != rank)
            continue;
        rd_out_plain_text(failure->text, sizeof failure->text);
        return true;
    }
    return false;
}

uint64_t rd_reader_events(const rd_reader_t *r)
{
    return load(r->base + offsetof(rd_monitor_head_t, next));
}

bool rd_reader_event(const rd_reader_t *r, uint64_t index, rd_monitor_event_t *event)
{
    uint64_t stamp, at = index & (r->head.nevents - 1);

    return copy_steady(event, r->base + r->head.events_at + at * sizeof *event, sizeof *event, 0xff, &stamp) && stamp &&
           stamp >> 8 == ((index + 1) & (UINT64_MAX >> 8));
}

bool rd_reader_stack(const rd_reader_t *r, int i, rd_monitor_stack_t *stack)
{
    const char *at = r->base + r->head.stacks_at + (size_t)i * sizeof *stack;

    if (!load(at + offsetof(rd_monitor_stack_t, nframes)))
        return false;
    load_words(stack, at, sizeof *stack);
    return stack->nframes && stack->nframes <= RD_MONITOR_FRAMES;
}

bool rd_reader_module(const rd_reader_t *r, int i, rd_monitor_module_t *module)
{
    const char *at = r->base + r->head.modules_at + (size_t)i * sizeof *module;

    if (!load(at))
        return false;
    load_words(module, at, sizeof *module);
    rd_out_plain_text(module->path, sizeof module->path);
    return module->begin < module->end;
}

/* Both clocks have run on from the moment of the head until now, and so are compared. */
double rd_reader_ago(const rd_reader_t *r, uint64_t ticks)
{
    const rd_monitor_head_t *h = &r->head;
    bool known = rd_ticks_known(h->clock);
    uint64_t now = known ? rd_ticks_now((rd_ticks_t)h->clock) : 0, ns = (uint64_t)rd_clock_ns();

    if (!known || !ticks || ticks > now || h->made_ticks >= now || h->made_ns >= ns)
        return 0;
    return (double)(now - ticks) * ((double)(ns - h->made_ns) / (double)(now - h->made_ticks)) / 1e9;
}

bool rd_reader_last(const rd_reader_t *r, const rd_monitor_comm_t *comm, rd_track_t track, rd_monitor_event_t *event)
{
    uint64_t entry = comm->calls[track].entry;

    return entry && rd_reader_event(r, entry - 1, event) && event->comm == comm->id;
}
