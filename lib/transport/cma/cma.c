/* See cma.h. */
#include "transport/cma/cma.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/cma/room.h"
#include "transport/conns.h"

/* What a rank sends to the others: a word of its memory to be read, and an identification of its process. */
typedef struct {
    uint64_t address, word, process;
    int64_t pid;
} process_word_t;

typedef struct cma {
    rd_transport_t base;
    rd_conns_t *conns;
    rd_log_ctx_t *ctx;
    int rank;
    uint64_t word;        /* that the others read, to see that they can, and that it is this program still */
    process_word_t all[]; /* of each rank */
} cma_t;

static uint64_t process_number;

static void draw_process_number(void)
{
    if (getrandom(&process_number, sizeof process_number, 0) != sizeof process_number)
        process_number = (uint64_t)(uintptr_t)&process_number;
}

static int read_process(int32_t pid, void *to, uint64_t address, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        struct iovec here = {(char *)to + done, bytes - done};
        struct iovec there = {(void *)(uintptr_t)(address + done), bytes - done};
        ssize_t got = rd_cma_copy(pid, &here, &there, false);
        if (got == 0)
            errno = EFAULT;
        if (got <= 0)
            return -1;
        done += (size_t)got;
    }
    return 0;
}

/* The kernel may refuse some of a living process's memory (memfd_secret, mappings of devices), and from one moment on
 * all of it (prctl PR_SET_DUMPABLE, a security module). */
static int read_peer(const rd_recv_t *from, void *to, uint64_t address, size_t bytes)
{
    const cma_t *cma = from->link;

    if (read_process(from->pid, to, address, bytes) == 0)
        return 0;
    if (errno == ESRCH)
        return -1;
    rd_log(
        cma->ctx, RD_LOG_INFO,
        "the kernel does not let this rank read a buffer of rank %d (%s): what that rank sends goes through slots from "
        "now on, which is slower",
        from->peer, strerror(errno));
    return 1;
}

static int put_to_peer(rd_send_t *to, const void *from, size_t bytes)
{
    const cma_t *cma = to->link;

    if (to->put_refused)
        return 1;
    if (rd_room_put(&to->ll_head->room, to->pid, from, bytes) == 0)
        return 0;
    if (errno == ESRCH)
        return -1;
    to->put_refused = errno != 0;
    if (errno)
        rd_log(cma->ctx, RD_LOG_INFO,
               "the kernel does not let this rank write into a buffer of rank %d (%s): that rank reads what this one "
               "sends from now on, which is slower",
               to->peer, strerror(errno));
    return 1;
}

/* A forked child has its parent's process number, but not its pid. */
static bool is_same_process(const cma_t *cma, int peer)
{
    const process_word_t *own = &cma->all[cma->rank], *other = &cma->all[peer];

    return other->process == own->process && other->pid == own->pid;
}

/* By exec another program has all memory from the moment on in which no thread of the old one runs any more. */
bool rd_cma_same_program(const rd_recv_t *recv)
{
    const cma_t *cma = recv->link;
    const process_word_t *other = &cma->all[recv->peer];
    uint64_t word;

    if (read_process((int32_t)other->pid, &word, other->address, sizeof word) == 0)
        return word == other->word;
    return errno != EFAULT && errno != ESRCH;
}

static bool can_read(const cma_t *cma, int peer)
{
    const process_word_t *other = &cma->all[peer];
    uint64_t word = 0;

    if (is_same_process(cma, peer))
        return true;
    return read_process((int32_t)other->pid, &word, other->address, sizeof word) == 0 && word == other->word;
}

/* Exchanges the records and tries to read a word of every rank of the node. Sets could[rank], for every rank, to
 * whether that rank could read all words; if this one could not, *refused is the rank that it failed at, and errno says
 * why. */
