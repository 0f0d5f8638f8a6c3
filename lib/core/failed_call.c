/* See failed_call.h. */
#include "core/failed_call.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "monitor/named.h"
#include "monitor/stacks.h"
#include "monitor/thread_text.h"

#define THREADS_MOST 64

/* Finds the first call that has failed, which may be one of several in a group. */
static bool find(rondo_comm_t comm, rd_track_t *track, uint64_t *number, rd_monitor_event_t *event)
{
    for (int t = 0; t < RD_TRACKS; t++) {
        *track = (rd_track_t)t;
        *number = atomic_load_explicit(&comm->seat.board->failed[t], memory_order_relaxed) >> 8;
        if (*number && rd_named_event(&comm->seat, *track, *number, event) && event->stack)
            return true;
    }
    return false;
}

void rd_failed_call_say(rondo_comm_t comm)
{
    rd_monitor_event_t event;
    rd_track_t track;
    uint64_t number;
    char call[200];

    if (!comm->env.stacks || !comm->seat.record || !find(comm, &track, &number, &event))
        return;
    rd_stacks_t *stacks = rd_stacks_own(comm->env.dump_wait_ms);
    const rd_stack_t *stack = rd_stacks_find(stacks, event.stack);
    if (stack) {
        rd_view_number_text(&event, (int)track, number, call, sizeof call);
        rd_log(&comm->ctx, RD_LOG_WARN, "the call that has failed, %s, was made by", call);
        for (int i = 0; i < stack->nframes; i++)
            rd_log(&comm->ctx, RD_LOG_WARN, "  #%d %s", i, stack->frames[i].text);
    }
    free(stacks);
}

void rd_failed_threads_say(rondo_comm_t comm)
{
    DIR *threads = comm->env.stacks ? opendir("/proc/self/task") : NULL;
    char text[512];
    int n = 0;

    for (struct dirent *e; threads && n < THREADS_MOST && (e = readdir(threads));)
        if (isdigit((unsigned char)e->d_name[0]) && rd_thread_text(getpid(), e->d_name, text, sizeof text)) {
            rd_log(&comm->ctx, RD_LOG_WARN, "  %s", text);
            n++;
        }
    if (threads)
        closedir(threads);
}
