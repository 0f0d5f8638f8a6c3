/* Descriptors 0, 1 and 2 are the program's, also where it has closed them: what it prints, and rondo's own log lines,
 * must not go into a socket that happened to get such a number. So every descriptor that rondo opens is moved to 3 or
 * more, and while other libraries may open theirs, the three numbers are taken: during creation, and as long as UCX has
 * a network, whose thread accepts connections from whoever comes. The file in their place takes nothing that is
 * written and has nothing to read, and a program that puts its own there (dup2) keeps that. */
#ifndef RD_BASE_FD_H
#define RD_BASE_FD_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#define RD_FD_FIRST 3 /* the lowest descriptor that rondo keeps */

/* Returns `fd`, or in its place one of 3 or more that is close-on-exec. -1 with errno, as for -1 itself, if there is
 * none. */
int rd_fd_high(int fd);
/* Returns strerror(error), or, if `error` says that no descriptor was left or that a file is too long, a text that
 * names the limit and how to raise it. The text is this thread's, until its next call. */
const char *rd_fd_strerror(int error);
/* This thread's text, for functions of that kind: what a library that is opened late may have of its own for each
 * thread is little, a kilobyte and a half for all libraries together. */
#define RD_STRERROR_BYTES 128
char *rd_strerror_room(void);
/* Returns true if `error` says that no descriptor was left. */
bool rd_fd_none_left(int error);
/* Returns true if `error` says that a system call is refused as such, as by the filter of a sandbox. */
bool rd_fd_refused(int error);
/* Returns how many more descriptors this process may open, but at most `most`. */
int rd_fd_free(int most);
/* Opens a file for reading, as fopen does. */
FILE *rd_file_read(const char *path);

/* Writes a line by one write(2) that raises no signal. Where it cannot be written there is nowhere to report it. */
void rd_fd_write(int fd, const char *line, size_t bytes);
/* Writes all bytes, and raises no signal. Returns 0 or an error. May be called in a signal handler. */
int rd_fd_write_all(int fd, const void *bytes, size_t n);
/* From begin to end this thread's writes raise neither SIGPIPE nor SIGXFSZ, but fail with EPIPE or EFBIG. `error`: with
 * which the last one has failed; 0: none has. Both leave errno as it is. */
typedef struct rd_fd_writes {
    sigset_t before, pending;
} rd_fd_writes_t;
void rd_fd_writes_begin(rd_fd_writes_t *w);
void rd_fd_writes_end(const rd_fd_writes_t *w, int error);

/* From begin to end no descriptor below 3 is free. Pairs may overlap, in any threads. */
void rd_fd_guard_begin(void);
void rd_fd_guard_end(void);

/* Some libraries open descriptors that programs started by this one would inherit. Those of a network that have been
 * opened between the two calls are made close-on-exec; the second call frees what the first has noted. `pairs`: Unix
 * sockets without a name are the library's, too; another thread may make such a pair for a program that it starts, so
 * the calls should lie close together. Where /proc or memory is missing, nothing is done. */
typedef struct rd_fd_noted {
    unsigned char *open; /* by descriptor */
    int size;
} rd_fd_noted_t;
void rd_fd_note(rd_fd_noted_t *noted);
void rd_fd_close_on_exec(rd_fd_noted_t *noted, bool pairs);

#endif
