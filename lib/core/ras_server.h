/* A port at which this process answers: one thread accepts, and each client has a thread of its own, a few at once, so
 * that one that is silent holds up nobody. When it ends, listener and clients are shut down first: so no thread waits
 * for what a client does, and the port is free for whoever listens next. */
#ifndef RD_CORE_RAS_SERVER_H
#define RD_CORE_RAS_SERVER_H

#include <stdbool.h>

#include "monitor/ras_wire.h"

#define RD_RAS_CLIENTS 4 /* at once; as many more wait */

typedef struct rd_ras_server rd_ras_server_t;

/* Serves one client, in a thread of its own. The descriptor stays the server's; it is shut down when the server ends.
 */
typedef void (*rd_ras_serve_fn)(rd_ras_server_t *server, int fd);

/* Listens at "10.0.0.1:4567" or "[::1]:4567"; with `loopback`, at "localhost:4567", too, and at no address that another
 * host reaches. Returns a descriptor, or -1 with *why. */
int rd_ras_listen(const char *address, bool loopback, const char **why);

/* Takes over the listener, and starts to serve; the secret, which may be NULL, is copied. Returns NULL with *why, and
 * has then closed the listener. */
rd_ras_server_t *rd_ras_server_start(int listener, rd_ras_serve_fn serve, const rd_wire_secret_t *secret,
                                     const char **why);
void rd_ras_server_end(rd_ras_server_t *server);
void rd_ras_server_forget(rd_ras_server_t *server); /* in a forked child, which has neither its threads nor its port */

/* For those who serve. */
const rd_wire_secret_t *rd_ras_server_secret(const rd_ras_server_t *server);
bool rd_ras_server_pause(rd_ras_server_t *server, int ms); /* returns false as soon as the server is to end */

#endif
