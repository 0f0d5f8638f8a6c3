/* NCCL as the peer: its library is loaded when it is asked for, so that nothing here depends on it. The few types of
 * its interface that are needed are written down below as its ABI has them. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

typedef struct {
    char bytes[128];
} nccl_id_t;
typedef void *nccl_comm_t;

static struct {
    int (*version)(int *version);
    int (*unique_id)(nccl_id_t *id);
    int (*init)(nccl_comm_t *comm, int nranks, nccl_id_t id, int rank);
    int (*destroy)(nccl_comm_t comm);
    int (*allreduce)(const void *, void *, size_t, int, int, nccl_comm_t, rondo_stream_t);
    int (*reduce)(const void *, void *, size_t, int, int, int, nccl_comm_t, rondo_stream_t);
    int (*broadcast)(const void *, void *, size_t, int, int, nccl_comm_t, rondo_stream_t);
    int (*allgather)(const void *, void *, size_t, int, nccl_comm_t, rondo_stream_t);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, nccl_comm_t, rondo_stream_t);
    int (*send)(const void *, size_t, int, int, nccl_comm_t, rondo_stream_t);
    int (*recv)(void *, size_t, int, int, nccl_comm_t, rondo_stream_t);
    int (*start)(void);
    int (*end)(void);
    /* Of nccl:symmetric alone. */
    int (*mem_alloc)(void **memory, size_t bytes);
    int (*mem_free)(void *memory);
    int (*window)(nccl_comm_t comm, void *memory, size_t bytes, void **window, int flags);
    int (*window_back)(nccl_comm_t comm, void *window);
} nccl;

typedef struct {
    const char *name;
    void *to;
} symbol_t;
static const symbol_t symbols[] = {
    {"ncclGetVersion", &nccl.version},  {"ncclGetUniqueId", &nccl.unique_id},
    {"ncclCommInitRank", &nccl.init},   {"ncclCommDestroy", &nccl.destroy},
    {"ncclAllReduce", &nccl.allreduce}, {"ncclReduce", &nccl.reduce},
    {"ncclBroadcast", &nccl.broadcast}, {"ncclAllGather", &nccl.allgather},
    {"ncclSend", &nccl.send},           {"ncclReduceScatter", &nccl.reduce_scatter},
    {"ncclRecv", &nccl.recv},           {"ncclGroupStart", &nccl.start},
    {"ncclGroupEnd", &nccl.end},
};
static const symbol_t symmetric_symbols[] = {
    {"ncclMemAlloc", &nccl.mem_alloc},
    {"ncclMemFree", &nccl.mem_free},
    {"ncclCommWindowRegister", &nccl.window},
    {"ncclCommWindowDeregister", &nccl.window_back},
};

static void *library;
static nccl_comm_t comm;
static char version_text[PATH_MAX + 40] = "NCCL";

/* Its number of the type and of the operator; -1: it has none. */
static int type_of(rondo_type_t type)
{
    static const int numbers[RONDO_NUM_TYPES] = {
        [RONDO_INT8] = 1,    [RONDO_UINT8] = 2,     [RONDO_INT32] = 3,        [RONDO_UINT32] = 4,
        [RONDO_INT64] = 5,   [RONDO_UINT64] = 6,    [RONDO_FLOAT16] = 7,      [RONDO_FLOAT32] = 8,
        [RONDO_FLOAT64] = 9, [RONDO_BFLOAT16] = 10, [RONDO_FLOAT8_E4M3] = 11, [RONDO_FLOAT8_E5M2] = 12,
    };
    return numbers[type] - 1;
}

static int op_of(rondo_op_t op)
{
    static const int numbers[RONDO_NUM_OPS] = {
        [RONDO_SUM] = 1, [RONDO_PROD] = 2, [RONDO_MAX] = 3, [RONDO_MIN] = 4, [RONDO_AVG] = 5};
    return numbers[op] - 1;
}

static int allreduce(const job_t *j)
{
    return nccl.allreduce(j->send, j->recv, j->count, type_of(j->type), op_of(j->reduction), comm, j->stream);
}

static int reduce(const job_t *j)
{
    return nccl.reduce(j->send, j->recv, j->count, type_of(j->type), op_of(j->reduction), j->root, comm, j->stream);
}

static int broadcast(const job_t *j)
{
    return nccl.broadcast(j->send, j->recv, j->count, type_of(j->type), j->root, comm, j->stream);
}

static int allgather(const job_t *j)
{
    return nccl.allgather(j->send, j->recv, j->count, type_of(j->type), comm, j->stream);
}

static int reduce_scatter(const job_t *j)
{
    return nccl.reduce_scatter(j->send, j->recv, j->count, type_of(j->type), op_of(j->reduction), comm, j->stream);
}

static int send_to(const job_t *j, const char *buffer, size_t count, int peer)
{
    return nccl.send(buffer, count, type_of(j->type), peer, comm, j->stream);
}

static int receive_from(const job_t *j, char *buffer, size_t count, int peer)
{
    return nccl.recv(buffer, count, type_of(j->type), peer, comm, j->stream);
}

static int shift(const job_t *j)
{
    int right = (j->rank + 1) % j->nranks, left = (j->rank + j->nranks - 1) % j->nranks;
    int error = nccl.start(), end;

    for (int i = 0; i < j->messages; i++) {
        error = error ? error : send_to(j, j->send, j->count, right);
        error = error ? error : receive_from(j, j->recv, j->count, left);
    }
    end = nccl.end();
    return error ? error : end;
}

