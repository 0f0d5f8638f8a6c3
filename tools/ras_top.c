/* rondo-ras top: a page each second, by which one sees where every rank is and how much it does. Plain pages where
 * nobody looks: when the output is no terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/wait.h"
#include "ras.h"

#define BAR 20

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
    int width, height;
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

static void print_bar(const pages_t *p, double part)
{
    int full = part > 0 ? (int)(part * BAR + 0.5) : 0;

    for (int i = 0; i < BAR; i++)
        fputs(p->live ? i < full ? "\u2588" : "\u2591" : i < full ? "#" : ".", stdout);
}

static void print_rank(const pages_t *p, const rd_view_t *view, const rd_view_rank_t *r, double seconds, double most)
{
    const past_t *past = past_of(p, r->comm.id, r->comm.rank);
    double calls = calls_each_second(p, r, seconds);
    double bytes = past ? rate(rd_view_bytes(view, r), past->bytes, seconds) : 0;
    const char *color = !p->live                                            ? ""
                        : rd_view_gone(view, r) || rd_view_stopped(view, r) ? "\033[31m"
                        : rd_view_waits_for(&r->comm) >= 0 && calls < 1     ? "\033[33m"
                                                                            : "";
    char where[400];
    int room = p->width - (6 + 9 + 11 + 9 + BAR + 3);

    rd_view_where_text(view, r, true, where, sizeof where);
    printf("%s%5d %8d %10.0f %8.3f ", color, r->comm.rank, view->processes[r->process].reader.head.pid, calls,
           bytes / 1e9);
    print_bar(p, most > 0 ? calls / most : 0);
    printf("  %.*s%s\n", room > 20 ? room : 20, where, *color ? "\033[0m" : "");
}

/* Whoever holds the communicator up, whether it stands still or is slow. */
static int print_verdict(const rd_view_t *view, const rd_view_comm_t *c)
{
    rd_monitor_verdict_t v;

    rd_verdict_judge(view, c, &v);
    if (!rd_verdict_names(v.status))
        return 0;
    printf("%s\n", v.text);
    return 1;
}

static void print_page(const pages_t *p, const rd_view_t *view)
{
    double seconds = (double)(rd_clock_ns() - p->ns) / 1e9;
    int lines = 1;

    if (p->live)
        fputs("\033[H\033[2J", stdout);
    printf("rondo-ras top: %d process%s, %d communicator%s\n", view->nprocesses, view->nprocesses == 1 ? "" : "es",
           view->ncomms, view->ncomms == 1 ? "" : "s");
    for (int i = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *c = &view->comms[i];
        double most = 0;
        for (int r = 0; r < c->nranks; r++) {
            double calls = calls_each_second(p, &c->ranks[r], seconds);
            most = calls > most ? calls : most;
        }
        printf("\n'%s', %d ranks on %d node%s\n%5s %8s %10s %8s %-*s  %s\n", c->ranks[0].comm.name,
               c->ranks[0].comm.size, c->ranks[0].comm.nodes, c->ranks[0].comm.nodes == 1 ? "" : "s", "rank", "pid",
               "calls/s", "GB/s", BAR, "", "where");
        lines += 3 + print_verdict(view, c);
        for (int r = 0; r < c->nranks && (!p->live || lines < p->height - 1); r++, lines++)
            print_rank(p, view, &c->ranks[r], seconds, most);
    }
    fflush(stdout);
}

static void find_size(pages_t *p)
{
    struct winsize size;

    p->width = 160;
    p->height = 50;
    if (p->live && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        p->width = size.ws_col;
        p->height = size.ws_row;
    }
}

int ras_top(rd_view_t *view, const ras_options_t *options)
{
    pages_t pages = {.live = isatty(STDOUT_FILENO)};

    rd_view_t older;

    remember(&pages, view);
    for (int n = 0; !options->count || n < options->count; n++) {
        ras_pause(options->seconds > 0 ? options->seconds : 1);
        older = *view;
        memset(view, 0, sizeof *view);
        bool found = ras_find(view, options); /* jobs come and go */
        rd_view_after(view, &older);
        rd_view_free(&older);
        if (!found)
            break;
        find_size(&pages);
        print_page(&pages, view);
        remember(&pages, view);
        if (ferror(stdout))
            break;
    }
    free(pages.past);
    return RD_VERDICT_NONE;
}
