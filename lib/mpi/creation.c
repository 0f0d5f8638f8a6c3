/* How one of rondo's communicators is made for an MPI communicator, at a call that all its ranks make: rank 0's id and
 * rules go to all; all come; then each makes its part in a thread, while this one makes the MPI's progress, and at the
 * end all have one or none has. No communicator of the MPI's is made for it: Open MPI 4.1.4 hangs now and then when one
 * is made while the program has another one made behind its calls (MPI_Comm_idup). */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi/interpose.h"

#define PATIENCE_S 0.5 /* with the making of a communicator, until the ranks ask each other; it doubles */

typedef struct {
    rondo_unique_id_t id;
    rd_mpi_rules_t rules;
    int64_t core_id;
} invitation_t;

/* One rank's part of a creation. The thread that makes it may outlive the wait for it. */
typedef struct {
    rondo_unique_id_t id;
    int rank, nranks;
    rondo_config_t config;
    char name[MPI_MAX_OBJECT_NAME];
    rondo_comm_t comm;
    rondo_result_t result;
    char sentence[512];
    _Atomic int state; /* of making_state_t */
} making_t;
typedef enum { RUNNING, DONE, GIVEN_UP } making_state_t;

static void *make(void *data)
{
    making_t *m = data;
    int expected = RUNNING;

    m->result = rondo_comm_create(&m->comm, m->nranks, &m->id, m->rank, &m->config);
    explicit_bzero(&m->id, sizeof m->id); /* in it is the secret by which a rank may join */
    if (m->result != RONDO_SUCCESS)
        snprintf(m->sentence, sizeof m->sentence, "%s", rondo_last_error(NULL));
    if (!atomic_compare_exchange_strong(&m->state, &expected, DONE)) { /* nobody waits for it any more */
        if (m->result == RONDO_SUCCESS)
            rondo_comm_destroy(m->comm);
        free(m);
    }
    return NULL;
}

/* Starts make() in a thread, which does not call the MPI, and gets none of the program's signals. */
static bool make_start(making_t *m)
{
    sigset_t every, before;
    pthread_attr_t attributes;
    pthread_t thread;
    int failed;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    failed = pthread_create(&thread, &attributes, make, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed)
        snprintf(m->sentence, sizeof m->sentence, "no thread could be started: %s", strerror(failed));
    return !failed;
}

static int64_t id_of(const rondo_unique_id_t *id)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < sizeof id->bytes; i++)
        hash = (hash ^ id->bytes[i]) * UINT64_C(1099511628211);
    return (int64_t)(hash >> 2) | 1;
}

static void invite(rd_mpi_comm_t *c, invitation_t *invitation)
{
    memset(invitation, 0, sizeof *invitation);
    if (c->rank)
        return;
    (void)rondo_unique_id_create(&invitation->id); /* on failure it carries the error */
    invitation->rules = rd_mpi_settings.rules;
    invitation->core_id = id_of(&invitation->id);
    rd_mpi_table_begin(&invitation->rules, c->nranks);
}

/* It has one user from the beginning: what has none is another thread's to throw away, as soon as it is on the list. */
static rd_mpi_core_t *core_of(rd_mpi_comm_t *c, rondo_comm_t rondo, const invitation_t *invitation)
{
    rd_mpi_core_t *core = calloc(1, sizeof *core);

    if (!core)
        return NULL;
    core->rondo = rondo;
    core->users = 1;
    core->id = invitation->core_id;
    core->rules = invitation->rules;
    PMPI_Comm_group(c->comm, &core->group);
    rondo_comm_on_wait(core->rondo, rd_mpi_progress, NULL);
    return core;
}

void rd_mpi_core_destroy(rd_mpi_core_t *core)
{
    int finalized = 0;

    rondo_comm_destroy(core->rondo);
    PMPI_Finalized(&finalized);
    if (!finalized) /* else the process leaves, and all of the MPI's with it */
        PMPI_Group_free(&core->group);
    free(core);
}

static making_t *making_of(const rd_mpi_comm_t *c, const invitation_t *invitation)
{
    making_t *m = calloc(1, sizeof *m);
    int length;

    if (!m)
        return NULL;
    *m = (making_t){.id = invitation->id, .rank = c->rank, .nranks = c->nranks, .config = RONDO_CONFIG_INIT};
    PMPI_Comm_get_name(c->comm, m->name, &length);
    m->config.device = RONDO_DEVICE_HOST;
    m->config.name = m->name[0] ? m->name : NULL;
    return m;
}