static int pingpong(const job_t *j)
{
    if (j->rank > 1)
        return 0;
    int error = j->rank ? receive_from(j, j->recv, j->count, 0) : send_to(j, j->send, j->count, 1);
    if (error)
        return error;
    return j->rank ? send_to(j, j->send, j->count, 0) : receive_from(j, j->recv, j->count, 1);
}

/* All-to-all, gather and scatter, with counts by rank or without: a group of messages, as NCCL's users write them. */
static int exchange(const job_t *j)
{
    size_t size = rondo_type_size(j->type);
    bool gathers = j->op->layout == LAYOUT_GATHER, scatters = j->op->layout == LAYOUT_SCATTER;
    int error = nccl.start(), end;

    for (int r = 0; r < j->nranks && !error; r++) {
        bool sends = gathers ? r == j->root : scatters ? j->rank == j->root : true;
        bool receives = gathers ? j->rank == j->root : scatters ? r == j->root : true;
        if (sends)
            error = send_to(j, (const char *)j->send + (gathers ? 0 : j->sdispls[r] * size),
                            gathers ? j->recvcounts[j->rank] : j->sendcounts[r], r);
        if (receives && !error)
            error = receive_from(j, (char *)j->recv + (scatters ? 0 : j->rdispls[r] * size),
                                 scatters ? j->sendcounts[j->rank] : j->recvcounts[r], r);
    }
    end = nccl.end();
    return error ? error : end;
}

call_t peer_nccl_call(const job_t *job)
{
    static const struct {
        const char *name;
        call_t call;
    } calls[] = {{"allreduce", allreduce},
                 {"reduce", reduce},
                 {"broadcast", broadcast},
                 {"allgather", allgather},
                 {"reduce_scatter", reduce_scatter},
                 {"alltoall", exchange},
                 {"alltoallv", exchange},
                 {"gather", exchange},
                 {"gatherv", exchange},
                 {"scatter", exchange},
                 {"scatterv", exchange},
                 {"sendrecv", shift},
                 {"bandwidth", shift},
                 {"pingpong", pingpong}};

    if (type_of(job->type) < 0 || (job->op->reduces && op_of(job->reduction) < 0))
        return NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(job->op->name, calls[i].name) == 0)
            return calls[i].call;
    }
    return NULL;
}

static bool refuse(const char *why, const char *detail)
{
    if (world.rank == 0)
        fprintf(stderr, "rondo-perf: --peer nccl: %s%s%s\n", why, detail ? ": " : "", detail ? detail : "");
    return false;
}

static bool find(const symbol_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, list[i].name);
        if (!symbol)
            return refuse("this library is not NCCL, or too old: it lacks", list[i].name);
        memcpy(list[i].to, &symbol, sizeof symbol);
    }
    return true;
}

static bool load(const char *path, bool symmetric)
{
    Dl_info where;

    library = dlopen(path ? path : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return refuse("name NCCL's library with --nccl PATH", dlerror());
    if (!find(symbols, sizeof symbols / sizeof *symbols) ||
        (symmetric && !find(symmetric_symbols, sizeof symmetric_symbols / sizeof *symmetric_symbols)))
        return false;
    /* rondo's own libnccl brings librondo along: comparing rondo with itself is --peer self. */
    if (dlsym(library, "rondo_version"))
        return refuse("this libnccl is rondo's own; name NVIDIA's with --nccl PATH", NULL);
    int version = 0;
    nccl.version(&version);
    snprintf(version_text, sizeof version_text, "NCCL %d.%d.%d%s, %s", version / 10000, version / 100 % 100,
             version % 100, symmetric ? " with symmetric windows" : "",
             dladdr(*(void **)symbols[0].to, &where) && where.dli_fname ? where.dli_fname : "?");
    return true;
}

int peer_nccl_group_start(void)
{
    return nccl.start();
}

int peer_nccl_group_end(void)
{
    return nccl.end();
}

bool peer_nccl_open(const options_t *options)
{
    double words[16], all[16 * (size_t)world.nranks];
    nccl_id_t id;

    if (!load(options->nccl, options->symmetric))
        return false;
    memset(&id, 0, sizeof id);
    if (world.rank == 0 && nccl.unique_id(&id) != 0)
        die(NULL, "ncclGetUniqueId failed");
    memcpy(words, &id, sizeof words);
    world.gather(words, 16, all);
    memcpy(&id, all, sizeof id);
    if (nccl.init(&comm, world.nranks, id, world.rank) != 0)
        die(NULL, "ncclCommInitRank failed");
    return true;
}

/* Buffers that all ranks have at the same place of a window of NCCL's. */
static struct {
    void *memory, *window;
} windows[2];

void *peer_nccl_memory(size_t bytes)
{
    int i = windows[0].memory != NULL;

    if (!nccl.window)
        return NULL;
    if (nccl.mem_alloc(&windows[i].memory, bytes) != 0 ||
        nccl.window(comm, windows[i].memory, bytes, &windows[i].window, 1 /* NCCL_WIN_COLL_SYMMETRIC */) != 0)
        die(NULL, "NCCL gives no symmetric window of %zu bytes", bytes);
    return windows[i].memory;
}

bool peer_nccl_memory_back(void *memory)
{
    for (int i = 0; i < 2; i++) {
        if (!memory || windows[i].memory != memory)
            continue;
        nccl.window_back(comm, windows[i].window);
        nccl.mem_free(memory);
        windows[i].memory = NULL;
        return true;
    }
    return false;
}

void peer_nccl_close(void)
{
    nccl.destroy(comm);
    dlclose(library);
}

const char *peer_nccl_version(void)
{
    return version_text;
}
