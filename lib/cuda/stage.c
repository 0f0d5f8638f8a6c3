/* The calls' part of a CUDA communicator between nodes: see stage.h.
 *
 * An operation is cut in rounds that fit a slot: of a vector the next elements, of blocks the next elements of each.
 * How many depends on what all ranks know (or, of blocks that only a pair knows, on that pair's count alone), so all
 * cut alike. A round is a whole operation for the carrier, on packed data.
 */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

#include "../boot_id.h"
#include "../comm.h"

#define SLOT ((size_t)2 << 20)
#define SLOTS 4u
#define BLOCKS 16u /* of a launch: the host's link is slower than a few multiprocessors */

/* ---- areas */

static pthread_mutex_t areas_lock = PTHREAD_MUTEX_INITIALIZER;
static rd_stage_area_t *areas; /* that are not used */

#define LANES_BYTES ((sizeof(rd_klane_t) * RD_KLANES + 4095) / 4096 * 4096)

static void area_free(rd_stage_area_t *a)
{
    if (a->state)
        (void)cudaFree(a->state);
    if (a->pinned)
        (void)cudaFreeHost(a->pinned);
    free(a);
}

void rd_stage_areas_free(void)
{
    pthread_mutex_lock(&areas_lock);
    while (areas) {
        rd_stage_area_t *a = areas;
        areas = a->next;
        area_free(a);
    }
    pthread_mutex_unlock(&areas_lock);
}

static void area_give(rd_stage_area_t *a)
{
    pthread_mutex_lock(&areas_lock);
    a->next = areas;
    areas = a;
    pthread_mutex_unlock(&areas_lock);
}

static rd_stage_area_t *area_reuse(int device, size_t bytes)
{
    rd_stage_area_t **at = &areas, *a;

    pthread_mutex_lock(&areas_lock);
    while (*at && ((*at)->device != device || (*at)->bytes != bytes))
        at = &(*at)->next;
    a = *at;
    if (a)
        *at = a->next;
    pthread_mutex_unlock(&areas_lock);
    return a;
}

static cudaError_t area_take(int device, size_t bytes, rd_stage_area_t **area)
{
    size_t states = sizeof(rd_klane_state_t) * RD_KLANES;
    rd_stage_area_t *a = area_reuse(device, bytes);
    cudaError_t error = cudaSuccess;
    cudaStream_t stream;

    if (!a) {
        a = calloc(1, sizeof *a);
        if (!a)
            return cudaErrorMemoryAllocation;
        a->device = device;
        a->bytes = bytes;
        error = cudaHostAlloc((void **)&a->pinned, LANES_BYTES + bytes, cudaHostAllocPortable | cudaHostAllocMapped);
        if (error == cudaSuccess)
            error = cudaMalloc((void **)&a->state, states);
    }
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) {
        error = cudaMemsetAsync(a->state, 0, states, stream);
        if (error == cudaSuccess)
            error = cudaStreamSynchronize(stream);
        (void)cudaStreamDestroy(stream);
    }
    if (error != cudaSuccess) {
        area_free(a);
        return error;
    }
    memset(a->pinned, 0, LANES_BYTES);
    *area = a;
    return cudaSuccess;
}

/* ---- tasks */

static rd_stage_tasks_t *tasks_create(void)
{
    rd_stage_tasks_t *t = calloc(1, sizeof *t);

    if (t) {
        pthread_mutex_init(&t->lock, NULL);
        t->references = 1;
    }
    return t;
}

