/* See view.h. */
#include "monitor/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/origin.h"
#include "monitor/ticks.h"

/* ---- records ---- */

bool rd_view_add(rd_view_t *v, int fd)
{
    rd_reader_t reader;
    const char *why = rd_reader_open(&reader, fd);

    for (int i = 0; !why && i < v->nprocesses; i++) {
        if (v->processes[i].reader.dev != reader.dev || v->processes[i].reader.ino != reader.ino)
            continue;
        bool stale = v->processes[i].stale;
        v->processes[i].stale = false;
        rd_reader_close(stale ? &v->processes[i].reader : &reader);
        if (stale)
            v->processes[i].reader = reader;
        return true;
    }
    if (why) {
        v->unreadable++;
        snprintf(v->why, sizeof v->why, "%s", why);
        return true;
    }
    rd_view_process_t *more = realloc(v->processes, (size_t)(v->nprocesses + 1) * sizeof *more);
    if (!more) {
        rd_reader_close(&reader);
        return false;
    }
    v->processes = more;
    v->processes[v->nprocesses++] = (rd_view_process_t){.reader = reader, .state = RD_VIEW_ELSEWHERE};
    return true;
}

bool rd_view_has(const rd_view_t *v, uint64_t dev, uint64_t ino)
{
    for (int i = 0; i < v->nprocesses; i++)
        if (v->processes[i].reader.dev == dev && v->processes[i].reader.ino == ino)
            return !v->processes[i].stale;
    return false;
}

const char *rd_view_add_past(rd_view_t *v, char *base, size_t bytes, const rd_view_process_t *then)
{
    rd_view_process_t process = *then;
    rd_view_process_t *more = realloc(v->processes, (size_t)(v->nprocesses + 1) * sizeof *more);

    if (more)
        v->processes = more;
    const char *why = more ? rd_reader_memory(&process.reader, base, bytes) : "there is no memory for it";
    if (why) {
        free(base);
        return why;
    }
    process.past = true;
    v->processes[v->nprocesses++] = process;
    return NULL;
}

bool rd_view_stale(rd_view_t *v)
{
    bool any = false;

    for (int i = 0; i < v->nprocesses; i++)
        any |= v->processes[i].stale = !v->processes[i].reader.mapped && !v->processes[i].past;
    return any;
}

/* ---- processes ---- */

/* For what part of the time since that look has it lacked a core? The kernel counts a wait when it is over; what is
 * ready to run now, and has hardly run, has waited. */
static double queued_since(const rd_view_process_t *p, const rd_view_cores_t *then)
{
    const rd_view_cores_t *now = &p->cores;
    double ns = (double)(now->looked_ns - then->looked_ns);

    if (!then->looked_ns || now->looked_ns <= then->looked_ns)
        return 0;
    double counted = now->queued_ns > then->queued_ns ? (double)(now->queued_ns - then->queued_ns) / ns : 0;
    double idle = p->state == 'R' && now->ran_ns >= then->ran_ns && then->ran_ns
                      ? 1 - (double)(now->ran_ns - then->ran_ns) / ns
                      : 0;
    return counted > idle ? counted : idle;
}

static void look_at_queue(rd_view_process_t *p, const char *number)
{
    const rd_view_cores_t then = p->cores;

    p->cores.queued_ns = rd_process_queued(number, &p->cores.ran_ns);
    p->cores.looked_ns = (uint64_t)rd_clock_ns();
    p->queued = queued_since(p, &then);
}

/* Reads the state and the time of a process, unless its number is another process's now. */
static void look_at_process(rd_view_process_t *p, const rd_origin_t *here)
{
    const rd_monitor_head_t *head = &p->reader.head;
    rd_process_stat_t now;
    char number[16];

    p->state = RD_VIEW_ELSEWHERE;
    p->ticks_before = p->ticks;
    if (head->pid_space != here->pid_space || !here->pid_space || strcmp(here->host, head->host) != 0 ||
        (geteuid() != 0 && (uid_t)head->uid != geteuid())) /* /proc may hide other users' processes */
        return;
    p->state = RD_VIEW_ENDED;
    if (here->boot[0] && head->boot[0] && strcmp(here->boot, head->boot) != 0) /* the host was started again since */
        return;
    snprintf(number, sizeof number, "%d", head->pid);
    if (!rd_process_stat(number, &now)) {
        p->state = errno == ENOENT || errno == ESRCH || errno == 0 ? RD_VIEW_ENDED : RD_VIEW_ELSEWHERE;
        return;
    }
    if (now.started != head->started)
        return;
    /* A process whose first thread has ended looks like a zombie, and may go on. */
    p->state = now.state == 'Z' && now.threads > 1 ? RD_VIEW_ELSEWHERE : now.state;
    p->ticks = now.user_system;
    look_at_queue(p, number);
}

