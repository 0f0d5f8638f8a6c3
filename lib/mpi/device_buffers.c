/* Buffers in a GPU's memory. Whether one is there is a rank's own affair, so it must not enter the choice of who serves
 * the call: the call gets memory of the host in its place, on this rank alone, and its way is that of any other. That
 * also serves an MPI that knows no GPUs. Data goes by a stream of its own, which waits for no other stream; the program
 * has synchronised what writes into its buffers, as for any MPI that takes them.
 *
 * A rank that uses no CUDA pays one comparison: nothing is looked at unless a library has been opened since the last
 * look, which the end of the dynamic linker's list shows, and then only if libcuda.so.1 is among them. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/device_spans.h"
#include "mpi/interpose.h"

enum { MEMORY_TYPE = 2, CONTEXT = 1, IS_MANAGED = 8, ORDINAL = 9, DEVICE = 2, NON_BLOCKING = 1 }; /* as in cuda.h */

static struct link_map no_library;
struct link_map *_Atomic rd_mpi_last_library = &no_library;
static _Atomic bool used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    int (*attribute)(void *, int, uintptr_t);
    int (*push)(void *);
    int (*pop)(void **);
    int (*retain)(void **, int);
    int (*stream_create)(void **, unsigned);
    int (*copy)(uintptr_t, uintptr_t, size_t, void *);
    int (*synchronize)(void *);
} cuda;

static bool find_cuda(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (!library)
        return false;
    cuda.attribute = (int (*)(void *, int, uintptr_t))dlsym(library, "cuPointerGetAttribute");
    cuda.push = (int (*)(void *))dlsym(library, "cuCtxPushCurrent_v2");
    cuda.pop = (int (*)(void **))dlsym(library, "cuCtxPopCurrent_v2");
    cuda.retain = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    cuda.stream_create = (int (*)(void **, unsigned))dlsym(library, "cuStreamCreate");
    cuda.copy = (int (*)(uintptr_t, uintptr_t, size_t, void *))dlsym(library, "cuMemcpyAsync");
    cuda.synchronize = (int (*)(void *))dlsym(library, "cuStreamSynchronize");
    return cuda.attribute && cuda.push && cuda.pop && cuda.retain && cuda.stream_create && cuda.copy &&
           cuda.synchronize;
}

/* Once CUDA is there, the last library is left as it is, so that no call takes a short way. */
bool rd_mpi_device_used(void)
{
    struct link_map *last = atomic_load(&rd_mpi_last_library);

    if (used || !(last->l_next || last == &no_library))
        return used;
    pthread_mutex_lock(&lock);
    if (find_cuda()) {
        no_library.l_next = &no_library;
        atomic_store(&rd_mpi_last_library, &no_library);
        used = true;
    } else {
        last = _r_debug.r_map;
        while (last->l_next)
            last = last->l_next;
        (void)dlopen(last->l_name, RTLD_LAZY | RTLD_NOLOAD); /* its entry must stay */
        atomic_store(&rd_mpi_last_library, last);
    }
    pthread_mutex_unlock(&lock);
    return used;
}

static bool on_device(const void *at)
{
    unsigned type = 0, managed = 0;

    if (!at || at == MPI_IN_PLACE || cuda.attribute(&type, MEMORY_TYPE, (uintptr_t)at) != 0 || type != DEVICE)
        return false;
    return cuda.attribute(&managed, IS_MANAGED, (uintptr_t)at) != 0 || !managed;
}

/* The context of a piece of memory; what was allocated for a device and no context has the device's primary one. */
static void *context_of(uintptr_t at)
{
    static void *primary[64];
    void *context = NULL;
    int device = 0;

    if (cuda.attribute(&context, CONTEXT, at) == 0 && context)
        return context;
    if (cuda.attribute(&device, ORDINAL, at) != 0 || device < 0 || device >= 64)
        return NULL;
    if (!primary[device])
        cuda.retain(&primary[device], device);
    return primary[device];
}

/* Copies the span from the device, or what the call may write of it back there. */
static bool copy_by(void *context, const rd_mpi_span_t *s, bool back)
{
    static struct {
        void *context, *stream;
    } streams[64];
    const rd_mpi_piece_t whole = {s->low, s->high};
    size_t n = back && s->pieces ? s->num_pieces : 1;
    bool good = true;
    int i = 0;

    while (i < 64 && streams[i].context && streams[i].context != context)
        i++;
    if (i == 64 || (!streams[i].context && cuda.stream_create(&streams[i].stream, NON_BLOCKING) != 0))
        return false;
    streams[i].context = context;
    for (size_t p = 0; p < n && good; p++) {
        const rd_mpi_piece_t *piece = back && s->pieces ? &s->pieces[p] : &whole;
        uintptr_t device = s->at + (uintptr_t)piece->from,
                  host = (uintptr_t)s->host + (uintptr_t)(piece->from - s->low);
        good = cuda.copy(back ? device : host, back ? host : device, (size_t)(piece->to - piece->from),
                         streams[i].stream) == 0;
    }
    return cuda.synchronize(streams[i].stream) == 0 && good;
}