static void tasks_drop(rd_stage_tasks_t *t)
{
    pthread_mutex_lock(&t->lock);
    int left = --t->references;
    pthread_mutex_unlock(&t->lock);
    if (left)
        return;
    for (uint32_t i = 0; i < t->room; i++)
        free(t->all[i]);
    free(t->all);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

rd_stage_task_t *rd_stage_task(rd_stage_tasks_t *t, uint32_t number)
{
    pthread_mutex_lock(&t->lock);
    rd_stage_task_t *task = number < t->room ? t->all[number] : NULL;
    pthread_mutex_unlock(&t->lock);
    return task;
}

void rd_stage_task_drop(rd_stage_tasks_t *t, rd_stage_task_t *task)
{
    pthread_mutex_lock(&t->lock);
    t->all[task->number] = NULL;
    t->next = task->number;
    pthread_mutex_unlock(&t->lock);
    free(task);
}

static int tasks_grow(rd_stage_tasks_t *t)
{
    uint32_t room = t->room ? 2 * t->room : 64;
    rd_stage_task_t **more = realloc(t->all, room * sizeof(*more));

    if (!more)
        return -1;
    memset(more + t->room, 0, (room - t->room) * sizeof(*more));
    t->next = t->room;
    t->all = more;
    t->room = room;
    return 0;
}

/* Into a free place. */
static int task_add(rd_stage_tasks_t *t, rd_stage_task_t *task)
{
    int result = 0;

    pthread_mutex_lock(&t->lock);
    uint32_t tries = 0;
    while (tries < t->room && t->all[t->next]) {
        t->next = (t->next + 1) % t->room;
        tries++;
    }
    if (tries == t->room)
        result = tasks_grow(t);
    if (result == 0) {
        task->number = t->next;
        t->all[t->next] = task;
        t->next = (t->next + 1) % t->room;
    }
    pthread_mutex_unlock(&t->lock);
    return result;
}

/* ---- graphs: what they hold goes with them */

typedef struct held {
    rd_stage_tasks_t *tasks;
    rd_stage_task_t *task; /* NULL: messages need none */
} held_t;

static void graph_gone(void *arg)
{
    held_t *h = arg;

    atomic_fetch_sub(&h->tasks->captured, 1);
    if (h->task)
        rd_stage_task_drop(h->tasks, h->task);
    tasks_drop(h->tasks);
    free(h);
}

/* The graph that the stream is captured into; NULL: none. */
static cudaError_t graph_of(cudaStream_t stream, cudaGraph_t *graph)
{
    enum cudaStreamCaptureStatus status;
    const cudaGraphNode_t *deps;
    const cudaGraphEdgeData *edges;
    unsigned long long id;
    size_t ndeps;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, &id, graph, &deps, &edges, &ndeps);

    if (error == cudaSuccess && status != cudaStreamCaptureStatusActive)
        *graph = NULL;
    return error;
}

static cudaError_t graph_hold(rd_stage_tasks_t *tasks, rd_stage_task_t *task, cudaGraph_t graph)
{
    held_t *h = malloc(sizeof *h);
    cudaUserObject_t object;
    cudaError_t error =
        h ? cudaUserObjectCreate(&object, h, graph_gone, 1, cudaUserObjectNoDestructorSync) : cudaErrorMemoryAllocation;

    if (error != cudaSuccess) {
        free(h);
        return error;
    }
    *h = (held_t){tasks, task};
    pthread_mutex_lock(&tasks->lock);
    tasks->references++;
    pthread_mutex_unlock(&tasks->lock);
    atomic_fetch_add(&tasks->captured, 1);
    if (task)
        task->captured = 1;
    error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (error != cudaSuccess)
        (void)cudaUserObjectRelease(object, 1); /* takes it all back */
    return error;
}

/* ---- launching */

/* `raises`: triggers in all. On failure the task is still the caller's, unless a graph holds it. */
static rondo_result_t launch(rd_stage_t *s, const rd_klaunch_t *l, rd_kwork_t *work, rd_kstage_t *k,
                             rd_stage_task_t *task, uint64_t raises, cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = graph_of(stream, &graph);

    *k = s->k;
    k->captured = graph != NULL;
    if (error == cudaSuccess && graph)
        error = graph_hold(s->tasks, task, graph);
    if (error != cudaSuccess) {
        if (task && !task->captured)
            rd_stage_task_drop(s->tasks, task);
        return rd_cuda_error(&s->cuda->comm->who, error, "an operation in a graph");
    }
    if (!graph)
        atomic_fetch_add(&s->asked, raises);
    rondo_result_t result = rd_cuda_launch(s->cuda, l, work, stream);
    if (result != RONDO_SUCCESS && !graph) {
        atomic_fetch_sub(&s->asked, raises);
        if (task)
            rd_stage_task_drop(s->tasks, task);
    }
    rd_proxy_wake(&s->client);
    return result;
}

/* ---- collectives */

/* Parts of a side: one, or one of each rank. */
static void side_one(rd_kside_t *side, size_t bytes)
{
    side->n = 1;
    side->offset[0] = 0;
    side->bytes[0] = bytes;
}

static void side_blocks(rd_kside_t *side, int n, size_t bytes)
{
    side->n = (uint32_t)n;
    for (int r = 0; r < n; r++) {
        side->offset[r] = (uint64_t)r * bytes;
        side->bytes[r] = bytes;
    }
}

static void side_tabled(rd_kside_t *side, const size_t *counts, const size_t *displs, int n, size_t element)
{
    uint64_t at = 0;

    side->n = (uint32_t)n;
    for (int r = 0; r < n; r++) {
        side->offset[r] = displs ? displs[r] * element : at;
        side->bytes[r] = counts[r] * element;
        at += side->bytes[r];
    }
}

