/* How an MPI communicator comes to one of rondo's. Everything here is collective over it, happens at a call that all of
 * its ranks make, and uses the MPI's own collectives on it: those make the MPI's progress while they wait, and cannot
 * meet the user's messages.
 *
 *   agree    at the first call on MPI_COMM_WORLD and what has its ranks in its order, the second on others, so that one
 *            that is used once costs nothing: is any rank switched off, at which call shall rondo's be made, and is
 *            there already one of an equal group? Where sums are to be reproducible and some rank of the job is
 *            switched off, at the first on others, too: what the MPI serves is not in order from the first one on.
 *   create   at the n-th call, for it takes milliseconds (creation.c).
 *
 * MPI communicators of equal groups share one of rondo's, unless threads may call at the same time, or one may be
 * revoked: a correct program calls blocking collectives on them in one order on all ranks, because each of these calls
 * may synchronise. */
#include <pthread.h>

#include "mpi/interpose.h"
#include "mpi/kept.h"

#define KEPT 4 /* of rondo's communicators that no communicator of the MPI uses any more */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rd_mpi_core_t *cores;
static _Atomic int thrown_away;
static rd_mpi_core_t *worlds; /* serves MPI_COMM_WORLD and what has its ranks in its order, until MPI_Finalize */
static int64_t worlds_after;  /* nonblocking calls on a duplicate, after which it gets one for them */
static bool worlds_failed;    /* it could not be made */
static _Atomic bool ending;   /* MPI_Finalize has begun */

/* Makes the MPI's progress, which asking for any request that is not complete does: this one never is. A probe would do
 * for Open MPI; MPICH, asked for messages of a process to itself, looks nowhere else. */
static MPI_Request never = MPI_REQUEST_NULL;

static int on_query(void *extra, MPI_Status *status)
{
    (void)extra;
    (void)status;
    return MPI_SUCCESS;
}

