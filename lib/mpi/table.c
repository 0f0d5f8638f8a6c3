/* Which of the two is quicker, the MPI or rondo: what is known of it, and what follows from that for a call.
 *
 * Known is a verdict for an operation and a class of bytes, a power of two; between two classes of one verdict all have
 * that. What is not known is open: rondo serves it, and when that has happened often, it is measured (measure.c) at the
 * end of such a call, by all ranks of the communicator. All ranks count the same calls, those that they have begun, so
 * they come to it at the same one, and what they measure they agree on before they use it. A nonblocking call may not
 * wait for the others, so what is due then is measured at the next blocking call on its communicator; nor do
 * nonblocking calls on two communicators come in one order, so each has its own choice for them, that of rondo's
 * communicator which it has for itself.
 *
 * Rank 0 of a new communicator hands on what it knows for that number of ranks: from this job, and from the file of
 * RONDO_MPI_TABLE, to which it appends what was measured, a line for each:
 *
 *     Open_MPI_v4.1.4 4 allreduce 512 0.91 1.64
 *
 * which are the MPI, ranks, operation, bytes, rondo's microseconds and the MPI's. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi/interpose.h"

#define LINE 256
#define CLASSES RD_MPI_CLASSES
#define OFTEN 64 /* calls, after which it is measured who is quicker */

/* MPICH 4.0's own persistent collectives give wrong results (OSU's gather, scatter and allgather, with validation), so
 * they get none that rondo can serve. */
#ifdef OPEN_MPI
#define PERSISTENT_RIGHT true
#else
#define PERSISTENT_RIGHT false
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rd_mpi_timing_t *known; /* of this job, where this process was rank 0 */
static int num_known;

