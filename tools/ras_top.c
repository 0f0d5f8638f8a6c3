/* rondo-ras top: a page each second, by which one sees where every rank is and how much it does. Plain pages where
 * nobody looks: when the output is no terminal. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/wait.h"
#include "monitor/periods.h"
#include "ras.h"

#define BAR 20
#define PIDS 65    /* columns of a terminal that has the process numbers, */
#define NUMBERS 56 /* and the rates: else there is no room behind them for the longest name of a call */
#define LEAST 7    /* lines of a communicator, its first rank, and what is left out */

/* What a rank had done by the last page. */
typedef struct past {
    uint64_t id, calls, bytes;
    int rank;
} past_t;

typedef struct pages {
    past_t *past;
    int npast;
    int64_t ns; /* when that was */
    bool live;  /* a terminal */
    int width, height, bar;
} pages_t;

static const past_t *past_of(const pages_t *p, uint64_t id, int rank)
{
    for (int i = 0; i < p->npast; i++)
        if (p->past[i].id == id && p->past[i].rank == rank)
            return &p->past[i];
    return NULL;
}

static void remember(pages_t *p, const rd_view_t *view)
{
    int n = 0;

    for (int i = 0; i < view->ncomms; i++)
        n += view->comms[i].nranks;
    free(p->past);
    p->past = calloc((size_t)n + 1, sizeof *p->past);
    p->npast = 0;
    p->ns = rd_clock_ns();
    for (int i = 0; p->past && i < view->ncomms; i++)
        for (int r = 0; r < view->comms[i].nranks; r++) {
            const rd_view_rank_t *rank = &view->comms[i].ranks[r];
            p->past[p->npast++] =
                (past_t){view->comms[i].id, rd_view_begun(&rank->comm), rd_view_bytes(view, rank), rank->comm.rank};
        }
}

static double rate(uint64_t now, uint64_t then, double seconds)
{
    return now > then && seconds > 0 ? (double)(now - then) / seconds : 0;
}

static double calls_each_second(const pages_t *p, const rd_view_rank_t *r, double seconds)
{
    const past_t *past = past_of(p, r->comm.id, r->comm.rank);

    return past ? rate(rd_view_begun(&r->comm), past->calls, seconds) : 0;
}

/* Prints what of a text has room, and where that is not all, a sign that it goes on: in a file all has. */
static void print_cut(const char *text, int room)
{
    int n = (int)strlen(text), columns = 0, kept = 0;

    for (int i = 0; i < n; i++) { /* bytes that go on with a character of UTF-8 take no column */
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (columns < room)
            kept = i + 1;
    }
    if (columns <= room)
        fputs(text, stdout);
    else if (room > 0)
        printf("%.*s\u2026", kept, text);
}

__attribute__((format(printf, 2, 3))) static void print_line(const pages_t *p, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_cut(text, p->width);
    putchar('\n');
}

static void print_bar(const pages_t *p, double part)
{
    int full = part > 0 ? (int)(part * p->bar + 0.5) : 0;

    for (int i = 0; i < p->bar; i++)
        fputs(p->live ? i < full ? "\u2588" : "\u2591" : i < full ? "#" : ".", stdout);
    fputs(p->bar ? "  " : "", stdout);
}

/* The part of the last eight seconds that a rank has waited in calls on host memory; below 0: it is not known. */
static double waited(const rd_view_t *view, const rd_view_rank_t *r)
{
    const rd_view_process_t *process = &view->processes[r->process];
    const rd_ago_t lately = {.longs = false, .from = 8, .to = 1};
    int64_t now = process->now_ns ? (int64_t)(process->now_ns / 1000000) : rd_clock_ms();
    int64_t ms = rd_span_ms(lately, &r->comm, now);
    rd_waits_t w;

    if (r->comm.device >= 0 || ms <= 0 || r->comm.state != RD_MONITOR_ALIVE || rd_view_gone(view, r))
        return -1;
    rd_periods_read(&r->comm, lately, now, &w);
    return w.ms + w.message_ms < (uint64_t)ms ? (double)(w.ms + w.message_ms) / (double)ms : 1;
}

