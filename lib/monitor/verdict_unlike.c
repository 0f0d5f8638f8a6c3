/* Ranks that do not call the same on devices. There no message carries a signature: where kernels get on with it
 * nevertheless, the result is wrong, and where they do not, they wait. But every rank's record has what it has
 * enqueued.
 */
#include <stdio.h>

#include "monitor/verdict_int.h"

#define MOST 128 /* ranks of a host: records of more are forged, and to compare each two takes long */

/* Of the ranks that are known to have enqueued the call. */
typedef struct callers {
    int count;
    const rd_view_rank_t *most, *other; /* one of those that most call like, and the first that does not */
    int alike;                          /* call like `most` */
    rd_monitor_event_t calls, differs;
} callers_t;

static int count_alike(const rd_view_t *view, const rd_view_comm_t *c, uint64_t number, const rd_monitor_event_t *event)
{
    rd_monitor_event_t its;
    int n = 0;

    for (int i = 0; i < c->nranks; i++)
        n += rd_view_collective(view, &c->ranks[i], number, &its) && !rd_view_differs(event, &its);
    return n;
}

static void compare(const rd_view_t *view, const rd_view_comm_t *c, uint64_t number, callers_t *all)
{
    rd_monitor_event_t event;

    for (int i = 0; i < c->nranks; i++) {
        if (!rd_view_collective(view, &c->ranks[i], number, &event))
            continue;
        all->count++;
        if (all->most && !rd_view_differs(&all->calls, &event))
            continue;
        int alike = count_alike(view, c, number, &event);
        if (alike > all->alike) {
            all->most = &c->ranks[i];
            all->alike = alike;
            all->calls = event;
        }
    }
    for (int i = 0; i < c->nranks && !all->other; i++)
        if (all->most && rd_view_collective(view, &c->ranks[i], number, &event) &&
            rd_view_differs(&all->calls, &event)) {
            all->other = &c->ranks[i];
            all->differs = event;
        }
}

bool rd_verdict_unlike(const rd_view_t *view, const rd_view_comm_t *c, uint64_t number, rd_monitor_verdict_t *v)
{
    char one[64], two[64], here[160], there[160], as[40] = "";
    callers_t all = {0};

    if (c->nranks <= MOST)
        compare(view, c, number, &all);
    if (!all.other)
        return false;
    const bool clear = 2 * all.alike > all.count;
    rd_view_rank_text(view, all.other, one, sizeof one);
    rd_view_rank_text(view, all.most, two, sizeof two);
    rd_view_event_text(&all.differs, here, sizeof here);
    rd_view_event_text(&all.calls, there, sizeof there);
    if (all.alike > 1)
        snprintf(as, sizeof as, ", as %d other%s", all.alike - 1, all.alike > 2 ? "s do" : " does");
    rd_verdict_say(
        v, RD_VERDICT_BLAMED, clear ? all.other->comm.rank : -1,
        "ranks do not call the same: they differ in %s, in collective number %llu%s. %s calls %s; %s%s calls "
        "%s",
        rd_view_differs(&all.calls, &all.differs), (unsigned long long)number,
        clear ? "" : ", and nobody can know who is wrong", one, here, two, as, there);
    return true;
}