static void sides(const rd_carrier_t *by, const rd_call_t *c, rd_kside_t *in, rd_kside_t *out)
{
    size_t element = rondo_type_size(c->ask.type), bytes = c->ask.count * element;
    int n = by->nranks, rooting = by->rank == c->ask.root;
    const rd_tables_t *t = c->tables;
    rd_coll_t coll = c->ask.coll;

    side_one(in, bytes);
    side_one(out, bytes);
    if (t && coll == RD_ALLGATHER)
        side_one(in, t->out_counts[by->rank] * element);
    if (t && coll == RD_REDUCE_SCATTER)
        side_one(out, t->in_counts[by->rank] * element);
    if (t && t->in_counts)
        side_tabled(in, t->in_counts, t->in_displs, n, element);
    if (t && t->out_counts)
        side_tabled(out, t->out_counts, t->out_displs, n, element);
    if (t)
        return;
    if (coll == RD_REDUCE_SCATTER || coll == RD_ALLTOALL || coll == RD_SCATTER)
        side_blocks(in, n, bytes);
    if (coll == RD_ALLGATHER || coll == RD_ALLTOALL || coll == RD_GATHER)
        side_blocks(out, n, bytes);
    if (coll == RD_BARRIER || ((coll == RD_BROADCAST || coll == RD_SCATTER) && !rooting))
        in->n = 0;
    if (coll == RD_BARRIER || ((coll == RD_REDUCE || coll == RD_GATHER) && !rooting))
        out->n = 0;
}

/* Elements of the longest part that any rank, or for blocks of pairs this rank, has. */
static size_t longest(const rd_carrier_t *by, const rd_call_t *c)
{
    const size_t *tables[2] = {c->tables ? c->tables->in_counts : NULL, c->tables ? c->tables->out_counts : NULL};
    size_t most = c->tables ? 0 : c->ask.count;

    for (int side = 0; side < 2; side++)
        for (int r = 0; tables[side] && r < by->nranks; r++)
            most = tables[side][r] > most ? tables[side][r] : most;
    return most;
}

/* Elements of a part that a round carries: the same on all ranks. */
static size_t elements_each(const rd_stage_t *s, int carrier, rd_coll_t coll, size_t element)
{
    size_t parts = coll == RD_ALLREDUCE || coll == RD_REDUCE || coll == RD_BROADCAST || coll == RD_BARRIER
                       ? 1
                       : (size_t)s->carriers[carrier].nranks;

    return s->k.slot / parts / 16 * 16 / element;
}

static rd_stage_task_t *task_make(rd_stage_t *s, int carrier, const rd_call_t *c, rondo_op_t op, uint32_t rounds)
{
    rd_stage_task_t *task = calloc(1, sizeof *task);
    size_t n = (size_t)s->carriers[carrier].nranks;

    if (!task)
        return NULL;
    task->ask.coll = c->ask.coll;
    task->ask.type = c->ask.type;
    task->ask.op = op;
    task->ask.root = c->tables ? 0 : c->ask.root;
    task->ask.count = c->ask.count;
    task->each = elements_each(s, carrier, c->ask.coll, rondo_type_size(c->ask.type));
    task->carrier = carrier;
    task->rounds = rounds;
    task->in_tabled = c->tables && c->tables->in_counts;
    task->out_tabled = c->tables && c->tables->out_counts;
    if (task->in_tabled)
        memcpy(task->in_counts, c->tables->in_counts, n * sizeof(size_t));
    if (task->out_tabled)
        memcpy(task->out_counts, c->tables->out_counts, n * sizeof(size_t));
    if (task_add(s->tasks, task) == 0)
        return task;
    free(task);
    return NULL;
}

static uint32_t blocks_for(const rd_stage_t *s, uint64_t bytes)
{
    uint64_t most = s->cuda->limits.blocks < BLOCKS ? s->cuda->limits.blocks : BLOCKS;
    uint64_t some = (bytes + 16383) / 16384;

    return (uint32_t)(some < 1 ? 1 : some < most ? some : most);
}

static uint64_t side_bytes(const rd_kside_t *side)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < side->n; i++)
        sum += side->bytes[i];
    return sum;
}

