/* Seats and events: see seat.h. */
#include "monitor/seat.h"

#include <rondo.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/wait.h"
#include "monitor/process_int.h"

#define TRIES 8     /* for an event that no slower thread is still writing */
#define UNLIKE 0xff /* flags that no call has */

/* ---- events ---- */

/* Words are copied one by one, so that a reader sees each of them whole. */
static void store_words(void *to, const void *from, size_t bytes)
{
    _Atomic uint64_t *at = to;

    for (size_t i = 0; i < bytes / sizeof *at; i++) {
        uint64_t word;
        memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
        atomic_store_explicit(&at[i], word, memory_order_relaxed);
    }
}

static void load_words(void *to, void *from, size_t bytes)
{
    _Atomic uint64_t *at = from;

    for (size_t i = 0; i < bytes / sizeof *at; i++) {
        uint64_t word = atomic_load_explicit(&at[i], memory_order_relaxed);
        memcpy((char *)to + i * sizeof word, &word, sizeof word);
    }
}

static _Atomic uint64_t *stamp_of(rd_monitor_event_t *event)
{
    return (_Atomic uint64_t *)(void *)&event->stamp;
}

/* Marks the event `index` as being written, unless a later one has taken its place or another thread writes it.
 * `stamp` is set to what it was. */
static bool open_event(rd_monitor_event_t *event, uint64_t index, uint64_t *stamp)
{
    *stamp = atomic_load_explicit(stamp_of(event), memory_order_relaxed);
    if (*stamp >> 8 != index + 1 || *stamp & 1 || !atomic_compare_exchange_strong(stamp_of(event), stamp, *stamp + 1))
        return false;
    atomic_thread_fence(memory_order_release);
    return true;
}

/* The version is a byte: it goes round within it. */
static void close_event(rd_monitor_event_t *event, uint64_t stamp)
{
    uint64_t next = (stamp & ~UINT64_C(0xff)) | ((stamp + 2) & 0xff);

    atomic_store_explicit(stamp_of(event), next, memory_order_release);
}

/* Takes the next event of the ring for this thread. A thread that was put aside in the middle of an event keeps it, and
 * the index is skipped. NULL: several were kept. */
static rd_monitor_event_t *take_event(rd_record_t *record, uint64_t *index)
{
    for (int i = 0; i < TRIES; i++) {
        *index = atomic_fetch_add_explicit(&record->head->next, 1, memory_order_relaxed);
        rd_monitor_event_t *event = &record->events[*index & record->mask];
        uint64_t stamp = atomic_load_explicit(stamp_of(event), memory_order_relaxed);
        if (!(stamp & 1) && atomic_compare_exchange_strong(stamp_of(event), &stamp, (*index + 1) << 8 | 1)) {
            atomic_thread_fence(memory_order_release);
            return event;
        }
    }
    return NULL;
}

static uint64_t this_thread(void)
{
    static _Thread_local uint64_t number;

    if (!number)
        number = (uint64_t)syscall(SYS_gettid);
    return number;
}

/* Returns the event's index plus one, or 0 if there is none. */
static uint64_t write_event(rd_seat_t *seat, const rd_monitor_call_t *call, uint64_t number)
{
    rd_record_t *record = seat->record;
    uint64_t index;
    rd_monitor_event_t *event = take_event(record, &index);
    rd_monitor_event_t made = {.begun = rd_ticks_now(record->clock),
                               .comm = atomic_load_explicit(&seat->board->id, memory_order_relaxed),
                               .number = number,
                               .count = call->count,
                               .bytes = call->bytes,
                               .kind = call->kind,
                               .type = call->type,
                               .op = call->op,
                               .flags = call->flags,
                               .root = call->root,
                               .rank = seat->board->rank,
                               .thread = this_thread(),
                               .tag = call->tag,
                               .stack = call->stack,
                               .input = call->input};

    if (!event)
        return 0;
    store_words((char *)event + sizeof event->stamp, (char *)&made + sizeof made.stamp,
                sizeof made - sizeof made.stamp);
    atomic_store_explicit(stamp_of(event), (index + 1) << 8 | 2, memory_order_release);
    return index + 1;
}

