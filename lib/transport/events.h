/* The set of descriptors that liveness's thread sleeps on, and the event by which others wake it. */
#ifndef RD_TRANSPORT_EVENTS_H
#define RD_TRANSPORT_EVENTS_H

#include <stdint.h>
#include <sys/epoll.h>

#define RD_EVENT_WAKE UINT64_MAX /* `which` of a wake-up; no descriptor has it */

/* Returns -1 if there cannot be such a set; then nothing is open. */
int rd_events_open(void);
void rd_events_close(void);
void rd_events_forget(void); /* in a forked child: the parent's are not to be closed */

/* Returns -1 if the descriptor cannot be in the set. It leaves it when it is dropped, or closed. */
int rd_events_add(int fd, uint32_t events, uint64_t which);
void rd_events_drop(int fd);
int rd_events_fd(void); /* the set itself, for who adds his own */

/* Sleeps for at most `ms`. Returns how many of the `most` have come, at least 0, or -1 after a signal. */
int rd_events_await(struct epoll_event *come, int most, int ms);

/* Returns -1 if the thread cannot be woken. */
int rd_events_wake(void);
void rd_events_woken(void); /* the wake-up was taken in */

#endif
