/* rondo-ras analyse: who is to blame, by dumps.
 *
 * Of rondo's own dumps it says what `who` would have said when they were made, by the same verdict. Besides, and of the
 * dumps of flight recorders alone, which know of no waits, it compares the calls of all ranks by their numbers
 * (streams.h): the first one of a communicator in which ranks differ, and the first one to which a rank has not come.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "ras.h"
#include "ras_analysis.h"

static const rd_history_t *history_of(const analysis_t *a, const member_t *m)
{
    return &a->dump->histories[m->process];
}

/* ---- members ---- */

static void drop_members(analysis_t *a)
{
    for (int i = 0; i < a->nmembers; i++)
        free(a->members[i].runs);
    free(a->members);
    a->members = NULL;
    a->nmembers = 0;
}

static bool add_member(analysis_t *a, const rd_stream_t *s, int process, int comm)
{
    const rd_history_t *h = &a->dump->histories[process];
    member_t *more = realloc(a->members, (size_t)(a->nmembers + 1) * sizeof *more);

    if (!more)
        return false;
    a->members = more;
    member_t *m = &more[a->nmembers++];
    for (; m > more && m[-1].rank > h->comms[comm].rank; m--)
        *m = m[-1];
    *m = (member_t){.process = process, .comm = comm, .rank = h->comms[comm].rank};
    m->runs = calloc(h->nruns + 1, sizeof *m->runs);
    for (size_t i = 0; m->runs && i < h->nruns; i++)
        if (h->runs[i].comm == comm && rd_streams_of(a->streams, &h->runs[i]) == s)
            m->runs[m->nruns++] = i;
    return m->runs;
}

static bool find_members(analysis_t *a, const rd_stream_t *s)
{
    drop_members(a);
    for (int i = 0; i < a->dump->view->nprocesses; i++)
        for (int k = 0; k < a->dump->histories[i].ncomms; k++)
            if (a->dump->histories[i].comms[k].id == s->id && !add_member(a, s, i, k))
                return false;
    return true;
}

const rd_history_run_t *ras_run_at(const analysis_t *a, member_t *m, uint64_t number, uint64_t *first)
{
    const rd_history_t *h = history_of(a, m);

    for (; m->at < m->nruns; m->at++) {
        const rd_history_run_t *r = &h->runs[m->runs[m->at]];
        *first = a->streams->numbers[m->process][m->runs[m->at]];
        if (number < *first)
            return NULL;
        if (number - *first < r->calls)
            return r;
    }
    return NULL;
}

/* ---- sentences ---- */

void ras_say(analysis_t *a, int status, const char *name, const char *sentence)
{
    a->worst = rd_verdict_worse(status, a->worst);
    a->said++;
    if (!a->json) {
        printf("'%s'%s: %s\n", name, a->number, sentence);
        return;
    }
    printf("%s\n  {\"communicator\": ", a->said > 1 ? "," : "");
    ras_print_json(name);
    printf(", \"status\": %d, \"verdict\": ", status);
    ras_print_json(sentence);
    printf("}");
}

void ras_add(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
}

/* "rank 2 (5 in the job)" */
static void add_rank(const analysis_t *a, const member_t *m, char *text, size_t bytes)
{
    ras_add(text, bytes, "rank %d", m->rank);
    if (a->dump->numbers[m->process] != m->rank)
        ras_add(text, bytes, " (%d in the job)", a->dump->numbers[m->process]);
}

