/* The bootstrap's public functions: ids, creation, keys, derived ids. Joining is in join.c, the rendezvous in
 * rendezvous.c, the exchange in allgather.c, leaving in leave.c. */
#include "boot/boot_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "boot/registry.h"
#include "boot/roots.h"

#define REFUSE_MS 700 /* for which those that come hear that this rank cannot serve them: an error within a second */
#define SERVING_FDS 2 /* of a rendezvous: the copy of a listener, and its wake */

rondo_result_t rd_boot_id_create(rondo_unique_id_t *id, const rd_env_t *env)
{
    rd_id_t mine;
    char whois[RD_WHOIS];
    int listener;
    memset(&mine, 0, sizeof(mine));
    rd_served_reap();
    rondo_result_t code = rd_crypto_init(NULL);
    if (!code)
        code = rd_addr_choose(&mine.addr, env);
    if (!code)
        code = rd_sock_listen(&listener, &mine.addr, env, NULL);
    if (code)
        goto failed;
    randombytes_buf(mine.creds.job, sizeof(mine.creds.job));
    randombytes_buf(mine.creds.secret, sizeof(mine.creds.secret));
    rd_whois(whois);
    /* a long host name is dropped in favour of the process number */
    snprintf(mine.maker, sizeof(mine.maker), "%.35s", strlen(whois) < sizeof(mine.maker) ? whois : strrchr(whois, ':'));
    code = rd_rendezvous_start(&mine, listener, false, env->create_timeout_ms, env->stall_ms, NULL);
    if (code)
        goto failed;
    rd_id_pack(id, &mine);
    sodium_memzero(&mine, sizeof(mine));
    return RONDO_SUCCESS;
failed:
    rd_id_pack_error(id, code, rd_thread_error());
    return code;
}

/* Exchanges the names and addresses of all ranks. This first exchange also proves that all connections work. */
static rondo_result_t introduce(rd_boot_t *b)
{
    struct {
        char whois[RD_WHOIS];
        rd_addr_t addr;
    } *all = calloc((size_t)b->nranks, sizeof(*all));
    if (!all)
        return rd_error(b->ctx, RONDO_ERR_NO_MEMORY, "no memory for the names of %d ranks", b->nranks);
    rd_whois(all[b->rank].whois);
    all[b->rank].addr = b->addr;
    memcpy(b->whois[b->rank], all[b->rank].whois, RD_WHOIS);
    rondo_result_t code = rd_boot_allgather(b, all, sizeof(*all));
    for (int r = 0; r < b->nranks && !code; r++) {
        memcpy(b->whois[r], all[r].whois, RD_WHOIS);
        b->whois[r][RD_WHOIS - 1] = 0;
        b->addrs[r] = all[r].addr;
    }
    free(all);
    return code;
}

/* A single rank needs no connection, but must not leave others of the same id waiting: if they have come, or may come,
 * the rendezvous handles it. Port 0 means a derived id, which no rank serves. */
static rondo_result_t create_alone(rd_boot_t *b, const rd_env_t *env)
{
    int nobody = b->id.addr.port[0] == 0 && b->id.addr.port[1] == 0;
    rd_salt_t salt;

    if (!nobody && !rd_rendezvous_cancel(&b->id))
        return rd_boot_join(b, env);
    randombytes_buf(&salt, sizeof(salt));
    rd_id_derive(&b->creds, &b->id.creds, "met", &salt, sizeof(salt));
    return RONDO_SUCCESS;
}

static rd_boot_t *boot_alloc(int nranks)
{
    size_t n = nranks > 0 && nranks <= RD_MOST_RANKS ? (size_t)nranks : 1;
    rd_boot_t *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    b->gone = calloc(n, sizeof(*b->gone));
    b->whois = calloc(n, sizeof(*b->whois));
    b->addrs = calloc(n, sizeof(*b->addrs));
    b->listener = -1;
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->questions.lock, NULL);
    if (b->gone && b->whois && b->addrs)
        return b;
    rd_boot_destroy(b);
    return NULL;
}

