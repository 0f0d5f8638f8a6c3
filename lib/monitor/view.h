/* What records tell together: processes with their states, and communicators with their ranks. rondo-ras shows it, and
 * a rank that has waited for long judges by it (verdict.h).
 *
 * A view is a copy, made by one look after the other: between two looks it stays as it is, whatever the processes do.
 * Nothing in a record is believed (read.h). */
#ifndef RD_MONITOR_VIEW_H
#define RD_MONITOR_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "monitor/read.h"

#define RD_VIEW_ENDED 'x' /* there is no such process any more */
#define RD_VIEW_ELSEWHERE                                                                                              \
    '?' /* its number means another process here: it lives in another pid name space, or on another host */

/* For how long the threads of a process had lacked a core, and had one, all together, and when that was read. */
typedef struct rd_view_cores {
    uint64_t queued_ns, ran_ns, looked_ns;
} rd_view_cores_t;

/* A process with a record, alive or not. */
typedef struct rd_view_process {
    rd_reader_t reader;
    char state;               /* as /proc has it: R S D T t Z ...; RD_VIEW_ENDED; RD_VIEW_ELSEWHERE */
    unsigned long long ticks; /* of processor time; at the look before this one: */
    unsigned long long ticks_before;
    rd_view_cores_t cores;
    double queued; /* the part of the time between the two looks; 0: it is not known */
    int job;       /* the lowest pid of the processes that share communicators with it, in any number of steps */
    uint64_t now_ns, now_ticks; /* the clocks of the host that wrote the record, at the last look; 0: unknown here */
    char error[RD_ERROR_BYTES]; /* of a dump at a failure: the sentence of that; "": none */
    struct rd_stacks *stacks;   /* from where its calls were made (stacks.h); NULL: that was not read */
    bool past;                  /* the record is of a dump: state and clocks are those of then, and are left alone */
    bool stale;                 /* its record is a copy, which rd_view_add is to replace */
    uint64_t searched; /* for who looks for further records again and again: the communicators that it had then, */
    int searches;      /* and how often there were the same */
} rd_view_process_t;

/* A rank of a communicator, as its process's record has it. */
typedef struct rd_view_rank {
    int process, entry; /* of the view; of the record's table */
    rd_monitor_comm_t comm;
} rd_view_rank_t;

typedef struct rd_view_comm {
    uint64_t id;
    rd_view_rank_t *ranks; /* those with a record here, by rank */
    int nranks;
} rd_view_comm_t;

typedef struct rd_view {
    rd_view_process_t *processes;
    int nprocesses;
    rd_view_comm_t *comms; /* of the last look */
    int ncomms;
    rd_view_comm_t *before; /* of the look before it */
    int nbefore;
    int64_t looked_ms, before_ms; /* when those two were; 0: not yet */
    int unreadable;               /* records that are none, or of another version */
    char why[128];                /* of the last such */
    bool hurried;                 /* a call waits for what is found: nobody rests for a further look */
} rd_view_t;

/* All zero is a view of nothing. Adds the record behind a descriptor, which stays the caller's; one that is there
 * already is not added again. Returns false if there is no memory. */
bool rd_view_add(rd_view_t *view, int fd);
/* Is that file's record there, so that it need not be added? One that is stale is not. */
bool rd_view_has(const rd_view_t *view, uint64_t dev, uint64_t ino);
/* Records that are copies, of files, do not change by themselves: before a further look they are to be added again.
 * Marks them until that is done, and returns whether there are any. */
bool rd_view_stale(rd_view_t *view);
/* Leaves out those that were not added again: their files are no more there, as their processes have ended in order. */
void rd_view_drop_stale(rd_view_t *view);
/* Leaves out a process, in all looks. Those behind it have numbers that are less by one then. */
void rd_view_drop(rd_view_t *view, int process);
/* The number of the job that has this one, or a process of which has it; else this one again. */
int rd_view_job(const rd_view_t *view, int pid);
/* Reads all records and the states of their processes. Communicators that all have ended are left out, and so are those
 * of other jobs than `job`, which may be any process's number; 0: no job is. Returns false if there is no memory. */
