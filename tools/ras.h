/* What the files of rondo-ras share. */
#ifndef RAS_H
#define RAS_H

#include "monitor/dump.h"
#include "monitor/verdict.h"

enum { RAS_NOTHING = 1, RAS_USAGE = 2 }; /* exit statuses beside those of verdicts */

typedef struct ras_options {
    const char *dir;   /* also records in this folder; NULL: none */
    const char *from;  /* the records in this folder alone; NULL: those of processes */
    const char *hosts; /* those of these hosts alone, by commas; NULL: this host's */
    const char *key;   /* the file with their secret */
    const char *out, *format;
    char **args; /* of commands that have some */
    int nargs;
    int job; /* this one alone; 0: all */
    bool json, all;
    int count;      /* pages of top; 0: until it is interrupted */
    double seconds; /* between two; 0: the command's own */
    const char *tool;
    int64_t user;   /* whose processes are asked besides one's own; below 0: nobody's */
    double timeout; /* of stacks, seconds; 0: its own */
    double stall;   /* of monitor, seconds; below 0: its own */
} ras_options_t;

/* Says why there is nothing of a job: there is none of that number, or it is another user's. */
void ras_say_no_job(int pid);

/* Finds all records that this user may read, and looks at them. Returns false if there is no memory. */
bool ras_find(rd_view_t *view, const ras_options_t *options);

/* May a descriptor or a file of that name, as readlink of /proc gives it, be a record? */
bool ras_is_record(const char *name);

/* Reads copies of files again, before a further look: those that are no more there are left out. Returns false if there
 * is no memory. */
bool ras_find_again(rd_view_t *view, const ras_options_t *options);

/* Adds to a view what is new, and looks again. The records that it has stay, also of processes that have ended. */
bool ras_find_more(rd_view_t *view, const ras_options_t *options);

/* The same of other hosts. Returns false, and says why, if there is nothing. */
bool ras_find_hosts(rd_view_t *view, const ras_options_t *options);

/* A job's number is its lowest process, which may end while others go on. Returns a process of the job that lives, by
 * which it can be found again; `job`, if there is none. */
int ras_live_process(const rd_view_t *view, int job);

/* Is there a communicator? A process whose first one is being made is in no job yet. */
bool ras_has_comms(const rd_reader_t *reader);
/* Waits for the first communicator of a process, or of another one of its job. Returns 0 with the job's number, or an
 * exit status. */
int ras_await_job(rd_view_t *view, ras_options_t *options);

void ras_pause(double seconds);
/* From the first call on an interruption ends nothing by itself. Returns the signal that has come; 0: none. */
void ras_on_interrupt(void);
int ras_interrupted(void);
/* Looks again, after the time between two looks that a verdict needs. */
bool ras_look_again(rd_view_t *view, const ras_options_t *options);

/* Returns false, and says so, if the view is of several jobs and none was chosen: their ranks have the same numbers. */
bool ras_one_job(const rd_view_t *view, const ras_options_t *options);

/* Returns false, and says so, if there is no such format of dumps. */
bool ras_is_format(const char *format);
/* Writes a dump in a format that there is: a file of each process into the folder `to`, or, of chrome, the file `to`.
 */
int ras_write_dump(rd_dump_t *dump, const char *format, const char *to);

/* Files. What is written by `write_it`, which returns false if there is no memory, is whole or not there; each returns
 * 0, or an exit status after having said why. ras_make_file refuses a file that is there; ras_replace_file replaces it,
 * and writes "-" to the output. */
typedef bool (*ras_writer_fn)(rd_out_t *out, void *arg);
int ras_make_folder(const char *dir);
int ras_make_file(const char *path, ras_writer_fn write_it, void *arg);
int ras_replace_file(const char *path, int mode, ras_writer_fn write_it, void *arg);

const char *ras_state_name(char state); /* "runs" */
/* What is said behind the name of a communicator: its number, if another one has the same name, as the parts of a split
 * do; else nothing. */
#define RAS_COMM_NUMBER 24
const char *ras_comm_number(const rd_view_t *view, const rd_view_comm_t *c, char text[RAS_COMM_NUMBER]);
/* Prints a text as a string of JSON. */
void ras_print_json(const char *text);

/* ---- the commands; each returns the exit status ---- */

int ras_list(rd_view_t *view, const ras_options_t *options);
int ras_status(rd_view_t *view, const ras_options_t *options);
int ras_who(rd_view_t *view, const ras_options_t *options);
int ras_top(rd_view_t *view, const ras_options_t *options);
int ras_dump(rd_view_t *view, const ras_options_t *options);
int ras_trace(rd_view_t *view, const ras_options_t *options);
int ras_metrics(rd_view_t *view, const ras_options_t *options);
int ras_stacks(rd_view_t *view, const ras_options_t *options);
int ras_monitor(rd_view_t *view, const ras_options_t *options);

/* These look at dumps, and at no process. */
int ras_convert(const ras_options_t *options);
int ras_analyse(const ras_options_t *options);

#endif
