/* Joining: a rank's way from the id to its neighbours.
 *
 *   dial the rendezvous, shake hands, listen, send JOIN  ..  TABLE  ->  dial the neighbours above, accept those below
 *   ->  READY, leave the rendezvous
 *
 * A rendezvous of a derived id that closes the connection without sending anything is the previous one, whose ranks
 * have not all finished yet: it is dialled again until the right one is there.
 *
 * One loop over poll drives all of it, so that unauthenticated connections at the listener, a rendezvous that reports a
 * failure and an abort from another thread are noticed in every phase. The rank listens on RONDO_IFACE's address if it
 * is set; on loopback if the rendezvous was reached on this host; else on the address by which it was reached. If it
 * then turns out that other ranks are on other hosts, the rendezvous asks the ranks on loopback to move. */
#include "boot/join_int.h"

#include <errno.h>
#include <stdarg.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/outstanding.h"

#define DEATH_MS 300 /* in which the rendezvous, or the stop word, tells of a neighbour that has died */
#define PROVE_MS 20  /* for which a rank that fails waits for neighbours that are in the middle of a handshake */
#define OWN_FDS 24   /* descriptors: measured with UCX 1.13 on two nodes, and half as many again */
#define NODE_FDS 64  /* a node's ranks, as a rule */

static void fail(rd_joining_t *j, rondo_result_t code, const char *format, ...)
{
    if (j->code)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(j->text, sizeof(j->text), format, args);
    va_end(args);
    j->code = code;
}

/* What has been logged where it happened. */
static void fail_said(rd_joining_t *j, rondo_result_t code)
{
    fail(j, code, "%s", rd_thread_error());
    j->said = 1;
}

static void stopped(rd_joining_t *j)
{
    const rd_stop_t *stop = j->b->stop;

    if (!j->code)
        j->failed_rank = atomic_load(&stop->failed_rank);
    fail(j, atomic_load(&stop->code), "%s", stop->text);
}

static void no_descriptor(rd_joining_t *j, const char *what, int error)
{
    j->no_fd = true;
    fail(j, RONDO_ERR_SYSTEM, "cannot %s: %s", what, rd_fd_strerror(error));
}

/* Listens at b->addr, on any port that is allowed. */
static void listen_there(rd_joining_t *j)
{
    rd_boot_t *b = j->b;

    rd_fd_close(b->listener);
    b->listener = -1;
    b->addr.port[0] = b->addr.port[1] = 0;
    rondo_result_t code = rd_sock_listen(&b->listener, &b->addr, j->env, b->ctx);
    if (code != RONDO_SUCCESS)
        fail_said(j, code);
}

/* One of several rendezvous has no ranks but those of a block: this says which others it needs. */
static void say_roots(rd_joining_t *j)
{
    rd_boot_t *b = j->b;
    bool sound = b->rank >= 0 && b->rank < b->nranks;
    int needed[RD_ROOTS_MOST], n;
    rd_roots_head_t head = {.plan = {b->nranks, b->nids, {0}}, .from = -1};
    rd_root_t *root = calloc(RD_ROOTS_MOST, sizeof *root); /* it is long for a stack, as the record is */
    unsigned char *record = malloc(RD_RECORD_DATA);

    if (!root || !record) {
        fail(j, RONDO_ERR_NO_MEMORY, "no memory for a list of %d ids", b->nids);
        goto free;
    }
    memcpy(head.plan.list, b->list, sizeof(b->list));
    head.index = sound ? rd_roots_index(b->nranks, b->nids, b->rank) : 0;
    n = rd_roots_needed(b->nranks, b->nids, head.index, needed);
    for (int i = 0; i < n; i++) {
        const rd_id_t *id = &b->ids[needed[i]];
        root[i] = (rd_root_t){.addr = id->addr, .creds = id->creds, .index = needed[i]};
        memcpy(root[i].maker, id->maker, sizeof(id->maker));
    }
    rd_chan_send(j->rendezvous.chan, RD_REC_ROOTS, record, rd_roots_seal(record, &b->id.creds, &head, root, n));
    sodium_memzero(root, RD_ROOTS_MOST * sizeof *root);
free:
    free(root);
    free(record);
}

