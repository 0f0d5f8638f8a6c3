/* The network transport of host connections: carries messages between a sender's mirror and the receiver's inbox.
 * Implemented in ucx/, or by net_none.c when the library is built without UCX. Simple protocol only.
 *
 * The executor writes a message into a slot of the mirror and publishes `tail` there, exactly as it would into shared
 * memory, then calls rd_net_post. rd_net_progress delivers: it copies arriving bytes into the receiver's slots,
 * advances the receiver's `tail`, and advances the sender's `head` when credits return. Nothing else of the
 * connection is touched. Called by the rank's own thread only.
 *
 * Copies are what costs between nodes as soon as messages are long, so both ends may leave the slot out: rd_net_lend
 * sends from the user's memory, and `place` of rd_recv_t names where the bytes are wanted.
 */
#ifndef RD_NET_H
#define RD_NET_H

#include "boot/boot.h"
#include "transport/conn.h"

typedef struct rd_net rd_net_t;
typedef struct rd_net_conn rd_net_conn_t;

int rd_net_built(void);           /* 0: built without UCX */
const char *rd_net_version(void); /* "ucx 1.13.1", for rondo-info */
/* This UCX may end the process when a peer is lost while a message is announced to it: forced, or straight from GPU to
 * GPU. */
int rd_net_announcing_ends(void);

/* Of RONDO_UCX_TLS. Nonzero: host memory goes by tcp, on the interface where ranks meet; other transports that it may
 * name move what lies on GPUs. */
int rd_net_tcp_alone(const char *tls);

/* For rondo-info: what UCX would take on this host with these settings, for a rank that listens on `address` and has
 * `place` ranks of its node below it: network devices as "tcp/eth0 tcp/eth1". An empty `address`: all there are. *cuda
 * nonzero: with transports that take a CUDA device's memory. */
#define RD_NET_DEVICES 1024
rondo_result_t rd_net_probe(const rd_env_t *env, const char *address, int place, char text[RD_NET_DEVICES], int *cuda);

/* Collective over the bootstrap when the communicator has more than one node: exchanges worker addresses. `remote[r]`
 * nonzero: rank r is on another node. Endpoints are made when a connection is first used. */
rondo_result_t rd_net_create(rd_net_t **net, rd_boot_t *boot, int rank, int nranks, const unsigned char *remote,
                             const rd_env_t *env, rd_who_t *who, rd_stop_t *stop);
/* Binds one direction of (peer, channel) to the memory of a connection. */
rondo_result_t rd_net_bind_send(rd_net_t *net, int peer, int channel, rd_send_t *send);
rondo_result_t rd_net_bind_recv(rd_net_t *net, int peer, int channel, rd_recv_t *recv);
/* The message number `send->sent - 1`, `bytes` long, lies in its slot: carry it. `more`: the next one is about to be
 * posted or lent, too, and this one, up to RD_JOINED, may wait for it, though not beyond rd_net_progress or
 * rd_net_idle. */
rondo_result_t rd_net_post(rd_send_t *send, size_t bytes, int more);
/* The same, but the bytes lie at `data`, in the user's memory, which must stay as it is until rd_net_lent says 0. What
 * goes together with another message is copied. */
rondo_result_t rd_net_lend(rd_send_t *send, const void *data, size_t bytes, int more);
int rd_net_lent(const rd_net_t *net);  /* messages whose bytes UCX has yet to read from the user's memory */
int rd_net_taker(const rd_net_t *net); /* whom one of them is for; -1: there is none */

/* A message straight from or to memory that may be a device's, which the host itself does not touch: past connections
 * and their slots. Messages of a pair match in the order of the calls; both sides know how long each is. */
#define RD_NET_DIRECT 32 /* of a pair and direction under way at most; a power of two */
typedef struct rd_net_memory {
    void *base;
    size_t bytes;    /* 0: it is not known */
    uint64_t number; /* of the allocation, unlike that of any other that lies or has lain there; 0: it has none */
} rd_net_memory_t;
typedef struct rd_net_direct {
    int peer, send;
    int device; /* the memory is a CUDA device's, and the host cannot reach it */
    void *data;
    size_t bytes;
    _Atomic int *pending; /* becomes one less when it is over; a failure comes by the stop word */
    /* What is sent lies in it: where that is known the peer may fetch the bytes by a key to the whole, and messages
     * that are given behind one another are announced together, at the latest by rd_net_progress or rd_net_idle. */
    rd_net_memory_t whole;
} rd_net_direct_t;
rondo_result_t rd_net_direct(rd_net_t *net, const rd_net_direct_t *message);
int rd_net_cuda(const rd_net_t *net);      /* nonzero: there are transports that take a CUDA device's memory */
int rd_net_fetches(const rd_net_t *net);   /* nonzero: what is known of the memory is of use */
int rd_net_waits_for(const rd_net_t *net); /* the peer of such a message under way; -1: there is none */

/* After a failure, before the user gets his buffers back: nothing reads or writes them from here on, but a peer that
 * had a key and has not heard of the failure yet, which then reads for an operation that has failed. Connections to
 * peers that do not take what they are being sent are broken for it. */
void rd_net_take_back(rd_net_t *net);
/* `recv->received` messages are consumed, the last one of `bytes`: tell the sender. */
rondo_result_t rd_net_credit(rd_recv_t *recv, size_t bytes);
int rd_net_progress(rd_net_t *net); /* nonzero: something happened */
size_t rd_net_conn_bytes(void);     /* memory of a bound pair (peer, channel) that has carried nothing */
int rd_net_idle(rd_net_t *net);     /* nonzero: every post and credit has left this rank's memory */
/* This rank has waited for a rank of another node for a while: makes the connection, if it is not there, so that each
 * hears of the other's end. */
void rd_net_seek(rd_net_t *net, int peer);
/* How a rank of another node has left: RONDO_SUCCESS, in order, or RONDO_ERR_MISMATCH; what it had sent is all here.
 * RONDO_IN_PROGRESS: it has not, or that is still to come. Who has left otherwise has set the stop word. */
rondo_result_t rd_net_farewell(const rd_net_t *net, int peer);
/* Says farewell, behind which nothing is sent; rd_net_destroy does it if it was not done, but who ends several has
 * begun with all before it waits for one. */
void rd_net_leave(rd_net_t *net);
/* Never waits for a dead peer, nor for long for one that does not look: what it has yet to take, if nothing has failed,
 * is seen to when the communicator is gone. */
void rd_net_destroy(rd_net_t *net);

#endif
