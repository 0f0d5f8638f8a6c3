/* Handles that an operation needs until its end, and that the program may free before: operators of the user's, and the
 * types that these reduce. Of an operator MPI has no duplicate, and its function is given the type's handle, which must
 * be the one that the program has. So what frees such handles comes by here: one that is kept becomes null in the
 * program at once, and is freed when the last operation lets it go. */
#include <pthread.h>
#include <stdlib.h>

#include "mpi/interpose.h"
#include "mpi/kept.h"

typedef enum { KEPT_OP, KEPT_TYPE } kind_t;

typedef struct kept {
    struct kept *next;
    kind_t kind;
    W handle;
    int uses;
    bool freed; /* by the program */
} kept_t;

static kept_t *_Atomic first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* threads may be in here where stand_in.c keeps */

/* With the lock. */
static kept_t *find(kind_t kind, W handle)
{
    kept_t *k = first;

    while (k && (k->kind != kind || k->handle != handle))
        k = k->next;
    return k;
}

static bool keep(kind_t kind, W handle)
{
    kept_t *k;

    pthread_mutex_lock(&lock);
    k = find(kind, handle);
    if (!k && (k = calloc(1, sizeof *k))) {
        *k = (kept_t){.next = first, .kind = kind, .handle = handle};
        first = k;
    }
    if (k)
        k->uses++;
    pthread_mutex_unlock(&lock);
    return k != NULL;
}

/* Takes it off the list. With the lock. */
static void take_out(const kept_t *k)
{
    kept_t *before = first;

    if (before == k) {
        first = k->next;
        return;
    }
    while (before->next != k)
        before = before->next;
    before->next = k->next;
}

static void let_go(kind_t kind, W handle)
{
    bool freed = false;
    kept_t *k;

    pthread_mutex_lock(&lock);
    k = find(kind, handle);
    if (--k->uses == 0) {
        freed = k->freed;
        take_out(k);
        free(k);
    }
    pthread_mutex_unlock(&lock);
    if (freed && kind == KEPT_OP)
        rd_mpi_next.Op_free((W) & (MPI_Op){(MPI_Op)handle});
    else if (freed)
        rd_mpi_next.Type_free((W) & (MPI_Datatype){(MPI_Datatype)handle});
}

/* Has the program freed what is kept? */
static bool is_put_off(kind_t kind, W handle)
{
    kept_t *k;

    pthread_mutex_lock(&lock);
    k = find(kind, handle);
    if (k)
        k->freed = true;
    pthread_mutex_unlock(&lock);
    return k != NULL;
}

/* A named type is never freed. */
static bool has_own_type(const rd_mpi_call_t *call)
{
    return !rd_mpi_named(call->recvtype);
}

bool rd_mpi_keep(const rd_mpi_call_t *call)
{
    if (!keep(KEPT_OP, (W)call->op))
        return false;
    if (!has_own_type(call) || keep(KEPT_TYPE, (W)call->recvtype))
        return true;
    let_go(KEPT_OP, (W)call->op);
    return false;
}

void rd_mpi_let_go(const rd_mpi_call_t *call)
{
    let_go(KEPT_OP, (W)call->op);
    if (has_own_type(call))
        let_go(KEPT_TYPE, (W)call->recvtype);
}

static int c_op_free(W op)
{
    MPI_Op *at = (MPI_Op *)op;

    if (!first || !at || !is_put_off(KEPT_OP, (W)*at))
        return rd_mpi_next.Op_free(op);
    *at = MPI_OP_NULL;
    return MPI_SUCCESS;
}

static int c_type_free(W type)
{
    MPI_Datatype *at = (MPI_Datatype *)type;

    if (!first || !at || !is_put_off(KEPT_TYPE, (W)*at))
        return rd_mpi_next.Type_free(type);
    *at = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

void rd_mpi_kept_fill(rd_mpi_entries_t *entries)
{
    entries->Op_free = c_op_free;
    entries->Type_free = c_type_free;
}
