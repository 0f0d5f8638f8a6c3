/* What is attached to an MPI communicator: an attribute, because its delete callback is the only thing that every way
 * to free a communicator passes (Fortran's and MPICH's f08 do not call MPI_Comm_free). Handles come back for other
 * groups, so the table by handle in front of the attribute is only a cache, out of which the callback takes the entry.
 * A duplicate gets nothing: there is no copy callback.
 *
 * The program's own delete callbacks may call collectives on the communicator that is being freed. Those that come
 * after rondo's, or on one that had none before, are the MPI's: an attribute that is set then is lost with the
 * communicator, and nothing would take the handle out of the cache before it comes back. So what frees communicators
 * comes by here, to say how long that is. So are those on one of which the ranks have agreed on nothing yet, for one
 * rank alone may have an attribute there, from a call that it has made wrongly. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/interpose.h"
#include "mpi/stand_in.h"

_Atomic(rd_mpi_comm_t *) rd_mpi_comm_cache[64];
MPI_Comm rd_mpi_private;

static int keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rd_mpi_comm_t *unused;
static _Atomic bool over; /* MPI_COMM_WORLD has lost its attributes, at the end of MPI_Finalize: nothing is served */
static pid_t process;     /* that has what is here; not one that it has forked */

static _Atomic(rd_mpi_comm_t *) *cached(uintptr_t handle)
{
    return &rd_mpi_comm_cache[handle * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

static void end(rd_mpi_comm_t *c)
{
    if (c->core && !over)
        rd_mpi_core_put(c->core);
    if (c->own && !over)
        rd_mpi_core_put(c->own);
    free(c->lists);
    pthread_mutex_lock(&lock);
    c->next_free = unused;
    unused = c;
    pthread_mutex_unlock(&lock);
}

void rd_mpi_comm_landed(rd_mpi_comm_t *c)
{
    if (atomic_fetch_sub(&c->uses, 1) == 1)
        end(c);
}

/* Many programs never free their communicators, and the MPI then never calls forget() for them. What those still have
 * of rondo's is ended with MPI_COMM_WORLD, or the other ranks would take this one for dead. */
static void end_all(void)
{
    over = true;
    for (int i = 0; i < (int)(sizeof rd_mpi_comm_cache / sizeof rd_mpi_comm_cache[0]); i++)
        atomic_store(&rd_mpi_comm_cache[i], NULL);
    rd_mpi_cores_end(true);
}

/* Open MPI 5 deletes no attribute of MPI_COMM_WORLD in MPI_Finalize. So a process that leaves after it ends what it has
 * then. One that leaves without MPI_Finalize, or that was forked, has none to end. */
static void at_exit(void)
{
    int finalized = 0;

    PMPI_Finalized(&finalized);
    if (finalized && !over && getpid() == process)
        end_all();
}

/* Of this thread: the communicators that it is freeing, one in a callback of the other, and those of them that have
 * lost their attribute. */
enum { DEEP = 8 };
static _Thread_local int num_freeing, num_lost;
static _Thread_local MPI_Comm freeing[DEEP], lost[DEEP];

static bool is_being_freed(MPI_Comm comm)
{
    for (int i = 0; i < num_freeing && i < DEEP; i++) {
        if (freeing[i] == comm)
            return true;
    }
    return false;
}

/* Has rd_mpi_comm_find asked for it from now on. */
static void uncache(MPI_Comm comm)
{
    rd_mpi_comm_t *c = atomic_load(cached((uintptr_t)comm));

    if (c && atomic_load(&c->handle) == (uintptr_t)comm && c->status == RD_MPI_NEW)
        (void)atomic_compare_exchange_strong(cached((uintptr_t)comm), &c, NULL);
}

static bool is_lost(MPI_Comm comm)
{
    for (int i = 0; i < num_lost; i++) {
        if (lost[i] == comm)
            return true;
    }
    return false;
}

static void lose(MPI_Comm comm)
{
    if (num_freeing && num_lost < DEEP)
        lost[num_lost++] = comm;
}

static void freed(MPI_Comm comm)
{
    int kept = 0;

    for (int i = 0; i < num_lost; i++) {
        if (lost[i] != comm)
            lost[kept++] = lost[i];
    }
    num_lost = kept;
}

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    rd_mpi_comm_t *c = value, *expected = c;

    (void)key;
    (void)extra;
    (void)atomic_compare_exchange_strong(cached(atomic_load(&c->handle)), &expected, NULL);
    atomic_store(&c->handle, 0);
    lose(comm);
    c->comm = MPI_COMM_WORLD; /* for what is in flight */
    bool world = c->world;
    rd_mpi_comm_landed(c);
    if (world)
        end_all();
    return MPI_SUCCESS;
}

static int at_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    rd_mpi_stand_ins_end();
    rd_mpi_flights_end();
    rd_mpi_persistent_end();
    rd_mpi_cores_end(false);
    return MPI_SUCCESS;
}

static rd_mpi_comm_t *take(void)
{
    rd_mpi_comm_t *c;

    pthread_mutex_lock(&lock);
    c = unused;
    if (c)
        unused = c->next_free;
    pthread_mutex_unlock(&lock);
    if (c)
        *c = (rd_mpi_comm_t){0};
    else
        c = calloc(1, sizeof *c);
    return c;
}