void rd_boot_cancel(const rondo_unique_id_t *ids, int nids, int rank, rondo_result_t code)
{
    char why[RD_ERROR_BYTES];
    rd_id_t one, *open = nids > 1 ? calloc((size_t)nids, sizeof(*open)) : &one;
    int n = 0;

    snprintf(why, sizeof why, "%s", rd_thread_error());
    if (!open) { /* the first is better than none */
        open = &one;
        nids = 1;
    }
    for (int i = 0; i < nids; i++)
        n += rd_id_unpack(&open[n], &ids[i], NULL) == RONDO_SUCCESS;
    rd_thread_error_set(why); /* of this rank, not of an id that is none */
    rd_rendezvous_leave(open, n, rank, code);
    sodium_memzero(open, (size_t)nids * sizeof(*open));
    if (open != &one)
        free(open);
}

void rd_boot_refuse(const rondo_unique_id_t *id, int rank, int nranks, const rd_env_t *env, rondo_result_t code,
                    int failed_rank)
{
    rd_boot_t *b = boot_alloc(1);
    char why[RD_ERROR_BYTES];

    snprintf(why, sizeof why, "%s", rd_thread_error());
    if (b && rd_crypto_init(NULL) == RONDO_SUCCESS && rd_id_unpack(&b->id, id, NULL) == RONDO_SUCCESS) {
        b->rank = rank;
        b->nranks = nranks;
        rd_boot_turn_away(b, env, code, failed_rank, why);
    } else {
        rd_boot_destroy(b);
    }
    rd_thread_error_set(why);
    rd_boot_cancel(id, 1, rank, code);
    rd_thread_error_set(why);
}

void rd_boot_give_up(const rondo_unique_id_t *ids, int nids, int rank, int nranks, const rd_env_t *env,
                     rondo_result_t code)
{
    if (nids == 1)
        rd_boot_refuse(ids, rank, nranks, env, code, rank);
    else
        rd_boot_cancel(ids, nids, rank, code);
}

/* Unpacks all ids, and says which of them cannot be used, and why. */
static rondo_result_t unpack_ids(rd_boot_t *b, const rondo_unique_id_t *ids)
{
    char text[RD_ERROR_BYTES] = "";
    rondo_result_t code = RONDO_SUCCESS;
    size_t used = 0;

    for (int i = 0; i < b->nids; i++) {
        rondo_result_t one = rd_id_unpack(&b->ids[i], &ids[i], b->nids > 1 ? NULL : b->ctx);
        if (one == RONDO_SUCCESS)
            continue;
        memset(&b->ids[i], 0, sizeof(b->ids[i]));
        code = code ? code : one;
        if (used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%sids[%d]: %s", used ? "; " : "", i,
                                     rd_thread_error());
    }
    return code && b->nids > 1 ? rd_error(b->ctx, code, "of %d ids: %.400s", b->nids, text) : code;
}

/* Unpacks the ids, and finds this rank's among them. */
static rondo_result_t take_ids(rd_boot_t *b, const rondo_unique_id_t *ids, int nids)
{
    int n = nids < b->nranks ? nids : b->nranks, mine = 0;

    b->ids = calloc((size_t)nids, sizeof(*b->ids));
    if (!b->ids)
        return rd_error(b->ctx, RONDO_ERR_NO_MEMORY, "no memory for %d ids", nids);
    b->nids = nids;
    rondo_result_t code = unpack_ids(b, ids);
    if (code)
        return code;
    crypto_generichash(b->list, sizeof(b->list), (const unsigned char *)ids, (size_t)nids * sizeof(*ids), NULL, 0);
    if (nids > 1 && b->rank >= 0 && b->rank < b->nranks)
        mine = rd_roots_index(b->nranks, n, b->rank);
    b->id = b->ids[mine];
    return RONDO_SUCCESS;
}

