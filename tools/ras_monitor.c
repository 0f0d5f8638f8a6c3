/* rondo-ras monitor: what happens to jobs, a line each. It looks again and again, and compares. The records that it has
 * found stay mapped, so what a process did last, and that it has ended its communicators, is seen after its end, too;
 * and a communicator that came and went between two looks is still in the table of its process. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/wait.h"
#include "monitor/origin.h"
#include "ras.h"
#include "ras_event.h"

#define STALL_S 10

/* A rank of a communicator, as it was at the last look. */
typedef struct member {
    int rank;
    int state; /* rd_monitor_state_t */
    bool dead;
} member_t;

typedef struct followed {
    uint64_t id;
    char name[RD_MONITOR_NAME];
    int job;
    member_t *members;
    int nmembers;
    bool here;               /* it was found at this look */
    bool broken, over;       /* a rank has died or failed; all that are here have ended it */
    bool removed;            /* a file that had a rank is no more there */
    int failed, failed_with; /* at this look: how many ranks, and the result of the first one */
    int first_failed;
    uint64_t failed_ns;                 /* when that was; UINT64_MAX: unknown */
    char sentence[RD_MONITOR_SENTENCE]; /* its error; "": unknown */
    uint64_t collectives, ended_ns;
    int stalled, blamed; /* the verdict that was said; RD_VERDICT_NONE: none was. Its rank */
    int64_t since_ms;    /* when it was */
} followed_t;

typedef struct process {
    int pid, job;
    uint64_t started;
    bool gone, died, seen; /* seen: its record, at this look */
} process_t;

typedef struct follow {
    rd_view_t *view;
    const ras_options_t *options;
    followed_t *comms;
    int ncomms;
    process_t *processes;
    int nprocesses;
    bool json, first, poor;
    int worst;
    int64_t unix_ns, mono_ns; /* of this look */
} follow_t;

/* ---- lines ---- */

/* Returns when it happened, by the wall clock; ns: CLOCK_MONOTONIC of this host, 0: now. */
static int64_t when(const follow_t *f, uint64_t ns)
{
    return ns && (int64_t)ns <= f->mono_ns ? f->unix_ns - (f->mono_ns - (int64_t)ns) : f->unix_ns;
}