static int on_free(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int on_cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

bool rd_mpi_setup_start(void)
{
    return PMPI_Grequest_start(on_query, on_free, on_cancel, NULL, &never) == MPI_SUCCESS;
}

/* Sums are to be reproducible before there is anything of rondo's, too, and then all ranks have to know it, and which
 * ones are switched off: that is agreed on in MPI_Init. So is whether a tool before this library, which may be on one
 * rank alone, hides what frees operators (kept.c). */
static bool all_know, may_keep;
static bool agree_at_once; /* because of a rank that is switched off */
static bool may_order[RD_MPI_FORMS] = {[RD_MPI_BLOCKING] = true};

/* Behind their calls sums are in order only where every rank can do so: a tool before this library may be on one rank
 * alone, and so may the environment that asks the MPI to go on after failures. */
static void agree_on_order(void)
{
    enum { NO_FOLLOWING, NO_STARTS, WORDS };
    int64_t mine[WORDS] = {rd_mpi_is_tolerant() || !rd_mpi_progress_start(), !rd_mpi_next.requests_come_by}, all[WORDS];

    if (PMPI_Allreduce(mine, all, WORDS, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS)
        return;
    may_order[RD_MPI_NONBLOCKING] = !all[NO_FOLLOWING];
    may_order[RD_MPI_PERSISTENT] = !all[NO_FOLLOWING] && !all[NO_STARTS];
}

bool rd_mpi_may_keep(void)
{
    return may_keep;
}

bool rd_mpi_may_order(rd_mpi_form_t form)
{
    return may_order[form];
}

void rd_mpi_setup_begin(void)
{
    enum { OFF, REPRODUCIBLE, NO_FREES, WORDS };
    int64_t mine[WORDS] = {rd_mpi_settings.off, 0, !rd_mpi_next.frees_come_by}, all[WORDS];
    int rank = -1;

    if (all_know)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine[REPRODUCIBLE] = rank == 0 ? rd_mpi_settings.rules.reproducible : 0;
    if (PMPI_Allreduce(mine, all, WORDS, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS)
        return;
    rd_mpi_settings.rules.reproducible = all[REPRODUCIBLE];
    if (all[REPRODUCIBLE] && PMPI_Bcast(&rd_mpi_settings.rules, (int)sizeof rd_mpi_settings.rules, MPI_BYTE, 0,
                                        MPI_COMM_WORLD) != MPI_SUCCESS)
        return;
    if (all[REPRODUCIBLE])
        agree_on_order();
    agree_at_once = all[OFF] && all[REPRODUCIBLE];
    may_keep = !all[NO_FREES];
    all_know = true;
}

bool rd_mpi_is_reproducible(const rd_mpi_comm_t *c)
{
    return c->rules ? c->rules->reproducible : all_know && rd_mpi_settings.rules.reproducible;
}

void rd_mpi_progress(void *unused)
{
    bool held = rd_mpi_flights_hold(true);
    int done;

    (void)unused;
    PMPI_Request_get_status(never, &done, MPI_STATUS_IGNORE);
    rd_mpi_flights_hold(held);
}

bool rd_mpi_many_threads(void)
{
    int level = MPI_THREAD_SINGLE;

    PMPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

/* May communicators of equal groups have one of rondo's in common? */
static bool may_share(void)
{
    return !rd_mpi_many_threads() && !rd_mpi_is_tolerant();
}

static bool has_failed(const rd_mpi_core_t *core)
{
    rondo_result_t error = RONDO_SUCCESS;

    return rondo_comm_get_error(core->rondo, &error) != RONDO_SUCCESS || error != RONDO_SUCCESS;
}

/* Returns one of an equal group that is shared, or, for a communicator that wants one for itself, the oldest that
 * nobody uses. Not all ranks may know yet that one has failed: what they find is compared. */
static rd_mpi_core_t *find_alike(MPI_Comm comm, bool exclusive)
{
    rd_mpi_core_t *found = NULL;
    MPI_Group group = MPI_GROUP_NULL;
    int order;

    if (!may_share())
        return NULL;
    PMPI_Comm_group(comm, &group);
    for (rd_mpi_core_t *core = cores; core; core = core->next) {
        if ((exclusive ? core->users == 0 : !core->exclusive) && (exclusive || !found) && !has_failed(core) &&
            PMPI_Group_compare(group, core->group, &order) == MPI_SUCCESS && order == MPI_IDENT)
            found = core;
    }
    PMPI_Group_free(&group);
    return found;
}

static void refuse(rd_mpi_comm_t *c, rd_mpi_reason_t reason)
{
    c->status = RD_MPI_REFUSED;
    c->refused = reason;
}

/* c has been counted among the core's users. */
static void use(rd_mpi_comm_t *c, rd_mpi_core_t *core)
{
    c->core = core;
    c->rondo = core->rondo;
    c->rules = &core->rules;
    c->status = RD_MPI_SERVING;
}

/* Threads do not share: no lock is needed. */
static void share(rd_mpi_comm_t *c, rd_mpi_core_t *core)
{
    core->users++;
    use(c, core);
}

static void agree(rd_mpi_comm_t *c)
{
    enum { OFF, AFTER, AFTER_WORLDS, SAME, SAME_TOO, WORDS };
    int64_t mine[WORDS] = {0}, all[WORDS];
    rd_mpi_core_t *core = find_alike(c->comm, false);

    mine[OFF] = rd_mpi_settings.off;
    mine[AFTER] = rd_mpi_settings.after << thrown_away;
    mine[AFTER_WORLDS] = !may_share() || worlds_failed ? mine[AFTER] : 1;
    mine[SAME] = core ? core->id : 0;
    mine[SAME_TOO] = -mine[SAME];
    if (PMPI_Allreduce(mine, all, WORDS, MPI_INT64_T, MPI_MAX, c->comm) != MPI_SUCCESS || all[OFF]) {
        refuse(c, RD_MPI_OFF);
        return;
    }
    c->shares_worlds = c->like_world && all[AFTER_WORLDS] == 1;
    c->after = c->world || c->shares_worlds ? 1 : all[AFTER];
    c->own_after = all[AFTER];
    c->status = RD_MPI_AGREED;
    if (core && all[SAME] == core->id && all[SAME_TOO] == -core->id)
        share(c, core);
}

/* ---- rondo's communicators ---- */

static void keep(rd_mpi_core_t *core)
{
    pthread_mutex_lock(&lock);
    core->next = cores;
    cores = core;
    pthread_mutex_unlock(&lock);
}

static rd_mpi_core_t *create(rd_mpi_comm_t *c)
{
    rd_mpi_core_t *core = rd_mpi_core_create(c);

    if (core)
        keep(core);
    return core;
}

/* ---- nonblocking calls ----
 *
 * Blocking calls on several communicators come in one order on all ranks, because each may synchronise. Nonblocking
 * ones do not: rank 0 may start one on A and then call one on B, and rank 1 the other way round. So an MPI communicator
 * has one of rondo's for itself for them. It is made at a blocking call, because a nonblocking one must not wait. */

/* Returns false if nonblocking calls cannot be served here. *core becomes one that nobody uses on any rank, or NULL. */
static bool agree_on_own(const rd_mpi_comm_t *c, rd_mpi_form_t form, rd_mpi_core_t **core)
{
    enum { CANNOT, SAME, SAME_TOO, WORDS };
    int64_t mine[WORDS], all[WORDS];

    *core = find_alike(c->comm, true);
    mine[CANNOT] = rd_mpi_many_threads() || rd_mpi_is_tolerant() || !rd_mpi_flights_start();
    mine[CANNOT] |= form == RD_MPI_PERSISTENT && !rd_mpi_next.requests_come_by;
    mine[SAME] = *core ? (*core)->id : 0;
    mine[SAME_TOO] = -mine[SAME];
    if (PMPI_Allreduce(mine, all, WORDS, MPI_INT64_T, MPI_MAX, c->comm) != MPI_SUCCESS || all[CANNOT])
        return false;
    if (!*core || all[SAME] != (*core)->id || all[SAME_TOO] != -(*core)->id)
        *core = NULL;
    return true;
}

rd_mpi_core_t *rd_mpi_core_take(rd_mpi_comm_t *c, rd_mpi_form_t form, bool may_create, rd_mpi_reason_t *why)
{
    rd_mpi_core_t *core;

    *why = RD_MPI_UNDRIVEN;
    if (!agree_on_own(c, form, &core))
        return NULL;
    *why = may_create ? RD_MPI_NOT_MADE : RD_MPI_MANY;
    if (!core && may_create) {
        core = create(c);
        c->made++;
    }
    if (!core)
        return NULL;
    rondo_comm_on_wait(core->rondo, NULL, NULL); /* nothing waits in it, and who makes its progress may be a thread */
    core->users = 1;
    core->exclusive = true;
    return core;
}

/* The short ways would pass by. */
void rd_mpi_want_own(rd_mpi_comm_t *c)
{
    c->status = RD_MPI_WANTS;
    c->last_size = 0;
    c->last_type = MPI_DATATYPE_NULL;
    c->last_moved = MPI_DATATYPE_NULL;
}

static void take_own(rd_mpi_comm_t *c)
{
    c->own = rd_mpi_core_take(c, RD_MPI_NONBLOCKING, true, &c->own_refused);
}

/* Have enough nonblocking calls done without a communicator of rondo's, where rondo serves the blocking ones? */
static bool own_is_due(const rd_mpi_comm_t *c)
{
    return c->status == RD_MPI_SERVING && !c->own && c->own_refused == RD_MPI_SERVED && c->missed &&
           c->missed >= (c->world ? 1 : c->own_after);
}

/* Libraries duplicate MPI_COMM_WORLD and use nothing else, and some programs call a few times only: so one of rondo's
 * serves the world and all like it, from the first call on any of them. All ranks make it at the same call, because
 * without threads they call blocking collectives on these in one order, and none lets it go: a later duplicate finds it
 * without asking the others. */
static void share_worlds(const rd_mpi_comm_t *c)
{
    worlds = c->core;
    worlds->users++;
    worlds_after = c->own_after;
}

static void make_due(rd_mpi_comm_t *c)
{
    rd_mpi_core_t *core = create(c);

    if (core) {
        use(c, core);
    } else {
        refuse(c, RD_MPI_NOT_MADE);
        worlds_failed |= c->shares_worlds;
    }
}

void rd_mpi_setup_count(rd_mpi_comm_t *c, rd_mpi_form_t form)
{
    c->calls++;
    if (form != RD_MPI_NONBLOCKING)
        return;
    c->missed++;
    if (own_is_due(c))
        rd_mpi_want_own(c);
}

/* A call that is refused on one rank, and made again there, comes here twice, with an equal count: it finds done what
 * was to be done, with the others, before the call. */
void rd_mpi_setup(rd_mpi_comm_t *c)
{
    if (c->status == RD_MPI_WANTS) {
        c->status = RD_MPI_SERVING;
        if (c->own)
            rd_mpi_measure(c, c->own);
        else
            take_own(c);
        return;
    }
    int64_t calls = c->calls + 1; /* with this one */
    if (c->status == RD_MPI_NEW && c->like_world && worlds) {
        c->own_after = worlds_after;
        share(c, worlds);
    } else if (c->status == RD_MPI_NEW && calls >= (c->like_world || agree_at_once ? 1 : 2)) {
        agree(c);
    }
    if (c->status == RD_MPI_AGREED && calls >= c->after)
        make_due(c);
    if (c->status == RD_MPI_SERVING && c->shares_worlds && !worlds)
        share_worlds(c);
    if (own_is_due(c)) /* by nonblocking calls that came before this first one that may wait */
        take_own(c);
}

/* Takes it off the list. */
static void unlink_core(rd_mpi_core_t *core)
{
    rd_mpi_core_t **at = &cores;

    while (*at && *at != core)
        at = &(*at)->next;
    if (*at)
        *at = core->next;
}

/* Returns the unused one that was put away first, off the list, if there are more than `most` of them. */
static rd_mpi_core_t *take_unused(int most)
{
    rd_mpi_core_t *oldest = NULL;
    int unused = 0;

    pthread_mutex_lock(&lock);
    for (rd_mpi_core_t *core = cores; core; core = core->next) {
        if (core->users)
            continue;
        unused++;
        if (!oldest || core->put < oldest->put)
            oldest = core;
    }
    if (unused <= most)
        oldest = NULL;
    else
        unlink_core(oldest);
    pthread_mutex_unlock(&lock);
    return oldest;
}

/* Codes make communicators of the same groups again and again, so some are kept. When a communicator was freed and one
 * is thrown away for it, it was not worth it, and the next one has to be called for twice as often. */
void rd_mpi_core_put(rd_mpi_core_t *core)
{
    static int64_t clock;
    rd_mpi_core_t *oldest;
    bool shared = !core->exclusive, useless = false;

    pthread_mutex_lock(&lock);
    core->users--;
    core->put = ++clock;
    if (core->exclusive) {
        core->exclusive = false;
        core->due = false; /* the next one that it serves has calls of its own */
        rondo_comm_on_wait(core->rondo, rd_mpi_progress, NULL);
    }
    if (core->users == 0 && has_failed(core)) {
        unlink_core(core);
        useless = true;
    }
    pthread_mutex_unlock(&lock);
    if (useless)
        rd_mpi_core_destroy(core);
    oldest = take_unused(ending ? 0 : KEPT);
    if (oldest) {
        rd_mpi_core_destroy(oldest);
        if (shared && thrown_away < 20)
            thrown_away++;
    }
}

void rd_mpi_cores_end(bool also_used)
{
    rd_mpi_core_t *core;

    ending = true;
    for (core = cores; also_used && core; core = core->next)
        core->users = 0;
    while ((core = take_unused(0)))
        rd_mpi_core_destroy(core);
}
