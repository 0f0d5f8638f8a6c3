/* Words in pinned memory, one set for each communicator, which its kernels look at and write into (kernels/work.h:
 * rd_khost_t). A page has those of many communicators, because what is pinned takes whole pages and a call of CUDA that
 * may wait for others; so pages are kept until the last communicator of the process has ended. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/graveyard.h"

#define WORDS 64 /* communicators that a page has room for */

typedef struct page {
    struct page *next;
    char *base;
    uint64_t taken; /* a bit each */
} page_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static page_t *pages;

/* With the lock held. NULL: all pages are full. */
static rd_khost_t *take(void)
{
    page_t *p = pages;

    while (p && p->taken == UINT64_MAX)
        p = p->next;
    if (!p)
        return NULL;
    int i = __builtin_ctzll(~p->taken);
    p->taken |= UINT64_C(1) << i;
    return memset(p->base + i * RD_WORD_BYTES, 0, RD_WORD_BYTES);
}

static page_t *page_make(cudaError_t *error)
{
    page_t *p = calloc(1, sizeof *p);

    *error = p ? cudaHostAlloc((void **)&p->base, WORDS * RD_WORD_BYTES, cudaHostAllocPortable | cudaHostAllocMapped)
               : cudaErrorMemoryAllocation;
    if (*error == cudaSuccess)
        return p;
    free(p);
    return NULL;
}

/* CUDA is called without the lock: see graveyard.c. */
rd_khost_t *rd_words_take(cudaError_t *error)
{
    page_t *made;

    pthread_mutex_lock(&lock);
    rd_khost_t *words = take();
    pthread_mutex_unlock(&lock);
    if (words || !(made = page_make(error)))
        return words;
    pthread_mutex_lock(&lock);
    made->next = pages;
    pages = made;
    words = take();
    pthread_mutex_unlock(&lock);
    return words;
}

void rd_words_give(rd_khost_t *words)
{
    pthread_mutex_lock(&lock);
    for (page_t *p = pages; p; p = p->next) {
        ptrdiff_t at = (char *)words - p->base;
        if (at >= 0 && at < WORDS * RD_WORD_BYTES)
            p->taken &= ~(UINT64_C(1) << (at / RD_WORD_BYTES));
    }
    pthread_mutex_unlock(&lock);
}

void rd_words_free(void)
{
    while (pages) {
        page_t *p = pages;
        pages = p->next;
        (void)cudaFreeHost(p->base);
        free(p);
    }
}
