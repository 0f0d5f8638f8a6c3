/* The record of a process: what it is doing with its communicators, in memory that others may read while it runs, while
 * it is stopped, and after it has been killed.
 *
 *   | head and failures, a page | communicators: a fixed table | events: a ring | stacks | modules |
 *
 * It is a memfd that is sealed in size and has no name; the processes of the node hold descriptors of each other's
 * (held.h), so it lives as long as one of them. Only its own process writes it, and never waits for a reader: what may
 * change while it is read is either one word, or carries a version that is odd while it is written. A reader believes
 * nothing that it has not checked (read.h).
 *
 * All words have the byte order of the machine. Times are nanoseconds of CLOCK_MONOTONIC, or ticks of the head's clock
 * (ticks.h); 0: never. Whoever changes the layout counts RD_MONITOR_VERSION up. */
#ifndef RD_MONITOR_RECORD_H
#define RD_MONITOR_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#define RD_MONITOR_MAGIC UINT64_C(0x726f6e646f6d6f6e) /* "rondomon" */
#define RD_MONITOR_VERSION 6
#define RD_MONITOR_MEMFD "rondo-record" /* as /proc/PID/fd names it: "/memfd:rondo-record (deleted)" */
#define RD_MONITOR_COMMS 256
#define RD_MONITOR_NAME 64
#define RD_MONITOR_PAGE 4096

/* The sentence of a communicator's failure, which is the error of its calls on this rank from then on. */
#define RD_MONITOR_FAILURES 4 /* the last ones */
#define RD_MONITOR_SENTENCE 472

typedef struct rd_monitor_failure {
    _Alignas(64) _Atomic uint64_t version; /* odd: it is being written */
    uint64_t comm;                         /* its id */
    uint64_t failed_ns;
    int32_t rank, failed_rank; /* whose error it is, and whom it names; -1: nobody by a number */
    int32_t heard, zero;       /* another rank has found it out */
    char text[RD_MONITOR_SENTENCE];
} rd_monitor_failure_t;

typedef struct rd_monitor_head {
    _Atomic uint64_t magic; /* written last */
    uint32_t version, head_bytes, comm_bytes, ncomms, event_bytes, nevents;
    uint64_t comms_at, events_at, bytes; /* offsets, and the length of the whole record */
    uint64_t stacks_at, modules_at;
    uint32_t stack_bytes, nstacks, module_bytes, nmodules; /* without RONDO_STACKS there are none */
    int32_t pid, uid;
    int32_t job_rank, job_size; /* by the launcher's variables; -1: there are none */
    uint64_t pid_space;         /* inode of /proc/self/ns/pid: where `pid` means this process */
    uint64_t started;           /* field 22 of /proc/PID/stat: tells the process from a later one of this number */
    uint64_t made_ns, made_unix_ns, made_ticks; /* one moment */
    uint32_t clock, zero;                       /* rd_ticks_t */
    char host[RD_MONITOR_NAME], program[RD_MONITOR_NAME], library[RD_MONITOR_NAME];
    char boot[RD_MONITOR_NAME];         /* the kernel's boot id: a file may be of a boot before this one */
    _Alignas(64) _Atomic uint64_t next; /* events that have begun */
    _Alignas(64) _Atomic uint64_t used; /* communicators: the entries of the table that were ever used */
    _Atomic uint64_t failed;            /* failures so far */
    rd_monitor_failure_t failures[RD_MONITOR_FAILURES];
} rd_monitor_head_t;

/* The three runs of calls of a communicator. Ranks compare their numbers of collectives; messages have a number for
 * each direction. */
typedef enum rd_track { RD_TRACK_COLLECTIVE, RD_TRACK_SEND, RD_TRACK_RECV, RD_TRACKS } rd_track_t;

/* Calls of one track. A call that repeats the one before it counts `begun` and `ended` up and leaves everything else
 * alone, so that the shortest calls pay two stores. */
typedef struct rd_monitor_calls {
    _Atomic uint64_t begun, ended;
    _Atomic uint64_t entry; /* the event of the last call that differed from the one before it, plus one; 0: none */
    _Atomic uint64_t bytes; /* of all calls before that one */
} rd_monitor_calls_t;

typedef enum rd_monitor_state {
    RD_MONITOR_FREE, /* the entry is not used */
    RD_MONITOR_ALIVE,
    RD_MONITOR_FAILED, /* `result` says how; the communicator was not ended yet */
    RD_MONITOR_ENDED   /* destroyed or aborted; the entry may be used again */
} rd_monitor_state_t;