/* The run of equal calls that went on in the track is over: its event has their number. */
static void end_run(rd_seat_t *seat, rd_track_t track)
{
    rd_record_t *record = seat->record;
    uint64_t begun = atomic_load_explicit(&seat->board->calls[track].begun, memory_order_relaxed), stamp;
    uint64_t n = begun + 1 - seat->runs[track].number;

    if (!seat->runs[track].entry || n == 1)
        return;
    rd_monitor_event_t *event = &record->events[(seat->runs[track].entry - 1) & record->mask];
    if (!open_event(event, seat->runs[track].entry - 1, &stamp))
        return;
    atomic_store_explicit((_Atomic uint64_t *)(void *)&event->repeats, n - 1, memory_order_relaxed);
    close_event(event, stamp);
}

/* What the run that is over has moved is counted to the bytes, and another run begins. There is no event meanwhile: a
 * reader that finds the same one twice has what belongs to it. */
static void begin_run(rd_seat_t *seat, rd_track_t track, uint64_t number, uint64_t entry)
{
    rd_monitor_calls_t *calls = &seat->board->calls[track];
    uint64_t bytes = atomic_load_explicit(&calls->bytes, memory_order_relaxed);

    if (seat->runs[track].number)
        bytes += (number - seat->runs[track].number) * seat->runs[track].call.bytes;
    atomic_store_explicit(&calls->entry, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&calls->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&calls->begun, number, memory_order_release);
    atomic_store_explicit(&calls->entry, entry, memory_order_release);
}

uint64_t rd_monitor_begin_run(rd_seat_t *seat, rd_track_t track, const rd_monitor_call_t *call)
{
    rd_monitor_calls_t *calls = &seat->board->calls[track];

    end_run(seat, track);
    uint64_t number = atomic_load_explicit(&calls->begun, memory_order_relaxed) + 1;
    uint64_t entry = seat->record ? write_event(seat, call, number) : 0;
    begin_run(seat, track, number, entry);
    seat->runs[track].call = *call;
    if (call->flags & RD_MONITOR_HASHED)
        seat->runs[track].call.flags = UNLIKE; /* the next one may read or write something else */
    seat->runs[track].number = number;
    seat->runs[track].entry = entry;
    return entry;
}

static bool fails(int result)
{
    return result > RONDO_IN_PROGRESS && !rd_monitor_refuses(result);
}