/* "Open_MPI_v4.1.4" */
static void name_of_mpi(char name[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int length = 0;

    PMPI_Get_library_version(name, &length);
    name[strcspn(name, ",\n")] = 0;
    for (char *at = name; *at; at++) {
        if (*at == ' ' || *at == '\t')
            *at = '_';
    }
}

/* No rank knows the bytes of all others in these, so they have one class for all. */
bool rd_mpi_unequal(int kind)
{
    int what = kind % RD_MPI_NUM;

    return what == RD_MPI_GATHERV || what == RD_MPI_SCATTERV || what == RD_MPI_ALLTOALLV;
}

static int class_of(int kind, uint64_t bytes)
{
    return rd_mpi_unequal(kind) ? 0 : rd_mpi_class_of(bytes);
}

/* Numbers in the file have points, also in a program that has called setlocale and has commas: until it goes back to
 * `before`, this thread is in the C locale, which is the C library's own object. */
static locale_t into_c_locale(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

/* ---- what is known ---- */

/* The runs of classes between two neighbours of one verdict. */
static uint64_t filled(uint64_t measured, uint64_t verdict)
{
    uint64_t all = 0;
    int last = -1; /* the last class that was measured */

    for (int k = 0; k < CLASSES; k++) {
        if (!(measured >> k & 1))
            continue;
        if (verdict >> k & 1) {
            all |= UINT64_C(1) << k;
            for (int between = last + 1; last >= 0 && verdict >> last & 1 && between < k; between++)
                all |= UINT64_C(1) << between;
        }
        last = k;
    }
    return all;
}

/* The first run of classes that are rondo's, within what the user allows, is what the short ways look at. */
static void first_range(rd_mpi_rules_t *rules, int kind, uint64_t rondos)
{
    uint64_t *widest = rules->widest[kind], least, most;
    int first = 0, last;

    while (first < CLASSES && !(rondos >> first & 1))
        first++;
    last = first;
    while (last < CLASSES && rondos >> last & 1)
        last++;
    least = first ? UINT64_C(1) << (first - 1) : 0;
    most = last ? (UINT64_C(1) << (last - 1)) - 1 : 0;
    rules->least[kind] = first == CLASSES ? 1 : least > widest[0] ? least : widest[0];
    rules->most[kind] = first == CLASSES ? 0 : last < CLASSES && most < widest[1] ? most : widest[1];
}

static void conclude(rd_mpi_rules_t *rules, int kind)
{
    uint64_t measured = rules->measured[kind], rondos = filled(measured, measured & ~rules->quicker[kind]);

    rules->mpis[kind] = filled(measured, rules->quicker[kind]);
    rules->open[kind] = ~(rondos | rules->mpis[kind]);
    first_range(rules, kind, rondos);
}

static bool may_measure(const rd_mpi_rules_t *rules, int kind)
{
    if (rules->least[kind] > rules->most[kind]) /* it is switched off */
        return false;
    if (kind / RD_MPI_NUM == RD_MPI_PERSISTENT && !PERSISTENT_RIGHT)
        return false;
    return rd_mpi_reduces(kind % RD_MPI_NUM) ? rules->choose == RD_MPI_CHOOSE_ALL && !rules->reproducible
                                             : rules->choose != RD_MPI_CHOOSE_NONE;
}

/* Microseconds that it takes a call to go to the MPI: a blocking one of rondo's has a shorter way than others. */
static double way_to_mpi(int kind)
{
    return kind / RD_MPI_NUM == RD_MPI_BLOCKING ? 0.05 : 0.01;
}

static void learn(rd_mpi_rules_t *rules, const rd_mpi_timing_t *t)
{
    uint64_t class = UINT64_C(1) << class_of(t->kind, t->bytes);

    rules->measured[t->kind] |= class;
    rules->quicker[t->kind] &= ~class;
    if (t->mpi_us * 1.03 + way_to_mpi(t->kind) < t->rondo_us)
        rules->quicker[t->kind] |= class;
}

static int find(const char *name)
{
    for (int kind = 0; kind < RD_MPI_KINDS; kind++) {
        if (strcmp(rd_mpi_names[kind], name) == 0)
            return kind;
    }
    return -1;
}

/* Reads one line; false: it is none of this MPI's. */
static bool parse(const char *line, const char *mpi, rd_mpi_timing_t *t)
{
    char name[LINE], operation[LINE];
    unsigned long long bytes;

    if (sscanf(line, "%255s %d %255s %llu %lf %lf", name, &t->nranks, operation, &bytes, &t->rondo_us, &t->mpi_us) != 6)
        return false;
    t->kind = find(operation);
    t->bytes = bytes;
    return t->kind >= 0 && t->nranks > 0 && strcmp(name, mpi) == 0;
}

/* Of two lines for the same the later one counts. */
static void read_file(const char *path, int nranks, rd_mpi_rules_t *rules)
{
    char line[LINE], mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    FILE *file = fopen(path, "re");
    rd_mpi_timing_t t;

    if (!file) {
        if (errno != ENOENT)
            fprintf(stderr, "rondo: RONDO_MPI_TABLE=%s cannot be read: %s\n", path, strerror(errno));
        return;
    }
    name_of_mpi(mpi);
    const locale_t before = into_c_locale();
    while (fgets(line, sizeof line, file)) {
        if (parse(line, mpi, &t) && t.nranks == nranks)
            learn(rules, &t);
    }
    uselocale(before);
    fclose(file);
}

void rd_mpi_table_begin(rd_mpi_rules_t *rules, int nranks)
{
    if (rd_mpi_settings.table)
        read_file(rd_mpi_settings.table, nranks, rules);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < num_known; i++) {
        if (known[i].nranks == nranks)
            learn(rules, &known[i]);
    }
    pthread_mutex_unlock(&lock);
    for (int kind = 0; kind < RD_MPI_KINDS; kind++) {
        rules->widest[kind][0] = rules->least[kind];
        rules->widest[kind][1] = rules->most[kind];
        if (may_measure(rules, kind))
            conclude(rules, kind);
    }
}

/* Beyond the limit of a file's size a write would end the job by a signal. */
static bool has_room(int fd, size_t length)
{
    struct rlimit most;
    struct stat file;

    if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY || fstat(fd, &file) != 0 ||
        !S_ISREG(file.st_mode) || (rlim_t)file.st_size + length <= most.rlim_cur)
        return true;
    errno = EFBIG;
    return false;
}

/* In one write, for other jobs may append to the file, too. */
static void append(const char *path, const rd_mpi_timing_t *t)
{
    static _Atomic bool warned;
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING], line[MPI_MAX_LIBRARY_VERSION_STRING + LINE];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), length;

    name_of_mpi(mpi);
    const locale_t before = into_c_locale();
    length = snprintf(line, sizeof line, "%s %d %s %llu %.3f %.3f\n", mpi, t->nranks, rd_mpi_names[t->kind],
                      (unsigned long long)t->bytes, t->rondo_us, t->mpi_us);
    uselocale(before);
    if ((fd < 0 || !has_room(fd, (size_t)length) || write(fd, line, (size_t)length) != length) &&
        !atomic_exchange(&warned, true))
        fprintf(stderr, "rondo: RONDO_MPI_TABLE=%s cannot be written: %s; this job uses what it has measured\n", path,
                strerror(errno));
    if (fd >= 0)
        close(fd);
}