/* The rendezvous has authenticated this rank, which now listens and sends its address. */
void rd_join_say(rd_joining_t *j)
{
    rd_boot_t *b = j->b;
    rd_join_t join;
    rd_addr_t here, there;
    memset(&join, 0, sizeof(join));
    rd_whois(join.whois);
    if (rd_addr_local(j->rendezvous.chan->fd, &here) != 0 || rd_addr_remote(j->rendezvous.chan->fd, &there) != 0) {
        if (errno == ENOTCONN && j->rendezvous.unheard)
            return; /* it is over already, as the next attempt to read will say */
        if (errno == ENOTCONN)
            fail(j, RONDO_ERR_REMOTE, "the rendezvous (%s) closed the connection", b->id.maker);
        else
            fail(j, RONDO_ERR_SYSTEM, "cannot find out this rank's own address: %s", strerror(errno));
        here = there = b->id.addr; /* for what is said after a failure */
    }
    join.near = (unsigned char)rd_addr_same_host(&here, &there);
    join.fixed = *j->env->iface != 0;
    if (b->nids > 1) /* it knows only some of the others, which may be elsewhere */
        say_roots(j);
    b->addr = join.near && b->nids <= 1 ? rd_addr_loopback(here.family) : here;
    memset(b->addr.port, 0, sizeof(b->addr.port)); /* that of this connection is not one where it listens */
    rondo_result_t code = join.fixed ? rd_addr_choose(&b->addr, j->env) : RONDO_SUCCESS;
    if (code != RONDO_SUCCESS)
        fail_said(j, code);
    if (!j->code)
        listen_there(j);
    join.addr = b->addr; /* also after a failure here: the rendezvous must know which rank reports it */
    rd_chan_send(j->rendezvous.chan, RD_REC_JOIN, &join, sizeof(join));
}

static void on_move(rd_joining_t *j)
{
    rd_boot_t *b = j->b;
    rd_addr_local(j->rendezvous.chan->fd, &b->addr);
    listen_there(j);
    if (!j->code)
        rd_chan_send(j->rendezvous.chan, RD_REC_ADDR, &b->addr, sizeof(b->addr));
}

/* From here on only ranks with the same salt are let in. Before, connections waited in the queue of the listening
 * socket. */
static void on_table(rd_joining_t *j, const unsigned char *data, size_t bytes)
{
    rd_boot_t *b = j->b;
    rd_hello_t mine = {.purpose = RD_FOR_NEIGHBOUR, .rank = b->rank, .nranks = b->nranks};
    if (bytes != sizeof(rd_salt_t) + (size_t)b->rounds * sizeof(rd_contact_t)) {
        fail(j, RONDO_ERR_INTERNAL, "the rendezvous sent a table of %zu bytes", bytes);
        return;
    }
    if (b->nids > 1) /* what all of them have in common */
        rd_id_derive(&b->creds, &b->ids[0].creds, "met", b->list, sizeof(b->list));
    else
        rd_id_derive(&b->creds, &b->id.creds, "met", data, sizeof(rd_salt_t));
    rd_listener_open(&j->incoming, b->listener, &b->creds, &b->addr, sizeof(b->addr), &mine);
    rd_whois(b->whois[b->rank]);
    data += sizeof(rd_salt_t);
    for (int k = 0; k < b->rounds; k++) {
        rd_hello_t hello = {.purpose = RD_FOR_NEIGHBOUR, .rank = b->rank, .nranks = b->nranks, .slot = k};
        int peer = (int)((b->rank + (int64_t)(1 << k)) % b->nranks);
        rd_contact_t contact;
        memcpy(&contact, data + (size_t)k * sizeof(contact), sizeof(contact));
        contact.whois[RD_WHOIS - 1] = 0;
        memcpy(b->whois[peer], contact.whois, RD_WHOIS);
        rd_dial_begin(&j->dial[k], &contact.addr, &hello);
    }
    j->tabled = 1;
}

