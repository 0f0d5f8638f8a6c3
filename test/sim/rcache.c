/* Of messages that go by GDR between nodes, those from memory that was given back and taken anew go from a copy; all
 * others from where they lie; and what was announced is known. To find memory that may be announced frees none, for
 * which CUDA would wait for whatever runs. */
#include <stdio.h>
#include <string.h>

#include <rondo.h>

#include "core/comm.h"
#include "exec/cuda/proxy/proxy.h"
#include "sim/runtime.h"
#include "util/check.h"

#define BYTES ((size_t)1 << 20)
#define KEPT 64
#define MANY 30 /* 13 has no divisor in common with it */
#define LITTLE ((size_t)64 << 10)
#define LEFT 10

static int frees;

cudaError_t __real_cudaFree(void *memory);
cudaError_t __wrap_cudaFree(void *memory);
cudaError_t __wrap_cudaFree(void *memory)
{
    frees++;
    return __real_cudaFree(memory);
}

static char *take(size_t bytes)
{
    void *memory = NULL;

    CHECK(cudaMalloc(&memory, bytes) == cudaSuccess);
    return memory;
}

/* Gives it back, and takes some at the same address. NULL: the system does not do us the favour. */
static char *take_anew(char *memory, size_t bytes)
{
    char *others[KEPT], *anew = NULL;
    int n = 0;

    CHECK(cudaFree(memory) == cudaSuccess);
    while (n < KEPT && (anew = take(bytes)) != memory)
        others[n++] = anew;
    while (n > 0)
        CHECK(cudaFree(others[--n]) == cudaSuccess);
    return anew == memory ? anew : NULL;
}

/* Where a message goes from, which must hold its bytes. */
static char *sent_from(rd_proxy_path_t *s, char *buffer, size_t bytes, uint64_t flags)
{
    rd_kmessage_t m = {buffer, bytes | flags};

    CHECK(rd_rcache_copy(s, &m, NULL) == RONDO_SUCCESS);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    CHECK(m.bytes == (bytes | flags) && memcmp(m.buffer, buffer, bytes) == 0);
    return m.buffer;
}

/* Of many, announced in no order: none is taken for another, and each again for itself. */
static void check_many(rd_proxy_path_t *s, char *all[MANY])
{
    for (int i = 0; i < MANY; i++) {
        all[i] = take(LITTLE);
        memset(all[i], i, LITTLE);
    }
    for (int i = 0; i < 2 * MANY; i++) {
        char *p = all[i * 13 % MANY];
        CHECK(sent_from(s, p + i, LITTLE - (size_t)i, RD_KGDR) == p + i);
    }
}

/* And what lies over several of them, or a part of one, when they are gone. */
static void check_over(rd_proxy_path_t *s, char *const all[MANY])
{
    char *over;
    int lies = 0;

    for (int i = 0; i < MANY; i++)
        CHECK(cudaFree(all[i]) == cudaSuccess);
    over = take(4 * LITTLE);
    memset(over, 9, 4 * LITTLE);
    for (int i = 0; i < MANY; i++)
        lies |= all[i] < over + 4 * LITTLE && over < all[i] + LITTLE;
    s->bounce_used = 0;
    CHECK(!lies || sent_from(s, over, 100, RD_KGDR) != over);
    CHECK(cudaFree(over) == cudaSuccess);
}

/* Of the whole allocation that `bytes` at `at` were sent from. */
static rd_net_memory_t whole(const rd_proxy_path_t *s, char *at, size_t bytes, uint64_t flags)
{
    const rd_kmessage_t m = {at, bytes | flags};

    return rd_rcache_whole(s, &m);
}

/* The memory that it leaves, where nothing else may come to lie. */
static char *check_whole(rd_proxy_path_t *s)
{
    char *p = take(BYTES), *never = take(BYTES), *anew, *bounce;

    memset(p, 1, BYTES);
    CHECK(whole(s, p, 10, RD_KGDR).bytes == 0);
    CHECK(sent_from(s, p + 5, 10, RD_KGDR) == p + 5);
    rd_net_memory_t w = whole(s, p + BYTES - 10, 10, RD_KGDR);
    CHECK(w.base == p && w.bytes >= BYTES && w.number != 0);
    CHECK(whole(s, p + 1, w.bytes, RD_KGDR).bytes == 0 && whole(s, p - 1, 10, RD_KGDR).bytes == 0);
    CHECK(whole(s, never, 10, RD_KGDR).bytes == 0);
    CHECK(whole(s, p, 10, RD_KGDR | RD_KGDR_HOST).bytes == 0);
    if ((anew = take_anew(p, BYTES))) {
        memset(anew, 2, BYTES);
        bounce = sent_from(s, anew, BYTES, RD_KGDR);
        CHECK(bounce != anew && whole(s, bounce, BYTES, RD_KGDR).number != w.number);
        CHECK(whole(s, bounce, BYTES, RD_KGDR).bytes >= BYTES);
    }
    CHECK(cudaFree(never) == cudaSuccess);
    return anew;
}