rondo_result_t rd_stage_run(rd_stage_t *s, int carrier, const rd_call_t *call)
{
    const rd_carrier_t *by = &s->carriers[carrier];
    rd_cuda_t *cuda = s->cuda;
    rd_klaunch_t l = {RD_K_STAGED, RD_KC_LL, (uint32_t)call->ask.coll, 0, 0, 0, 0};
    size_t element = rondo_type_size(call->ask.type), most = longest(by, call);
    size_t each = elements_each(s, carrier, call->ask.coll, element);
    rd_kwork_t work;
    rd_kstaged_t *k = &work.staged;

    if (most == 0)
        return RONDO_SUCCESS;
    if ((most + each - 1) / each > UINT32_MAX / 2)
        return rd_error(&cuda->comm->who, RONDO_ERR_UNSUPPORTED, "%s of %zu elements: too long",
                        rd_coll_name(call->ask.coll), most);
    work.comm = cuda->k;
    rd_cuda_op(cuda, &call->ask, &k->reduce);
    k->reduce.in = call->in;
    k->reduce.out = call->out;
    k->reduce.type = (uint32_t)call->ask.type;
    sides(by, call, &k->in, &k->out);
    k->each = each * element;
    k->rounds = (uint32_t)((most + each - 1) / each);
    rd_stage_task_t *task = task_make(s, carrier, call, (rondo_op_t)k->reduce.op, k->rounds);
    if (!task)
        return rd_error(&cuda->comm->who, RONDO_ERR_NO_MEMORY, "no memory for an operation");
    k->task = task->number;
    l.threads = rd_kernel_threads(RD_K_STAGED, RD_KC_LL);
    uint64_t in = side_bytes(&k->in), out = side_bytes(&k->out), bytes = in > out ? in : out;
    l.blocks = blocks_for(s, bytes < s->k.slot ? bytes : s->k.slot);
    return launch(s, &l, &work, &k->stage, task, k->rounds, call->stream);
}

rondo_result_t rd_stage_collective(rd_cuda_t *cuda, const rd_call_t *call)
{
    return rd_rail_serves(cuda, call) ? rd_rail_run(cuda, call) : rd_stage_run(cuda->stage, RD_CARRIER_ALL, call);
}

double rd_stage_price(rd_cuda_t *cuda, const rd_call_t *call)
{
    (void)cuda, (void)call;
    return 0;
}

/* ---- messages */

rondo_result_t rd_stage_messages(rd_cuda_t *cuda, rd_kwork_t *work, cudaStream_t stream)
{
    rd_stage_t *s = cuda->stage;
    rd_kmessages_t *m = &work->staged_messages.messages; /* where they are already: the first member */
    rd_klaunch_t l = {RD_K_STAGED_MESSAGES, RD_KC_LL, RD_ALLTOALL, 0, 0, 0, 0};
    uint64_t pieces = 0;

    for (uint32_t p = 0; p < m->npairs; p++)
        for (uint32_t i = 0; i < m->pair[p].count; i++)
            pieces += (m->here[m->pair[p].first + i].bytes + s->k.message_slot - 1) / s->k.message_slot;
    l.blocks = m->npairs;
    l.threads = rd_kernel_threads(RD_K_STAGED_MESSAGES, RD_KC_LL);
    return launch(s, &l, work, &work->staged_messages.stage, NULL, pieces, stream);
}

/* ---- beginning and end */

static void layout(rd_stage_t *s, const rd_env_t *env, size_t *bytes)
{
    size_t n = (size_t)s->cuda->k.nranks, slot = env->cuda_stage ? env->cuda_stage : SLOT;

    s->k.slots = SLOTS;
    s->k.slot = (uint32_t)(slot / 4096 * 4096);
    s->k.message_slot = (uint32_t)((size_t)2 * s->k.slot / (2 * n) / 64 * 64);
    *bytes = (size_t)SLOTS * 2 * s->k.slot;
}

