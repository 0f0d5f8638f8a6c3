/* The proxy: one thread of the process, which makes the progress of what runs without a thread of its own, as the part
 * of a CUDA communicator that lies between nodes. It is there while there are clients. See proxy.c for how it sleeps.
 */
#ifndef RD_PROXY_H
#define RD_PROXY_H

#include <sys/types.h>

/* What a client's turn has found, the least urgent first. */
typedef enum {
    RD_PROXY_IDLE,  /* nothing to do until rd_proxy_wake */
    RD_PROXY_DOZES, /* something may come that nobody will announce */
    RD_PROXY_WAITS, /* something is under way */
    RD_PROXY_MOVED  /* something has moved */
} rd_proxy_state_t;

typedef struct rd_proxy_client {
    struct rd_proxy_client *next;
    rd_proxy_state_t (*turn)(void *arg); /* never waits; by the proxy's thread */
    void *arg;
    int awake_us; /* without a nap for so long after anything has moved */
    pid_t pid; /* the proxy's: in a forked child the client is nobody's */
} rd_proxy_client_t;

/* 0, or an errno: there is no thread. */
int rd_proxy_add(rd_proxy_client_t *client);
/* After it no turn is made any more. Not to be called in a turn. */
void rd_proxy_remove(rd_proxy_client_t *client);
/* There is something to do, or will soon be. Cheap where the proxy is awake. */
void rd_proxy_wake(void);

#endif