void ras_add_ranks(const analysis_t *a, const int *of, int mark, char *text, size_t bytes)
{
    int n = 0, written = 0, more = 0;

    for (int i = 0; i < a->nmembers; i++)
        n += of[i] == mark;
    for (int i = 0; n == 1 && i < a->nmembers; i++)
        if (of[i] == mark) {
            add_rank(a, &a->members[i], text, bytes);
            return;
        }
    ras_add(text, bytes, "ranks ");
    for (int i = 0; i < a->nmembers; i++) {
        int last = i;
        if (of[i] != mark)
            continue;
        while (last + 1 < a->nmembers && of[last + 1] == mark && a->members[last + 1].rank == a->members[last].rank + 1)
            last++;
        if (written == RAS_RUNS) {
            more += last - i + 1;
        } else {
            ras_add(text, bytes, "%s%d", written++ ? ", " : "", a->members[i].rank);
            if (last > i)
                ras_add(text, bytes, "-%d", a->members[last].rank);
        }
        i = last;
    }
    if (more)
        ras_add(text, bytes, " and %d more", more);
}

void ras_add_call(const rd_monitor_event_t *e, char *text, size_t bytes)
{
    char call[192];

    rd_view_event_text(e, call, sizeof call);
    ras_add(text, bytes, "%s", call);
    if (rd_view_kind_rooted(e->kind) && e->root >= 0)
        ras_add(text, bytes, " with root %d", e->root);
}

/* ---- what differs ---- */

/* Sorts the ranks that have made the call by what they call. Returns what the second sort differs in from the first;
 * NULL: all call the same. `sort` of a rank that has not made it is -1. */
static const char *sort_ranks(analysis_t *a, uint64_t number, int *sort, const rd_monitor_event_t **calls, int *nsorts)
{
    const char *what = NULL;
    uint64_t first;

    *nsorts = 0;
    for (int i = 0; i < a->nmembers; i++) {
        const rd_history_run_t *r = ras_run_at(a, &a->members[i], number, &first);
        sort[i] = -1;
        for (int k = 0; r && k < *nsorts && sort[i] < 0; k++)
            if (!rd_view_differs(calls[k], &r->event))
                sort[i] = k;
        if (!r || sort[i] >= 0)
            continue;
        if (*nsorts == 1)
            what = rd_view_differs(calls[0], &r->event);
        sort[i] = *nsorts;
        calls[(*nsorts)++] = &r->event;
    }
    a->compared++;
    return what;
}

int ras_count_of(const analysis_t *a, const int *sort, int k)
{
    int n = 0;

    for (int i = 0; i < a->nmembers; i++)
        n += sort[i] == k;
    return n;
}

/* Who is in the smaller part is to blame; two halves are named without that. Where all call otherwise, some are named.
 */
static void say_differ(analysis_t *a, const char *name, uint64_t number, const char *what, const int *sort,
                       const rd_monitor_event_t **calls, int nsorts)
{
    char text[2048] = "";
    int callers = 0, most = 0, said = 0, others = 0;

    for (int k = 0; k < nsorts; k++) {
        callers += ras_count_of(a, sort, k);
        most = ras_count_of(a, sort, k) > ras_count_of(a, sort, most) ? k : most;
    }
    bool clear = 2 * ras_count_of(a, sort, most) > callers;
    ras_add(text, sizeof text, "ranks do not call the same: they differ in %s, in collective number %llu%s. ", what,
            (unsigned long long)number, clear ? "" : ", and nobody can know who is wrong");
    for (int k = 0; k < nsorts; k++) {
        others += k != most && said >= RAS_SORTS ? ras_count_of(a, sort, k) : 0;
        if (k == most || said++ >= RAS_SORTS)
            continue;
        ras_add_ranks(a, sort, k, text, sizeof text);
        ras_add(text, sizeof text, ras_count_of(a, sort, k) == 1 ? " calls " : " call ");
        ras_add_call(calls[k], text, sizeof text);
        ras_add(text, sizeof text, "; ");
    }
    if (others)
        ras_add(text, sizeof text, "%d more call%s something else; ", others, others == 1 ? "s" : "");
    ras_add_ranks(a, sort, most, text, sizeof text);
    ras_add(text, sizeof text, ras_count_of(a, sort, most) == 1 ? " calls " : " call ");
    ras_add_call(calls[most], text, sizeof text);
    ras_say(a, RD_VERDICT_BLAMED, name, text);
}