/* For how long a rank has waited in collectives, in periods of the coarse clock: the short ones, of a second or so, and
 * the long ones of half a minute. Period n is in place n modulo the number of places; one without a wait is not there.
 * Ranks of a host have the same periods. */
#define RD_PERIODS_SHORT 10
#define RD_PERIODS_LONG 6
#define RD_PERIOD_SHORT_SHIFT 10 /* of the clock's milliseconds */
#define RD_PERIOD_LONG_SHIFT 15

typedef struct rd_monitor_period {
    _Atomic uint64_t number; /* of the period, plus one; 0: there is none, or it is being written */
    _Atomic uint64_t waited; /* ms << 32 | calls in which it waited */
    _Atomic uint64_t calls;  /* ms that it waited in sends and receives << 32 | collectives begun at the first wait */
    /* Of the rank that it waited for most, if it did so for more than half of the time: ms beyond those for all others
     * << 32 | rank plus one; 0: no particular rank. */
    _Atomic uint64_t peer;
} rd_monitor_period_t;

/* How fast long messages come from a rank of another node: their paces, in classes of a factor of two, class k from
 * 2^(k-1) to 2^k MB/s. A count that would pass 255 halves all. */
#define RD_MONITOR_LINKS 4
#define RD_MONITOR_PACES 16

typedef struct rd_monitor_link {
    _Atomic uint64_t peer;   /* the rank plus one; 0: there is no link */
    _Atomic uint64_t period; /* of the last one, a short period; in the upper half, in how many there was one */
    _Atomic uint64_t paces[RD_MONITOR_PACES / 8]; /* bytes, from the lowest on */
} rd_monitor_link_t;

/* A rank in a communicator. The lines after the first two are the rank's board: it alone writes them. */
typedef struct rd_monitor_comm {
    _Alignas(64) _Atomic uint64_t version; /* of what follows up to `name`; odd: it is being written */
    _Atomic uint64_t id;                   /* alike on all ranks, and like no other communicator's */
    _Atomic int32_t state, result;
    int32_t rank, size, nodes, node, locals; /* `locals`: the ranks of this rank's node */
    int32_t device;                          /* -1: host memory. On a device a call has ended when it is enqueued */
    uint64_t made_ns;
    _Atomic uint64_t ended_ns;
    char name[RD_MONITOR_NAME];
    _Alignas(64) rd_monitor_calls_t calls[RD_TRACKS];
    /* The first call of each track that has failed, and the communicator with it: its number << 8 | result; 0: none. Of
     * collectives it is exact; messages that were under way together end in any order. */
    _Atomic uint64_t failed[RD_TRACKS];
    _Atomic uint64_t
        shrinks_ms; /* of the coarse clock: since when it is in a shrink, which not all call; 0: it is not */
    /* At slow misses: the rank that is waited for, in which call (the sum of all `begun`), and since when. On a device,
     * where calls have ended by then: that a kernel waits for, of which collective (its number, and
     * RD_MONITOR_REPLAYED; 0: unknown); in `peer_in`, that of the kernel which the peer's device has begun last; and in
     * `peer_behind`, how many operations of all ranks the peer's device is behind, 0: none, or that is not known. */
    _Alignas(64) _Atomic uint64_t waits_in;
    _Atomic int64_t waits_for;          /* -1: no particular rank */
    _Atomic uint64_t since_ms, seen_ms; /* of the coarse clock: the wait's first slow miss, and its latest */
    _Atomic int64_t step, steps;        /* of the program that waits; -1: several run */
    union {
        _Atomic uint64_t peer_in;
        _Atomic uint64_t thread; /* of host memory: the kernel's number of the thread that waits */
    };
    _Atomic uint64_t peer_behind;
    _Alignas(64) rd_monitor_period_t shorts[RD_PERIODS_SHORT], longs[RD_PERIODS_LONG];
    rd_monitor_link_t links[RD_MONITOR_LINKS];
} rd_monitor_comm_t;

/* With a number: of a call that was captured. All replays of the graph have it. */
#define RD_MONITOR_REPLAYED (UINT64_C(1) << 52)

typedef enum rd_monitor_flag {
    RD_MONITOR_GROUPED = 1, /* called inside a group */
    RD_MONITOR_TABLES = 2,  /* blocks of different lengths: `count` and `bytes` are 0 */
    RD_MONITOR_QUEUED = 4,  /* of a dump: on a device, where more is not known than that it was enqueued */
    RD_MONITOR_HASHED = 8   /* RONDO_HASH: `input` and `output` say what it read and wrote */
} rd_monitor_flag_t;

