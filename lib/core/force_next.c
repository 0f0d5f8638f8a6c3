/* See force_next.h. */
#include "core/force_next.h"

#include "core/hooks.h"
#include "core/submit.h"
#include "plan/force.h"

static _Thread_local uint8_t next;

bool rd_force_waits(void)
{
    return next != 0;
}

uint8_t rd_force_take(void)
{
    uint8_t number = next;

    if (number) {
        next = 0;
        rd_call_note();
    }
    return number;
}

static rondo_result_t take_in(const char *algo, const char *proto, bool prefers, const char *call)
{
    rondo_result_t result = algo ? rd_env_check("RONDO_ALGO", algo) : RONDO_SUCCESS;

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
    next = (uint8_t)number;
    rd_call_note();
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
