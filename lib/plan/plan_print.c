/* What the log says of a plan: see plan.h. */
#include "plan/plan.h"

static void print_line(void *arg, const char *text)
{
    rd_log(arg, RD_LOG_PLAN, "    %s", text);
}

void rd_plan_print(const rd_plan_t *plan, int rank, rd_log_ctx_t *ctx)
{
    const rd_lane_plan_t *lane = plan->program->nlanes ? &plan->lanes[0] : NULL;

    if (rank == 0)
        rd_log(ctx, RD_LOG_INFO, "%s of %zu %s, root %d: %s by %s, messages of %zu bytes at most",
               rd_coll_name(plan->desc.coll), plan->desc.count, rd_type_name(plan->desc.type), plan->desc.root,
               plan->algo, lane ? rd_proto_name(lane->proto) : "no message", lane ? lane->slice : 0);
    if (!rd_log_enabled(RD_LOG_PLAN))
        return;
    rd_log(ctx, RD_LOG_PLAN, "%s of %zu %s: %s, %d chunks, slices of %zu bytes", rd_coll_name(plan->desc.coll),
           plan->desc.count, rd_type_name(plan->desc.type), plan->algo, plan->program->nchunks, plan->slice);
    for (int i = 0; i < plan->program->nlanes; i++)
        rd_log(ctx, RD_LOG_PLAN, "  lane %d: %s, %zu passes of %zu bytes", i, rd_proto_name(plan->lanes[i].proto),
               plan->lanes[i].passes, plan->lanes[i].slice);
    rd_program_print(plan->program, rank, print_line, ctx);
}
