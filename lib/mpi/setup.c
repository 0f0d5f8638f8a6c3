/* How an MPI communicator comes to one of rondo's. Everything here is collective over it, happens at a call that all of
 * its ranks make, and uses the MPI's own collectives on it: those make the MPI's progress while they wait, and cannot
 * meet the user's messages.
 *
 *   agree    at the first call on MPI_COMM_WORLD, the second on others, so that one that is used once costs nothing: is
 *            any rank switched off, at which call shall rondo's be made, and is there already one of an equal group?
 *   create   at the n-th call. Rank 0's id and rules go to all; all come; then each makes its part in a thread, while
 *            this one makes the MPI's progress, and at the end all have one or none has.
 *
 * MPI communicators of equal groups share one of rondo's, unless threads may call at the same time: a correct program
 * calls blocking collectives on them in one order on all ranks, because each of these calls may synchronise. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mpi/interpose.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rd_mpi_core_t *cores;

/* Makes the MPI's progress. A message of this rank to itself with the highest tag is hardly ever there to be found, and
 * if it is it stays where it is. */
static void progress(void *unused)
{
    int found;

    (void)unused;
    PMPI_Iprobe(0, 32767, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

static rd_mpi_core_t *find_alike(MPI_Group group)
{
    int level = MPI_THREAD_SINGLE, order;
    rd_mpi_core_t *found = NULL;

    PMPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE)
        return NULL;
    for (rd_mpi_core_t *core = cores; core && !found; core = core->next) {
        if (PMPI_Group_compare(group, core->group, &order) == MPI_SUCCESS && order == MPI_IDENT)
            found = core;
    }
    return found;
}

static void refuse(rd_mpi_comm_t *c, rd_mpi_reason_t reason)
{
    c->status = RD_MPI_REFUSED;
    c->refused = reason;
}

static void use(rd_mpi_comm_t *c, rd_mpi_core_t *core)
{
    core->users++;
    c->core = core;
    c->rondo = core->rondo;
    c->rules = &core->rules;
    c->status = RD_MPI_SERVING;
}

static void agree(rd_mpi_comm_t *c)
{
    enum { OFF, SOON, SAME, SAME_TOO, WORDS };
    int64_t mine[WORDS] = {0}, all[WORDS];
    MPI_Group group = MPI_GROUP_NULL;
    rd_mpi_core_t *core;

    PMPI_Comm_group(c->comm, &group);
    core = find_alike(group);
    PMPI_Group_free(&group);
    mine[OFF] = rd_mpi_settings.off;
    mine[SOON] = -rd_mpi_settings.after;
    mine[SAME] = core ? core->id : 0;
    mine[SAME_TOO] = -mine[SAME];
    if (PMPI_Allreduce(mine, all, WORDS, MPI_INT64_T, MPI_MAX, c->comm) != MPI_SUCCESS || all[OFF]) {
        refuse(c, RD_MPI_OFF);
        return;
    }
    c->after = c->world ? 1 : -all[SOON];
    c->status = RD_MPI_AGREED;
    if (core && all[SAME] == core->id && all[SAME_TOO] == -core->id)
        use(c, core);
}

/* ---- creation ---- */

typedef struct {
    rondo_unique_id_t id;
    rd_mpi_rules_t rules;
    int64_t core_id;
} invitation_t;

typedef struct {
    const rondo_unique_id_t *id;
    int rank, nranks;
    rondo_config_t config;
    rondo_comm_t comm;
    rondo_result_t result;
    char sentence[512];
    _Atomic int done;
} making_t;

static void *make(void *data)
{
    making_t *m = data;

    m->result = rondo_comm_create(&m->comm, m->nranks, m->id, m->rank, &m->config);
    if (m->result != RONDO_SUCCESS)
        snprintf(m->sentence, sizeof m->sentence, "%s", rondo_last_error(NULL));
    atomic_store_explicit(&m->done, 1, memory_order_release);
    return NULL;
}

/* Runs make() in a thread, which does not call the MPI, and makes the MPI's progress meanwhile. The thread gets none of
 * the program's signals. */
static void make_in_thread(making_t *m)
{
    const struct timespec nap = {0, 20000};
    sigset_t every, before;
    pthread_t thread;
    int failed;

    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    failed = pthread_create(&thread, NULL, make, m);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        m->result = RONDO_ERR_NO_MEMORY;
        snprintf(m->sentence, sizeof m->sentence, "no thread could be started: %s", strerror(failed));
        return;
    }
    while (!atomic_load_explicit(&m->done, memory_order_acquire)) {
        progress(NULL);
        nanosleep(&nap, NULL);
    }
    pthread_join(thread, NULL);
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
}

