/* rondo-ras stacks: where each thread of each rank stands, and what its record says that the rank is in. Frames are a
 * debugger's; where none is installed or none may look, the kernel's words are shown, and why there are no more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "ras.h"
#include "ras_stacks.h"

#define TOOL_S 20 /* for a process */

/* The communicator with the most ranks, by which ranks are named. */
static const rd_view_comm_t *largest(const rd_view_t *view)
{
    const rd_view_comm_t *found = NULL;

    for (int i = 0; i < view->ncomms; i++)
        if (!found || view->comms[i].ranks[0].comm.size > found->ranks[0].comm.size)
            found = &view->comms[i];
    return found;
}

/* Marks the processes of ranks that hold others up. Returns false if nobody is known to. */
static bool choose_blamed(rd_view_t *view, const ras_options_t *options, bool *wanted)
{
    bool any = false;

    if (!ras_look_again(view, options))
        return false;
    for (int i = 0; i < view->ncomms; i++) {
        const rd_view_rank_t *r;
        rd_monitor_verdict_t v;
        rd_verdict_judge(view, &view->comms[i], &v);
        r = rd_verdict_names(v.status) && v.rank >= 0 ? rd_view_rank_of(&view->comms[i], v.rank) : NULL;
        if (r)
            any = wanted[r->process] = true;
    }
    return any;
}

/* Marks the processes that are wanted: of those ranks, of those that hold others up, or all of the job. Returns false,
 * having said why, if a rank is none. */
static bool choose(rd_view_t *view, const ras_options_t *options, bool *wanted)
{
    if (!options->nargs && !options->all && choose_blamed(view, options, wanted))
        return true;
    const rd_view_comm_t *c = largest(view);

    for (int i = 0; i < view->nprocesses && !options->nargs; i++)
        wanted[i] = !options->job || view->processes[i].job == options->job;
    for (int i = 0; i < options->nargs; i++) {
        int rank;
        const rd_view_rank_t *r =
            c && number_is(options->args[i], 0, INT32_MAX, &rank) ? rd_view_rank_of(c, rank) : NULL;
        if (!r) {
            fprintf(stderr, "rondo-ras: there is no rank %s of %s%s%s on this host\n", options->args[i],
                    c ? "'" : "any communicator", c ? c->ranks[0].comm.name : "", c ? "'" : "");
            return false;
        }
        wanted[r->process] = true;
    }
    return true;
}

static void print_head(const rd_view_t *view, int process)
{
    const rd_view_process_t *p = &view->processes[process];
    char where[400];
    int n = 0;

    for (int i = 0; i < view->ncomms; i++)
        for (int r = 0; r < view->comms[i].nranks; r++) {
            const rd_view_rank_t *rank = &view->comms[i].ranks[r];
            if (rank->process != process)
                continue;
            rd_view_where_text(view, rank, true, where, sizeof where);
            printf("rank %d of '%s', process %d on %s, %s: %s\n", rank->comm.rank, rank->comm.name, p->reader.head.pid,
                   p->reader.head.host, ras_state_name(p->state), where);
            n++;
        }
    if (!n)
        printf("process %d on %s, %s: in no communicator\n", p->reader.head.pid, p->reader.head.host,
               ras_state_name(p->state));
}

static const char *owner_text(stack_owner_t owner)
{
    return owner == STACK_ENDED    ? "it has ended, and has no threads"
           : owner == STACK_HIDDEN ? "the kernel does not show what it has open (it may not be dumped, or is another "
                                     "user's), so nobody can know that this record is its: ask as root"
                                   : "it does not have this record open, which is another process's or forged: nobody "
                                     "looks at it";
}

/* Returns whether its threads were shown. */
static bool show(const rd_view_t *view, int process, const stack_tool_t *tool, const ras_options_t *options)
{
    const rd_view_process_t *p = &view->processes[process];
    pid_t pid = p->reader.head.pid;

    print_head(view, process);
    fflush(stdout);
    if (p->state == RD_VIEW_ENDED || p->state == 'Z') {
        printf("  it has ended, and has no threads\n");
        return true;
    }
    if (p->state == RD_VIEW_ELSEWHERE) {
        printf("  it is another user's, or in another pid name space: ask from inside, as its user or root\n");
        return false;
    }
    const stack_owner_t owner = stack_is_of(pid, p->reader.dev, p->reader.ino);
    if (owner != STACK_ITS) {
        printf("  %s\n", owner_text(owner));
        return owner == STACK_ENDED;
    }
    const char *why = tool ? stack_refused(pid) : NULL;
    if (why)
        fprintf(stderr, "rondo-ras: no debugger may look at process %d: %s\n", (int)pid, why);
    bool shown = tool && !why && stack_by_tool(tool, pid, options->timeout > 0 ? options->timeout : TOOL_S);
    return shown || ras_interrupted() || stack_by_proc(pid);
}

/* Returns false if there is no such tool. */
static bool find_tool(const char *name, const stack_tool_t **tool)
{
    bool none = name && strcmp(name, "none") == 0;

    *tool = none ? NULL : stack_tool_find(name);
    if (name && !none && !*tool) {
        fprintf(stderr, "rondo-ras: there is no tool %s; there are " STACK_TOOLS " and none\n", name);
        return false;
    }
    if (!none && !*tool)
        fprintf(stderr, "rondo-ras: no debugger is installed, so what follows are the kernel's words and no frames; "
                        "with gdb or elfutils there are some (apt install gdb, dnf install gdb)\n");
    return true;
}

int ras_stacks(rd_view_t *view, const ras_options_t *options)
{
    const stack_tool_t *tool;
    bool *wanted = calloc((size_t)view->nprocesses + 1, sizeof *wanted), good = true;
    int status = RD_VERDICT_NONE;

    if (!wanted || !ras_one_job(view, options) || !find_tool(options->tool, &tool) || !choose(view, options, wanted)) {
        free(wanted);
        return RAS_USAGE;
    }
    ras_on_interrupt();
    for (int i = 0; i < view->nprocesses && !ras_interrupted(); i++)
        if (wanted[i])
            good &= show(view, i, tool, options);
    free(wanted);
    if (ras_interrupted())
        status = 128 + ras_interrupted();
    return status ? status : good ? RD_VERDICT_NONE : RAS_NOTHING;
}