/* What a narrow terminal has no room for is left out; a rank and where it is are always there. */
static int print_numbers(const pages_t *p, const rd_view_t *view, const rd_view_rank_t *r, double seconds)
{
    const past_t *past = past_of(p, r->comm.id, r->comm.rank);
    double bytes = past ? rate(rd_view_bytes(view, r), past->bytes, seconds) : 0, part = waited(view, r);
    int n = printf("%4d ", r->comm.rank);

    if (p->width >= PIDS)
        n += printf("%8d ", view->processes[r->process].reader.head.pid);
    if (p->width >= NUMBERS)
        n += printf("%8.0f %7.3f ", calls_each_second(p, r, seconds), bytes / 1e9);
    if (p->width >= NUMBERS && part >= 0)
        n += printf("%5.0f%% ", 100 * part);
    else if (p->width >= NUMBERS)
        n += printf("%6s ", "-");
    return n;
}

static void print_titles(const pages_t *p)
{
    printf("%4s ", "rank");
    if (p->width >= PIDS)
        printf("%8s ", "pid");
    if (p->width >= NUMBERS)
        printf("%8s %7s %6s ", "calls/s", "GB/s", "waits");
    if (p->bar)
        printf("%-*s  ", p->bar, "pace");
    printf("where\n");
}

#define SHORT 110 /* columns, in which a whole sentence of where a rank is has no room */

/* "in allreduce 42, for rank 1 since 2.1 s" */
static void where_in_short(const rd_view_t *view, const rd_view_rank_t *r, char *text, size_t bytes)
{
    const int inside = rd_view_inside(&r->comm), track = inside < 0 ? RD_TRACK_COLLECTIVE : inside;
    const int peer = rd_view_waits_for(&r->comm);
    const char *what = rd_view_gone(view, r)                ? "dead, "
                       : rd_view_stopped(view, r)           ? "stopped, "
                       : r->comm.state == RD_MONITOR_FAILED ? "failed, "
                       : r->comm.state == RD_MONITOR_ENDED  ? "has left, "
                                                            : "";
    rd_monitor_event_t event;
    char wait[64] = "";

    if (peer >= 0 && !rd_view_gone(view, r))
        snprintf(wait, sizeof wait, ", for rank %d since %.1f s", peer, rd_view_waits_since(view, r));
    bool known = rd_reader_last(&view->processes[r->process].reader, &r->comm, (rd_track_t)track, &event);
    snprintf(text, bytes, "%s%s %s %llu%s", what, inside < 0 ? "after" : "in",
             known ? rd_view_kind_name(event.kind) : "call", (unsigned long long)r->comm.calls[track].begun, wait);
}

static void print_rank(const pages_t *p, const rd_view_t *view, const rd_view_rank_t *r, double seconds, double most)
{
    double calls = calls_each_second(p, r, seconds);
    const char *color = !p->live                                            ? ""
                        : rd_view_gone(view, r) || rd_view_stopped(view, r) ? "\033[31m"
                        : rd_view_waits_for(&r->comm) >= 0 && calls < 1     ? "\033[33m"
                                                                            : "";
    char where[400];

    fputs(color, stdout);
    int room = p->width - print_numbers(p, view, r, seconds) - (p->bar ? p->bar + 2 : 0);
    print_bar(p, most > 0 ? calls / most : 0);
    if (room < SHORT)
        where_in_short(view, r, where, sizeof where);
    else
        rd_view_where_text(view, r, true, where, sizeof where);
    print_cut(where, room);
    puts(*color ? "\033[0m" : "");
}

/* How many lines the verdict takes, which says whoever holds the communicator up, whether it stands still or is slow.
 */
static int lines_of(const pages_t *p, const rd_monitor_verdict_t *v)
{
    return rd_verdict_names(v->status) ? ((int)strlen(v->text) - 1) / p->width + 1 : 0;
}

static int of_job(const rd_view_t *view, int job)
{
    int n = 0;

    for (int i = 0; i < view->nprocesses; i++)
        n += !job || view->processes[i].job == job;
    return n;
}

