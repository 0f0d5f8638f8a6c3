/* A kernel that waits for long: why the rank does not come is said in the log after RONDO_STALL_MS, and again after
 * twice, four times and eight times as long, by one rank of the node; and in the error, when the time limit is over. It
 * is the verdict that `rondo-ras who` would give, as for calls on the host (progress/late.h). The liveness thread makes
 * it, which no stream and no lock of CUDA's holds up. */
#include <string.h>

#include "exec/cuda/cuda_int.h"
#include "monitor/observe.h"
#include "monitor/verdict.h"

#define LEAD_MS 700 /* from the first look to what is due: two polls; or half of the wait if that is less */

static void set_verdict(rd_device_late_t *l, bool named, const char *text)
{
    pthread_mutex_lock(&l->lock);
    l->named = named;
    rd_verdict_copy(l->text, sizeof l->text, text);
    pthread_mutex_unlock(&l->lock);
}

void rd_device_late_forget(rd_cuda_t *cuda)
{
    rd_device_late_t *l = &cuda->late;

    rd_observe_end(&l->view);
    l->due_ms = 0;
    set_verdict(l, false, "");
}

static void look_first(rd_cuda_t *cuda)
{
    rd_device_late_t *l = &cuda->late;

    l->view = rd_observe_begin(false);
    if (!rd_observe_seen(l->view, cuda->team->seat))
        rd_observe_end(&l->view);
}

/* Is this the lowest of the node's ranks whose kernels wait? */
static bool speaks(const rd_cuda_t *cuda, const rd_view_comm_t *c)
{
    for (int i = 0; c && i < c->nranks && c->ranks[i].comm.rank < cuda->team->rank; i++)
        if (rd_view_waits_for(&c->ranks[i].comm) >= 0)
            return false;
    return true;
}

static void say(const rd_cuda_t *cuda, int peer)
{
    const rd_team_t *team = cuda->team;
    const rd_device_late_t *l = &cuda->late;
    double seconds = (double)l->due_ms / 1000;

    if (l->named)
        rd_log(team->ctx, RD_LOG_WARN, "a kernel waits for %g s: %s (RONDO_STALL_MS; `rondo-ras who` says it again)",
               seconds, l->text);
    else
        rd_log(team->ctx, RD_LOG_WARN,
               "a kernel waits for %g s: for rank %d (%s), which has not come or is slow%s%s (RONDO_STALL_MS)", seconds,
               peer, rd_boot_whois(team->boot, peer), l->text[0] ? "; " : "", l->text);
}

static int64_t look_ms(int64_t due_ms)
{
    return due_ms - (due_ms < 2 * LEAD_MS ? due_ms / 2 : LEAD_MS);
}

void rd_device_late_check(rd_cuda_t *cuda, int peer, int64_t now_ms)
{
    rd_device_late_t *l = &cuda->late;
    const int64_t waited = now_ms - cuda->slow_ms, limit = cuda->host->timeout_ms, never = INT64_MAX;
    rd_monitor_verdict_t v = {.status = RD_VERDICT_NONE};

    if (!l->due_ms)
        l->due_ms = cuda->team->env->stall_ms > 0 ? cuda->team->env->stall_ms : never;
    const int64_t next = limit > 0 && limit < l->due_ms ? limit : l->due_ms;
    if (waited < look_ms(next))
        return;
    if (!l->view && waited < next) {
        look_first(cuda);
        return;
    }
    const rd_view_comm_t *c = rd_observe_again(l->view, cuda->team->seat);
    if (c)
        rd_verdict_judge(l->view, c, &v);
    set_verdict(l, rd_verdict_names(v.status), v.status == RD_VERDICT_NONE ? "" : v.text);
    if (waited < l->due_ms)
        return;
    if (speaks(cuda, c))
        say(cuda, peer);
    rd_observe_end(&l->view);
    l->due_ms *= 2;
}

rondo_result_t rd_device_late_timeout(rd_cuda_t *cuda, int peer)
{
    const rd_team_t *team = cuda->team;
    rd_device_late_t *l = &cuda->late;
    const uint32_t limit = cuda->host->timeout_ms;
    char text[RD_ERROR_BYTES];

    pthread_mutex_lock(&l->lock);
    bool named = l->named;
    memcpy(text, l->text, sizeof text);
    pthread_mutex_unlock(&l->lock);
    if (named)
        return rd_health_fail(team->health, RONDO_ERR_TIMEOUT, peer,
                              "a kernel waited longer than %u ms: %s; see RONDO_TIMEOUT_MS", limit, text);
    return rd_health_fail(team->health, RONDO_ERR_TIMEOUT, peer,
                          "a kernel waited longer than %u ms for rank %d (%s), and why is unknown%s%s; see "
                          "RONDO_TIMEOUT_MS",
                          limit, peer, rd_health_whois(team->health, peer), text[0] ? "; " : "", text);
}