static rondo_result_t memory(rd_stage_t *s)
{
    size_t bytes;
    char *pinned = NULL;
    cudaError_t error;

    layout(s, &s->cuda->comm->env, &bytes);
    error = area_take(s->cuda->device, bytes, &s->area);
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer((void **)&pinned, s->area->pinned, 0);
    if (error != cudaSuccess)
        return rd_cuda_error(&s->cuda->comm->who, error, "memory to stage data between nodes");
    s->k.lanes = (rd_klane_t *)(void *)pinned;
    s->k.area = pinned + LANES_BYTES;
    s->k.state = s->area->state;
    s->slots = s->area->pinned + LANES_BYTES;
    s->nlanes = 1 + 2 * s->cuda->k.nranks;
    for (int l = 0; l < s->nlanes; l++)
        s->lanes[l].pinned = (rd_klane_t *)(void *)s->area->pinned + l;
    s->tasks = tasks_create();
    return s->tasks ? RONDO_SUCCESS
                    : rd_error(&s->cuda->comm->who, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
}

/* A host communicator of those who pass the same `first`, which is one of them. */
static rondo_result_t carrier_make(rd_stage_t *s, int carrier, int first, int rank, int nranks)
{
    rondo_comm_t comm = s->cuda->comm;
    rondo_unique_id_t *ids = calloc((size_t)comm->nranks, sizeof *ids);

    if (!ids)
        return rd_error(&comm->who, RONDO_ERR_NO_MEMORY, "no memory for the ids of %d ranks", comm->nranks);
    if (comm->rank == first) /* on failure an id that carries the error */
        (void)rd_boot_id_create(&ids[first], &comm->env);
    rondo_result_t result = rd_boot_allgather(comm->boot, ids, sizeof *ids);
    s->carriers[carrier].rank = rank;
    s->carriers[carrier].nranks = nranks;
    if (result == RONDO_SUCCESS)
        result = rd_comm_make_carrier(&s->carriers[carrier].comm, comm, &ids[first], rank, nranks);
    else if (comm->rank == first)
        rd_boot_give_up(&ids[first], RONDO_ERR_ABORTED);
    free(ids);
    return result;
}

/* Ranks with one place on their nodes; 0: nodes have different numbers of ranks, or one each. `first`: of this rail. */
static int rail(const rd_node_t *node, int nranks, int *first)
{
    int place = 0;

    if (node->nlocal < 2 || node->nlocal * node->nnodes != nranks)
        return 0;
    for (int n = 0; n < node->nnodes; n++) {
        int here = 0;
        for (int r = 0; r < nranks; r++)
            here += node->node_of[r] == n;
        if (here != node->nlocal)
            return 0;
    }
    for (*first = 0; node->node_of[*first] != 0 || place++ < node->self; ++*first)
        continue;
    return 1;
}

rondo_result_t rd_stage_create(rd_cuda_t *cuda)
{
    rd_stage_t *s = cuda->stage = calloc(1, sizeof *s);

    if (!s)
        return rd_error(&cuda->comm->who, RONDO_ERR_NO_MEMORY, "no memory for a CUDA communicator");
    s->cuda = cuda;
    rondo_comm_t comm = cuda->comm;
    int first = 0, apart = 0;
    rondo_result_t result = memory(s);
    if (result == RONDO_SUCCESS)
        result = carrier_make(s, RD_CARRIER_ALL, 0, comm->rank, comm->nranks);
    if (result == RONDO_SUCCESS && !cuda->limits.apart && rail(&comm->node, comm->nranks, &first)) {
        result = rd_rail_create(cuda, &apart);
        if (result == RONDO_SUCCESS && apart)
            rd_rail_free(cuda, NULL, NULL);
        else if (result == RONDO_SUCCESS)
            result = carrier_make(s, RD_CARRIER_RAIL, first, comm->node.node_of[comm->rank], comm->node.nnodes);
    }
    if (result != RONDO_SUCCESS)
        return result;
    s->client.turn = rd_carry;
    s->client.arg = s;
    s->client.awake_us = comm->env.cuda_awake;
    int error = rd_proxy_add(&s->client);
    if (error)
        return rd_error(&cuda->comm->who, RONDO_ERR_SYSTEM, "no thread to serve the network: %s", strerror(error));
    s->served = 1;
    /* A late rank is the proxy's to name. Kernels wait for the proxy alone, and must not give up before it. */
    if (cuda->host->timeout_ms)
        cuda->host->timeout_ms = cuda->host->timeout_ms < INT32_MAX / 2 ? 2 * cuda->host->timeout_ms + 1000 : 0;
    if (cuda->comm->rank == 0)
        rd_log(&cuda->comm->who, RD_LOG_INFO,
               "CUDA between %d nodes: no direct path, data is staged through %zu MB of pinned memory a rank",
               cuda->comm->node.nnodes, s->area->bytes >> 20);
    return RONDO_SUCCESS;
}

void rd_stage_close(rd_cuda_t *cuda)
{
    rd_stage_t *s = cuda->stage;

    if (!s)
        return;
    if (s->served)
        rd_proxy_remove(&s->client);
    for (int i = RD_CARRIERS - 1; i >= 0; i--) {
        rd_carry_failure(s, i);
        if (s->carriers[i].comm)
            (void)rondo_comm_destroy(s->carriers[i].comm);
    }
    if (s->tasks)
        tasks_drop(s->tasks);
    if (s->area)
        area_give(s->area);
    free(s);
    cuda->stage = NULL;
}
