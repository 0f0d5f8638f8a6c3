/* What the files of rondo-ras share: the records that were found, and the communicators that they tell of. */
#ifndef RAS_H
#define RAS_H

#include <stdbool.h>
#include <sys/types.h>

#include "monitor/read.h"

enum { RAS_NONE = 0, RAS_NOTHING = 1, RAS_USAGE = 2, RAS_LATE = 3, RAS_BLAMED = 4, RAS_UNKNOWN = 5 };

/* A process with a record, alive or not. */
typedef struct ras_process {
    rd_reader_t reader;
    char state;               /* as /proc has it: R S D T t Z ...; RAS_ENDED; RAS_ELSEWHERE */
    unsigned long long ticks; /* of processor time */
    int job; /* the lowest pid of the processes that share communicators with it, in any number of steps */
} ras_process_t;

#define RAS_ENDED 'x' /* there is no such process any more */
#define RAS_ELSEWHERE                                                                                                  \
    '?' /* its number means another process here: it lives in another pid name space, or on another host */

/* A rank of a communicator, as its process's record has it. */
typedef struct ras_rank {
    int process, entry; /* of the view; of the record's table */
    rd_monitor_comm_t comm;
} ras_rank_t;

typedef struct ras_comm {
    uint64_t id;
    ras_rank_t *ranks; /* those with a record here, by rank */
    int nranks;
} ras_comm_t;

typedef struct ras_view {
    ras_process_t *processes;
    int nprocesses;
    ras_comm_t *comms;
    int ncomms;
    int unreadable; /* records that were found and are none, or of another version */
    char why[128];  /* of the last such */
} ras_view_t;

typedef struct ras_options {
    const char *dir; /* also records in this folder; NULL: none */
    int job;         /* this one alone; 0: all */
    bool json, all;
    int count;      /* pages of top; 0: until it is interrupted */
    double seconds; /* between two */
} ras_options_t;

/* Finds all records that this user may read. Returns false if there is no memory. */
bool ras_find(ras_view_t *view, const ras_options_t *options);
/* Reads the records again: process states, and communicators. */
bool ras_look(ras_view_t *view, const ras_options_t *options);
void ras_free(ras_view_t *view);
void ras_free_comms(ras_comm_t *comms, int ncomms); /* of a view from which they were taken */

/* The records of processes that /proc shows, and those that are given out at sockets (ras_find.c calls these). `add`
 * takes over the descriptor. */
typedef void (*ras_add_fn)(void *arg, int fd);
void ras_scan_proc(ras_add_fn add, void *arg);
void ras_scan_folder(const char *dir, ras_add_fn add, void *arg);
void ras_scan_sockets(bool (*known)(void *arg, int pid), ras_add_fn add, void *arg);

/* ---- what is known of a rank ---- */

const ras_rank_t *ras_rank_of(const ras_comm_t *comm, int rank);
bool ras_gone(const ras_view_t *view, const ras_rank_t *rank);    /* its process has ended */
bool ras_stopped(const ras_view_t *view, const ras_rank_t *rank); /* by a signal or a debugger */
uint64_t ras_begun(const rd_monitor_comm_t *comm);                /* calls of all tracks */
/* The track of the call that it is inside; -1: it is outside of calls. */
int ras_inside(const rd_monitor_comm_t *comm);
/* The rank that it waits for, in the call that it is inside; -1: it has not said so. */
int ras_waits_for(const rd_monitor_comm_t *comm);
double ras_waits_since(const rd_monitor_comm_t *comm);              /* seconds */
uint64_t ras_bytes(const ras_view_t *view, const ras_rank_t *rank); /* of all its calls */

/* "allreduce number 17 (1024 float32, sum)": the last call of the track. */
void ras_call_text(const ras_view_t *view, const ras_rank_t *rank, int track, char *text, size_t bytes);
/* "rank 3 (pid 4711)" */
void ras_rank_text(const ras_view_t *view, const ras_rank_t *rank, char *text, size_t bytes);
/* Where it is, in a few words, without its number. */
void ras_where_text(const ras_view_t *view, const ras_rank_t *rank, bool numbers, char *text, size_t bytes);
/* Prints a text as a string of JSON. */
void ras_print_json(const char *text);

/* ---- the commands; each returns the exit status ---- */

int ras_list(ras_view_t *view, const ras_options_t *options);
int ras_status(ras_view_t *view, const ras_options_t *options);
int ras_who(ras_view_t *view, const ras_options_t *options);
int ras_top(ras_view_t *view, const ras_options_t *options);

#endif