static void on_fail(rd_joining_t *j, const unsigned char *data, size_t bytes)
{
    rd_fail_t said;
    if (bytes != sizeof(said))
        return;
    memcpy(&said, data, bytes);
    said.text[sizeof(said.text) - 1] = 0;
    fail(j, said.code, "%s", said.text);
    j->failed_rank = said.failed_rank;
    j->from_rendezvous = 1;
}

static const char *const on_loopback =
    "loopback reaches no other host, see RONDO_IFACE there; or the id was used before: an id serves one communicator";
static const char *const stale =
    "the maker has ended, or failed, as its message says; or the id was used before: an id serves one communicator";

/* A rank that cannot be reached may just have died, or left. That is what the others will be told, so it goes before.
 */
static bool is_lasting(rd_dial_t *d)
{
    int64_t now = rd_clock_ms();
    if (d->failed_ms == 0)
        d->failed_ms = now;
    return now - d->failed_ms > DEATH_MS;
}

/* An error that says nothing of the other side, but of this host, which may do it the next time. */
static bool is_own(int error)
{
    return error == EPERM || error == EACCES || error == EINTR || error == ENOBUFS || error == ENOMEM;
}

/* No way leads from this host to the other one, which may well be there. */
static bool is_way(int error)
{
    return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EHOSTDOWN ||
           error == ETIMEDOUT;
}

/* Returns true if the rendezvous was in this process and has failed: its sentence is at hand. */
static bool ended_here(rd_joining_t *j)
{
    char sentence[RD_ERROR_BYTES];

    if (!rd_rendezvous_failure(&j->b->id, sentence))
        return false;
    fail(j, RONDO_ERR_REMOTE, "%.300s", sentence);
    return true;
}

static void rendezvous_ended(rd_joining_t *j)
{
    fail(j, RONDO_ERR_REMOTE, "the rendezvous (%s) ended before the communicator was made: the message there says why",
         j->b->id.maker);
}

/* The rendezvous cannot be dialled, or has broken off. Where a communicator is made from another one that is often the
 * consequence of a death of which the stop word is just about to tell, or, where the host is gone, will in seconds: who
 * makes it waits for that when nobody serves the id (derive.c). */
static void no_rendezvous(rd_joining_t *j, int error, bool was_open)
{
    rd_boot_t *b = j->b;
    char text[RD_ADDR_TEXT];

    if (rd_fd_none_left(error))
        no_descriptor(j, "dial the rendezvous", error);
    else if (rd_stop_get(b->stop))
        stopped(j);
    else if (b->id.derived ? !is_lasting(&j->rendezvous) : !was_open && is_own(error) && !is_lasting(&j->rendezvous))
        return;
    else if (was_open)
        fail(j, RONDO_ERR_REMOTE, "the rendezvous (%s at %s) broke off: %s", b->id.maker,
             rd_addr_print(&b->id.addr, text), strerror(error));
    else if (b->id.derived && error == ECONNREFUSED)
        fail(j, RONDO_ERR_REMOTE, "rank 0 of those that are left, %s at %s, is not there: %s; leave it out as well",
             b->id.maker, rd_addr_print(&b->id.addr, text), strerror(error));
    else if (b->id.derived)
        fail(
            j, RONDO_ERR_REMOTE,
            "rank 0 of those that are left, %s at %s, makes no communicator of this list, or no longer: %s; call again "
            "with the list that all others call with",
            b->id.maker, rd_addr_print(&b->id.addr, text), strerror(error));
    else if (is_own(error))
        fail(j, error == ENOMEM ? RONDO_ERR_NO_MEMORY : RONDO_ERR_SYSTEM, "cannot dial the rendezvous (%s): %s",
             b->id.maker, strerror(error));
    else if (ended_here(j))
        return;
    else if (j->rendezvous.closed)
        rendezvous_ended(j);
    else if (is_way(error) && !b->stop->parent)
        fail(
            j, RONDO_ERR_SYSTEM,
            "this host does not reach %s, where %s made the unique id: %s (has it an address on that network, see "
            "`ip addr`, `ip route`? RONDO_IFACE where the id is made names another one; or a firewall is between them)",
            rd_addr_print(&b->id.addr, text), b->id.maker, strerror(error));
    else
        fail(j, RONDO_ERR_INVALID_USAGE, "nobody serves this unique id at %s, where %s made it: %s (%s)",
             rd_addr_print(&b->id.addr, text), b->id.maker, strerror(error),
             rd_addr_is_loopback(&b->id.addr) ? on_loopback : stale);
}

