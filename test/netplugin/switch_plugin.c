/* A CollNet plugin of version VERSION, as others would build it: it includes nothing of rondo's and nothing of NCCL's.
 * Its switch is memory that the ranks of a group share, processes of one host: each puts its part there, and each adds
 * up what all have put, in the order of the ranks. It is as strict as a plugin may be: memory must have been
 * registered, all parts of a sum must be alike, and requests are asked for in their order.
 *
 * The memory has no name: it is a descriptor of the group's first rank, which the handle says. What else it does is
 * said by TEST_SWITCH, words with commas between them:
 *
 *   lazy           every other call gives no request, and test says "not yet" every other time
 *   refuse, empty  init fails; there is no device
 *   renamed        it has another name
 *   device         it takes no memory of the host's
 *   narrow         4 KB at a time (version 9 and later)
 *   few            it adds float32 alone, and that by SUM alone
 *   liar           reduceSupport says 7
 *   long           test says that more bytes have come than were asked for
 *   notices        a rank that has died is an error
 *   stuck          connect never returns
 *   adds           it has neither iallgather nor ireducescatter
 *   fail=CALL/N    the N-th call of listen, connect, reg, iallreduce, iallgather, ireducescatter or test fails with a
 *                  system error
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS "TEST_SWITCH"
#include "netplugin/plugin.h"

#define RANKS 16
#define SLOTS 16
#define BYTES ((size_t)128 << 10)

enum { SUM, PROD, MAX, MIN, OPS };
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, TYPES };

/* ---- groups */

enum { ADD, GATHER, SCATTER };

typedef struct header {
    uint64_t count; /* of a sum, or of each rank's block */
    int type, op, kind, unused;
} header_t;

typedef struct memory {
    _Atomic int joined;
    _Atomic int pid[RANKS];
    _Atomic uint64_t posted[RANKS], consumed[RANKS];
    header_t header[RANKS][SLOTS];
    _Alignas(4096) char data[RANKS][SLOTS][BYTES];
} memory_t;

typedef struct request {
    struct comm *comm;
    uint64_t number;
    char *to;
    size_t bytes; /* of the result */
    int used;
} request_t;

typedef struct comm {
    memory_t *memory;
    int nranks, rank;
    uint64_t posted, tested;
    unsigned turn;
    region_t regions[REGIONS];
    request_t requests[SLOTS];
} comm_t;

typedef struct handle {
    int pid, fd;
} handle_t;

typedef struct listener {
    int fd;
} listener_t;

extern SHOWN long test_switch_sums;
long test_switch_sums; /* requests that it has answered in this process, */
extern SHOWN long test_switch_blocks;
long test_switch_blocks; /* and those of them that were no sums of whole vectors */

static int listen_on(int device, void *handle, void **out)
{
    listener_t *l = malloc(sizeof *l);
    handle_t h = {.pid = getpid()};

    if (!l || device != 0 || fails("listen"))
        return SYSTEM;
    l->fd = h.fd = memfd_create("switch", MFD_CLOEXEC);
    if (h.fd < 0 || ftruncate(h.fd, sizeof(memory_t)) != 0)
        return SYSTEM;
    memset(handle, 0, HANDLE);
    memcpy(handle, &h, sizeof h);
    *out = l;
    return GOOD;
}