/* This rank's creation is over: so are the rendezvous of this process, or will be when all ranks have heard of it. */
static void leave_ids(rd_boot_t *b, rondo_result_t code)
{
    rd_rendezvous_leave(b->ids, b->nids, b->rank, code);
    if (b->ids)
        sodium_memzero(b->ids, (size_t)b->nids * sizeof(*b->ids));
    free(b->ids);
    b->ids = NULL;
}

rondo_result_t rd_boot_create(rd_boot_t **boot, const rondo_unique_id_t *id, int rank, int nranks, const rd_env_t *env,
                              rd_log_ctx_t *ctx, rd_stop_t *stop)
{
    return rd_boot_create_by(boot, id, 1, rank, nranks, env, ctx, stop);
}

rondo_result_t rd_boot_create_by(rd_boot_t **boot, const rondo_unique_id_t *ids, int nids, int rank, int nranks,
                                 const rd_env_t *env, rd_log_ctx_t *ctx, rd_stop_t *stop)
{
    rondo_result_t code = rd_crypto_init(ctx);
    if (code)
        return code;
    rd_boot_t *b = boot_alloc(nranks);
    if (!b) {
        code = rd_error(ctx, RONDO_ERR_NO_MEMORY, "no memory for a communicator of %d ranks", nranks);
        rd_boot_give_up(ids, nids, rank, nranks, env, code);
        return code;
    }
    b->rank = rank;
    b->nranks = nranks;
    b->ctx = ctx;
    b->stop = stop;
    b->patience.ms = env->create_timeout_ms;
    b->stall_ms = env->stall_ms;
    code = take_ids(b, ids, nids);
    if (code == RONDO_ERR_NO_MEMORY && !b->ids)
        rd_boot_give_up(ids, nids, rank, nranks, env, code);
    /* A wrong rank or count is sent to the rendezvous all the same, which tells the others why the creation fails. */
    while (nranks > 0 && nranks <= RD_MOST_RANKS && 1 << b->rounds < nranks)
        b->rounds++;
    if (!code && nranks == 1 && rank == 0)
        code = create_alone(b, env);
    else if (!code)
        code = rd_boot_join(b, env);
    if (!code)
        code = introduce(b);
    leave_ids(b, code);
    if (code) {
        rd_boot_destroy(b);
        return code;
    }
    *boot = b;
    return RONDO_SUCCESS;
}

void rd_boot_destroy(rd_boot_t *b)
{
    if (!b)
        return;
    for (int k = 0; k < b->rounds; k++) {
        rd_chan_leave(b->from[k].chan);
        rd_chan_leave(b->to[k].chan);
    }
    for (int i = 0; i < b->nlifelines; i++)
        rd_sock_close(b->lifeline[i].fd);
    rd_fd_close(b->listener);
    pthread_mutex_destroy(&b->questions.lock);
    free(b->questions.asked);
    pthread_mutex_destroy(&b->lock);
    free(b->whois);
    free((void *)b->gone);
    free(b->addrs);
    sodium_memzero(b, sizeof(*b));
    free(b);
}

void rd_boot_key(const rd_boot_t *b, const char *purpose, unsigned char key[32])
{
    rd_id_key(&b->creds, "purpose", purpose, strlen(purpose), key);
}

int rd_boot_nranks(const rd_boot_t *b)
{
    return b->nranks;
}

void rd_boot_address(const rd_boot_t *b, char text[RD_BOOT_ADDRESS])
{
    if (!inet_ntop(b->addr.family == 6 ? AF_INET6 : AF_INET, b->addr.ip, text, RD_BOOT_ADDRESS))
        *text = 0;
}

static rondo_result_t check_members(const rd_boot_t *b, const int *members, int n)
{
    int self = 0;
    for (int i = 0; i < n; i++) {
        if (members[i] < 0 || members[i] >= b->nranks || (i && members[i] <= members[i - 1]))
            return rd_error(b->ctx, RONDO_ERR_INVALID_ARGUMENT,
                            "members must be ascending ranks of 0 to %d: entry %d is %d", b->nranks - 1, i, members[i]);
        self |= members[i] == b->rank;
    }
    if (!self)
        return rd_error(b->ctx, RONDO_ERR_INVALID_ARGUMENT, "this rank (%d) is not among the members", b->rank);
    return RONDO_SUCCESS;
}