void rd_mpi_table_add(rd_mpi_rules_t *rules, const rd_mpi_timing_t *t, bool remember)
{
    rd_mpi_timing_t *more;

    learn(rules, t);
    conclude(rules, t->kind);
    if (!remember)
        return;
    pthread_mutex_lock(&lock);
    more = realloc(known, ((size_t)num_known + 1) * sizeof *known);
    if (more) {
        known = more;
        known[num_known++] = *t;
    }
    pthread_mutex_unlock(&lock);
    if (rd_mpi_settings.table)
        append(rd_mpi_settings.table, t);
}

/* ---- a call ---- */

bool rd_mpi_allowed_else(const rd_mpi_rules_t *rules, int kind, uint64_t bytes)
{
    uint64_t others = rules->mpis[kind] | rules->open[kind];

    return rd_mpi_is_widest(rules, kind, bytes) && !(others >> class_of(kind, bytes) & 1);
}

/* For nonblocking calls it is another one. */
static rd_mpi_core_t *core_of(const rd_mpi_work_t *w)
{
    return w->call->form == RD_MPI_NONBLOCKING ? w->c->own : w->c->core;
}

/* One more of what is open; all ranks come to the last one at the same call. A persistent operation will be started
 * often, and making its request may take its time. Returns true if there is something to be measured now. */
static bool count(rd_mpi_core_t *core, const rd_mpi_call_t *call, uint64_t bytes)
{
    int kind = rd_mpi_kind(call);
    uint8_t *seen = &core->seen[call->what][class_of(kind, bytes)];

    if (call->form != RD_MPI_PERSISTENT && *seen < OFTEN - 1) {
        ++*seen;
        return false;
    }
    if (core->due) /* another one, for which no blocking call has come yet, or this one is being measured */
        return false;
    if (call->form != RD_MPI_PERSISTENT)
        *seen = 0;
    core->due = true;
    core->due_kind = kind;
    core->due_bytes = bytes;
    return true;
}

void rd_mpi_table_count(const rd_mpi_work_t *w)
{
    rd_mpi_core_t *core = core_of(w);
    int kind = rd_mpi_kind(w->call);

    if (rd_mpi_unequal(kind)) {
        core->moves[kind]++;
        core->moved[kind] += w->bytes;
    }
    if (rd_mpi_allowed(&core->rules, kind, w->admitted) || !(core->rules.open[kind] >> class_of(kind, w->admitted) & 1))
        return;
    if (count(core, w->call, w->admitted) && w->call->form == RD_MPI_NONBLOCKING)
        rd_mpi_want_own(w->c);
}

static bool is_the_mpis(const rd_mpi_rules_t *rules, int kind, uint64_t bytes)
{
    return rules->mpis[kind] >> class_of(kind, bytes) & 1 && rd_mpi_is_widest(rules, kind, bytes);
}

/* A type with a name alone: what else there is takes the longer way, to the same end. The type is kept for the short
 * way of the next call (entries.c). */
static bool bytes_of(rd_mpi_comm_t *c, const rd_mpi_call_t *call, uint64_t *bytes)
{
    bool sent = (call->what == RD_MPI_GATHER && c->rank != call->root) ||
                (call->what == RD_MPI_SCATTER && c->rank == call->root);
    const rd_mpi_named_t *named;

    *bytes = 0;
    if (call->what == RD_MPI_BARRIER_CALL || rd_mpi_unequal(call->what))
        return true;
    if (rd_mpi_reduces(call->what) || call->what == RD_MPI_ALLGATHERV)
        return false;
    named = rd_mpi_named(sent ? call->sendtype : call->recvtype);
    if (!named)
        return false;
    *bytes = (uint64_t)(sent ? call->sendcount : call->recvcount) * named->size;
    c->last_passed = named->handle;
    c->last_passed_size = named->size;
    return true;
}

bool rd_mpi_is_the_mpis(rd_mpi_comm_t *c, const rd_mpi_call_t *call)
{
    const rd_mpi_rules_t *rules = &c->own->rules;
    int kind = rd_mpi_kind(call);
    uint64_t bytes;

    return rules->mpis[kind] && !rules->compare && bytes_of(c, call, &bytes) && is_the_mpis(rules, kind, bytes);
}

int rd_mpi_admit(rd_mpi_work_t *w, uint64_t bytes)
{
    const rd_mpi_rules_t *rules = &core_of(w)->rules;
    int kind = rd_mpi_kind(w->call);

    w->admitted = bytes;
    if (rd_mpi_allowed(rules, kind, bytes))
        return MPI_SUCCESS;
    if (!rd_mpi_is_widest(rules, kind, bytes))
        return RD_MPI_HAND_ON(RD_MPI_SIZE);
    if (is_the_mpis(rules, kind, bytes))
        return RD_MPI_HAND_ON(RD_MPI_SLOWER);
    return MPI_SUCCESS;
}