static void rendezvous_pump(rd_joining_t *j)
{
    rd_boot_t *b = j->b;
    const unsigned char *data;
    size_t bytes;
    int type;
    int was_open = rd_dial_open(&j->rendezvous);
    int error = rd_dial_pump(&j->rendezvous, &b->id.creds);
    if (error)
        no_rendezvous(j, error, was_open);
    if (!rd_dial_open(&j->rendezvous))
        return;
    if (!was_open)
        rd_join_say(j);
    while (!j->code && rd_chan_next(j->rendezvous.chan, &type, &data, &bytes)) {
        j->rendezvous.unheard = 0;
        if (type == RD_REC_TABLE && !j->tabled)
            on_table(j, data, bytes);
        else if (type == RD_REC_MOVE && !j->tabled)
            on_move(j);
        else if (type == RD_REC_FAIL)
            on_fail(j, data, bytes);
    }
    if (rd_chan_over(j->rendezvous.chan) && j->rendezvous.unheard)
        rd_dial_again(&j->rendezvous);
    else if (rd_chan_over(j->rendezvous.chan) && !ended_here(j))
        rendezvous_ended(j);
}

/* The rank has listened there, for it has said where. On this host nothing but its end changes that. */
static void no_neighbour(rd_joining_t *j, int peer, const rd_addr_t *addr, int error)
{
    rd_boot_t *b = j->b;
    char text[RD_ADDR_TEXT];

    rd_addr_print(addr, text);
    if (error != ECONNREFUSED || !rd_addr_same_host(addr, &b->addr)) {
        fail(j, RONDO_ERR_SYSTEM, "cannot connect to rank %d (%s) at %s: %s (see RONDO_IFACE, RONDO_PORTS)", peer,
             b->whois[peer], text, strerror(error));
        return;
    }
    if (!j->code)
        j->failed_rank = peer;
    fail(j, RONDO_ERR_REMOTE, "rank %d (%s) is not there any more: nobody listens at %s, as it did", peer,
         b->whois[peer], text);
}

static void dials_pump(rd_joining_t *j)
{
    rd_boot_t *b = j->b;
    for (int k = 0; k < b->rounds && !j->code; k++) {
        rd_dial_t *d = &j->dial[k];
        int peer = (int)((b->rank + (int64_t)(1 << k)) % b->nranks);
        if (b->from[k].chan)
            continue;
        int error = rd_dial_pump(d, &b->creds);
        if (!error && d->chan && d->chan->state == RD_CHAN_OPEN && rd_chan_over(d->chan)) { /* it had given up before */
            error = ECONNRESET;
            rd_dial_again(d);
        }
        if (rd_fd_none_left(error))
            no_descriptor(j, "connect to the other ranks", error);
        else if (error && is_lasting(d))
            no_neighbour(j, peer, &d->addr, error);
        if (!rd_dial_open(d))
            continue;
        b->from[k] = (rd_neighbour_t){.chan = d->chan, .rank = peer};
        d->chan = NULL;
        rd_boot_say_name(b, b->from[k].chan, b->rank);
        j->missing--;
    }
}