/* What kind of call, where it is no collective of rd_coll_t. */
#define RD_MONITOR_SEND 64
#define RD_MONITOR_RECV 65
#define RD_MONITOR_SPLIT 66
#define RD_MONITOR_OTHER 67 /* of another library's, in a dump: one that is not known */
/* One-sided: a call that waits is in the track of receives (signals and answers) or of sends. */
#define RD_MONITOR_WAIT_SIGNAL 68
#define RD_MONITOR_PUT 69
#define RD_MONITOR_SIGNAL 70
#define RD_MONITOR_GET 71
#define RD_MONITOR_FLUSH 72
#define RD_MONITOR_WINDOW 73 /* a window is made, or destroyed */
#define RD_MONITOR_GROW 74
#define RD_MONITOR_SUSPEND 75
#define RD_MONITOR_RESUME 76
#define RD_MONITOR_LAST RD_MONITOR_RESUME
#define RD_MONITOR_BYTE 255    /* the type of a message: only its bytes are known */
#define RD_MONITOR_UNKNOWN 255 /* the operator of a call that another library has dumped */

/* Calls that have neither count nor type, as a barrier has none. */
static inline int rd_monitor_bare(int kind)
{
    return kind == RD_MONITOR_SPLIT || (kind >= RD_MONITOR_WINDOW && kind <= RD_MONITOR_RESUME);
}

static inline int rd_monitor_one_sided(int kind)
{
    return kind >= RD_MONITOR_WAIT_SIGNAL && kind <= RD_MONITOR_FLUSH;
}

/* A call, in two lines: the first is written when it begins, the second when it ends or when its run does. While the
 * second is written, which a process may be killed at, the first stays as it is, and each word of the second is old or
 * new. */
typedef struct rd_monitor_event {
    _Alignas(
        64) uint64_t stamp; /* (index + 1) << 8 | version. Version 1: it is being written; odd: its second line is */
    uint64_t begun;         /* ticks */
    uint64_t comm;          /* its id */
    uint64_t number;        /* of the call in its track of this communicator, from 1 on */
    uint64_t count, bytes;
    uint64_t stack; /* index of the stack from which it was called, plus one; 0: unknown */
    uint8_t kind, type, op, flags;
    int32_t root;     /* or the peer */
    uint64_t ended;   /* ticks, of the run's first call; 0: it has not ended */
    uint64_t repeats; /* calls of the run after the first; while the run goes on, the board says it */
    int32_t rank, result;
    uint64_t thread;        /* the kernel's number */
    uint64_t tag;           /* of rondo_tag; 0: none */
    uint64_t input, output; /* hashes of what the call read here, and has written (hashed.h); 0: nothing, or unknown */
    uint64_t choice;        /* by what a collective of host memory runs, as rd_monitor_choice_word has it; 0: unknown */
} rd_monitor_event_t;

/* Two numbers plus one, a byte each from the lowest on: of the algorithm in rd_algos, and rd_proto_t; 0: none. Of equal
 * calls one behind the other, those of the first. */
static inline uint64_t rd_monitor_choice_word(int algo, int proto)
{
    return (uint64_t)(uint8_t)(algo + 1) | (uint64_t)(uint8_t)(proto + 1) << 8;
}

/* A stack of functions from which calls were made (RONDO_STACKS). Each is written once, and stays: programs make calls
 * from few places. */
#define RD_MONITOR_STACKS 512
#define RD_MONITOR_FRAMES 30
typedef struct rd_monitor_stack {
    _Alignas(64) _Atomic uint64_t hash; /* of the frames; 0: the entry is free */
    _Atomic uint64_t nframes;           /* written last; 0: it is being written */
    uint64_t frames[RD_MONITOR_FRAMES]; /* return addresses, the innermost first; the outermost may be missing */
} rd_monitor_stack_t;

/* A file whose code has frames, and where it lies. */
#define RD_MONITOR_MODULES 64
#define RD_MONITOR_PATH 232
typedef struct rd_monitor_module {
    _Alignas(64) _Atomic uint64_t begin; /* address of its code; written last; 0: the entry is free */
    uint64_t end, base;                  /* base: what addresses in the file are added to */
    char path[RD_MONITOR_PATH];
} rd_monitor_module_t;

_Static_assert(sizeof(rd_monitor_stack_t) == 256 && sizeof(rd_monitor_module_t) == 256, "both are four lines");
_Static_assert(sizeof(rd_monitor_failure_t) == 512, "a failure is eight lines");
_Static_assert(sizeof(rd_monitor_head_t) <= RD_MONITOR_PAGE, "the head is one page");
_Static_assert(sizeof(rd_monitor_comm_t) == 960, "a communicator is fifteen lines");
_Static_assert(sizeof(rd_monitor_event_t) == 128, "an event is two lines");

#endif