static bool copy(const rd_mpi_span_t *s, bool back)
{
    void *context, *before;
    bool good;

    pthread_mutex_lock(&lock);
    context = context_of(s->at + (uintptr_t)s->low);
    good = context && cuda.push(context) == 0;
    if (good) {
        good = copy_by(context, s, back);
        cuda.pop(&before);
    }
    pthread_mutex_unlock(&lock);
    return good;
}

static int bring_again(rd_mpi_comm_t *c, const rd_mpi_span_t *s)
{
    return !s->host || copy(s, false) ? MPI_SUCCESS : rd_mpi_raise(c, MPI_ERR_BUFFER);
}

static void drop(rd_mpi_span_t *s)
{
    free(s->host);
    free(s->pieces);
    s->host = NULL;
    s->pieces = NULL;
}

/* Puts the host's memory in place of a side's. It gets what is there now: what a call does not receive must stay. */
static int bring(rd_mpi_comm_t *c, const rd_mpi_call_t *call, bool is_send, rd_mpi_span_t *s)
{
    const void *at = is_send ? call->send : call->recv;
    int result;
    bool looked_at = is_send ? rd_mpi_sends(c, call) && call->what != RD_MPI_BCAST && call->what != RD_MPI_BARRIER_CALL
                             : rd_mpi_receives(c, call);

    *s = (rd_mpi_span_t){.at = (uintptr_t)at};
    if (!looked_at || !on_device(at))
        return MPI_SUCCESS;
    rd_mpi_span_measure(c, call, is_send, s);
    if (s->low == s->high)
        return MPI_SUCCESS;
    s->host = malloc((size_t)(s->high - s->low));
    if (!s->host)
        return rd_mpi_raise(c, MPI_ERR_NO_MEM);
    result = is_send ? MPI_SUCCESS : rd_mpi_span_divide(c, call, s);
    if (result == MPI_SUCCESS)
        result = bring_again(c, s);
    if (result != MPI_SUCCESS)
        drop(s);
    return result;
}

int rd_mpi_device_bring(rd_mpi_comm_t *c, rd_mpi_call_t *call, rd_mpi_on_host_t *on_host)
{
    rd_mpi_call_t asked = *call;
    int result = bring(c, &asked, true, &on_host->send);

    on_host->recv = (rd_mpi_span_t){0};
    if (result == MPI_SUCCESS)
        result = bring(c, &asked, false, &on_host->recv);
    if (on_host->send.host)
        call->send = on_host->send.host - on_host->send.low;
    if (on_host->recv.host)
        call->recv = on_host->recv.host - on_host->recv.low;
    return result;
}

int rd_mpi_device_bring_again(rd_mpi_comm_t *c, const rd_mpi_on_host_t *on_host)
{
    int result = bring_again(c, &on_host->send);

    return result == MPI_SUCCESS ? bring_again(c, &on_host->recv) : result;
}

int rd_mpi_device_give(rd_mpi_comm_t *c, const rd_mpi_on_host_t *on_host, int result)
{
    if (result == MPI_SUCCESS && on_host->recv.host && !copy(&on_host->recv, true))
        result = rd_mpi_raise(c, MPI_ERR_BUFFER);
    return result;
}

int rd_mpi_device_return(rd_mpi_comm_t *c, rd_mpi_on_host_t *on_host, int result)
{
    result = rd_mpi_device_give(c, on_host, result);
    drop(&on_host->send);
    drop(&on_host->recv);
    return result;
}

int rd_mpi_device_run(rd_mpi_comm_t *c, const rd_mpi_call_t *call, int (*run)(rd_mpi_comm_t *, const rd_mpi_call_t *))
{
    rd_mpi_call_t other = *call;
    rd_mpi_on_host_t on_host;
    int result;

    if (c->refused == RD_MPI_INTER || !rd_mpi_plausible(c, call))
        return run(c, call);
    result = rd_mpi_device_bring(c, &other, &on_host);
    if (result == MPI_SUCCESS)
        result = run(c, &other);
    return rd_mpi_device_return(c, &on_host, result);
}