/* All ranks have made theirs, or the lowest that has not says why and all fall back. */
static bool all_made(rd_mpi_comm_t *c, const making_t *m)
{
    int mine = m->result == RONDO_SUCCESS ? INT_MAX : c->rank, lowest = 0;

    if (PMPI_Allreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, c->comm) == MPI_SUCCESS && lowest == INT_MAX)
        return true;
    if (lowest == c->rank)
        fprintf(stderr, "rondo: rank %d could not make rondo's communicator for %d ranks, so the MPI serves it: %s\n",
                c->rank, c->nranks, m->sentence);
    return false;
}

static rd_mpi_core_t *core_create(rd_mpi_comm_t *c, const making_t *m, const invitation_t *invitation)
{
    rd_mpi_core_t *core = calloc(1, sizeof *core);

    if (!core)
        return NULL;
    core->rondo = m->comm;
    core->id = invitation->core_id;
    core->rules = invitation->rules;
    PMPI_Comm_group(c->comm, &core->group);
    rondo_comm_on_wait(core->rondo, progress, NULL);
    return core;
}

static void create(rd_mpi_comm_t *c)
{
    making_t m = {.rank = c->rank, .nranks = c->nranks, .config = RONDO_CONFIG_INIT};
    rd_mpi_core_t *core = NULL;
    char name[MPI_MAX_OBJECT_NAME] = "";
    invitation_t invitation;
    int length;

    invite(c, &invitation);
    if (PMPI_Bcast(&invitation, (int)sizeof invitation, MPI_BYTE, 0, c->comm) != MPI_SUCCESS ||
        PMPI_Barrier(c->comm) != MPI_SUCCESS) { /* nobody waits in rondo for one who is not here */
        refuse(c, RD_MPI_NOT_MADE);
        return;
    }
    PMPI_Comm_get_name(c->comm, name, &length);
    m.id = &invitation.id;
    m.config.device = RONDO_DEVICE_HOST;
    m.config.name = name[0] ? name : NULL;
    make_in_thread(&m);
    if (m.result == RONDO_SUCCESS && !(core = core_create(c, &m, &invitation))) {
        m.result = RONDO_ERR_NO_MEMORY;
        snprintf(m.sentence, sizeof m.sentence, "there is no memory");
    }
    if (all_made(c, &m)) {
        pthread_mutex_lock(&lock);
        core->next = cores;
        cores = core;
        pthread_mutex_unlock(&lock);
        use(c, core);
        return;
    }
    if (core)
        PMPI_Group_free(&core->group);
    free(core);
    if (m.comm)
        rondo_comm_destroy(m.comm);
    refuse(c, RD_MPI_NOT_MADE);
}

void rd_mpi_setup(rd_mpi_comm_t *c)
{
    c->calls++;
    if (c->status == RD_MPI_NEW && c->calls >= (c->world ? 1 : 2))
        agree(c);
    if (c->status == RD_MPI_AGREED && c->calls >= c->after)
        create(c);
}

void rd_mpi_core_put(rd_mpi_core_t *core)
{
    rd_mpi_core_t **at;

    if (--core->users)
        return;
    pthread_mutex_lock(&lock);
    for (at = &cores; *at && *at != core; at = &(*at)->next)
        ;
    if (*at)
        *at = core->next;
    pthread_mutex_unlock(&lock);
    rondo_comm_destroy(core->rondo);
    PMPI_Group_free(&core->group);
    free(core);
}
