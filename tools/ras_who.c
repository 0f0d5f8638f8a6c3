/* rondo-ras who: the verdict on each communicator. */
#include <stdio.h>
#include <time.h>

#include "ras.h"

void ras_print_json(const char *text)
{
    char one[RD_JSON_CHAR];

    putchar('"');
    for (; *text; text++)
        fwrite(one, 1, (size_t)rd_out_json_char(*text, one), stdout);
    putchar('"');
}

static bool is_of_several_jobs(const rd_view_t *view)
{
    for (int i = 1; i < view->nprocesses; i++)
        if (view->processes[i].job != view->processes[0].job)
            return true;
    return false;
}

/* What to do about it, which a sentence that all ranks say has no room for. `job`: " --job 17 --dir DIR", or nothing.
 */
static void print_advice(const rd_view_t *view, const rd_view_comm_t *c, const rd_monitor_verdict_t *v, const char *job)
{
    const rd_view_rank_t *r = v->rank >= 0 ? rd_view_rank_of(c, v->rank) : NULL;
    const rd_view_process_t *p = r ? &view->processes[r->process] : NULL;

    if (r && rd_view_gone(view, r))
        printf("the last lines of process %d say why, and dmesg if the kernel has killed it; what all ranks did last: "
               "rondo-ras dump -o DIR%s\n",
               p->reader.head.pid, job);
    else if (r && rd_view_stopped(view, r))
        printf("kill -CONT %d on %s lets it go on, if no debugger holds it\n", p->reader.head.pid, p->reader.head.host);
    else if (v->failed || (r && v->status == RD_VERDICT_BLAMED))
        printf("the calls of all ranks, compared: rondo-ras dump -o DIR%s && rondo-ras analyse DIR\n", job);
    else if (r)
        printf("where it stands: rondo-ras stacks%s on %s\n", job, p->reader.head.host);
    else if (v->status == RD_VERDICT_BLAMED)
        printf("from where each calls: rondo-ras stacks --all%s\n", job);
    else if (v->status == RD_VERDICT_SLOW)
        printf("rondo-info doctor --network on these hosts measures the link\n");
    else if (v->next >= 0)
        printf("rondo-ras who on the host of rank %d, or here with --host HOST:PORT of all hosts (RONDO_RAS_ADDR)\n",
               v->next);
    else
        printf("all ranks: rondo-ras status -v%s\n", job);
}

static void print_verdict(const rd_view_t *view, const rd_view_comm_t *c, const rd_monitor_verdict_t *v,
                          const ras_options_t *options)
{
    const bool several = !options->job && is_of_several_jobs(view);
    const int number = view->processes[c->ranks[0].process].job;
    char job[32] = "", found[400], id[RAS_COMM_NUMBER];

    if (several)
        printf("job %d, ", number);
    if (several || options->job)
        snprintf(job, sizeof job, " --job %d", number);
    snprintf(found, sizeof found, "%s%s%s", job, options->dir ? " --dir " : "", options->dir ? options->dir : "");
    printf("'%s'%s: %s\n", c->ranks[0].comm.name, ras_comm_number(view, c, id), v->text);
    if (v->also[0])
        printf("    also: %s\n", v->also);
    printf("    see: ");
    print_advice(view, c, v, found);
}

static void print_json(const rd_view_t *view, const rd_view_comm_t *c, const rd_monitor_verdict_t *v, bool first)
{
    printf("%s\n  {\"job\": %d, \"communicator\": ", first ? "" : ",", view->processes[c->ranks[0].process].job);
    ras_print_json(c->ranks[0].comm.name);
    printf(", \"id\": \"%016llx\", \"status\": %d, \"rank\": %d, \"verdict\": ", (unsigned long long)c->id, v->status,
           v->rank);
    ras_print_json(v->text);
    printf("}");
}

static int finish(const rd_view_t *view, const ras_options_t *options)
{
    int worst = RD_VERDICT_NONE;

    if (options->json)
        printf("[");
    for (int i = 0, said = 0; i < view->ncomms; i++) {
        const rd_view_comm_t *c = &view->comms[i];
        rd_monitor_verdict_t v;
        rd_verdict_judge(view, c, &v);
        worst = rd_verdict_worse(v.status, worst);
        if (v.status == RD_VERDICT_NONE)
            continue;
        if (options->json)
            print_json(view, c, &v, said++ == 0);
        else
            print_verdict(view, c, &v, options);
    }
    if (options->json)
        printf("]\n");
    else if (worst == RD_VERDICT_NONE)
        printf("nobody is waited for: %d communicator%s on %s\n", view->ncomms, view->ncomms == 1 ? "" : "s",
               options->hosts ? "these hosts" : "this host");
    return worst;
}

void ras_pause(double seconds)
{
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&pause, NULL);
}

bool ras_look_again(rd_view_t *view, const ras_options_t *options)
{
    if (options->hosts)
        return true; /* there they have looked twice */
    ras_pause(RD_VERDICT_MS / 1000.0);
    return ras_find_again(view, options) && rd_view_look(view, options->job);
}

int ras_who(rd_view_t *view, const ras_options_t *options)
{
    return ras_look_again(view, options) ? finish(view, options) : RAS_NOTHING;
}