static void listener_pump(rd_joining_t *j)
{
    rd_boot_t *b = j->b;
    rd_listener_pump(&j->incoming);
    if (j->incoming.error && (j->incoming.npending == 0 || rd_fd_refused(j->incoming.error)))
        no_descriptor(j, "accept the connections of the other ranks (accept4)", j->incoming.error);
    if (j->incoming.poor)
        fail(j, RONDO_ERR_NO_MEMORY, "no memory for the connections to the other ranks");
    for (rd_chan_t *c; (c = rd_listener_next(&j->incoming));) {
        int k = c->theirs.slot;
        int wanted = c->theirs.purpose == RD_FOR_NEIGHBOUR && c->theirs.nranks == b->nranks && k >= 0 &&
                     k < b->rounds && ((int64_t)c->theirs.rank + (1 << k)) % b->nranks == b->rank && !b->to[k].chan;
        if (!wanted) {
            rd_chan_free(c);
            continue;
        }
        b->to[k] = (rd_neighbour_t){.chan = c, .rank = c->theirs.rank};
        j->missing--;
    }
}

static bool is_proving(const rd_listener_t *incoming)
{
    for (int i = 0; i < incoming->npending; i++)
        if (incoming->pending[i]->state == RD_CHAN_PROOF)
            return true;
    return false;
}

/* Before this rank leaves for a failure: a neighbour for which its connection is open, but which has yet to prove
 * itself here, would see an end without a farewell, and take this rank for the dead one. */
static void admit_the_last(rd_joining_t *j)
{
    int64_t until = rd_clock_ms() + PROVE_MS;
    struct pollfd p[RD_LISTENER_POLLS];

    for (;;) {
        listener_pump(j);
        if (!is_proving(&j->incoming) || rd_clock_ms() > until)
            return;
        rd_sock_poll(p, (nfds_t)rd_listener_fill(&j->incoming, p), PROVE_MS / 4);
    }
}

static int64_t retry_in(const rd_joining_t *j)
{
    int64_t ms = RD_BOOT_SLICE_MS, now = rd_clock_ms();
    for (int k = -1; k < j->b->rounds; k++) {
        const rd_dial_t *d = k < 0 ? &j->rendezvous : &j->dial[k];
        if (d->tries && !d->chan && d->again_ms - now < ms)
            ms = d->again_ms > now ? d->again_ms - now : 1;
    }
    return ms;
}

static void sleep_until_news(rd_joining_t *j)
{
    struct pollfd p[1 + RD_BOOT_ROUNDS + RD_LISTENER_POLLS];
    int n = 0;
    if (j->rendezvous.chan)
        p[n++] = (struct pollfd){.fd = j->rendezvous.chan->fd, .events = rd_chan_events(j->rendezvous.chan)};
    for (int k = 0; j->tabled && k < j->b->rounds; k++)
        if (j->dial[k].chan)
            p[n++] = (struct pollfd){.fd = j->dial[k].chan->fd, .events = rd_chan_events(j->dial[k].chan)};
    if (j->tabled)
        n += rd_listener_fill(&j->incoming, p + n);
    int64_t ms = retry_in(j);
    if (rd_outstanding_any()) {
        rd_outstanding_turn();
        ms = ms < RD_OUTSTANDING_MS ? ms : RD_OUTSTANDING_MS;
    }
    if (rd_sock_poll(p, (nfds_t)n, (int)ms))
        return;
    j->no_poll = true;
    fail(j, RONDO_ERR_SYSTEM, "cannot wait for the other ranks (poll): %s", strerror(errno));
}

/* The user learns which way is closed before the time is over. Who is let in hears from the rendezvous. */
static void say_unanswered(rd_joining_t *j)
{
    const rd_boot_t *b = j->b;
    char text[RD_ADDR_TEXT];

    if (!j->say_ms || rd_clock_ms() < j->say_ms || rd_dial_open(&j->rendezvous))
        return;
    j->say_ms = 0;
    rd_log(b->ctx, RD_LOG_WARN,
           "rank %d has no answer for %g s from %s, where %s made the unique id: that process may be stopped, or a "
           "firewall is in the way (RONDO_IFACE where the id is made names another address)",
           b->rank, (double)b->stall_ms / 1000, rd_addr_print(&b->id.addr, text), b->id.maker);
}