/* Both clocks count from the host's start; containers of one host may have other names. */
static void look_at_clock(rd_view_process_t *p, const rd_origin_t *here)
{
    const rd_monitor_head_t *head = &p->reader.head;
    bool same = here->boot[0] && strcmp(here->boot, head->boot) == 0;

    p->now_ns = same ? (uint64_t)rd_clock_ns() : 0;
    p->now_ticks = same && rd_ticks_known(head->clock) ? rd_ticks_now((rd_ticks_t)head->clock) : 0;
}

/* Those of dumps have been looked at. */
static void look_at_processes(rd_view_t *v)
{
    rd_origin_t here = {0};
    bool found = false;

    for (int i = 0; i < v->nprocesses; i++) {
        if (v->processes[i].past)
            continue;
        if (!found)
            rd_origin_find(&here);
        found = true;
        look_at_process(&v->processes[i], &here);
        look_at_clock(&v->processes[i], &here);
    }
}

/* ---- communicators ---- */

const rd_view_comm_t *rd_view_comm_of(const rd_view_comm_t *comms, int ncomms, uint64_t id)
{
    for (int i = 0; i < ncomms; i++)
        if (comms[i].id == id)
            return &comms[i];
    return NULL;
}

static rd_view_comm_t *comm_of(rd_view_t *v, uint64_t id)
{
    for (int i = 0; i < v->ncomms; i++)
        if (v->comms[i].id == id)
            return &v->comms[i];
    rd_view_comm_t *more = realloc(v->comms, (size_t)(v->ncomms + 1) * sizeof *more);
    if (!more)
        return NULL;
    v->comms = more;
    v->comms[v->ncomms] = (rd_view_comm_t){.id = id};
    return &v->comms[v->ncomms++];
}

static bool add_rank(rd_view_t *v, const rd_view_rank_t *rank)
{
    rd_view_comm_t *c = comm_of(v, rank->comm.id);
    rd_view_rank_t *more = c ? realloc(c->ranks, (size_t)(c->nranks + 1) * sizeof *more) : NULL;

    if (!more)
        return false;
    c->ranks = more;
    int at = c->nranks++;
    for (; at > 0 && c->ranks[at - 1].comm.rank > rank->comm.rank; at--)
        c->ranks[at] = c->ranks[at - 1];
    c->ranks[at] = *rank;
    return true;
}

static void free_comms(rd_view_comm_t *comms, int ncomms)
{
    for (int i = 0; i < ncomms; i++)
        free(comms[i].ranks);
    free(comms);
}

/* The last look is the one before from now on. */
static void turn_page(rd_view_t *v)
{
    free_comms(v->before, v->nbefore);
    v->before = v->comms;
    v->nbefore = v->ncomms;
    v->before_ms = v->looked_ms;
    v->looked_ms = rd_clock_ms();
    v->comms = NULL;
    v->ncomms = 0;
}

/* A communicator that all have ended is history. */
static bool is_over(const rd_view_comm_t *c)
{
    for (int i = 0; i < c->nranks; i++)
        if (c->ranks[i].comm.state != RD_MONITOR_ENDED)
            return false;
    return true;
}

static void drop_others(rd_view_t *v, int job)
{
    int kept = 0;

    for (int i = 0; i < v->ncomms; i++) {
        rd_view_comm_t *c = &v->comms[i];
        if (is_over(c) || (job && v->processes[c->ranks[0].process].job != job))
            free(c->ranks);
        else
            v->comms[kept++] = *c;
    }
    v->ncomms = kept;
}