__attribute__((format(printf, 3, 4))) static void say(const follow_t *f, ras_event_t event, const char *format, ...)
{
    char text[2 * RD_VERDICT_BYTES + 64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    event.text = text;
    if (!event.unix_ns)
        event.unix_ns = f->unix_ns;
    ras_event_print(&event, f->json);
}

static ras_event_t of_comm(const followed_t *c, const char *name, int status)
{
    return (ras_event_t){
        .name = name, .job = c->job, .communicator = c->name, .id = c->id, .rank = -1, .status = status};
}

static ras_event_t of_job(int job, const char *name, int status)
{
    return (ras_event_t){.name = name, .job = job, .rank = -1, .status = status};
}

static void note(follow_t *f, int status)
{
    f->worst = rd_verdict_worse(status, f->worst);
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* ---- processes ---- */

static process_t *process_of(const follow_t *f, const rd_view_process_t *p)
{
    for (int i = 0; i < f->nprocesses; i++)
        if (f->processes[i].pid == p->reader.head.pid && f->processes[i].started == p->reader.head.started)
            return &f->processes[i];
    return NULL;
}

/* Is it of the job that is followed? One that has come to it is. */
static bool is_mine(const follow_t *f, const rd_view_process_t *p)
{
    if (!f->options->job || process_of(f, p) || (f->first && p->job == f->options->job))
        return true;
    for (int i = 0; i < f->view->nprocesses; i++)
        if (f->view->processes[i].job == p->job && process_of(f, &f->view->processes[i]))
            return true;
    return false;
}

/* Have all communicators of a record been ended? */
static bool is_over(const rd_reader_t *reader)
{
    rd_monitor_comm_t m;

    for (int e = 0; e < rd_reader_comms(reader); e++)
        if (rd_reader_comm(reader, e, &m) && m.state != RD_MONITOR_ENDED)
            return false;
    return true;
}

static bool has_gone(const rd_view_process_t *p)
{
    return p->state == RD_VIEW_ENDED || p->state == 'Z' || p->state == 'X' ||
           (p->state == RD_VIEW_ELSEWHERE && is_over(&p->reader));
}

static void follow_process(follow_t *f, const rd_view_process_t *p)
{
    process_t *mine = process_of(f, p);

    if (!mine) {
        process_t *more = realloc(f->processes, (size_t)(f->nprocesses + 1) * sizeof *more);
        f->poor |= !more;
        if (!more)
            return;
        f->processes = more;
        mine = &f->processes[f->nprocesses++];
        *mine = (process_t){.pid = p->reader.head.pid, .started = p->reader.head.started};
    }
    mine->gone = has_gone(p);
    mine->seen = true;
    mine->job = p->job;
}

/* One whose record is no more there may go on, without communicators. */
static void look_after(process_t *p)
{
    rd_process_stat_t now;
    char number[16];

    snprintf(number, sizeof number, "%d", p->pid);
    p->gone = !rd_process_stat(number, &now) || now.started != p->started || rd_process_over(&now);
}

static int processes_of(const follow_t *f, int job)
{
    int n = 0;

    for (int i = 0; i < f->nprocesses; i++)
        n += f->processes[i].job == job;
    return n;
}

static void say_found(const follow_t *f, const process_t *p)
{
    int n = processes_of(f, p->job);

    for (int i = 0; i < f->view->nprocesses; i++) {
        const rd_monitor_head_t *h = &f->view->processes[i].reader.head;
        if (process_of(f, &f->view->processes[i]) != p)
            continue;
        say(f, of_job(p->job, "job_found", 0), "%s, %d process%s on %s", h->program, n, n == 1 ? "" : "es", h->host);
        return;
    }
}

static void follow_processes(follow_t *f)
{
    int known = f->nprocesses;

    for (int i = 0; i < known; i++)
        f->processes[i].seen = false;
    for (int i = 0; i < f->view->nprocesses && !f->poor; i++)
        if (ras_has_comms(&f->view->processes[i].reader) && is_mine(f, &f->view->processes[i]))
            follow_process(f, &f->view->processes[i]);
    for (int i = 0; i < known; i++)
        if (!f->processes[i].seen)
            look_after(&f->processes[i]);
    for (int i = known; i < f->nprocesses; i++) {
        bool is_new = true;
        for (int k = 0; k < i; k++)
            is_new &= f->processes[k].job != f->processes[i].job;
        if (is_new)
            say_found(f, &f->processes[i]);
    }
}

/* ---- communicators ---- */

static followed_t *comm_of(const follow_t *f, uint64_t id)
{
    for (int i = 0; i < f->ncomms; i++)
        if (f->comms[i].id == id)
            return &f->comms[i];
    return NULL;
}

static followed_t *follow_comm(follow_t *f, const rd_monitor_comm_t *m, int job)
{
    followed_t *c = comm_of(f, m->id);
    followed_t *more = c ? f->comms : realloc(f->comms, (size_t)(f->ncomms + 1) * sizeof *more);

    f->poor |= !more;
    if (!more || c)
        return c;
    f->comms = more;
    c = &f->comms[f->ncomms++];
    *c = (followed_t){.id = m->id, .job = job};
    memcpy(c->name, m->name, sizeof c->name);
    if (f->first && m->state == RD_MONITOR_ENDED) { /* history, unless another rank has it still */
        c->over = true;
        return c;
    }
    ras_event_t event = of_comm(c, "communicator_made", 0);
    event.unix_ns = when(f, m->made_ns);
    say(f, event, "made: %d rank%s on %d node%s, %d on this one, %s", m->size, plural(m->size), m->nodes,
        plural(m->nodes), m->locals, m->device >= 0 ? "CUDA" : "host memory");
    return c;
}

static member_t *member_of(follow_t *f, followed_t *c, int rank)
{
    for (int i = 0; i < c->nmembers; i++)
        if (c->members[i].rank == rank)
            return &c->members[i];
    member_t *more = realloc(c->members, (size_t)(c->nmembers + 1) * sizeof *more);
    f->poor |= !more;
    if (!more)
        return NULL;
    c->members = more;
    c->members[c->nmembers] = (member_t){.rank = rank, .state = RD_MONITOR_ALIVE};
    return &c->members[c->nmembers++];
}

static void say_died(follow_t *f, followed_t *c, const rd_view_rank_t *r)
{
    const rd_view_process_t *p = &f->view->processes[r->process];
    bool failed = r->comm.state == RD_MONITOR_FAILED;
    ras_event_t event = of_comm(c, "rank_died", failed ? 0 : RD_VERDICT_BLAMED);
    char who[128], where[400];

    event.rank = r->comm.rank;
    event.pid = p->reader.head.pid;
    event.host = p->reader.head.host;
    rd_view_rank_text(f->view, r, who, sizeof who);
    rd_view_where_text(f->view, r, false, where, sizeof where);
    say(f, event, failed ? "%s has ended after the failure (%s)" : "%s has died (%s)", who, where);
    note(f, event.status);
    process_t *mine = process_of(f, p);
    if (mine && !failed)
        mine->died = true;
}

/* Of those that fail the first one is kept, and what it has said. */
static void note_failure(const follow_t *f, followed_t *c, const rd_view_rank_t *r)
{
    const rd_view_process_t *p = &f->view->processes[r->process];
    rd_monitor_failure_t failure;
    bool known = rd_reader_failure(&p->reader, r->comm.id, r->comm.rank, &failure);
    uint64_t ns = known ? failure.failed_ns : UINT64_MAX;

    if (c->failed++ > 0 && ns >= c->failed_ns)
        return;
    c->first_failed = r->comm.rank;
    c->failed_with = r->comm.result;
    c->failed_ns = ns;
    snprintf(c->sentence, sizeof c->sentence, "%s", known ? failure.text : "");
}

/* Compares a rank with what it was. */
static void follow_rank(follow_t *f, followed_t *c, const rd_view_rank_t *r)
{
    member_t *m = member_of(f, c, r->comm.rank);

    if (!m)
        return;
    c->here = true;
    c->job = f->view->processes[r->process].job;
    c->over &= r->comm.state == RD_MONITOR_ENDED;
    if (r->comm.calls[RD_TRACK_COLLECTIVE].begun > c->collectives)
        c->collectives = r->comm.calls[RD_TRACK_COLLECTIVE].begun;
    if (r->comm.state == RD_MONITOR_ENDED && r->comm.ended_ns > c->ended_ns)
        c->ended_ns = r->comm.ended_ns;
    if (r->comm.state == RD_MONITOR_FAILED && m->state != RD_MONITOR_FAILED)
        note_failure(f, c, r);
    m->state = r->comm.state;
    if (f->view->processes[r->process].stale) { /* with the last communicator the file is removed, too */
        c->removed = true;
        m->state = RD_MONITOR_ENDED;
    }
    if (!m->dead && m->state != RD_MONITOR_ENDED && rd_view_gone(f->view, r)) {
        m->dead = true;
        say_died(f, c, r);
    }
}

/* What has become of a communicator with the ranks that this look has seen. */
static void conclude(follow_t *f, followed_t *c)
{
    int ended = 0, dead = 0;

    for (int i = 0; i < c->nmembers; i++) {
        ended += c->members[i].state == RD_MONITOR_ENDED;
        dead += c->members[i].dead;
        c->broken |= c->members[i].dead || c->members[i].state == RD_MONITOR_FAILED;
    }
    if (c->failed) {
        ras_event_t event = of_comm(c, "failed", RD_VERDICT_BLAMED);
        event.rank = c->first_failed;
        say(f, event, "has failed on %d rank%s, first known of rank %d: %s%s%s", c->failed, plural(c->failed),
            c->first_failed, rondo_result_string((rondo_result_t)c->failed_with), c->sentence[0] ? ": " : "",
            c->sentence);
        note(f, RD_VERDICT_BLAMED);
    }
    c->failed = 0;
    if (c->over || (c->here && ended + dead < c->nmembers))
        return;
    c->over = true;
    ras_event_t event = of_comm(c, "communicator_ended", 0);
    event.unix_ns = when(f, c->ended_ns);
    if (c->removed)
        say(f, event, "ended, or its records were removed; they had %llu collectives",
            (unsigned long long)c->collectives);
    else if (dead < c->nmembers)
        say(f, event, "ended by %d rank%s here, after %llu collectives", c->nmembers - dead, plural(c->nmembers - dead),
            (unsigned long long)c->collectives);
}

static void follow_comms(follow_t *f)
{
    int kept = 0;

    for (int i = 0; i < f->ncomms; i++)
        f->comms[i].here = false;
    for (int i = 0; i < f->view->nprocesses && !f->poor; i++) {
        const rd_reader_t *reader = &f->view->processes[i].reader;
        rd_view_rank_t r = {.process = i};
        if (!process_of(f, &f->view->processes[i]))
            continue;
        for (r.entry = 0; r.entry < rd_reader_comms(reader) && !f->poor; r.entry++) {
            followed_t *c =
                rd_reader_comm(reader, r.entry, &r.comm) ? follow_comm(f, &r.comm, f->view->processes[i].job) : NULL;
            if (c)
                follow_rank(f, c, &r);
        }
    }
    for (int i = 0; i < f->ncomms; i++) {
        conclude(f, &f->comms[i]);
        if (f->comms[i].here)
            f->comms[kept++] = f->comms[i];
        else /* the tables have others in its place */
            free(f->comms[i].members);
    }
    f->ncomms = kept;
}

/* ---- calls that are held up ---- */

static double longest_wait(const follow_t *f, const rd_view_comm_t *c)
{
    double longest = 0;

    for (int i = 0; i < c->nranks; i++) {
        double seconds = rd_view_waits_for(&c->ranks[i].comm) >= 0 ? rd_view_waits_since(f->view, &c->ranks[i]) : 0;
        longest = seconds > longest ? seconds : longest;
    }
    return longest;
}

static void say_stalled(follow_t *f, followed_t *w, const rd_monitor_verdict_t *v, double waits)
{
    ras_event_t event = of_comm(w, "stalled", v->status);

    event.rank = v->rank;
    if (waits > 0)
        say(f, event, "a call waits for %.1f s: %s%s%s", waits, v->text, v->also[0] ? "; also: " : "", v->also);
    else
        say(f, event, "%s%s%s", v->text, v->also[0] ? "; also: " : "", v->also);
    note(f, v->status);
    if (w->stalled == RD_VERDICT_NONE)
        w->since_ms = rd_clock_ms();
    w->stalled = v->status;
    w->blamed = v->rank;
}

static void judge(follow_t *f, const rd_view_comm_t *c, followed_t *w)
{
    double limit = f->options->stall >= 0 ? f->options->stall : STALL_S, waits = longest_wait(f, c);
    rd_monitor_verdict_t v;

    rd_verdict_judge(f->view, c, &v);
    if (v.status == RD_VERDICT_SLOW) { /* what stands still is told here; of that nothing is known but `also` */
        v.status = v.also[0] ? RD_VERDICT_UNKNOWN : RD_VERDICT_NONE;
        v.rank = -1;
        memcpy(v.text, v.also, sizeof v.text < sizeof v.also ? sizeof v.text : sizeof v.also);
    }
    if (v.status == RD_VERDICT_NONE && w->stalled != RD_VERDICT_NONE) {
        say(f, of_comm(w, "goes_on", 0), "goes on, after %.1f s", (double)(rd_clock_ms() - w->since_ms) / 1000);
        w->stalled = RD_VERDICT_NONE;
    }
    if (v.status == RD_VERDICT_NONE || (v.status != RD_VERDICT_BLAMED && waits < limit))
        return;
    if (v.status != w->stalled || v.rank != w->blamed)
        say_stalled(f, w, &v, waits);
}

/* One look shows who waits; that nobody has moved shows the one before it. What has failed has been said. */
static void judge_all(follow_t *f)
{
    for (int i = 0; i < f->view->ncomms; i++) {
        const rd_view_comm_t *c = &f->view->comms[i];
        followed_t *w = comm_of(f, c->id);
        if (w && !w->broken && !w->over && rd_view_comm_of(f->view->before, f->view->nbefore, c->id))
            judge(f, c, w);
    }
}

/* ---- ends ---- */

/* Forgets the records of a job, or, of 0, those whose process has another one by now. */
static void drop_records(follow_t *f, int job)
{
    rd_view_t *v = f->view;

    for (int i = v->nprocesses - 1; i >= 0; i--) {
        const rd_monitor_head_t *h = &v->processes[i].reader.head;
        bool older = false;
        for (int k = 0; k < v->nprocesses && !job; k++)
            older |= v->processes[k].reader.head.pid == h->pid && v->processes[k].reader.head.started == h->started &&
                     v->processes[k].reader.head.made_ns > h->made_ns;
        if (job ? v->processes[i].job == job : older && is_over(&v->processes[i].reader))
            rd_view_drop(v, i);
    }
}

static void end_job(follow_t *f, int job)
{
    int kept = 0, n = 0, died = 0;

    for (int i = 0; i < f->nprocesses; i++) {
        if (f->processes[i].job != job) {
            f->processes[kept++] = f->processes[i];
            continue;
        }
        n++;
        died += f->processes[i].died;
    }
    f->nprocesses = kept;
    say(f, of_job(job, "job_ended", died ? RD_VERDICT_BLAMED : 0), "has ended: %d process%s, of which %d died in it", n,
        n == 1 ? "" : "es", died);
    drop_records(f, job);
}

/* A job has ended when all its processes have. */
static void end_jobs(follow_t *f)
{
    for (int i = 0; i < f->nprocesses; i++) {
        bool gone = true;
        for (int k = 0; k < f->nprocesses; k++)
            gone &= f->processes[k].gone || f->processes[k].job != f->processes[i].job;
        if (gone) {
            end_job(f, f->processes[i].job);
            i = -1; /* the list is another one */
        }
    }
}

static void look(follow_t *f)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    f->unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    f->mono_ns = rd_clock_ns();
    follow_processes(f);
    follow_comms(f);
    rd_view_drop_stale(f->view); /* a file that is no more there says nothing of now */
    judge_all(f);
    end_jobs(f);
    drop_records(f, 0);
    f->first = false;
    fflush(stdout);
}

static bool is_known(const char *format)
{
    return strcmp(format, "text") == 0 || strcmp(format, "json") == 0;
}

int ras_monitor(rd_view_t *view, const ras_options_t *given)
{
    ras_options_t own = *given, *options = &own;
    const char *format = options->format ? options->format : options->json ? "json" : "text";
    follow_t f = {.view = view, .options = options, .first = true, .json = strcmp(format, "json") == 0};
    double pause = options->seconds > 0 ? options->seconds : 1;

    if (!is_known(format) || pause < RD_VERDICT_MS / 1000.0) {
        fprintf(stderr, "rondo-ras: monitor has the formats text and json, and looks each 0.7 s at most\n");
        return RAS_USAGE;
    }
    ras_on_interrupt();
    const int poor = options->job ? ras_await_job(view, options) : 0;
    if (poor)
        return poor;
    for (int n = 0; !f.poor && !ferror(stdout) && !ras_interrupted(); n++) {
        look(&f);
        if ((options->job && !f.nprocesses) || (options->count && n + 1 >= options->count))
            break;
        ras_pause(pause);
        f.poor |= !ras_interrupted() && !ras_find_more(view, options);
    }
    for (int i = 0; i < f.ncomms; i++)
        free(f.comms[i].members);
    free(f.comms);
    free(f.processes);
    if (f.poor)
        fprintf(stderr, "rondo-ras: no memory\n");
    return f.poor ? RAS_NOTHING : f.worst;
}
