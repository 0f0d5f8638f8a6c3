/* How a rank leaves the network, in order or after a failure. */
#include <stdlib.h>

#include "ofi/ofi.h"

#define GIVEN_UP_MS                                                                                                    \
    20             /* after a failure, the time for messages out of the user's memory, and again behind farewells      \
                    */
#define POLLS 1000 /* the most polls of a network that lingers, at a time */

/* Waits for messages out of the user's memory that peers have yet to take. */
static void zcopies_wait(rd_ofi_net_t *net)
{
    int64_t until = rd_clock_ms() + GIVEN_UP_MS;
    while (net->base.transport.zcopy_pending != 0 && rd_clock_ms() < until)
        (void)rd_ofi_poll(&net->base);
}

/* What is then still being sent out of the user's memory can only be given up with the endpoint, behind farewells. */
void rd_ofi_cancel(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    rd_net_dests_back(&net->base);
    zcopies_wait(net);
    if (net->base.transport.zcopy_pending == 0)
        return;
    rd_net_say_bye(&net->base);
    zcopies_wait(net);
    if (net->base.transport.zcopy_pending != 0)
        rd_ofi_cut(net);
}

/* ---- the end */

void rd_ofi_leave(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    if (net->ep && net->base.left_ms == 0)
        rd_net_part(&net->base);
}

/* Returns true if all peers have sent a farewell as well, and all is sent. */
static bool all_parted(rd_net_t *net)
{
    for (const rd_net_peer_t *p = net->used; p; p = p->next_used)
        if (p->lost_ms == 0 && (!p->left || p->pending != 0))
            return false;
    return true;
}

/* Returns true if nothing that is being sent lies in the communicator's memory. */
static bool is_given_back(rd_net_t *net)
{
    return ((rd_ofi_net_t *)net)->outstanding == 0 || rd_net_all_read(net);
}

static void net_free(rd_ofi_net_t *net)
{
    for (int r = 0; r < net->base.nranks; r++)
        rd_ofi_dial_end(rd_ofi_peer(net, r));
    rd_net_release(&net->base);
    free(net);
}

static void end(rd_ofi_net_t *net)
{
    rd_net_end_say(&net->base, rd_net_is_unread);
    rd_ofi_close(net);
    net_free(net);
}

/* ---- a network that outlives its communicator */

/* A peer that greets the network meanwhile gets its farewell; one that has gone is not waited for. */
static bool linger_poll(rd_linger_t *linger)
{
    rd_ofi_net_t *net = linger->net;
    for (int i = 0; i < POLLS && rd_ofi_poll(&net->base); i++)
        continue;
    rd_net_say_bye(&net->base);
    int64_t now_ms = rd_clock_ms();
    for (rd_ofi_peer_t *p = rd_ofi_first(net); p; p = rd_ofi_next(p))
        if (rd_net_is_unread(&p->base))
            rd_ofi_dial(p, now_ms);
    return rd_net_all_read(&net->base);
}

static void linger_end(rd_linger_t *linger)
{
    end(linger->net);
}

/* Returns true if the network will be closed later; the caller then no longer owns it. */
static bool linger(rd_net_t *net)
{
    rd_ofi_mirrors_back((rd_ofi_net_t *)net);
    return rd_net_linger(net, &(rd_linger_t){.detach = rd_net_detach, .poll = linger_poll, .end = linger_end});
}

/* An endpoint that is closed takes what is on its way along: what the peer has not taken is lost, and a socket that is
 * closed with unread bytes resets its connection. So a network that ends in order waits for the farewells of all peers,
 * or until they have confirmed this rank's; and if a live peer does not poll, the network lingers. */
static const rd_net_ending_t ending = {.is_parted = all_parted,
                                       .is_over = rd_net_all_read,
                                       .is_read = rd_net_all_read,
                                       .is_given_back = is_given_back,
                                       .linger = linger};

void rd_ofi_destroy(rd_transport_t *transport)
{
    rd_ofi_net_t *net = rd_ofi_of(transport);
    rd_ofi_leave(transport);
    if (!rd_net_end_wait(&net->base, &ending))
        end(net);
}