void rd_monitor_failed(rd_seat_t *seat, rd_track_t track, int result)
{
    _Atomic uint64_t *failed = &seat->board->failed[track];
    const uint64_t number = atomic_load_explicit(&seat->board->calls[track].ended, memory_order_relaxed) + 1;

    if (!seat->record || !fails(result) || atomic_load_explicit(failed, memory_order_relaxed))
        return;
    atomic_store_explicit(failed, number << 8 | (uint64_t)result, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* a reader that sees the call ended sees that it has failed */
}

void rd_monitor_end_event(rd_seat_t *seat, rd_track_t track, uint64_t entry, int result)
{
    rd_record_t *record = seat->record;
    uint64_t stamp;

    if (!record)
        return;
    entry = entry ? entry : seat->runs[track].entry; /* a repetition that has failed */
    rd_monitor_event_t *event = entry ? &record->events[(entry - 1) & record->mask] : NULL;
    if (!event || !open_event(event, entry - 1, &stamp))
        return;
    atomic_store_explicit((_Atomic int32_t *)(void *)&event->result, result, memory_order_relaxed);
    atomic_store_explicit((_Atomic uint64_t *)(void *)&event->ended, rd_ticks_now(record->clock), memory_order_release);
    close_event(event, stamp);
}

void rd_monitor_take_back(rd_seat_t *seat, rd_track_t track, uint64_t entry, int result)
{
    rd_monitor_calls_t *calls = &seat->board->calls[track];

    if (seat->ended)
        seat->ended(seat, track, entry, result);
    if (entry) { /* the next call has an event of its own, and the bytes of this one are not counted */
        rd_monitor_end_event(seat, track, entry, result);
        seat->runs[track].number = seat->runs[track].entry = 0;
        atomic_store_explicit(&calls->entry, 0, memory_order_release);
    }
    atomic_store_explicit(&calls->begun, atomic_load_explicit(&calls->begun, memory_order_relaxed) - 1,
                          memory_order_release);
}

static void store_in(rd_seat_t *seat, uint64_t entry, size_t offset, uint64_t word)
{
    rd_record_t *record = seat->record;
    rd_monitor_event_t *event = record && entry ? &record->events[(entry - 1) & record->mask] : NULL;
    uint64_t stamp;

    if (!event || !open_event(event, entry - 1, &stamp))
        return;
    atomic_store_explicit((_Atomic uint64_t *)(void *)((char *)event + offset), word, memory_order_relaxed);
    close_event(event, stamp);
}

void rd_monitor_output(rd_seat_t *seat, uint64_t entry, uint64_t hash)
{
    store_in(seat, entry, offsetof(rd_monitor_event_t, output), hash);
}

void rd_monitor_choice(rd_seat_t *seat, uint64_t entry, uint64_t choice)
{
    store_in(seat, entry, offsetof(rd_monitor_event_t, choice), choice);
}

bool rd_seat_call(const rd_seat_t *seat, rd_track_t track, uint64_t entry, uint64_t number, rd_monitor_event_t *event)
{
    const rd_record_t *record = seat->record;

    if (!entry && seat->runs[track].number && seat->runs[track].number <= number)
        entry = seat->runs[track].entry; /* it repeats the first one of the run */
    if (!record || !entry)
        return false;
    rd_monitor_event_t *at = &record->events[(entry - 1) & record->mask];
    uint64_t stamp = atomic_load_explicit(stamp_of(at), memory_order_acquire);
    load_words(event, at, sizeof *event);
    atomic_thread_fence(memory_order_acquire);
    return stamp >> 8 == entry && atomic_load_explicit(stamp_of(at), memory_order_relaxed) == stamp;
}

static void wait_on_board(rd_monitor_comm_t *board, int peer, uint64_t in, int64_t since_ms, int64_t now_ms)
{
    atomic_store_explicit(&board->waits_for, peer, memory_order_relaxed);
    atomic_store_explicit(&board->since_ms, (uint64_t)since_ms, memory_order_relaxed);
    atomic_store_explicit(&board->seen_ms, (uint64_t)now_ms, memory_order_relaxed);
    atomic_store_explicit(&board->waits_in, in, memory_order_release);
}

void rd_monitor_wait(rd_seat_t *seat, int peer, int64_t since_ms, int64_t now_ms, int64_t step, int64_t steps)
{
    rd_monitor_comm_t *board = seat->board;
    uint64_t calls = 0;

    for (int track = 0; track < RD_TRACKS; track++)
        calls += atomic_load_explicit(&board->calls[track].begun, memory_order_relaxed);
    atomic_store_explicit(&board->step, step, memory_order_relaxed);
    atomic_store_explicit(&board->steps, steps, memory_order_relaxed);
    atomic_store_explicit(&board->thread, this_thread(), memory_order_relaxed);
    wait_on_board(board, peer, calls, since_ms, now_ms);
    if (seat->wait.seen_ms != now_ms || seat->wait.since_ms != since_ms) /* the clock is coarser than yields are */
        rd_periods_note(board, &seat->wait, rd_monitor_last_track(seat), peer, since_ms, now_ms);
    if (seat->waited)
        rd_waited_note(seat->waited, peer, since_ms, now_ms);
}

void rd_monitor_device_wait(rd_seat_t *seat, int peer, const rd_monitor_device_t *at, int64_t since_ms, int64_t now_ms)
{
    atomic_store_explicit(&seat->board->peer_in, at->peer_in, memory_order_relaxed);
    atomic_store_explicit(&seat->board->peer_behind, at->peer_behind, memory_order_relaxed);
    wait_on_board(seat->board, peer, at->in, since_ms, now_ms);
    if (peer >= 0) /* so it counts as a wait elsewhere, for communicators of the host */
        rd_periods_note(seat->board, &seat->wait, RD_TRACK_COLLECTIVE, peer, since_ms, now_ms);
    if (seat->waited && peer >= 0)
        rd_waited_note(seat->waited, peer, since_ms, now_ms);
}

/* ---- seats ---- */

void rd_seat_init(rd_seat_t *seat)
{
    memset(seat, 0, sizeof *seat);
    seat->board = &seat->own;
}

/* Returns a free entry of the table: one that was never used, or else the one whose communicator ended longest ago. */
static rd_monitor_comm_t *free_entry(rd_record_t *record)
{
    uint64_t used = atomic_load_explicit(&record->head->used, memory_order_relaxed);
    rd_monitor_comm_t *oldest = NULL;

    if (used < RD_MONITOR_COMMS) {
        atomic_store_explicit(&record->head->used, used + 1, memory_order_release);
        return &record->comms[used];
    }
    for (int i = 0; i < RD_MONITOR_COMMS; i++) {
        rd_monitor_comm_t *c = &record->comms[i];
        if (atomic_load(&c->state) == RD_MONITOR_ENDED && (!oldest || c->ended_ns < oldest->ended_ns))
            oldest = c;
    }
    return oldest;
}

static void write_entry(rd_monitor_comm_t *c, const rd_monitor_comm_args_t *args)
{
    uint64_t version = atomic_load_explicit(&c->version, memory_order_relaxed);

    atomic_store_explicit(&c->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    memset((char *)c + sizeof c->version, 0, sizeof *c - sizeof c->version);
    c->id = args->id;
    c->rank = args->rank;
    c->size = args->size;
    c->nodes = args->nodes;
    c->node = args->node;
    c->locals = args->locals;
    c->device = args->device;
    c->made_ns = (uint64_t)rd_clock_ns();
    snprintf(c->name, sizeof c->name, "%s", args->name);
    atomic_store_explicit(&c->state, RD_MONITOR_ALIVE, memory_order_relaxed);
    atomic_store_explicit(&c->version, version + 2, memory_order_release);
}

void rd_seat_take(rd_seat_t *seat, const rd_monitor_comm_args_t *args)
{
    rd_record_lock();
    rd_record_t *record = rd_record();
    rd_monitor_comm_t *entry = record ? free_entry(record) : NULL;
    if (entry) {
        write_entry(entry, args);
        seat->record = record;
        seat->board = entry;
    }
    rd_record_unlock();
}

/* Each takes the place of the oldest one, or of the next one if another thread is still writing there. */
static void write_failure(const rd_seat_t *seat, const rd_seat_failure_t *how)
{
    const rd_record_t *record = seat->record;
    rd_monitor_failure_t made = {.comm = atomic_load_explicit(&seat->board->id, memory_order_relaxed),
                                 .failed_ns = (uint64_t)rd_clock_ns(),
                                 .rank = seat->board->rank,
                                 .failed_rank = how->failed_rank,
                                 .heard = how->heard};

    snprintf(made.text, sizeof made.text, "%s", how->text);
    for (int i = 0; i < RD_MONITOR_FAILURES; i++) {
        uint64_t n = atomic_fetch_add_explicit(&record->head->failed, 1, memory_order_relaxed);
        rd_monitor_failure_t *to = &record->head->failures[n % RD_MONITOR_FAILURES];
        uint64_t version = atomic_load_explicit(&to->version, memory_order_relaxed);
        if (version & 1 || !atomic_compare_exchange_strong(&to->version, &version, version + 1))
            continue;
        atomic_thread_fence(memory_order_release);
        store_words((char *)to + sizeof to->version, (char *)&made + sizeof made.version,
                    sizeof made - sizeof made.version);
        atomic_store_explicit(&to->version, version + 2, memory_order_release);
        return;
    }
}

/* The sentence is there before the state says that there is one. */
bool rd_seat_failed(rd_seat_t *seat, const rd_seat_failure_t *failure)
{
    int32_t alive = RD_MONITOR_ALIVE;

    if (!seat->record || atomic_load_explicit(&seat->board->state, memory_order_relaxed) != alive)
        return false;
    atomic_store_explicit(&seat->board->result, failure->result, memory_order_relaxed);
    write_failure(seat, failure);
    return atomic_compare_exchange_strong(&seat->board->state, &alive, RD_MONITOR_FAILED);
}

void rd_monitor_shrinks(rd_seat_t *seat, int64_t since_ms)
{
    atomic_store_explicit(&seat->board->shrinks_ms, (uint64_t)since_ms, memory_order_relaxed);
}

int rd_seat_entry(const rd_seat_t *seat)
{
    const rd_record_t *record = seat->record;

    return record ? (int)(seat->board - record->comms) : -1;
}

void rd_seat_leave(rd_seat_t *seat)
{
    if (!seat->record)
        return;
    for (int track = 0; track < RD_TRACKS; track++)
        end_run(seat, (rd_track_t)track);
    atomic_store_explicit(&seat->board->ended_ns, (uint64_t)rd_clock_ns(), memory_order_relaxed);
    atomic_store_explicit(&seat->board->state, RD_MONITOR_ENDED, memory_order_release);
    rd_seat_init(seat);
}