/* Returns true if ranks differ. Only where a run of any rank ends can that begin. */
static bool find_difference(analysis_t *a, const rd_stream_t *s, const char *name)
{
    int *sort = calloc((size_t)a->nmembers + 1, sizeof *sort), nsorts;
    const rd_monitor_event_t **calls = calloc((size_t)a->nmembers + 1, sizeof *calls);
    const char *what = NULL;

    a->memory |= !sort || !calls;
    for (size_t i = 0; sort && calls && i < s->ends && !what; i++) {
        uint64_t number = a->streams->ends[s->first + i];
        if (number < s->start)
            continue;
        what = sort_ranks(a, number, sort, calls, &nsorts);
        if (what)
            say_differ(a, name, number, what, sort, calls, nsorts);
    }
    free(sort);
    free(calls);
    return what;
}

/* ---- who has not come ---- */

static bool waits_at(const analysis_t *a, member_t *m, uint64_t number, const rd_history_run_t **run)
{
    uint64_t first = 0;

    m->at = 0;
    *run = ras_run_at(a, m, number, &first);
    return *run && number - first >= (*run)->over;
}

/* Nobody is behind, and ranks wait all the same: in their last call, and perhaps for one of which there is no dump. */
static bool find_waiting(analysis_t *a, const char *name, int size)
{
    const rd_history_run_t *run, *inside = NULL;
    int *mark = calloc((size_t)a->nmembers + 1, sizeof *mark);
    uint64_t last = 0;
    char text[2048] = "";

    a->memory |= !mark;
    for (int i = 0; mark && i < a->nmembers; i++) {
        const rd_monitor_comm_t *c = &history_of(a, &a->members[i])->comms[a->members[i].comm];
        uint64_t begun = c->calls[RD_TRACK_COLLECTIVE].begun;
        mark[i] = c->device < 0 && waits_at(a, &a->members[i], begun, &run);
        if (mark[i]) {
            inside = run;
            last = begun;
        }
    }
    if (inside) {
        ras_add_ranks(a, mark, 1, text, sizeof text);
        ras_add(text, sizeof text, " %s in collective number %llu, ", ras_count_of(a, mark, 1) == 1 ? "waits" : "wait",
                (unsigned long long)last);
        ras_add_call(&inside->event, text, sizeof text);
        if (a->nmembers < size)
            ras_add(text, sizeof text, ", and of %d rank%s there is no dump", size - a->nmembers,
                    size - a->nmembers == 1 ? "" : "s");
        else
            ras_add(text, sizeof text, ", and no rank is behind: unknown why");
        ras_say(a, RD_VERDICT_UNKNOWN, name, text);
    }
    free(mark);
    return inside;
}

/* In the first call that not all have begun, are others inside? */
static bool find_late(analysis_t *a, const rd_stream_t *s, const char *name)
{
    uint64_t least = UINT64_MAX;
    const rd_history_run_t *run, *inside = NULL;
    int *mark = calloc((size_t)a->nmembers + 1, sizeof *mark);
    char text[2048] = "";

    a->memory |= !mark;
    for (int i = 0; i < a->nmembers; i++) {
        uint64_t begun = history_of(a, &a->members[i])->comms[a->members[i].comm].calls[RD_TRACK_COLLECTIVE].begun;
        least = begun < least ? begun : least;
    }
    for (int i = 0; mark && i < a->nmembers && least + 1 >= s->start; i++) {
        const rd_monitor_comm_t *c = &history_of(a, &a->members[i])->comms[a->members[i].comm];
        mark[i] = c->calls[RD_TRACK_COLLECTIVE].begun == least;
        if (!mark[i] && c->device < 0 && waits_at(a, &a->members[i], least + 1, &run)) {
            mark[i] = 2;
            inside = run;
        }
    }
    if (inside) {
        ras_add_ranks(a, mark, 1, text, sizeof text);
        ras_add(text, sizeof text, " %s not come to collective number %llu, ",
                ras_count_of(a, mark, 1) == 1 ? "has" : "have", (unsigned long long)(least + 1));
        ras_add_call(&inside->event, text, sizeof text);
        ras_add(text, sizeof text, ", in which ");
        ras_add_ranks(a, mark, 2, text, sizeof text);
        ras_add(text, sizeof text, ras_count_of(a, mark, 2) == 1 ? " waits" : " wait");
        ras_say(a, RD_VERDICT_LATE, name, text);
    }
    free(mark);
    return inside;
}