static rondo_result_t serve_copy(rd_boot_t *b, const rd_id_t *id)
{
    rd_fd_fork_lock();
    int fd = rd_fd_keep(fcntl(b->listener, F_DUPFD_CLOEXEC, 0));
    rd_fd_fork_unlock();
    if (fd < 0)
        return rd_error(b->ctx, RONDO_ERR_SYSTEM, "cannot serve the new communicator: %s", rd_fd_strerror(errno));
    return rd_rendezvous_start(id, fd, false, b->patience.ms, b->stall_ms, b->ctx);
}

/* There is no thread that could tell the others, who come to this rank and to nobody else. */
static void refuse_all(const rd_boot_t *b, const rd_id_t *id)
{
    char why[RD_ERROR_BYTES], whois[RD_WHOIS], sentence[RD_ERROR_BYTES];

    snprintf(why, sizeof why, "%s", rd_thread_error());
    rd_whois(whois);
    snprintf(sentence, sizeof sentence, "rank 0 (%s): %.400s", whois, why);
    rd_rendezvous_refuse_all(id, b->listener, sentence, REFUSE_MS);
    rd_thread_error_set(why);
}

/* The listener stays with the bootstrap; the thread gets a descriptor of its own. Only one thread may accept
 * connections from it, and a creation that has not ended by the next derivation has failed, so its thread is ended
 * first. Where no descriptor is left this rank will not be in the communicator, and the thread tells the others, who
 * come to it and to nobody else. */
static rondo_result_t serve_derived(rd_boot_t *b, const rd_id_t *id)
{
    if (b->serving)
        rd_served_finish(b->derived, 0, "another communicator is made in its place");
    b->serving = 0;
    const bool some = SERVING_FDS <= rd_fd_free(SERVING_FDS);
    rondo_result_t code =
        some ? serve_copy(b, id) : rd_rendezvous_start(id, b->listener, true, b->patience.ms, b->stall_ms, b->ctx);
    if (code && some)
        refuse_all(b, id);
    if (code)
        return code;
    memcpy(b->derived, id->creds.job, sizeof(b->derived));
    b->serving = 1;
    return RONDO_SUCCESS;
}

rondo_result_t rd_boot_id_derive(rd_boot_t *b, const int *members, int nmembers, uint64_t epoch, rondo_unique_id_t *id)
{
    rd_id_t new;
    rondo_result_t code = check_members(b, members, nmembers);
    if (code)
        return code;
    size_t bytes = sizeof(epoch) + (size_t)nmembers * sizeof(*members);
    unsigned char *text = malloc(bytes);
    if (!text)
        return rd_error(b->ctx, RONDO_ERR_NO_MEMORY, "no memory for a list of %d members", nmembers);
    memcpy(text, &epoch, sizeof(epoch));
    memcpy(text + sizeof(epoch), members, bytes - sizeof(epoch));
    memset(&new, 0, sizeof(new));
    new.derived = 1;
    rd_id_derive(&new.creds, &b->creds, "derived", text, bytes);
    free(text);
    new.addr = nmembers > 1 ? b->addrs[members[0]] : rd_addr_loopback(4); /* port 0: there is no other member */
    snprintf(new.maker, sizeof(new.maker), "%.35s", b->whois[members[0]]);
    if (members[0] == b->rank && nmembers > 1)
        code = serve_derived(b, &new);
    if (!code)
        rd_id_pack(id, &new);
    sodium_memzero(&new, sizeof(new));
    return code;
}

void rd_boot_size(int nranks, int *sockets, size_t *bytes)
{
    int rounds = 0;
    while (1 << rounds < nranks)
        rounds++;
    *sockets = 2 * rounds;
    *bytes = sizeof(rd_boot_t) + (size_t)nranks * (RD_WHOIS + sizeof(rd_addr_t));
}
