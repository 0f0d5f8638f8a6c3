/* See force_next.h. */
#include "core/force_next.h"

#include "core/submit.h"
#include "plan/force.h"

uint8_t rd_force_take(void)
{
    rd_caller_t *caller = rd_caller();
    uint8_t number = caller->forced;

    if (number) {
        caller->forced = 0;
        rd_caller_note(caller);
    }
    return number;
}

static rondo_result_t take_in(const char *algo, const char *proto, bool prefers, const char *call)
{
    rondo_result_t result = algo ? rd_env_check("RONDO_ALGO", algo) : RONDO_SUCCESS;

    (void)rd_force_take(); /* an earlier choice does not stay behind one that is refused */
    if (result == RONDO_SUCCESS && proto)
        result = rd_env_check("RONDO_PROTO", proto);
    if (result != RONDO_SUCCESS)
        return rd_group_failed(result);
    int number = rd_force_number(algo, proto, prefers);
    if (number < 0)
        return rd_group_failed(rd_error(NULL, RONDO_ERR_UNSUPPORTED,
                                        "%s: there is no memory for more, or calls of this process have forced %d "
                                        "different choices, the most there may be",
                                        call, RD_FORCE_MOST));
    rd_caller()->forced = (uint8_t)number;
    rd_caller_note(rd_caller());
    return RONDO_SUCCESS;
}

rondo_result_t rondo_force_next(const char *algo, const char *proto)
{
    return take_in(algo, proto, false, "rondo_force_next");
}

rondo_result_t rondo_prefer_next(const char *algo, const char *proto)
{
    return take_in(algo, proto, true, "rondo_prefer_next");
}
