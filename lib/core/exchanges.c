/* See exchanges.h. */
#include "core/exchanges.h"

#include <string.h>

#include "base/fpenv.h"
#include "core/comm.h"
#include "monitor/observe.h"
#include "monitor/verdict.h"

#define LEAD_MS 700 /* from one look to the next, or half of the wait if that is less */

/* The first of two looks, shortly before the wait is given up. */
static void watch(rd_exchanges_t *e, const rd_boot_wait_t *wait, int64_t now)
{
    const int64_t half = (wait->until_ms - wait->since_ms) / 2;

    if (e->since_ms != wait->since_ms)
        rd_observe_end(&e->view);
    e->since_ms = wait->since_ms;
    if (!e->view && now >= wait->until_ms - (half < LEAD_MS ? half : LEAD_MS) && now < wait->until_ms)
        e->view = rd_observe_begin(true);
}

static void waits(void *arg, const rd_boot_wait_t *wait)
{
    rondo_comm_t comm = arg;
    const int64_t now = rd_clock_ms();
    fenv_t program;

    if (!wait->failed) /* after a failure the record keeps the last wait, for ranks whose limits are over at the same
                          time */
        rd_monitor_wait(&comm->seat, wait->peer, wait->since_ms, now, -1, -1);
    rd_fpenv_begin(&program);
    if (wait->peer >= 0)
        watch(&comm->exchanges, wait, now);
    else
        rd_observe_end(&comm->exchanges.view);
    rd_fpenv_end(&program);
}

static void explain(void *arg, char text[RD_ERROR_BYTES])
{
    rondo_comm_t comm = arg;
    rd_monitor_verdict_t v = {.status = RD_VERDICT_NONE};
    const size_t used = strlen(text);
    fenv_t program;

    rd_fpenv_begin(&program);
    const rd_view_comm_t *c = rd_observe_again(comm->exchanges.view, &comm->seat);
    if (c)
        rd_verdict_judge(comm->exchanges.view, c, &v);
    if (v.status == RD_VERDICT_LATE || v.status == RD_VERDICT_BLAMED) {
        rd_verdict_copy(text + used, RD_ERROR_BYTES - used, "; ");
        rd_verdict_copy(text + used + 2, RD_ERROR_BYTES - used - 2, v.text);
    }
    rd_fpenv_end(&program);
}

void rd_exchanges_watch(rondo_comm_t comm)
{
    if (comm->recorded && comm->team.device < 0)
        rd_boot_watch(comm->boot, &(rd_boot_watcher_t){waits, explain, comm});
}
