/* What a rank says of its calls while it runs: a seat in the record of its process (record.h).
 *
 * Nothing here waits, fails or allocates. Without a record (RONDO_MONITOR=0, or there was no memory for one) the seat's
 * board is the communicator's own memory, which nobody reads: so the shortest calls need not ask. */
#ifndef RD_MONITOR_SEAT_H
#define RD_MONITOR_SEAT_H

#include <stdbool.h>
#include <stddef.h>

#include "monitor/pace.h"
#include "monitor/periods.h"
#include "monitor/record.h"
#include "monitor/waited.h"

/* A call as its event says it. */
typedef struct rd_monitor_call {
    uint64_t count, bytes, tag;
    int32_t root; /* or the peer */
    uint8_t kind, type, op, flags;
    uint64_t stack; /* index of the stack in the record, plus one; 0: unknown */
    uint64_t input; /* with RD_MONITOR_HASHED: a hash of what it reads here; 0: nothing */
} rd_monitor_call_t;

typedef struct rd_seat {
    rd_monitor_comm_t *board; /* never NULL after rd_seat_init */
    void *record;             /* an rd_record_t (process_int.h); NULL: `board` is `own` */
    struct {                  /* the run of equal calls that goes on in each track */
        rd_monitor_call_t call;
        uint64_t number; /* of its first call */
        uint64_t entry;  /* index of its event plus one; 0: there is none */
    } runs[RD_TRACKS];
    /* The track of the last message, and how many collectives had begun then, plus one; 0: there was no message. */
    rd_track_t message;
    uint64_t message_at;
    rd_period_wait_t wait;
    rd_pace_t paces[RD_MONITOR_LINKS];
    bool quiet;          /* the network was polled since the call began, and the last poll brought nothing */
    rd_waited_t *waited; /* the communicator's; NULL: nobody counts waits */
    /* A call has ended, and is counted; NULL: nobody is told. */
    void (*ended)(struct rd_seat *seat, rd_track_t track, uint64_t entry, int result);
    rd_monitor_comm_t own;
} rd_seat_t;

/* What a communicator is, for its entry. */
typedef struct rd_monitor_comm_args {
    uint64_t id;
    const char *name;
    int rank, size, nodes, node, locals, device;
} rd_monitor_comm_args_t;

/* Begins a seat that nobody sees. */
void rd_seat_init(rd_seat_t *seat);
/* Takes an entry of this process's record, if there is a record and a free entry. */
void rd_seat_take(rd_seat_t *seat, const rd_monitor_comm_args_t *args);
/* Gives the entry back; its board stays as it is until another communicator takes it. */
void rd_seat_leave(rd_seat_t *seat);
/* Returns the index of its entry in this process's record; -1: it has none. */
int rd_seat_entry(const rd_seat_t *seat);
/* How a communicator has failed. */
typedef struct rd_seat_failure {
    int result, failed_rank; /* -1: nobody is named by a number */
    bool heard;              /* another rank has found it out */
    const char *text;
} rd_seat_failure_t;

/* The communicator has failed. Any thread. Returns true if that is news, and somebody sees it. */
bool rd_seat_failed(rd_seat_t *seat, const rd_seat_failure_t *failure);

static inline uint64_t rd_monitor_count(_Atomic uint64_t *counter)
{
    uint64_t n = atomic_load_explicit(counter, memory_order_relaxed) + 1;

    atomic_store_explicit(counter, n, memory_order_relaxed);
    return n;
}

/* A collective that repeats the one before it, as it is known to do: two plain stores into a line that only this rank
 * writes. Returns its number. */
static inline uint64_t rd_monitor_repeat_begin(const rd_seat_t *seat)
{
    return rd_monitor_count(&seat->board->calls[RD_TRACK_COLLECTIVE].begun);
}

static inline void rd_monitor_repeat_end(const rd_seat_t *seat)
{
    rd_monitor_count(&seat->board->calls[RD_TRACK_COLLECTIVE].ended);
}

static inline rd_monitor_call_t rd_monitor_message(int send, uint64_t bytes, int peer, uint8_t flags, uint64_t tag)
{
    return (rd_monitor_call_t){.count = bytes,
                               .bytes = bytes,
                               .tag = tag,
                               .root = peer,
                               .kind = send ? RD_MONITOR_SEND : RD_MONITOR_RECV,
                               .type = RD_MONITOR_BYTE,
                               .flags = flags};
}

/* Returns true if the call is one more of the run that goes on in the track, and says nothing new. Narrow fields are
 * compared each by itself. Of conditions a compiler makes one load of several fields, and that waits until their stores
 * have left the core, behind the last message. */