/* Returns the number of its lines so far. */
static int print_comm(const pages_t *p, const rd_view_t *view, const rd_view_comm_t *c, const rd_monitor_verdict_t *v,
                      double seconds, int lines)
{
    const rd_monitor_comm_t *m = &c->ranks[0].comm;
    char id[RAS_COMM_NUMBER];
    double most = 0;

    for (int r = 0; r < c->nranks; r++) {
        double calls = calls_each_second(p, &c->ranks[r], seconds);
        most = calls > most ? calls : most;
    }
    putchar('\n');
    print_line(p, "'%s'%s, %d rank%s on %d node%s", m->name, ras_comm_number(view, c, id), m->size,
               m->size == 1 ? "" : "s", m->nodes, m->nodes == 1 ? "" : "s");
    lines += 3 + lines_of(p, v);
    if (rd_verdict_names(v->status))
        printf("%s\n", v->text);
    print_titles(p);
    for (int r = 0; r < c->nranks; r++, lines++) {
        if (p->live && r > 0 && lines >= p->height - 3 && r + 1 < c->nranks) {
            print_line(p, "and %d more", c->nranks - r);
            return lines + 1;
        }
        print_rank(p, view, &c->ranks[r], seconds, most);
    }
    return lines;
}

/* Those that are held up come first: there may be more than a terminal has room for. */
static void print_comms(const pages_t *p, const rd_view_t *view, const rd_monitor_verdict_t *verdicts, double seconds)
{
    int lines = 1, shown = 0;

    for (int calm = 0; calm < 2; calm++)
        for (int i = 0; i < view->ncomms; i++) {
            if (rd_verdict_names(verdicts[i].status) == calm)
                continue;
            if (p->live && shown > 0 && lines + LEAST + lines_of(p, &verdicts[i]) > p->height) {
                print_line(p, "and %d more communicator%s", view->ncomms - shown, view->ncomms - shown == 1 ? "" : "s");
                return;
            }
            lines = print_comm(p, view, &view->comms[i], &verdicts[i], seconds, lines);
            shown++;
        }
}

static void print_none(int job)
{
    if (job)
        printf("there is no job %d; rondo-ras list shows which there are\n", job);
    else
        printf("no process of this user on this host has a communicator of rondo\n");
}

static void print_page(const pages_t *p, const rd_view_t *view, int job)
{
    double seconds = (double)(rd_clock_ns() - p->ns) / 1e9;
    int n = of_job(view, job);
    rd_monitor_verdict_t *verdicts = calloc((size_t)view->ncomms + 1, sizeof *verdicts);

    for (int i = 0; verdicts && i < view->ncomms; i++)
        rd_verdict_judge(view, &view->comms[i], &verdicts[i]);
    if (p->live)
        fputs("\033[H\033[2J", stdout);
    print_line(p, "rondo-ras top: %d process%s, %d communicator%s", n, n == 1 ? "" : "es", view->ncomms,
               view->ncomms == 1 ? "" : "s");
    if (n == 0)
        print_none(job);
    else if (verdicts)
        print_comms(p, view, verdicts, seconds);
    fflush(stdout);
    free(verdicts);
}

static void find_size(pages_t *p)
{
    struct winsize size;

    p->width = 1000; /* in a file nothing is cut off */
    p->height = 50;
    if (p->live && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        p->width = size.ws_col;
        p->height = size.ws_row;
    }
    p->bar = p->width >= 130 ? BAR : p->width >= 100 ? BAR / 2 : 0;
}

int ras_top(rd_view_t *view, const ras_options_t *given)
{
    pages_t pages = {.live = isatty(STDOUT_FILENO)};
    ras_options_t own = *given, *options = &own;
    rd_view_t older;

    if (options->job && ras_await_job(view, options) != 0)
        return RAS_NOTHING;
    remember(&pages, view);
    for (int n = 0; !options->count || n < options->count; n++) {
        ras_pause(options->seconds > 0 ? options->seconds : 1);
        options->job = ras_live_process(view, options->job);
        older = *view;
        memset(view, 0, sizeof *view);
        bool found = ras_find(view, options); /* jobs come and go */
        options->job = rd_view_job(view, options->job);
        rd_view_after(view, &older);
        rd_view_free(&older);
        if (!found)
            break;
        find_size(&pages);
        print_page(&pages, view, options->job);
        remember(&pages, view);
        if (ferror(stdout))
            break;
    }
    free(pages.past);
    return RD_VERDICT_NONE;
}
