/* Proxies: threads of the process that make the progress of what runs without a thread of its own, such as the part of
 * a CUDA communicator between nodes. A proxy exists while it has clients. proxy_threads.c describes how proxies sleep.
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
    rd_proxy_state_t (*turn)(void *arg); /* called by the proxy's thread; must never wait */
    void *arg;
    int numa;     /* the NUMA node of its device, on whose processors the proxy runs if it may; -1: any */
    int proxy;    /* which proxy serves it: less than RD_PROXIES */
    int awake_us; /* how long the proxy stays awake after anything has moved */
    pid_t pid;    /* the proxy's process: in a forked child nothing serves the client */
} rd_proxy_client_t;

/* Returns 0, or an errno if the thread cannot be started. */
int rd_proxy_add(rd_proxy_client_t *client);
/* When it returns, the client gets no more turns. Must not be called in a turn. */
void rd_proxy_remove(rd_proxy_client_t *client);
/* Says that this client has something to do now or soon. Cheap if its proxy is awake. Must not be called in a turn. */
void rd_proxy_wake(const rd_proxy_client_t *client);
/* The same for a turn of another proxy, which must not wait. On rare occasions the call is lost, and the proxy's nap
 * lasts to its end. */
void rd_proxy_nudge(const rd_proxy_client_t *client);

#endif