static int connect_all(void *handles[], int nranks, int rank, void *listener, void **out)
{
    char path[64];
    handle_t h;
    int fd;

    memcpy(&h, handles[0], sizeof h);
    if (fails("connect") || nranks > RANKS || rank < 0 || rank >= nranks || !listener)
        return SYSTEM;
    while (has("stuck"))
        pause();
    snprintf(path, sizeof path, "/proc/%d/fd/%d", h.pid, h.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    comm_t *c = calloc(1, sizeof *c);
    if (fd < 0 || !c)
        return REMOTE;
    c->memory = mmap(NULL, sizeof(memory_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->memory == MAP_FAILED)
        return SYSTEM;
    c->nranks = nranks;
    c->rank = rank;
    atomic_store(&c->memory->pid[rank], getpid());
    atomic_fetch_add(&c->memory->joined, 1);
    while (atomic_load(&c->memory->joined) < nranks)
        usleep(500);
    *out = c;
    return GOOD;
}

static int close_listen(void *listener)
{
    listener_t *l = listener;

    close(l->fd);
    free(l);
    return GOOD;
}

static int close_comm(void *comm)
{
    comm_t *c = comm;

    for (int i = 0; i < REGIONS; i++)
        if (c->regions[i].at)
            return ARGUMENT;
    munmap(c->memory, sizeof(memory_t));
    free(c);
    return GOOD;
}

/* ---- memory */

static int reg(void *comm, void *data, size_t bytes, int memory, void **out)
{
    comm_t *c = comm;

    return region_add(c->regions, data, bytes, memory, out);
}

static int dereg(void *comm, void *registration)
{
    comm_t *c = comm;

    return region_drop(c->regions, registration);
}

/* ---- sums */

static const size_t sizes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static int supports(int type, int op, int *supported)
{
    *supported = type >= 0 && type < TYPES && type != FLOAT16 && op >= SUM && op < OPS;
    if (has("few"))
        *supported = type == FLOAT32 && op == SUM;
    if (has("liar"))
        *supported = 7;
    return GOOD;
}

#define FOLD(name, type)                                                                                               \
    static void name(void *into, const void *from, size_t n, int op)                                                   \
    {                                                                                                                  \
        type *a = into;                                                                                                \
        const type *b = from;                                                                                          \
                                                                                                                       \
        for (size_t i = 0; i < n; i++)                                                                                 \
            a[i] = (type)(op == SUM    ? a[i] + b[i]                                                                   \
                          : op == PROD ? a[i] * b[i]                                                                   \
                          : op == MAX  ? (a[i] > b[i] ? a[i] : b[i])                                                   \
                                       : (a[i] < b[i] ? a[i] : b[i]));                                                  \
    }
FOLD(fold_int8, int8_t)
FOLD(fold_uint8, uint8_t)
FOLD(fold_int32, int32_t)
FOLD(fold_uint32, uint32_t)
FOLD(fold_int64, int64_t)
FOLD(fold_uint64, uint64_t)
FOLD(fold_float32, float)
FOLD(fold_float64, double)

static float widened(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint16_t narrowed(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void fold_bfloat16(void *into, const void *from, size_t n, int op)
{
    uint16_t *a = into;
    const uint16_t *b = from;

    for (size_t i = 0; i < n; i++) {
        float one = widened(a[i]), other = widened(b[i]);
        fold_float32(&one, &other, 1, op);
        a[i] = narrowed(one);
    }
}

static void (*const folds[TYPES])(void *, const void *, size_t,
                                  int) = {fold_int8,   fold_uint8, fold_int32,   fold_uint32,  fold_int64,
                                          fold_uint64, NULL,       fold_float32, fold_float64, fold_bfloat16};

/* Puts this rank's part where all see it, and remembers what its result is. */
static int put(comm_t *c, const header_t *header, const void *from, size_t given, void *to, size_t taken,
               void **request)
{
    memory_t *m = c->memory;
    int slot = (int)(c->posted % SLOTS);

    if (header->count == 0 || given > BYTES || taken > BYTES || (has("narrow") && (given > 4096 || taken > 4096)))
        return ARGUMENT;
    for (int r = 0; r < c->nranks; r++)
        if (atomic_load(&m->consumed[r]) + SLOTS <= c->posted)
            return GOOD;
    if (c->requests[slot].used || (has("lazy") && c->turn++ % 2))
        return GOOD;
    m->header[c->rank][slot] = *header;
    memcpy(m->data[c->rank][slot], from, given);
    memset(to, 0xee, taken); /* what has not come yet is not there */
    c->requests[slot] = (request_t){c, c->posted, to, taken, 1};
    *request = &c->requests[slot];
    atomic_store_explicit(&m->posted[c->rank], ++c->posted, memory_order_release);
    return GOOD;
}

static int adds(int type, int op)
{
    int supported = 0;

    (void)supports(type, op, &supported);
    return supported == 1;
}

static int post(void *comm, void *from, void *to, size_t count, int type, int op, void *from_mr, void *to_mr,
                void **request)
{
    const header_t header = {count, type, op, ADD, 0};
    comm_t *c = comm;

    *request = NULL;
    if (fails("iallreduce"))
        return SYSTEM;
    if (!adds(type, op) || !region_has(c->regions, from_mr, from, count * sizes[type]) ||
        !region_has(c->regions, to_mr, to, count * sizes[type]))
        return ARGUMENT;
    return put(c, &header, from, count * sizes[type], to, count * sizes[type], request);
}

#if VERSION > 8
typedef struct part {
    void *mr, *at;
    size_t bytes;
} part_t;
#else
typedef struct part {
    void *mr, *at;
    uint32_t bytes;
} part_t;
#endif

/* As strict as SHARP's, and more: there is one part, and the window is all of the vector. */
static int is_whole(const comm_t *c, int nparts, const part_t *part, size_t each, size_t offset, size_t window)
{
    return nparts == 1 && part->bytes == window && offset == 0 && window == (size_t)c->nranks * each &&
           region_has(c->regions, part->mr, part->at, part->bytes);
}

static int iallgather(void *comm, void *from, int nparts, void *parts, size_t each, size_t offset, size_t window,
                      void *mr, void **request)
{
    const header_t header = {each, 0, 0, GATHER, 0};
    const part_t *part = parts;
    comm_t *c = comm;

    *request = NULL;
    if (fails("iallgather"))
        return SYSTEM;
    if (!is_whole(c, nparts, part, each, offset, window) || !region_has(c->regions, mr, from, each))
        return ARGUMENT;
    return put(c, &header, from, each, part->at, window, request);
}

static int ireducescatter(void *comm, int nparts, void *parts, void *to, size_t each, size_t offset, size_t window,
                          int type, int op, void *mr, void **request)
{
    const header_t header = {each, type, op, SCATTER, 0};
    const part_t *part = parts;
    comm_t *c = comm;

    *request = NULL;
    if (fails("ireducescatter"))
        return SYSTEM;
    if (!adds(type, op) || each % sizes[type] || !is_whole(c, nparts, part, each, offset, window) ||
        !region_has(c->regions, mr, to, each))
        return ARGUMENT;
    return put(c, &header, part->at, window, to, each, request);
}

static void answer(const request_t *q, const header_t *own, int slot)
{
    const comm_t *c = q->comm;
    memory_t *m = c->memory;
    const size_t at = own->kind == SCATTER ? (size_t)c->rank * q->bytes : 0;

    test_switch_blocks += own->kind != ADD;
    for (int r = 0; own->kind == GATHER && r < c->nranks; r++)
        memcpy(q->to + (size_t)r * own->count, m->data[r][slot], own->count);
    if (own->kind == GATHER)
        return;
    memcpy(q->to, m->data[0][slot] + at, q->bytes);
    for (int r = 1; r < c->nranks; r++)
        folds[own->type](q->to, m->data[r][slot] + at, q->bytes / sizes[own->type], own->op);
}

static int died(const comm_t *c)
{
    for (int r = 0; has("notices") && r < c->nranks; r++)
        if (kill(atomic_load(&c->memory->pid[r]), 0) != 0 && errno == ESRCH)
            return 1;
    return 0;
}

static int test(void *request, int *done, int *size)
{
    request_t *q = request;
    comm_t *c = q->comm;
    memory_t *m = c->memory;
    int slot = (int)(q->number % SLOTS);

    *done = 0;
    if (fails("test") || !q->used || q->number != c->tested)
        return SYSTEM;
    if (died(c))
        return REMOTE;
    for (int r = 0; r < c->nranks; r++)
        if (atomic_load_explicit(&m->posted[r], memory_order_acquire) <= q->number)
            return GOOD;
    if (has("lazy") && c->turn++ % 2)
        return GOOD;
    const header_t *own = &m->header[c->rank][slot];
    for (int r = 0; r < c->nranks; r++)
        if (memcmp(own, &m->header[r][slot], sizeof *own) != 0)
            return INTERNAL;
    answer(q, own, slot);
    atomic_store(&m->consumed[c->rank], ++c->tested);
    q->used = 0;
    test_switch_sums++;
    *done = 1;
    if (size)
        *size = (int)q->bytes + has("long");
    return GOOD;
}

/* ---- devices */

static int devices(int *count)
{
    *count = !has("empty");
    return GOOD;
}

static int properties(int device, void *out)
{
    static char name[] = "switch0";
    properties_t p = {.name = name, .memory = has("device") ? 2 : 1, .mbps = 10000, .comms = 65536, .receives = 1};

#if VERSION > 8
    p.most_collective = has("narrow") ? 4096 : BYTES;
#endif
    memcpy(out, &p, sizeof p);
    return device == 0 ? GOOD : ARGUMENT;
}

static int start(log_fn log)
{
    log(3, 0, __FILE__, __LINE__, "the test's switch, by version %d\n", VERSION);
    return has("refuse") ? INTERNAL : GOOD;
}

/* ---- the calls of this version */

#if VERSION > 10
static int init(void **context, uint64_t id, log_fn log)
{
    (void)id;
    context_new(context);
    return start(log);
}

#else
static int init(log_fn log)
{
    return start(log);
}
#endif

static int listen_v(CONTEXT int device, void *handle, void **out)
{
    return IS_CONTEXT ? listen_on(device, handle, out) : ARGUMENT;
}

#if VERSION > 8
typedef size_t count_t;
#else
typedef int count_t;
#endif

static int iallreduce(void *comm, void *from, void *to, count_t count, int type, int op, void *from_mr, void *to_mr,
                      void **request)
{
    return post(comm, from, to, (size_t)count, type, op, from_mr, to_mr, request);
}

#define PASTE(a, b) a##b
#define SYMBOL(version) PASTE(ncclCollNetPlugin_v, version)

struct plugin {
    const char *name;
#if VERSION > 10
    int (*init)(void **, uint64_t, log_fn);
#else
    int (*init)(log_fn);
#endif
    int (*devices)(int *);
    int (*properties)(int, void *);
    int (*listen)(CONTEXT int, void *, void **);
    int (*connect)(void **, int, int, void *, void **);
    int (*supports)(int, int, int *);
    int (*reg)(void *, void *, size_t, int, void **);
    int (*reg_dmabuf)(void *, void *, size_t, int, uint64_t, int, void **);
    int (*dereg)(void *, void *);
    int (*iallreduce)(void *, void *, void *, count_t, int, int, void *, void *, void **);
    int (*iallgather)(void *, void *, int, void *, size_t, size_t, size_t, void *, void **);
    int (*ireducescatter)(void *, int, void *, void *, size_t, size_t, size_t, int, int, void *, void **);
    int (*iflush)(void *, void *, int, void *, void **);
    int (*test)(void *, int *, int *);
    int (*close_comm)(void *);
    int (*close_listen)(void *);
#if VERSION > 8
    int (*make_device)(int *, void *);
#endif
#if VERSION > 10
    int (*finalize)(void *);
#endif
};

extern SHOWN struct plugin SYMBOL(VERSION);
struct plugin SYMBOL(VERSION) = {
    .name = "switch",
    .init = init,
    .devices = devices,
    .properties = properties,
    .listen = listen_v,
    .connect = connect_all,
    .supports = supports,
    .reg = reg,
    .dereg = dereg,
    .iallreduce = iallreduce,
    .iallgather = iallgather,
    .ireducescatter = ireducescatter,
    .test = test,
    .close_comm = close_comm,
    .close_listen = close_listen,
#if VERSION > 10
    .finalize = finalize,
#endif
};

__attribute__((constructor)) static void name_it(void)
{
    if (has("renamed"))
        SYMBOL(VERSION).name = "another";
    if (has("adds")) {
        SYMBOL(VERSION).iallgather = NULL;
        SYMBOL(VERSION).ireducescatter = NULL;
    }
}
