/* What the records tell together: processes with their states, and communicators with their ranks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/origin.h"
#include "ras.h"

typedef struct found {
    ras_view_t *view;
    rd_origin_t here;
    bool poor;
} found_t;

/* ---- records ---- */

static void add_record(void *arg, int fd)
{
    found_t *found = arg;
    ras_view_t *v = found->view;
    rd_reader_t reader;
    const char *why = rd_reader_open(&reader, fd);

    close(fd);
    for (int i = 0; !why && i < v->nprocesses; i++) {
        if (v->processes[i].reader.dev != reader.dev || v->processes[i].reader.ino != reader.ino)
            continue;
        rd_reader_close(&reader);
        return;
    }
    if (why) {
        v->unreadable++;
        snprintf(v->why, sizeof v->why, "%s", why);
        return;
    }
    ras_process_t *more = realloc(v->processes, (size_t)(v->nprocesses + 1) * sizeof *more);
    if (!more) {
        rd_reader_close(&reader);
        found->poor = true;
        return;
    }
    v->processes = more;
    v->processes[v->nprocesses++] = (ras_process_t){.reader = reader, .state = RAS_ELSEWHERE};
}

static bool known(void *arg, int pid)
{
    const found_t *found = arg;
    const ras_view_t *v = found->view;

    for (int i = 0; i < v->nprocesses; i++)
        if (v->processes[i].reader.head.pid == pid && v->processes[i].reader.head.pid_space == found->here.pid_space)
            return true;
    return false;
}

static int by_pid(const void *a, const void *b)
{
    const rd_monitor_head_t *x = &((const ras_process_t *)a)->reader.head,
                            *y = &((const ras_process_t *)b)->reader.head;

    return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid)
                            : (x->made_ns > y->made_ns) - (x->made_ns < y->made_ns);
}

bool ras_find(ras_view_t *view, const ras_options_t *options)
{
    found_t found = {.view = view};

    memset(view, 0, sizeof *view);
    rd_origin_find(&found.here);
    ras_scan_proc(add_record, &found);
    ras_scan_sockets(known, add_record, &found);
    if (options->dir)
        ras_scan_folder(options->dir, add_record, &found);
    if (view->nprocesses)
        qsort(view->processes, (size_t)view->nprocesses, sizeof *view->processes, by_pid);
    return !found.poor && ras_look(view, options);
}

/* ---- processes ---- */

/* Reads the state and the time of a process, unless its number is another process's now. */
static void look_at_process(ras_process_t *p, const rd_origin_t *here)
{
    const rd_monitor_head_t *head = &p->reader.head;
    rd_process_stat_t now;
    char number[16];

    p->state = RAS_ELSEWHERE;
    if (head->pid_space != here->pid_space || !here->pid_space || strcmp(here->host, head->host) != 0 ||
        (geteuid() != 0 && (uid_t)head->uid != geteuid())) /* /proc may hide other users' processes */
        return;
    p->state = RAS_ENDED;
    if (here->boot[0] && head->boot[0] && strcmp(here->boot, head->boot) != 0) /* the host was started again since */
        return;
    snprintf(number, sizeof number, "%d", head->pid);
    if (!rd_process_stat(number, &now)) {
        p->state = errno == ENOENT || errno == ESRCH || errno == 0 ? RAS_ENDED : RAS_ELSEWHERE;
        return;
    }
    if (now.started != head->started)
        return;
    /* A process whose first thread has ended looks like a zombie, and may go on. */
    p->state = now.state == 'Z' && now.threads > 1 ? RAS_ELSEWHERE : now.state;
    p->ticks = now.user_system;
}

/* ---- communicators ---- */

static ras_comm_t *comm_of(ras_view_t *v, uint64_t id)
{
    for (int i = 0; i < v->ncomms; i++)
        if (v->comms[i].id == id)
            return &v->comms[i];
    ras_comm_t *more = realloc(v->comms, (size_t)(v->ncomms + 1) * sizeof *more);
    if (!more)
        return NULL;
    v->comms = more;
    v->comms[v->ncomms] = (ras_comm_t){.id = id};
    return &v->comms[v->ncomms++];
}

static bool add_rank(ras_view_t *v, const ras_rank_t *rank)
{
    ras_comm_t *c = comm_of(v, rank->comm.id);
    ras_rank_t *more = c ? realloc(c->ranks, (size_t)(c->nranks + 1) * sizeof *more) : NULL;

    if (!more)
        return false;
    c->ranks = more;
    int at = c->nranks++;
    for (; at > 0 && c->ranks[at - 1].comm.rank > rank->comm.rank; at--)
        c->ranks[at] = c->ranks[at - 1];
    c->ranks[at] = *rank;
    return true;
}

void ras_free_comms(ras_comm_t *comms, int ncomms)
{
    for (int i = 0; i < ncomms; i++)
        free(comms[i].ranks);
    free(comms);
}

static void forget_comms(ras_view_t *v)
{
    ras_free_comms(v->comms, v->ncomms);
    v->comms = NULL;
    v->ncomms = 0;
}

/* A communicator that all have ended is history. */
static bool is_over(const ras_comm_t *c)
{
    for (int i = 0; i < c->nranks; i++)
        if (c->ranks[i].comm.state != RD_MONITOR_ENDED)
            return false;
    return true;
}

static void drop_others(ras_view_t *v, int job)
{
    int kept = 0;

    for (int i = 0; i < v->ncomms; i++) {
        ras_comm_t *c = &v->comms[i];
        if (is_over(c) || (job && v->processes[c->ranks[0].process].job != job))
            free(c->ranks);
        else
            v->comms[kept++] = *c;
    }
    v->ncomms = kept;
}

/* Processes that share a communicator are of one job; so are those that share one with any of them. */
static void find_jobs(ras_view_t *v)
{
    bool changed = true;

    for (int i = 0; i < v->nprocesses; i++)
        v->processes[i].job = v->processes[i].reader.head.pid;
    while (changed) {
        changed = false;
        for (int i = 0; i < v->ncomms; i++) {
            const ras_comm_t *c = &v->comms[i];
            int lowest = INT32_MAX;
            for (int r = 0; r < c->nranks; r++)
                if (v->processes[c->ranks[r].process].job < lowest)
                    lowest = v->processes[c->ranks[r].process].job;
            for (int r = 0; r < c->nranks; r++) {
                changed |= v->processes[c->ranks[r].process].job != lowest;
                v->processes[c->ranks[r].process].job = lowest;
            }
        }
    }
}

bool ras_look(ras_view_t *v, const ras_options_t *options)
{
    rd_origin_t here;

    rd_origin_find(&here);
    forget_comms(v);
    for (int i = 0; i < v->nprocesses; i++) {
        const rd_reader_t *reader = &v->processes[i].reader;
        ras_rank_t rank = {.process = i};
        look_at_process(&v->processes[i], &here);
        for (rank.entry = 0; rank.entry < rd_reader_comms(reader); rank.entry++)
            if (rd_reader_comm(reader, rank.entry, &rank.comm) && !add_rank(v, &rank))
                return false;
    }
    find_jobs(v);
    drop_others(v, options->job);
    return true;
}

void ras_free(ras_view_t *v)
{
    forget_comms(v);
    for (int i = 0; i < v->nprocesses; i++)
        rd_reader_close(&v->processes[i].reader);
    free(v->processes);
    memset(v, 0, sizeof *v);
}