/* ---- messages ---- */

/* One side waits in message `number`, which the other one has not made. */
static void say_alone(analysis_t *a, const member_t *from, const member_t *to, const char *name, uint64_t number,
                      bool sent)
{
    char text[512] = "";

    add_rank(a, sent ? to : from, text, sizeof text);
    ras_add(text, sizeof text, " has not %s message %llu from rank %d to rank %d, in which ", sent ? "taken" : "sent",
            (unsigned long long)number, from->rank, to->rank);
    add_rank(a, sent ? from : to, text, sizeof text);
    ras_add(text, sizeof text, " waits");
    ras_say(a, RD_VERDICT_LATE, name, text);
}

static void say_lengths(analysis_t *a, const member_t *from, const member_t *to, const char *name, uint64_t number,
                        const rd_monitor_event_t *sent, const rd_monitor_event_t *taken)
{
    char text[512] = "";

    add_rank(a, from, text, sizeof text);
    ras_add(text, sizeof text, " sends %llu bytes to ", (unsigned long long)sent->bytes);
    add_rank(a, to, text, sizeof text);
    ras_add(text, sizeof text, ", which expects %llu, in message %llu from the one to the other",
            (unsigned long long)taken->bytes, (unsigned long long)number);
    ras_say(a, RD_VERDICT_BLAMED, name, text);
}

static void say_bytes(analysis_t *a, const member_t *from, const member_t *to, const char *name, uint64_t number)
{
    char text[512] = "";

    add_rank(a, to, text, sizeof text);
    ras_add(text, sizeof text, " got other bytes than ");
    add_rank(a, from, text, sizeof text);
    ras_add(text, sizeof text, " sent, in message %llu from the one to the other", (unsigned long long)number);
    ras_say(a, RD_VERDICT_BLAMED, name, text);
}

/* The runs of a rank's messages, by their streams. */
typedef struct message {
    const rd_stream_t *stream;
    size_t run;
} message_t;

typedef struct messages {
    message_t *all;
    size_t *runs, n; /* the runs alone, in the same order */
} messages_t;

static int by_stream(const void *a, const void *b)
{
    const message_t *x = a, *y = b;

    return x->stream != y->stream ? (x->stream > y->stream) - (x->stream < y->stream)
                                  : (x->run > y->run) - (x->run < y->run);
}

static bool sort_messages(const analysis_t *a, const member_t *m, messages_t *of)
{
    const rd_history_t *h = history_of(a, m);

    *of = (messages_t){.all = calloc(h->nruns + 1, sizeof *of->all), .runs = calloc(h->nruns + 1, sizeof *of->runs)};
    for (size_t i = 0; of->all && of->runs && i < h->nruns; i++) {
        const rd_history_run_t *r = &h->runs[i];
        const rd_stream_t *stream =
            r->comm == m->comm && r->track != RD_TRACK_COLLECTIVE ? rd_streams_of(a->streams, r) : NULL;
        if (stream)
            of->all[of->n++] = (message_t){stream, i};
    }
    if (of->all)
        qsort(of->all, of->n, sizeof *of->all, by_stream);
    for (size_t i = 0; of->runs && i < of->n; i++)
        of->runs[i] = of->all[i].run;
    return of->all && of->runs;
}