static void check(rd_proxy_path_t *s)
{
    char *p = take(BYTES), *other = take(3 * BYTES), *first, *grown;

    memset(p, 1, BYTES);
    memset(other, 2, 3 * BYTES);
    CHECK(sent_from(s, p, BYTES, RD_KGDR) == p && sent_from(s, p + 4097, 10, RD_KGDR) == p + 4097);
    CHECK(sent_from(s, other, 3 * BYTES, RD_KGDR) == other && s->bounce == NULL);

    if (!(p = take_anew(p, BYTES)))
        return;
    memset(p, 3, BYTES);
    CHECK(sent_from(s, p, BYTES, 0) == p); /* by slots */
    CHECK(sent_from(s, p, BYTES, RD_KGDR | RD_KGDR_HOST) == p);
    first = sent_from(s, p + 3, BYTES - 3, RD_KGDR);
    CHECK(first != p + 3);
    CHECK(sent_from(s, p, 100, RD_KGDR) >= first + BYTES - 3); /* of the same launch */
    s->bounce_used = 0;
    CHECK(sent_from(s, p, 100, RD_KGDR) == first);
    CHECK(sent_from(s, other, 3 * BYTES, RD_KGDR) == other);

    if (!(other = take_anew(other, 3 * BYTES)))
        return;
    memset(other, 4, 3 * BYTES);
    grown = sent_from(s, other, 3 * BYTES, RD_KGDR);
    CHECK(grown != other && (grown + 3 * BYTES <= first || grown >= first + BYTES));
    first[0] = 5; /* a graph may know it */
    CHECK(cudaFree(p) == cudaSuccess && cudaFree(other) == cudaSuccess);
    printf("renewed: %d\n", failures);
}

/* The first places that CUDA gives have been announced, as a rule. */
static void check_fresh(rd_cuda_t *cuda)
{
    char *p = take(BYTES), *other = take(BYTES), *found = NULL;
    bool fresh = false;

    (void)rd_rcache_announce(p);
    (void)rd_rcache_announce(other);
    CHECK(cudaFree(p) == cudaSuccess && cudaFree(other) == cudaSuccess);
    const int before = frees;
    CHECK(rd_rcache_allocate(cuda, BYTES, &found, &fresh) == cudaSuccess && fresh && frees == before);
    CHECK(found != p && found != other);
    CHECK(cudaFree(found) == cudaSuccess);
}

static size_t free_now(void)
{
    size_t left = 0, all = 0;

    CHECK(cudaMemGetInfo(&left, &all) == cudaSuccess);
    return left;
}

/* However often memory is looked for, what is held meanwhile has its bounds; and it is freed when the device's is. */
static void check_bounds(rd_cuda_t *cuda)
{
    const size_t before = free_now();
    char *found = NULL;
    bool fresh;

    for (int i = 0; i < 12; i++) {
        CHECK(rd_rcache_allocate(cuda, 16 * BYTES, &found, &fresh) == cudaSuccess);
        (void)rd_rcache_announce(found);
        CHECK(cudaFree(found) == cudaSuccess);
    }
    CHECK(before - free_now() <= (size_t)256 << 20);
    CHECK(rd_window_give_back(cuda) == RONDO_SUCCESS && free_now() >= before);
}

/* What is left of the length of a copy, and must not be announced, is in no copy's way. */
static void check_left(rd_cuda_t *cuda)
{
    rd_proxy_path_t path = {.cuda = cuda};
    char *old[LEFT], *p = take(BYTES);

    for (int i = 0; i < LEFT; i++)
        (void)rd_rcache_announce(old[i] = take(2 * BYTES));
    for (int i = 0; i < LEFT; i++)
        CHECK(cudaFree(old[i]) == cudaSuccess);
    for (int i = 0; i < LEFT; i++)
        if (rd_rcache_announce(old[i] = take(2 * BYTES)))
            rd_window_leave(cuda, old[i], 2 * BYTES, RD_LEFT_UNUSED);
        else
            CHECK(cudaFree(old[i]) == cudaSuccess);
    (void)rd_rcache_announce(p);
    if ((p = take_anew(p, BYTES))) {
        memset(p, 6, BYTES);
        CHECK(sent_from(&path, p, BYTES, RD_KGDR) != p);
        CHECK(cudaFree(p) == cudaSuccess);
    }
    rd_rcache_free(&path);
}

int main(void)
{
    rondo_comm_t comm, next;
    char said[200], *all[MANY];
    int device = 0;

    if (rondo_comm_create_all(&comm, 1, &device, NULL) != RONDO_SUCCESS ||
        rondo_comm_create_all(&next, 1, &device, NULL) != RONDO_SUCCESS)
        return 2;
    rd_proxy_path_t path = {.cuda = comm->cuda}, other = {.cuda = comm->cuda}, later = {.cuda = next->cuda};
    char *left = check_whole(&other);
    check_many(&path, all);
    check(&path);
    check_over(&path, all);
    check_fresh(comm->cuda);
    check_left(comm->cuda);
    check_bounds(comm->cuda);
    rd_rcache_free(&path);
    rd_rcache_free(&other);
    CHECK(rondo_comm_destroy(comm) == RONDO_SUCCESS);
    int there = sim_live(said, sizeof said); /* kept for the next communicator till the last one ends */
    if (left)
        CHECK(sent_from(&later, left, BYTES, RD_KGDR) != left && sim_live(said, sizeof said) == there);
    rd_rcache_free(&later);
    CHECK(!left || cudaFree(left) == cudaSuccess);
    CHECK(rondo_comm_destroy(next) == RONDO_SUCCESS);
    CHECK(sim_live(said, sizeof said) == 0);
    return failures != 0;
}