static inline bool rd_monitor_repeats(const rd_seat_t *seat, rd_track_t track, const rd_monitor_call_t *b)
{
    const rd_monitor_call_t *a = &seat->runs[track].call;
    int narrow = (a->root ^ b->root) | (a->kind ^ b->kind) | (a->type ^ b->type) | (a->op ^ b->op);

    return seat->runs[track].number && a->count == b->count && a->bytes == b->bytes && a->tag == b->tag &&
           a->stack == b->stack && (narrow | (a->flags ^ b->flags)) == 0;
}

/* A call begins. Returns its event's index plus one, or 0 if it repeats the one before it, or if there is no record. */
uint64_t rd_monitor_begin_run(rd_seat_t *seat, rd_track_t track, const rd_monitor_call_t *call);
static inline uint64_t rd_monitor_begin(rd_seat_t *seat, rd_track_t track, const rd_monitor_call_t *call)
{
    if (!rd_monitor_repeats(seat, track, call))
        return rd_monitor_begin_run(seat, track, call);
    rd_monitor_count(&seat->board->calls[track].begun);
    return 0;
}
/* What the call with this event has written, which is about to end. */
void rd_monitor_output(rd_seat_t *seat, uint64_t entry, uint64_t hash);
/* By what the call with this event runs: rd_monitor_choice_word. */
void rd_monitor_choice(rd_seat_t *seat, uint64_t entry, uint64_t choice);
/* The call that ends next has failed, if that is a failure. */
void rd_monitor_failed(rd_seat_t *seat, rd_track_t track, int result);
/* What has ended has an event to be completed, or has failed. */
void rd_monitor_end_event(rd_seat_t *seat, rd_track_t track, uint64_t entry, int result);

/* A call has ended. `entry` is what the beginning returned. */
static inline void rd_monitor_end(rd_seat_t *seat, rd_track_t track, uint64_t entry, int result)
{
    if (result)
        rd_monitor_failed(seat, track, result);
    rd_monitor_count(&seat->board->calls[track].ended);
    if (entry || result)
        rd_monitor_end_event(seat, track, entry, result);
    if (seat->ended)
        seat->ended(seat, track, entry, result);
}

/* What is refused leaves the communicator as it was. */
static inline bool rd_monitor_refuses(int result)
{
    return result == RONDO_ERR_INVALID_ARGUMENT || result == RONDO_ERR_INVALID_USAGE || result == RONDO_ERR_UNSUPPORTED;
}

/* The call that has begun last is refused: other ranks call nothing of its number, so it does not count. Its event
 * stays, with what it got. */
void rd_monitor_take_back(rd_seat_t *seat, rd_track_t track, uint64_t entry, int result);

/* Finds what the call of that number was, by the entry that its beginning has returned. Returns false if that is not
 * known any more. */
bool rd_seat_call(const rd_seat_t *seat, rd_track_t track, uint64_t entry, uint64_t number, rd_monitor_event_t *event);

/* A message begins. */
static inline void rd_monitor_note_message(rd_seat_t *seat, rd_track_t track)
{
    seat->message = track;
    seat->message_at = atomic_load_explicit(&seat->board->calls[RD_TRACK_COLLECTIVE].begun, memory_order_relaxed) + 1;
}

/* Returns the track of the last call. */
static inline rd_track_t rd_monitor_last_track(const rd_seat_t *seat)
{
    uint64_t collectives = atomic_load_explicit(&seat->board->calls[RD_TRACK_COLLECTIVE].begun, memory_order_relaxed);

    return seat->message_at == collectives + 1 ? seat->message : RD_TRACK_COLLECTIVE;
}

/* The same as rd_monitor_begin for a message of rd_monitor_message, which in latency-bound codes is like the last one
 * that way; but a one-sided call may have been the last one of its track. */
static inline uint64_t rd_monitor_begin_message(rd_seat_t *seat, rd_track_t track, const rd_monitor_call_t *message)
{
    const rd_monitor_call_t *last = &seat->runs[track].call;
    int narrow = (last->root ^ message->root) | (last->kind ^ message->kind) | (last->flags ^ message->flags);

    rd_monitor_note_message(seat, track);
    if (!seat->runs[track].number || last->bytes != message->bytes || last->tag != message->tag || narrow)
        return rd_monitor_begin_run(seat, track, message);
    rd_monitor_count(&seat->board->calls[track].begun);
    return 0;
}

/* The rank is in a shrink since then, or not any more: 0. */
void rd_monitor_shrinks(rd_seat_t *seat, int64_t since_ms);
/* The rank waits: see rd_monitor_comm_t. */
void rd_monitor_wait(rd_seat_t *seat, int peer, int64_t since_ms, int64_t now_ms, int64_t step, int64_t steps);
/* A kernel of the rank waits for a peer: see rd_monitor_comm_t; -1: none waits any more. */
typedef struct rd_monitor_device {
    uint64_t in, peer_in, peer_behind;
} rd_monitor_device_t;

void rd_monitor_device_wait(rd_seat_t *seat, int peer, const rd_monitor_device_t *at, int64_t since_ms, int64_t now_ms);

#endif
