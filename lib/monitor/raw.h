/* This process's record, copied as it is: for a signal handler, where nothing else can be done. */
#ifndef RD_MONITOR_RAW_H
#define RD_MONITOR_RAW_H

/* Writes it. Takes no lock, allocates nothing, and touches no memory but its own stack, so it may be called from a
 * signal handler. What changes while it is copied is written as not being there. Returns 0 or an errno; ENOENT: there
 * is no record. */
int rd_raw_copy(int fd);

#endif
