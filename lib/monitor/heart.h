/* Hearts of the library's own threads. The watch, which sees that ranks die, and the monitor thread, which writes files
 * and calls hooks, each say when they begin to work and when they rest; and each looks at the other's heart, and so do
 * calls that wait. Who is found at the same piece of work in several looks is stuck: so a process that was stopped as a
 * whole, and whose threads look no more than they work, has nobody stuck. */
#ifndef RD_MONITOR_HEART_H
#define RD_MONITOR_HEART_H

#include <stdint.h>

typedef enum rd_heart { RD_HEART_WATCH, RD_HEART_MONITOR, RD_HEARTS } rd_heart_t;

#define RD_HEART_LOOK_MS 1000 /* from one look to the next, at least */
#define RD_HEART_TIMES 5      /* at the same piece of work: then it is stuck */

/* For the thread itself. A thread that begins is not the one before it. */
void rd_heart_works(rd_heart_t heart);
void rd_heart_rests(rd_heart_t heart);
/* Any thread looks. That the other one is stuck is said in the log, with where it stands, once for each time that it
 * is; or handed to `call`, by who has found it: the watch does not write files. */
void rd_heart_look(rd_heart_t heart, int64_t now_ms);
void rd_heart_on_stuck(rd_heart_t heart, void (*call)(const char *text));
/* A forked child has no such threads. */
void rd_heart_forget(void);

#endif