/* Has it ranks that were spawned, or connected? Whether those have this library, nobody here can know. Each rank of
 * such a communicator sees some. */
static bool has_foreigners(MPI_Comm comm, int nranks)
{
    MPI_Group mine, worlds, both = MPI_GROUP_NULL;
    int common = 0;

    PMPI_Comm_group(comm, &mine);
    PMPI_Comm_group(MPI_COMM_WORLD, &worlds);
    PMPI_Group_intersection(mine, worlds, &both);
    PMPI_Group_size(both, &common);
    PMPI_Group_free(&both);
    PMPI_Group_free(&worlds);
    PMPI_Group_free(&mine);
    return common != nranks;
}

/* What is known without asking another rank. */
static void look(rd_mpi_comm_t *c)
{
    int inter = 0, alike = MPI_UNEQUAL;

    c->uses = 1;
    c->last_type = MPI_DATATYPE_NULL;
    c->last_op = MPI_OP_NULL;
    c->last_moved = MPI_DATATYPE_NULL;
    c->last_passed = MPI_DATATYPE_NULL;
    c->world = c->comm == MPI_COMM_WORLD;
    PMPI_Comm_test_inter(c->comm, &inter);
    PMPI_Comm_rank(c->comm, &c->rank);
    PMPI_Comm_size(c->comm, &c->nranks);
    if (inter || c->nranks == 1) {
        c->status = RD_MPI_REFUSED;
        c->refused = inter ? RD_MPI_INTER : RD_MPI_ALONE;
        return;
    }
    PMPI_Comm_compare(c->comm, MPI_COMM_WORLD, &alike);
    c->like_world = alike == MPI_IDENT || alike == MPI_CONGRUENT;
    if (!c->like_world && has_foreigners(c->comm, c->nranks)) {
        c->status = RD_MPI_REFUSED;
        c->refused = RD_MPI_FOREIGN;
    }
}

rd_mpi_comm_t *rd_mpi_comm_find(MPI_Comm comm, int *error)
{
    rd_mpi_comm_t *c = NULL;
    int found = 0;

    *error = MPI_SUCCESS;
    if (comm == MPI_COMM_NULL || over || is_lost(comm))
        return NULL;
    *error = PMPI_Comm_get_attr(comm, keyval, &c, &found);
    if (*error != MPI_SUCCESS)
        return NULL;
    if (!found) {
        if (is_being_freed(comm))
            return NULL;
        c = take();
        if (!c)
            return NULL;
        c->comm = comm;
        look(c);
        *error = PMPI_Comm_set_attr(comm, keyval, c);
        if (*error != MPI_SUCCESS)
            return NULL;
        atomic_store(&c->handle, (uintptr_t)comm);
    }
    if (c->status == RD_MPI_NEW && is_being_freed(comm))
        return NULL;
    atomic_store_explicit(cached((uintptr_t)comm), c, memory_order_release);
    return c;
}

bool rd_mpi_comms_start(void)
{
    int end = MPI_KEYVAL_INVALID, error;

    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &end, NULL) != MPI_SUCCESS ||
        PMPI_Comm_set_attr(MPI_COMM_SELF, end, NULL) != MPI_SUCCESS ||
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS ||
        PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &rd_mpi_private) != MPI_SUCCESS || /* a duplicate would have attributes */
        PMPI_Comm_set_errhandler(rd_mpi_private, MPI_ERRORS_RETURN) != MPI_SUCCESS)
        return false;
    process = getpid();
    (void)atexit(at_exit);
    return rd_mpi_comm_find(MPI_COMM_WORLD, &error) != NULL; /* for its end */
}

#define FREE(Name, name, NAME, n, parameters, arguments)                                                               \
    static int c_##name(W comm)                                                                                        \
    {                                                                                                                  \
        MPI_Comm handle = comm ? *(MPI_Comm *)comm : MPI_COMM_NULL;                                                    \
        int result;                                                                                                    \
                                                                                                                       \
        if (num_freeing < DEEP)                                                                                        \
            freeing[num_freeing] = handle;                                                                             \
        num_freeing++;                                                                                                 \
        uncache(handle);                                                                                               \
        result = rd_mpi_next.Name(comm);                                                                               \
        num_freeing--;                                                                                                 \
        freed(handle);                                                                                                 \
        return result;                                                                                                 \
    }
RD_MPI_FREES(FREE)

int rd_mpi_comm_duplicates(MPI_Comm comm)
{
    int error;
    rd_mpi_comm_t *c = rd_mpi_comm_of(comm, &error);

    if (c)
        c->duplicates = true;
    return error;
}

#define DUPLICATE(Name, name, NAME, n, parameters, arguments)                                                          \
    static int c_##name RD_MPI_WORDS_##n                                                                               \
    {                                                                                                                  \
        int error = rd_mpi_comm_duplicates((MPI_Comm)a);                                                               \
        return error == MPI_SUCCESS ? rd_mpi_next.Name RD_MPI_GIVEN_##n : error;                                       \
    }
RD_MPI_IDUPS(DUPLICATE)

#define FILL(Name, name, NAME, n, parameters, arguments) entries->Name = c_##name;
void rd_mpi_comms_fill(rd_mpi_entries_t *entries)
{
    RD_MPI_FREES(FILL)
    RD_MPI_IDUPS(FILL)
}
