/* Nodes. See node.h for what "the same node" means.
 *
 * All ranks first exchange who they are: a hash of the kernel's boot id and RONDO_HOSTID, which stands for the host, a
 * token of their process, the name of their socket. Then they meet in turns: of the ranks of a host that have no node
 * yet, the lowest is leader; the others try to reach it; a rank that succeeds gets the memfd and the pidfds, and
 * belongs to its node. Usually there is one turn, and none if the ranks of each host are one rank, or threads of one
 * process. */
#include "node/node.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node/node_mem.h"
#include "node/fd_pass.h"
#include "base/fd.h"
#include "base/fork.h"

typedef struct identity {
    unsigned char host[16];  /* equal: the ranks try to reach each other */
    unsigned char token[16]; /* equal: the same process */
    unsigned char name[RD_NODE_NAME];
    int32_t pid, zero;
} identity_t;

typedef struct finding {
    rd_node_t *node;
    rd_boot_t *boot;
    rd_log_ctx_t *ctx;
    rd_pass_t pass;
    identity_t *identities;
    int listener;
    int *leader_of;          /* the leader of each rank's node; -1: not known yet */
    int *led;                /* the number of ranks on each leader's node */
    int32_t *said;           /* what each rank reports in an exchange */
    unsigned char *expected; /* ranks that have reached this leader */
    int *all_pidfd;          /* by rank in the communicator */
    int *all_brought;        /* the same */
    int memory;
} finding_t;

/* A number that no other process has, not even a forked child. */
static unsigned char token[16];
static pid_t token_pid;
static pthread_mutex_t token_lock = PTHREAD_MUTEX_INITIALIZER;
static const rd_fork_handlers_t at_fork = {.lock = &token_lock};

static void process_token(unsigned char out[16])
{
    rd_fork_register(RD_FORK_TOKEN, &at_fork);
    pthread_mutex_lock(&token_lock);
    if (token_pid != getpid()) {
        token_pid = getpid();
        randombytes_buf(token, sizeof(token));
    }
    memcpy(out, token, sizeof(token));
    pthread_mutex_unlock(&token_lock);
}

static void own_identity(identity_t *mine, const rd_env_t *env)
{
    unsigned char text[64 + sizeof(env->hostid)];
    memset(text, 0, sizeof(text));
    FILE *f = rd_file_read("/proc/sys/kernel/random/boot_id");
    if (!f || fread(text, 1, 64, f) == 0)
        gethostname((char *)text, 63);
    if (f)
        fclose(f);
    memcpy(text + 64, env->hostid, strnlen(env->hostid, sizeof(env->hostid)));
    crypto_generichash(mine->host, sizeof(mine->host), text, sizeof(text), NULL, 0);
    process_token(mine->token);
    mine->pid = (int32_t)getpid();
}

static bool same_host(const finding_t *f, int a, int b)
{
    return memcmp(f->identities[a].host, f->identities[b].host, sizeof(f->identities[a].host)) == 0;
}

static bool same_process(const identity_t *a, const identity_t *b)
{
    return a->pid == b->pid && memcmp(a->token, b->token, sizeof(a->token)) == 0;
}

/* Returns the rank that would lead rank r: the lowest rank of its host without a node; -1 if r has one. */
static int would_lead(const finding_t *f, int r)
{
    if (f->leader_of[r] >= 0)
        return -1;
    for (int i = 0; i < r; i++)
        if (f->leader_of[i] < 0 && same_host(f, i, r))
            return i;
    return r;
}

/* Assigns the ranks whose host has one rank, or the threads of one process alone: they need no sockets. */
static void assign_the_obvious(finding_t *f)
{
    int n = f->pass.nranks;
    for (int lead = 0; lead < n; lead++) {
        int one_process = 1;
        if (would_lead(f, lead) != lead)
            continue;
        for (int r = lead; r < n; r++)
            one_process &= !same_host(f, r, lead) || same_process(&f->identities[r], &f->identities[lead]);
        for (int r = lead; r < n && one_process; r++)
            if (same_host(f, r, lead))
                f->leader_of[r] = lead;
    }
}