/* Finds a rank, with its runs in the stream. Returns false if there is no such rank. */
static bool find_side(const analysis_t *a, const messages_t *sorted, const rd_stream_t *s, int rank, member_t *side)
{
    size_t low = 0, high = (size_t)a->nmembers;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (a->members[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == (size_t)a->nmembers || a->members[low].rank != rank)
        return false;
    const messages_t *of = &sorted[low];
    *side = a->members[low];
    side->at = side->nruns = 0;
    for (low = 0, high = of->n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (of->all[middle].stream < s)
            low = middle + 1;
        else
            high = middle;
    }
    side->runs = of->runs + low;
    while (low + side->nruns < of->n && of->all[low + side->nruns].stream == s)
        side->nruns++;
    return true;
}

static void look_at_messages(analysis_t *a, const rd_stream_t *s, member_t *from, member_t *to, const char *name,
                             bool judged)
{
    for (size_t i = 0; i < s->ends; i++) {
        uint64_t number = a->streams->ends[s->first + i], sent_from = 0, taken_from = 0;
        const rd_history_run_t *sent = ras_run_at(a, from, number, &sent_from);
        const rd_history_run_t *taken = ras_run_at(a, to, number, &taken_from);
        a->compared++;
        if (sent && taken && sent->event.bytes != taken->event.bytes) {
            say_lengths(a, from, to, name, number, &sent->event, &taken->event);
            return;
        }
        if (sent && taken && sent->event.input && taken->event.output && sent->event.input != taken->event.output) {
            say_bytes(a, from, to, name, number);
            return;
        }
        bool waits =
            sent && !taken ? number - sent_from >= sent->over : taken && !sent && number - taken_from >= taken->over;
        if (waits && !judged && history_of(a, from)->comms[from->comm].device < 0) {
            say_alone(a, from, to, name, number, sent);
            return;
        }
    }
}

/* ---- communicators ---- */

/* Returns true if the verdict names a rank or knows why ranks wait; if it says that it does not, or what a call that
 * has failed has said, that is kept. */
static bool judge(analysis_t *a, const rd_view_comm_t *c, const char *name, rd_monitor_verdict_t *v)
{
    v->status = RD_VERDICT_NONE;
    if (c)
        rd_verdict_judge(a->dump->view, c, v);
    if (!rd_verdict_names(v->status) || v->failed ||
        v->status == RD_VERDICT_SLOW) /* that is said last, if nothing else is found */
        return false;
    ras_say(a, v->status, name, v->text);
    return true;
}

/* Has print_errors said it? */
static bool is_printed(const analysis_t *a, const rd_monitor_verdict_t *v)
{
    const rd_view_t *view = a->dump->view;
    const char *sentence = strstr(v->text, ": ");

    for (int i = 0; v->failed && sentence && !a->json && i < view->nprocesses; i++)
        if (view->processes[i].error[0] && strstr(view->processes[i].error, sentence + 2))
            return true;
    return false;
}

/* `s`: the collectives of the communicator whose members were found, behind which lie its messages. */
static void look_at_all_messages(analysis_t *a, const rd_stream_t *s, const char *name, bool judged)
{
    messages_t *sorted = calloc((size_t)a->nmembers + 1, sizeof *sorted);
    bool good = sorted;

    for (int i = 0; i < a->nmembers && good; i++)
        good = sort_messages(a, &a->members[i], &sorted[i]);
    a->memory |= !good;
    for (const rd_stream_t *m = s + 1; good && m < a->streams->streams + a->streams->nstreams && m->id == s->id; m++) {
        member_t from, to;
        if (!m->left_out && find_side(a, sorted, m, m->from, &from) && find_side(a, sorted, m, m->to, &to))
            look_at_messages(a, m, &from, &to, name, judged);
    }
    for (int i = 0; sorted && i < a->nmembers; i++) {
        free(sorted[i].all);
        free(sorted[i].runs);
    }
    free(sorted);
}

/* `s`: its collectives. Streams of one communicator lie one behind the other. */
static void look_at_comm(analysis_t *a, const rd_stream_t *s)
{
    const rd_view_t *view = a->dump->view;
    const rd_view_comm_t *c = rd_view_comm_of(view->comms, view->ncomms, s->id);
    bool two_looks = rd_view_comm_of(view->before, view->nbefore, s->id);
    char name[RD_MONITOR_NAME];
    rd_monitor_verdict_t v;
    int before = a->said;

    if (!find_members(a, s) || a->nmembers == 0) {
        a->memory |= a->nmembers > 0;
        return;
    }
    const rd_monitor_comm_t *first = &history_of(a, &a->members[0])->comms[a->members[0].comm];
    snprintf(name, sizeof name, "%s", first->name);
    a->number[0] = 0;
    if (c)
        ras_comm_number(view, c, a->number);
    if (a->nmembers < first->size)
        fprintf(stderr, "rondo-ras: '%s' has %d ranks, and there are dumps of %d\n", name, first->size, a->nmembers);
    if (!judge(a, c, name, &v) && !find_difference(a, s, name) && !two_looks && !find_late(a, s, name))
        find_waiting(a, name, first->size);
    ras_outputs(a, s, name);
    look_at_all_messages(a, s, name, two_looks);
    if (a->said == before && v.status != RD_VERDICT_NONE && is_printed(a, &v))
        a->worst = rd_verdict_worse(v.status, a->worst);
    else if (a->said == before && v.status != RD_VERDICT_NONE)
        ras_say(a, v.status, name, v.text);
}

/* What the failed calls have said, each sentence once. */
static void print_errors(const rd_view_t *view)
{
    for (int i = 0; i < view->nprocesses; i++) {
        int k = 0;
        while (k < i && strcmp(view->processes[k].error, view->processes[i].error) != 0)
            k++;
        if (view->processes[i].error[0] && k == i)
            printf("a call has failed: %s\n", view->processes[i].error);
    }
}

static int analyse(const rd_dump_t *dump, const rd_streams_t *streams, bool json)
{
    analysis_t a = {.dump = dump, .streams = streams, .json = json, .worst = RD_VERDICT_NONE};
    int comms = 0;

    if (json)
        printf("[");
    else
        print_errors(dump->view);
    for (size_t i = 0; i < streams->nstreams; i++)
        if (streams->streams[i].from < 0) {
            look_at_comm(&a, &streams->streams[i]);
            comms++;
        }
    if (json)
        printf("]\n");
    else if (a.worst == RD_VERDICT_NONE)
        printf("nothing is found: %d dump%s, %d communicator%s, %llu places compared where calls change\n",
               dump->view->nprocesses, dump->view->nprocesses == 1 ? "" : "s", comms, comms == 1 ? "" : "s",
               (unsigned long long)a.compared);
    drop_members(&a);
    if (a.memory)
        fprintf(stderr, "rondo-ras: no memory for all of it\n");
    return a.memory ? RAS_NOTHING : a.worst;
}

int ras_analyse(const ras_options_t *options)
{
    rd_view_t view;
    rd_dump_t dump;
    rd_streams_t streams;
    int status = RAS_NOTHING;

    if (options->nargs != 1) {
        fprintf(stderr, "rondo-ras: analyse needs a folder of dumps: analyse DIR\n");
        return RAS_USAGE;
    }
    if (!load_dumps(&view, options->args[0]))
        return RAS_NOTHING;
    if (rd_dump_read(&dump, &view, 0)) {
        if (rd_streams_find(&streams, &dump)) {
            status = analyse(&dump, &streams, options->json);
            rd_streams_free(&streams, &dump);
        }
        rd_dump_free(&dump);
    }
    rd_view_free(&view);
    return status;
}
