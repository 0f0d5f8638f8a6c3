/* A job is followed from its first communicator on: rondo-ras monitor may be there before. A process is waited for
 * whose record can be had once there is one; others are no job. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/origin.h"
#include "ras.h"

#define AWAIT_S 0.2

bool ras_has_comms(const rd_reader_t *reader)
{
    rd_monitor_comm_t m;

    for (int e = 0; e < rd_reader_comms(reader); e++)
        if (rd_reader_comm(reader, e, &m))
            return true;
    return false;
}

/* Has a process of the job that has this number, or this process, a communicator? */
static bool job_has_comms(const rd_view_t *view, int pid)
{
    const int job = rd_view_job(view, pid);

    for (int i = 0; i < view->nprocesses; i++)
        if (view->processes[i].job == job && ras_has_comms(&view->processes[i].reader))
            return true;
    return false;
}

/* Can its record be had, once there is one? Others' processes are seen by root alone. */
static bool may_look_at(int pid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d", pid);
    return stat(path, &st) == 0 && (geteuid() == 0 || st.st_uid == geteuid());
}

void ras_say_no_job(int pid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d", pid);
    if (stat(path, &st) == 0 && !may_look_at(pid))
        fprintf(stderr,
                "rondo-ras: process %d is another user's, whom to ask: only root sees it, and with --user the group "
                "that its RONDO_RAS_GROUP names\n",
                pid);
    else
        fprintf(stderr,
                "rondo-ras: there is no job %d; rondo-ras list shows which there are. Of one that has ended the "
                "records are "
                "there if RONDO_MONITOR_DIR kept them: --dir DIR\n",
                pid);
}

/* Of other jobs many processes may come and go meanwhile. */
static void drop_ended(rd_view_t *view)
{
    for (int i = view->nprocesses - 1; i >= 0; i--)
        if (view->processes[i].state == RD_VIEW_ENDED)
            rd_view_drop(view, i);
    rd_view_drop_stale(view);
}

int ras_await_job(rd_view_t *view, ras_options_t *options)
{
    const int pid = options->job;
    rd_process_stat_t now;
    bool waits = false;
    char number[16];

    snprintf(number, sizeof number, "%d", pid);
    for (; !job_has_comms(view, pid); waits = true) {
        const bool lives = rd_process_stat(number, &now) && !rd_process_over(&now) && may_look_at(pid);
        if (!lives && waits)
            fprintf(stderr, "rondo-ras: process %d has ended without a communicator of rondo that could be seen\n",
                    pid);
        else if (!lives)
            ras_say_no_job(pid);
        else if (!waits)
            fprintf(stderr,
                    "rondo-ras: process %d has no communicator of rondo that can be seen (none yet, or "
                    "RONDO_MONITOR=0): waiting for its first one\n",
                    pid);
        ras_pause(lives ? AWAIT_S : 0);
        if (!lives || ras_interrupted())
            return RAS_NOTHING;
        drop_ended(view);
        if (!ras_find_more(view, options)) {
            fprintf(stderr, "rondo-ras: no memory\n");
            return RAS_NOTHING;
        }
    }
    options->job = rd_view_job(view, pid);
    return 0;
}
