/* See force_next.h. */
#include "core/force_next.h"

#include "core/submit.h"
#include "plan/force.h"

void rd_force_drop(void)
{
    rd_caller_t *caller = rd_caller();

    caller->forced = 0;
    caller->blocks = caller->cta_policy = -1;
    caller->event = NULL;
    rd_caller_note(caller);
}

void rd_force_take(rd_call_t *call, bool budgets)
{
    const rd_caller_t said = *rd_caller();

    call->desc.forced = said.forced;
    if (budgets && (said.blocks >= 0 || said.cta_policy >= 0)) {
        int with = rd_force_with(said.forced, said.blocks,
                                 said.cta_policy); /* has its number since `note`, unless a refused call came between */
        call->desc.forced = with < 0 ? said.forced : (uint8_t)with;
    }
    call->event = said.event;
    rd_force_drop();
}

/* Keeps a choice and budgets for the next call, which together have a number from now on. */
static rondo_result_t note(int forced, int blocks, int cta_policy, const char *call)
{
    rd_caller_t *caller = rd_caller();

    if (forced < 0 || rd_force_with((unsigned)forced, blocks, cta_policy) < 0)
        return rd_group_failed(rd_error(NULL, RONDO_ERR_UNSUPPORTED,
                                        "%s: there is no memory for more, or calls of this process have forced %d "
                                        "different choices, the most there may be",
                                        call, RD_FORCE_MOST));
    caller->forced = (uint8_t)forced;
    caller->blocks = (int16_t)blocks;
    caller->cta_policy = (int8_t)cta_policy;
    rd_caller_note(caller);
    return RONDO_SUCCESS;
}

static rondo_result_t take_in(const char *algo, const char *proto, bool prefers, const char *call)
{
    rd_caller_t *caller = rd_caller();
    rondo_result_t result = algo ? rd_env_check("RONDO_ALGO", algo) : RONDO_SUCCESS;

    caller->forced = 0; /* an earlier choice does not stay behind one that is refused */
    rd_caller_note(caller);
    if (result == RONDO_SUCCESS && proto)
        result = rd_env_check("RONDO_PROTO", proto);
    if (result != RONDO_SUCCESS)
        return rd_group_failed(result);
    return note(rd_force_number(algo, proto, prefers), caller->blocks, caller->cta_policy, call);
}

rondo_result_t rondo_force_next(const char *algo, const char *proto)
{
    return take_in(algo, proto, false, "rondo_force_next");
}

rondo_result_t rondo_prefer_next(const char *algo, const char *proto)
{
    return take_in(algo, proto, true, "rondo_prefer_next");
}

rondo_result_t rondo_resources_next(int blocks, int cta_policy)
{
    rd_caller_t *caller = rd_caller();

    caller->blocks = caller->cta_policy = -1;
    rd_caller_note(caller);
    if (blocks != -1 && (blocks < 1 || blocks > RD_ENV_BLOCKS_MOST))
        return rd_group_failed(rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                                        "rondo_resources_next: blocks is %d: 1 to %d multiprocessors, or -1 (the "
                                        "communicator's)",
                                        blocks, RD_ENV_BLOCKS_MOST));
    if (cta_policy < -1 || cta_policy > RONDO_CTA_POLICY_ZERO)
        return rd_group_failed(rd_error(NULL, RONDO_ERR_INVALID_ARGUMENT,
                                        "rondo_resources_next: cta_policy is %d: RONDO_CTA_POLICY_DEFAULT, "
                                        "_EFFICIENCY, _ZERO or -1 (the communicator's)",
                                        cta_policy));
    return note(caller->forced, blocks, cta_policy, "rondo_resources_next");
}

rondo_result_t rondo_launch_event_next(rondo_cuda_event_t event)
{
    rd_caller()->event = event;
    rd_caller_note(rd_caller());
    return RONDO_SUCCESS;
}
