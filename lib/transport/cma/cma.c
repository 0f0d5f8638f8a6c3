/* See cma.h. */
#include "transport/cma/cma.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* What a rank tells the others: a word of its memory to be read, and which process it is. */
typedef struct {
    uint64_t address, word, process;
    int64_t pid;
} process_word_t;

static uint64_t process_number;

static void draw_process_number(void)
{
    if (getrandom(&process_number, sizeof process_number, 0) != sizeof process_number)
        process_number = (uint64_t)(uintptr_t)&process_number;
}

int rd_pull_read(const rd_recv_t *from, void *to, uint64_t address, size_t bytes)
{
    if (from->pid == 0) {
        memcpy(to, (const void *)(uintptr_t)address, bytes);
        return 0;
    }
    for (size_t done = 0; done < bytes;) {
        struct iovec here = {(char *)to + done, bytes - done};
        struct iovec there = {(void *)(uintptr_t)(address + done), bytes - done};
        ssize_t got = process_vm_readv(from->pid, &here, 1, &there, 1, 0);
        if (got <= 0)
            return -1;
        done += (size_t)got;
    }
    return 0;
}

/* Tries one peer; its connections learn how to read it. */
static int try_peer(rd_conns_t *conns, const process_word_t *all, int rank, int peer)
{
    /* A forked child has its parent's number, but not its pid. */
    int same = all[peer].process == all[rank].process && all[peer].pid == all[rank].pid;
    uint64_t word = 0;

    for (int ch = 0; ch < RD_CHANNELS; ch++) {
        rd_recv_t *recv = &conns->recvs[(size_t)ch * (size_t)conns->nranks + (size_t)peer];
        recv->pid = same ? 0 : (int32_t)all[peer].pid;
        recv->failed = &conns->controls[peer]->failed;
        recv->reading = same ? &conns->self->reading : NULL;
    }
    if (same)
        return 1;
    return rd_pull_read(&conns->recvs[peer], &word, all[peer].address, sizeof word) == 0 && word == all[peer].word;
}

rondo_result_t rd_pull_probe(rd_conns_t *conns, rd_boot_t *boot, const rd_node_t *node, int rank, const rd_env_t *env,
                             rd_who_t *who)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t n = (size_t)conns->nranks;
    process_word_t *all = calloc(n, sizeof *all + 1);
    unsigned char *could;
    rondo_result_t result;

    if (!all)
        return rd_error(who, RONDO_ERR_NO_MEMORY, "no memory for the records of %zu ranks", n);
    could = (unsigned char *)(all + n);
    pthread_once(&once, draw_process_number);
    uint64_t word = process_number ^ (uint64_t)rank ^ (uint64_t)(uintptr_t)all;
    all[rank] = (process_word_t){(uint64_t)(uintptr_t)&word, word, process_number, getpid()};
    result = rd_boot_allgather(boot, all, sizeof *all);
    if (result == RONDO_SUCCESS) {
        could[rank] = env->pull != 0;
        for (int m = 0; m < node->nlocal && could[rank]; m++)
            could[rank] = node->local[m] == rank || try_peer(conns, all, rank, node->local[m]);
        result = rd_boot_allgather(boot, could, 1);
    }
    conns->pull = 1;
    for (size_t r = 0; r < n; r++)
        conns->pull &= could[r];
    free(all);
    return result;
}
