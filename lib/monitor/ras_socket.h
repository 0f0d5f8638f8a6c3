/* How records leave the process: an abstract unix socket, @rondo-ras/UID/PID, at which rondo-ras is given descriptors
 * of this process's record and of those that it holds of others.
 *
 * A client sends nothing and is read from never: an accepted connection gets its answer at once and is done, so there
 * is no protocol to attack and nothing to wait for. All calls return at once, also if the client does not read; so the
 * liveness thread makes them, and no other thread of the program takes part. The descriptors cannot be written through.
 * A client must be of the same user, or root, or of the group that the user has named (RONDO_RAS_GROUP). */
#ifndef RD_MONITOR_RAS_SOCKET_H
#define RD_MONITOR_RAS_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RD_SERVE_MAGIC UINT32_C(0x72647261)
#define RD_SERVE_VERSION 1
#define RD_SERVE_MOST 64   /* descriptors that come with one answer */
#define RD_SERVE_CLIENTS 4 /* that have not taken their answers yet; more are sent away */
#define RD_SERVE_IDLE_MS 2000

typedef enum rd_serve_status { RD_SERVE_GIVEN, RD_SERVE_REFUSED, RD_SERVE_BUSY } rd_serve_status_t;

/* One message of the answer. */
typedef struct rd_serve_answer {
    uint32_t magic, version;
    uint32_t status, count; /* `count` descriptors come with it, this process's own record first */
    uint32_t last;          /* nonzero: no more messages follow */
} rd_serve_answer_t;

/* Writes the socket's name. Returns its length. */
socklen_t rd_serve_name(struct sockaddr_un *name, unsigned uid, int pid);

/* Finds a group by its name or number; "": none. Returns -1 for none, -2 if there is no such group. It may ask a server
 * of names. */
int64_t rd_serve_group(const char *name);
/* With the record's lock: begins and ends to listen. Members of the group may ask, too; below 0: there is none. Without
 * a socket the record is still reached by /proc. */
void rd_serve_open(int64_t group);
void rd_serve_close(void);
void rd_serve_forget(void); /* in a forked child, whose descriptors have been closed */

/* Adds the socket, if there is one, to an epoll whose thread calls rd_serve_turn when an event with `data` comes. It
 * may be there already. Closing it removes it. */
void rd_serve_observe(int epoll_fd, uint64_t data);
/* Answers those who have come. */
void rd_serve_turn(void);

#endif