/* Processes that share a communicator are of one job; so are those that share one with any of them. */
static void find_jobs(rd_view_t *v)
{
    bool changed = true;

    for (int i = 0; i < v->nprocesses; i++)
        v->processes[i].job = v->processes[i].reader.head.pid;
    while (changed) {
        changed = false;
        for (int i = 0; i < v->ncomms; i++) {
            const rd_view_comm_t *c = &v->comms[i];
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

int rd_view_job(const rd_view_t *v, int pid)
{
    int job = pid;

    for (int i = 0; i < v->nprocesses; i++) {
        if (v->processes[i].job == pid)
            return pid;
        if (v->processes[i].reader.head.pid == pid)
            job = v->processes[i].job;
    }
    return job;
}

/* Returns how many communicators are left. */
static int drop_ranks(rd_view_comm_t *comms, int ncomms, int process)
{
    int kept = 0;

    for (int i = 0; i < ncomms; i++) {
        rd_view_comm_t c = comms[i];
        int ranks = 0;
        for (int r = 0; r < c.nranks; r++) {
            if (c.ranks[r].process == process)
                continue;
            c.ranks[ranks] = c.ranks[r];
            c.ranks[ranks++].process -= c.ranks[r].process > process;
        }
        c.nranks = ranks;
        if (ranks)
            comms[kept++] = c;
        else
            free(c.ranks);
    }
    return kept;
}

void rd_view_drop(rd_view_t *v, int process)
{
    rd_reader_close(&v->processes[process].reader);
    free(v->processes[process].stacks);
    v->nprocesses--;
    memmove(&v->processes[process], &v->processes[process + 1],
            (size_t)(v->nprocesses - process) * sizeof *v->processes);
    v->ncomms = drop_ranks(v->comms, v->ncomms, process);
    v->nbefore = drop_ranks(v->before, v->nbefore, process);
}

void rd_view_drop_stale(rd_view_t *v)
{
    for (int i = v->nprocesses - 1; i >= 0; i--)
        if (v->processes[i].stale)
            rd_view_drop(v, i);
}

bool rd_view_look(rd_view_t *v, int job)
{
    look_at_processes(v);
    turn_page(v);
    for (int i = 0; i < v->nprocesses; i++) {
        const rd_reader_t *reader = &v->processes[i].reader;
        rd_view_rank_t rank = {.process = i};
        for (rank.entry = 0; rank.entry < rd_reader_comms(reader); rank.entry++)
            if (rd_reader_comm(reader, rank.entry, &rank.comm) && !add_rank(v, &rank))
                return false;
    }
    find_jobs(v);
    drop_others(v, rd_view_job(v, job));
    return true;
}

/* Finds the process of the view that has the same record; -1: there is none. */
static int same_process(const rd_view_t *v, const rd_reader_t *reader)
{
    for (int i = 0; i < v->nprocesses; i++)
        if (v->processes[i].reader.dev == reader->dev && v->processes[i].reader.ino == reader->ino)
            return i;
    return -1;
}

void rd_view_after(rd_view_t *v, rd_view_t *older)
{
    free_comms(v->before, v->nbefore);
    v->before = older->comms;
    v->nbefore = older->ncomms;
    v->before_ms = older->looked_ms;
    older->comms = NULL;
    older->ncomms = 0;
    for (int i = 0; i < v->nbefore; i++) {
        rd_view_comm_t *c = &v->before[i];
        int kept = 0;
        for (int k = 0; k < c->nranks; k++) {
            c->ranks[kept] = c->ranks[k];
            c->ranks[kept].process = same_process(v, &older->processes[c->ranks[k].process].reader);
            kept += c->ranks[kept].process >= 0;
        }
        c->nranks = kept;
    }
    for (int i = 0; i < older->nprocesses; i++) {
        const rd_view_process_t *was = &older->processes[i];
        int at = same_process(v, &was->reader);
        if (at < 0)
            continue;
        v->processes[at].ticks_before = was->ticks;
        v->processes[at].queued = queued_since(&v->processes[at], &was->cores);
    }
}

void rd_view_free(rd_view_t *v)
{
    free_comms(v->comms, v->ncomms);
    free_comms(v->before, v->nbefore);
    for (int i = 0; i < v->nprocesses; i++) {
        rd_reader_close(&v->processes[i].reader);
        free(v->processes[i].stacks);
    }
    free(v->processes);
    memset(v, 0, sizeof *v);
}