/* One rank's part: it is being made, or there is a core, or it has failed, with a sentence. */
typedef struct {
    rd_mpi_comm_t *c;
    const invitation_t *invitation;
    making_t *making;
    rd_mpi_core_t *core;
    char failed[512];
} part_t;

static void part_start(part_t *p)
{
    p->making = making_of(p->c, p->invitation);
    if (!p->making) {
        snprintf(p->failed, sizeof p->failed, "there is no memory");
    } else if (!make_start(p->making)) {
        snprintf(p->failed, sizeof p->failed, "%s", p->making->sentence);
        explicit_bzero(&p->making->id, sizeof p->making->id);
        free(p->making);
        p->making = NULL;
    }
}

/* Takes over what the thread has made, if it is at its end. */
static void part_take(part_t *p)
{
    making_t *m = p->making;

    if (!m || atomic_load_explicit(&m->state, memory_order_acquire) == RUNNING)
        return;
    snprintf(p->failed, sizeof p->failed, "%s", m->result == RONDO_SUCCESS ? "there is no memory" : m->sentence);
    if (m->result == RONDO_SUCCESS && !(p->core = core_of(p->c, m->comm, p->invitation)))
        rondo_comm_destroy(m->comm);
    free(m);
    p->making = NULL;
}

/* Lets go what is there; a thread that still runs frees its memory itself. */
static void part_drop(part_t *p)
{
    int expected = RUNNING;

    if (p->making && !atomic_compare_exchange_strong(&p->making->state, &expected, GIVEN_UP))
        part_take(p);
    if (p->core)
        rd_mpi_core_destroy(p->core);
    p->core = NULL;
}

/* Makes the MPI's progress until this rank's thread is at its end, or that has taken so long. */
static void part_wait(const part_t *p, double seconds)
{
    const struct timespec nap = {0, 20000};
    double until = rd_mpi_clock() + seconds;

    while (p->making && atomic_load_explicit(&p->making->state, memory_order_acquire) == RUNNING &&
           rd_mpi_clock() < until) {
        rd_mpi_flights_turn();
        rd_mpi_progress(NULL);
        nanosleep(&nap, NULL);
    }
}

/* Waits for all ranks' parts: each rank that has made its own, has failed, or has lost patience asks the others how far
 * they are, again and again, until all have made theirs or one has failed, for which the others would else wait until
 * RONDO_CREATE_TIMEOUT_MS. All hear the same each time, and so end together. The lowest that has failed says why.
 *
 * By blocking collectives: behind MPI_Comm_idup Open MPI starts nonblocking ones on the communicator when it makes
 * progress, on each rank at another time, so that others would meet these. */
static bool all_made(part_t *p)
{
    enum { MADE, FAILED, WORDS };
    int mine[WORDS], all[WORDS] = {false, INT_MAX};
    double seconds = PATIENCE_S;

    while (!all[MADE] && all[FAILED] == INT_MAX) {
        part_wait(p, seconds);
        part_take(p);
        mine[MADE] = p->core != NULL;
        mine[FAILED] = p->core || p->making ? INT_MAX : p->c->rank;
        if (PMPI_Allreduce(mine, all, WORDS, MPI_INT, MPI_MIN, p->c->comm) != MPI_SUCCESS)
            return false;
        seconds *= 2;
    }
    if (all[FAILED] == p->c->rank)
        fprintf(stderr, "rondo: rank %d could not make rondo's communicator for %d ranks, so the MPI serves it: %s\n",
                p->c->rank, p->c->nranks, p->failed);
    return all[FAILED] == INT_MAX;
}

rd_mpi_core_t *rd_mpi_core_create(rd_mpi_comm_t *c)
{
    invitation_t invitation;
    part_t part = {.c = c, .invitation = &invitation};
    bool meets, made = false;

    invite(c, &invitation);
    meets = PMPI_Bcast(&invitation, (int)sizeof invitation, MPI_BYTE, 0, c->comm) == MPI_SUCCESS &&
            PMPI_Barrier(c->comm) == MPI_SUCCESS; /* all have come: nobody waits in rondo */
    if (meets) {
        part_start(&part);
        made = all_made(&part);
    }
    explicit_bzero(&invitation.id, sizeof invitation.id);
    if (!made)
        part_drop(&part);
    return part.core;
}