static rondo_result_t try_all(cma_t *cma, const rd_transport_args_t *args, unsigned char *could, int *refused)
{
    const rd_node_t *node = args->node;
    process_word_t *own = &cma->all[args->rank];

    cma->word = process_number ^ (uint64_t)args->rank ^ (uint64_t)(uintptr_t)cma;
    *own = (process_word_t){(uint64_t)(uintptr_t)&cma->word, cma->word, process_number, getpid()};
    rondo_result_t result = rd_boot_allgather(args->boot, cma->all, sizeof *cma->all);
    if (result != RONDO_SUCCESS)
        return result;
    could[args->rank] = args->env->cma != 0;
    errno = 0;
    for (int m = 0; m < node->nlocal && could[args->rank]; m++)
        could[args->rank] = can_read(cma, *refused = node->local[m]);
    int error = errno;
    result = rd_boot_allgather(args->boot, could, 1);
    errno = error;
    return result;
}

/* Warns that memory cannot be read; only the first rank that could not does. */
static void say_refused(const rd_transport_args_t *args, const unsigned char *could, int refused, int error)
{
    for (int r = 0; r < args->rank; r++)
        if (!could[r])
            return;
    if (args->env->cma && !could[args->rank])
        rd_log_slow(
            args->ctx,
            "this rank may not read the memory of rank %d (%s): %s. Long messages within a node are copied twice, "
            "through shared memory. Allow process_vm_readv: kernel.yama.ptrace_scope=0, and for containers "
            "--cap-add=SYS_PTRACE and one PID namespace (--pid); RONDO_CMA=0 where that is not wanted",
            refused, rd_boot_whois(args->boot, refused),
            error ? strerror(error) : "another process has its number here");
}

static rondo_result_t create(rd_transport_t **transport, const rd_transport_args_t *args)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t n = (size_t)args->nranks;
    cma_t *cma = calloc(1, sizeof *cma + n * sizeof *cma->all);
    unsigned char *could = calloc(n, 1);
    int refused = args->rank;
    rondo_result_t result;

    if (!cma || !could) {
        free(could);
        free(cma);
        return rd_error(args->ctx, RONDO_ERR_NO_MEMORY, "no memory for the records of %zu ranks", n);
    }
    pthread_once(&once, draw_process_number);
    *cma = (cma_t){.base = {.ops = &rd_transport_cma}, .conns = args->conns, .ctx = args->ctx, .rank = args->rank};
    result = try_all(cma, args, could, &refused);
    if (result == RONDO_SUCCESS)
        say_refused(args, could, refused, errno);
    args->conns->cma = result == RONDO_SUCCESS;
    for (size_t r = 0; r < n; r++)
        args->conns->cma &= could[r];
    free(could);
    if (result == RONDO_SUCCESS)
        *transport = &cma->base;
    else
        free(cma);
    return result;
}

static rondo_result_t bind_send(rd_transport_t *transport, int peer, int channel, rd_send_t *send)
{
    const cma_t *cma = (const cma_t *)transport;

    (void)channel;
    if (!cma->conns->cma)
        return RONDO_SUCCESS;
    send->pid = (int32_t)cma->all[peer].pid;
    send->put = put_to_peer;
    send->link = transport;
    return RONDO_SUCCESS;
}

static rondo_result_t bind_recv(rd_transport_t *transport, int peer, int channel, rd_recv_t *recv)
{
    const cma_t *cma = (const cma_t *)transport;
    rd_conns_t *conns = cma->conns;

    (void)channel;
    if (!conns->cma)
        return RONDO_SUCCESS;
    recv->failed = &conns->controls[peer]->failed;
    recv->pid = (int32_t)cma->all[peer].pid;
    if (is_same_process(cma, peer)) {
        recv->reading = &conns->self->reading;
    } else {
        recv->read = read_peer;
        recv->link = transport;
    }
    return RONDO_SUCCESS;
}

static void destroy(rd_transport_t *transport)
{
    free(transport);
}

const rd_transport_ops_t rd_transport_cma = {.name = "cma",
                                             .reach = RD_WITHIN_NODE,
                                             .create = create,
                                             .bind_send = bind_send,
                                             .bind_recv = bind_recv,
                                             .destroy = destroy};