bool rd_view_look(rd_view_t *view, int job);
/* Makes the last look of an older view, of records that are found anew each time, the look before the view's own. */
void rd_view_after(rd_view_t *view, rd_view_t *older);
/* Adds a record in memory, which the view frees, of a process that is no more looked at: `state` as /proc had it, ticks
 * of processor time, and the host's clock. Returns NULL, or why it is none. */
const char *rd_view_add_past(rd_view_t *view, char *base, size_t bytes, const rd_view_process_t *then);
void rd_view_free(rd_view_t *view);

/* ---- what is known of a rank ---- */

const rd_view_comm_t *rd_view_comm_of(const rd_view_comm_t *comms, int ncomms, uint64_t id);
const rd_view_rank_t *rd_view_rank_of(const rd_view_comm_t *comm, int rank);
bool rd_view_gone(const rd_view_t *view, const rd_view_rank_t *rank);    /* its process has ended */
bool rd_view_stopped(const rd_view_t *view, const rd_view_rank_t *rank); /* by a signal or a debugger */
uint64_t rd_view_begun(const rd_monitor_comm_t *comm);                   /* calls of all tracks */
/* The track of the call that it is inside; -1: it is outside of calls. */
int rd_view_inside(const rd_monitor_comm_t *comm);
/* The rank that it waits for, in the call that it is inside, or on a device, in a kernel; -1: it has not said so. */
int rd_view_waits_for(const rd_monitor_comm_t *comm);
double rd_view_waits_since(const rd_view_t *view, const rd_view_rank_t *rank); /* seconds */
uint64_t rd_view_bytes(const rd_view_t *view, const rd_view_rank_t *rank);     /* of all its calls */
/* Nanoseconds of CLOCK_MONOTONIC on the host that wrote the record, at those ticks of an event; 0: that cannot be said,
 * as that host is another one or was started again since. */
uint64_t rd_view_time(const rd_view_process_t *process, uint64_t ticks);

const char *rd_view_kind_name(int kind); /* "allreduce" */
/* Returns the kind of a call that is no collective of rd_coll_t, by its name; -1: there is none. */
int rd_view_kind_named(const char *name);
bool rd_view_kind_rooted(int kind); /* has it a root? */
/* Return the names of what a call has run by, NULL: unknown; and the word of a record for them, "": unknown. */
const char *rd_view_algo_name(const rd_monitor_event_t *event);
const char *rd_view_proto_name(const rd_monitor_event_t *event);
uint64_t rd_view_choice_named(const char *algo, const char *proto);
void rd_view_event_text(const rd_monitor_event_t *event, char *text,
                        size_t bytes); /* "allreduce (1024 float32, sum)" */
/* "allreduce, collective number 17 (1024 float32, sum)": a call of the track; `event` is NULL if it is not known. */
void rd_view_number_text(const rd_monitor_event_t *event, int track, uint64_t number, char *text, size_t bytes);
/* "allreduce, collective number 17 (1024 float32, sum)": the last call of the track. */
void rd_view_call_text(const rd_view_t *view, const rd_view_rank_t *rank, int track, char *text, size_t bytes);
/* The same of the collective in which a kernel of the rank waits: "allreduce, collective number 17 (1024 float32,
 * sum)".
 */
void rd_view_kernel_text(const rd_view_t *view, const rd_view_rank_t *rank, char *text, size_t bytes);
/* Finds the event of a collective that the rank has begun. Returns false if its record has it no more. */
bool rd_view_collective(const rd_view_t *view, const rd_view_rank_t *rank, uint64_t number, rd_monitor_event_t *event);
/* Returns in what two ranks' calls differ that must be alike, or NULL. It is the rule of rondo's signatures: of what
 * only moves data, bytes count, in whatever type. */
const char *rd_view_differs(const rd_monitor_event_t *one, const rd_monitor_event_t *other);
/* "rank 3 (n1:4711)": its host and process */
void rd_view_rank_text(const rd_view_t *view, const rd_view_rank_t *rank, char *text, size_t bytes);
/* Where it is, in a few words, without its number. */
void rd_view_where_text(const rd_view_t *view, const rd_view_rank_t *rank, bool numbers, char *text, size_t bytes);

#endif
