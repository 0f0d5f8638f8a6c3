/* The network of a library that was built without UCX: there is none. A communicator of more than one node is refused
 * here, with what the user can do; the other calls are never reached then. */
#include "transport/net.h"

int rd_net_built(void)
{
    return 0;
}

const char *rd_net_version(void)
{
    return "none";
}

int rd_net_announcing_ends(void)
{
    return 0;
}

int rd_net_tcp_alone(const char *tls)
{
    (void)tls;
    return 0;
}

rondo_result_t rd_net_probe(const rd_env_t *env, const char *address, int place, char text[RD_NET_DEVICES], int *cuda)
{
    (void)env;
    (void)address;
    (void)place;
    text[0] = 0;
    *cuda = 0;
    return RONDO_ERR_UNSUPPORTED;
}

rondo_result_t rd_net_create(rd_net_t **net, rd_boot_t *boot, int rank, int nranks, const unsigned char *remote,
                             const rd_env_t *env, rd_who_t *who, rd_stop_t *stop)
{
    (void)net;
    (void)boot;
    (void)rank;
    (void)nranks;
    (void)remote;
    (void)env;
    (void)stop;
    return rd_error(who, RONDO_ERR_UNSUPPORTED,
                    "the ranks are on more than one node, and this rondo was built without a network: configure it "
                    "with UCX (--with-ucx), or start all ranks on one node with one RONDO_HOSTID");
}

rondo_result_t rd_net_bind_send(rd_net_t *net, int peer, int channel, rd_send_t *send)
{
    (void)net;
    (void)peer;
    (void)channel;
    (void)send;
    return RONDO_ERR_UNSUPPORTED;
}

rondo_result_t rd_net_bind_recv(rd_net_t *net, int peer, int channel, rd_recv_t *recv)
{
    (void)net;
    (void)peer;
    (void)channel;
    (void)recv;
    return RONDO_ERR_UNSUPPORTED;
}

size_t rd_net_conn_bytes(void)
{
    return 0;
}

rondo_result_t rd_net_post(rd_send_t *send, size_t bytes, int more)
{
    (void)more;
    (void)send;
    (void)bytes;
    return RONDO_ERR_UNSUPPORTED;
}

rondo_result_t rd_net_lend(rd_send_t *send, const void *data, size_t bytes, int more)
{
    (void)more;
    (void)send;
    (void)data;
    (void)bytes;
    return RONDO_ERR_UNSUPPORTED;
}

int rd_net_lent(const rd_net_t *net)
{
    (void)net;
    return 0;
}

int rd_net_taker(const rd_net_t *net)
{
    (void)net;
    return -1;
}

rondo_result_t rd_net_direct(rd_net_t *net, const rd_net_direct_t *message)
{
    (void)net;
    (void)message;
    return RONDO_ERR_UNSUPPORTED;
}

int rd_net_cuda(const rd_net_t *net)
{
    (void)net;
    return 0;
}

int rd_net_fetches(const rd_net_t *net)
{
    (void)net;
    return 0;
}

int rd_net_waits_for(const rd_net_t *net)
{
    (void)net;
    return -1;
}

void rd_net_take_back(rd_net_t *net)
{
    (void)net;
}

rondo_result_t rd_net_credit(rd_recv_t *recv, size_t bytes)
{
    (void)recv;
    (void)bytes;
    return RONDO_ERR_UNSUPPORTED;
}

int rd_net_progress(rd_net_t *net)
{
    (void)net;
    return 0;
}

int rd_net_idle(rd_net_t *net)
{
    (void)net;
    return 1;
}

void rd_net_seek(rd_net_t *net, int peer)
{
    (void)net;
    (void)peer;
}

rondo_result_t rd_net_farewell(const rd_net_t *net, int peer)
{
    (void)net;
    (void)peer;
    return RONDO_IN_PROGRESS;
}

void rd_net_leave(rd_net_t *net)
{
    (void)net;
}

void rd_net_destroy(rd_net_t *net)
{
    (void)net;
}