static void check(rd_joining_t *j)
{
    rd_boot_t *b = j->b;
    char text[RD_ADDR_TEXT];
    /* When all ranks have come they notice each other's death themselves, and another rank's does not concern them. */
    rondo_result_t code = j->tabled ? rd_stop_get(b->stop) : rd_stop_inherit(b->stop, b->ctx);
    /* A rank that learns of a death from its stop word reports it to the rendezvous, for the ranks that do not learn of
     * it, if the rendezvous is reached soon. It may have ended. */
    if (code && j->stopped_ms == 0)
        j->stopped_ms = rd_clock_ms();
    if (code &&
        (code != RONDO_ERR_REMOTE || rd_dial_open(&j->rendezvous) || rd_clock_ms() - j->stopped_ms > RD_JOIN_TELL_MS))
        stopped(j);
    if (j->deadline_ms && rd_clock_ms() > j->deadline_ms)
        fail(j, RONDO_ERR_TIMEOUT, "%s %s within %lld ms (RONDO_CREATE_TIMEOUT_MS; the id was made by %s)",
             rd_dial_open(&j->rendezvous) ? "no table came from the rendezvous at" : "no answer from the rendezvous at",
             rd_addr_print(&b->id.addr, text), (long long)b->patience.ms, b->id.maker);
}

/* For its neighbours, the others of its node and their records, a network, and some for itself. This is checked first,
 * because a library that runs out of them later reports something else, or ends the process. */
int rd_boot_fds(int nranks, const rd_env_t *env)
{
    int locals = nranks < NODE_FDS ? nranks : NODE_FDS, rounds = 0;
    while (rounds < RD_BOOT_ROUNDS && 1 << rounds < nranks)
        rounds++;
    return OWN_FDS + 2 * rounds + (env->monitor ? 2 : 1) * locals;
}

rondo_result_t rd_boot_join(rd_boot_t *b, const rd_env_t *env)
{
    rd_joining_t j = {.b = b, .env = env, .missing = 2 * b->rounds, .failed_rank = b->rank};
    rd_hello_t hello = {.purpose = RD_FOR_MEETING, .rank = b->rank, .nranks = b->nranks};
    if (b->patience.ms > 0) /* later than that of the rendezvous, whose message says more */
        j.deadline_ms = rd_clock_ms() + b->patience.ms + 2000;
    rd_dial_begin(&j.rendezvous, &b->id.addr, &hello);
    j.rendezvous.unheard = 1;
    if (b->stall_ms > 0)
        j.say_ms = rd_clock_ms() + b->stall_ms;
    if (rd_fd_free(rd_boot_fds(b->nranks, env)) < rd_boot_fds(b->nranks, env))
        no_descriptor(&j, "make a communicator", EMFILE);
    while (!j.code) {
        rendezvous_pump(&j);
        if (j.tabled && !j.code)
            listener_pump(&j);
        if (j.tabled && !j.code)
            dials_pump(&j);
        if (j.code || (j.tabled && j.missing == 0))
            break;
        sleep_until_news(&j);
        say_unanswered(&j);
        check(&j);
    }
    if (j.code && j.tabled)
        admit_the_last(&j);
    if (j.code)
        rd_join_tell(&j);
    else
        rd_chan_send(j.rendezvous.chan, RD_REC_READY, NULL, 0);
    rd_listener_close(&j.incoming);
    rd_chan_free(j.rendezvous.chan);
    for (int k = 0; k < b->rounds; k++)
        rd_chan_free(j.dial[k].chan);
    rondo_result_t stop = rd_stop_get(b->stop);
    if (j.code && stop)
        return stop;
    if (j.code == RONDO_SUCCESS || j.said)
        return j.code;
    return rd_error(b->ctx, j.code, "%s", j.text);
}