static rondo_result_t make_memory(finding_t *f)
{
    rd_fd_fork_lock();
    f->memory = rd_fd_keep(memfd_create("rondo", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    rd_fd_fork_unlock();
    if (f->memory >= 0)
        return RONDO_SUCCESS;
    return rd_error(f->ctx, RONDO_ERR_SYSTEM, "cannot make shared memory: %s", rd_fd_strerror(errno));
}

static rondo_result_t lead(finding_t *f)
{
    int any = 0, self = f->pass.rank, n = f->pass.nranks;
    for (int r = 0; r < n; r++) {
        f->expected[r] = r != self && would_lead(f, r) == self && f->said[r] == 1;
        any |= f->expected[r];
    }
    if (!any)
        return RONDO_SUCCESS;
    rondo_result_t code = make_memory(f);
    if (code)
        return code;
    return rd_pass_lead(&f->pass, f->listener, f->identities[self].name, f->expected, f->memory, f->all_pidfd, f->ctx);
}

/* The members need not wait for a leader that will not answer: after a failure, or when it has done its part. */
static void stop_listening(finding_t *f)
{
    rd_fd_close(f->listener);
    f->listener = -1;
}

/* Collective, where one of the ranks has failed: all get to know why. `code`: how this one has; RONDO_SUCCESS: it has
 * not. Returns that, or what all say of the first one. */
static rondo_result_t say_failure(finding_t *f, rondo_result_t code)
{
    char said[RD_ERROR_BYTES];
    int first = 0;

    while (f->said[first] >= 0)
        first++;
    rondo_result_t exchanged = rd_boot_cause(f->boot, first, rd_thread_error(), said);
    if (code || exchanged)
        return code ? code : exchanged;
    return rd_error(f->ctx, (rondo_result_t)-f->said[first], "rank %d (%s) could not join its node: %.*s", first,
                    rd_boot_whois(f->boot, first), RD_ERROR_BYTES - 120, said);
}

/* Takes one turn: every rank tries, and every rank learns how it went. */
static rondo_result_t take_turn(finding_t *f)
{
    int self = f->pass.rank, n = f->pass.nranks, fd = -1, leader = would_lead(f, self);
    rondo_result_t code;
    f->said[self] = 1;
    if (leader >= 0 && leader != self) {
        fd = rd_pass_connect(f->identities[leader].name);
        f->said[self] = fd >= 0;
    }
    code = rd_boot_allgather(f->boot, f->said, sizeof(*f->said));
    if (code) {
        rd_fd_close(fd);
        return code;
    }
    if (leader == self) {
        code = lead(f);
        stop_listening(f); /* it is no leader twice */
    } else if (fd >= 0)
        code = rd_pass_follow(&f->pass, fd, f->identities[leader].name, &f->memory, f->all_pidfd, f->ctx);
    if (code == RONDO_ERR_NO_MEMORY && leader != self)
        return rd_boot_drop_out(f->boot, code); /* the leader may still wait for this rank */
    if (code)
        stop_listening(f);
    f->said[self] = code ? -(int32_t)code : leader < 0 || leader == self || f->memory >= 0;
    rondo_result_t exchanged = rd_boot_allgather(f->boot, f->said, sizeof(*f->said));
    if (exchanged)
        return code ? code : exchanged;
    for (int r = 0; r < n; r++)
        if (f->said[r] < 0)
            return say_failure(f, code);
    for (int r = n - 1; r >= 0; r--) { /* downwards, because would_lead reads the ranks below */
        int l = would_lead(f, r);
        if (l >= 0 && f->said[r] == 1)
            f->leader_of[r] = l;
    }
    return RONDO_SUCCESS;
}

static bool all_assigned(const finding_t *f)
{
    for (int r = 0; r < f->pass.nranks; r++)
        if (f->leader_of[r] < 0)
            return false;
    return true;
}

/* Returns n numbers, all of which say that there is no descriptor; NULL if there is no memory. */
static int *no_descriptors(int n)
{
    int *fds = malloc((size_t)n * sizeof(int));
    if (fds)
        memset(fds, 0xff, (size_t)n * sizeof(int));
    return fds;
}

/* Nodes are numbered by their lowest rank, which is their leader. */
static rondo_result_t write_down(finding_t *f)
{
    rd_node_t *node = f->node;
    int n = f->pass.nranks, self = f->pass.rank;
    for (int r = 0; r < n; r++) {
        node->node_of[r] = f->leader_of[r] == r ? node->nnodes++ : node->node_of[f->leader_of[r]];
        f->led[f->leader_of[r]]++;
    }
    node->nlocal = node->fewest = f->led[f->leader_of[self]];
    for (int r = 0; r < n; r++) {
        node->fewest = f->led[r] && f->led[r] < node->fewest ? f->led[r] : node->fewest;
        node->most = f->led[r] > node->most ? f->led[r] : node->most;
    }
    node->local = malloc((size_t)node->nlocal * sizeof(int));
    node->pidfd = no_descriptors(node->nlocal);
    node->brought = no_descriptors(node->nlocal);
    if (!node->local || !node->pidfd || !node->brought)
        return rd_boot_drop_out(
            f->boot, rd_error(f->ctx, RONDO_ERR_NO_MEMORY, "no memory for a node of %d ranks", node->nlocal));
    for (int r = 0, m = 0; r < n; r++) {
        if (f->leader_of[r] != f->leader_of[self])
            continue;
        if (r == self)
            node->self = m;
        node->local[m] = r;
        if (!same_process(&f->identities[r], &f->identities[self])) {
            node->pidfd[m] = f->all_pidfd[r];
            f->all_pidfd[r] = -1;
            node->brought[m] = f->all_brought[r];
            f->all_brought[r] = -1;
        }
        m++;
    }
    node->fd = f->memory;
    f->memory = -1;
    return RONDO_SUCCESS;
}

static rondo_result_t find(finding_t *f, const rd_env_t *env)
{
    identity_t *mine = &f->identities[f->pass.rank];
    own_identity(mine, env);
    f->listener = rd_pass_listen(mine->name); /* -1: no rank will reach this one */
    rondo_result_t code = rd_boot_allgather(f->boot, f->identities, sizeof(*f->identities));
    if (code)
        return code;
    assign_the_obvious(f);
    while (!code && !all_assigned(f))
        code = take_turn(f);
    return code ? code : write_down(f);
}

static rondo_result_t finding_alloc(finding_t *f)
{
    size_t n = (size_t)f->pass.nranks;
    f->identities = calloc(n, sizeof(*f->identities));
    f->leader_of = malloc(n * sizeof(int));
    f->led = calloc(n, sizeof(*f->led));
    f->said = calloc(n, sizeof(*f->said));
    f->expected = calloc(n, 1);
    f->all_pidfd = no_descriptors((int)n); /* finding_free closes what is in these two */
    f->all_brought = f->pass.others = no_descriptors((int)n);
    f->node->node_of = calloc(n, sizeof(int));
    if (!f->identities || !f->leader_of || !f->led || !f->said || !f->expected || !f->all_pidfd || !f->all_brought ||
        !f->node->node_of)
        return rd_error(f->ctx, RONDO_ERR_NO_MEMORY, "no memory to find the nodes of %zu ranks", n);
    memset(f->leader_of, 0xff, n * sizeof(int));
    return RONDO_SUCCESS;
}

static void finding_free(finding_t *f)
{
    for (int r = 0; f->all_pidfd && r < f->pass.nranks; r++)
        rd_fd_close(f->all_pidfd[r]);
    for (int r = 0; f->all_brought && r < f->pass.nranks; r++)
        rd_fd_close(f->all_brought[r]);
    rd_fd_close(f->memory);
    rd_fd_close(f->listener);
    free(f->identities);
    free(f->leader_of);
    free(f->led);
    free(f->said);
    free(f->expected);
    free(f->all_pidfd);
    free(f->all_brought);
    sodium_memzero(&f->pass.creds, sizeof(f->pass.creds));
}

rondo_result_t rd_node_find(rd_node_t *node, rd_boot_t *boot, int rank, int nranks, const rd_env_t *env, int bring,
                            rd_log_ctx_t *ctx, rd_stop_t *stop)
{
    finding_t f = {.node = node, .boot = boot, .ctx = ctx, .listener = -1, .memory = -1};
    f.pass.rank = rank;
    f.pass.nranks = nranks;
    f.pass.stop = stop;
    f.pass.boot = boot;
    f.pass.brought = bring;
    memset(node, 0, sizeof(*node));
    node->fd = -1;
    rd_boot_key(boot, "node job", f.pass.creds.secret);
    memcpy(f.pass.creds.job, f.pass.creds.secret, sizeof(f.pass.creds.job));
    rd_boot_key(boot, "node", f.pass.creds.secret);
    rondo_result_t code = finding_alloc(&f);
    code = code ? rd_boot_drop_out(boot, code) : find(&f, env);
    finding_free(&f);
    if (code)
        rd_node_free(node);
    return code;
}
