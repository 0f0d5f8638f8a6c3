/* Proxies: threads of the process, which make the progress of what runs without a thread of its own, as the part of a
 * CUDA communicator that lies between nodes. Each is there while it has clients. See proxy_threads.c for how they
 * sleep.
 */
#ifndef RD_PROGRESS_PROXY_THREADS_H
#define RD_PROGRESS_PROXY_THREADS_H

#include <sys/types.h>

#define RD_PROXIES 8

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
    int proxy;    /* which one serves it: less than RD_PROXIES */
    int awake_us; /* without a nap for so long after anything has moved */
    pid_t pid;    /* the proxy's: in a forked child the client is nobody's */
} rd_proxy_client_t;

/* 0, or an errno: there is no thread. */
int rd_proxy_add(rd_proxy_client_t *client);
/* After it no turn is made any more. Not to be called in a turn. */
void rd_proxy_remove(rd_proxy_client_t *client);
/* For this client there is something to do, or will soon be. Cheap where its proxy is awake. Not to be called in a
 * turn. */
void rd_proxy_wake(const rd_proxy_client_t *client);
/* The same in a turn of another proxy, which must not wait: rarely it is lost, and a nap lasts as long as it does. */
void rd_proxy_nudge(const rd_proxy_client_t *client);

#endif
