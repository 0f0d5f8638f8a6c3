/* Whatever the program traps, rounds and has raised, UCX is called in an environment in which it may calculate, and the
 * program's is as it was afterwards. Functions that calculate take the place of UCX's own: a trap would end the test.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <stdio.h>

#include "ucx/ucx_load.h"
#include "util/check.h"

#define TRAPS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)
#define RAISED FE_INEXACT

static volatile double zero, one = 1, three = 3;
static int calls;

static void calculate(const char *name)
{
    volatile double some = one / three;

    calls++;
    CHECK(some == 1. / 3, "%s is called where results are not rounded to the nearest", name);
    some = one / zero;
    some = zero / zero;
}

#define PLAY(type, name, parameters, arguments)                                                                        \
    static type played_##name parameters                                                                               \
    {                                                                                                                  \
        calculate(#name);                                                                                              \
        return 0;                                                                                                      \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
RD_UCP_GUARDED(PLAY)
#pragma GCC diagnostic pop

void rd_ucx_loaded(rd_ucp_t *ucp)
{
#define PUT(type, name, parameters, arguments) ucp->name = played_##name;
    RD_UCP_GUARDED(PUT)
}

static void call_all(void)
{
    rd_ucp.am_recv_data_nbx(NULL, NULL, NULL, 0, NULL);
    rd_ucp.am_send_nbx(NULL, 0, NULL, 0, NULL, 0, NULL);
    rd_ucp.ep_close_nbx(NULL, NULL);
    rd_ucp.ep_create(NULL, NULL, NULL);
    rd_ucp.ep_flush_nbx(NULL, NULL);
    rd_ucp.ep_rkey_unpack(NULL, NULL, NULL);
    rd_ucp.get_nbx(NULL, NULL, 0, 0, NULL, NULL);
    rd_ucp.mem_map(NULL, NULL, NULL);
    rd_ucp.mem_unmap(NULL, NULL);
    rd_ucp.rkey_pack(NULL, NULL, NULL, NULL);
    rd_ucp.worker_flush_nbx(NULL, NULL);
    rd_ucp.worker_progress(NULL);
}

int main(void)
{
    const char *why = rd_ucx_load();

    if (why) {
        printf("%s\n", why);
        return 77;
    }
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(RAISED);
    feenableexcept(TRAPS);
    fesetround(FE_UPWARD);
    call_all();
    const int flags = fetestexcept(FE_ALL_EXCEPT), traps = fegetexcept(), rounding = fegetround();
    fedisableexcept(FE_ALL_EXCEPT);
    fesetround(FE_TONEAREST);
    CHECK(flags == RAISED, "flags %x, not %x", (unsigned)flags, (unsigned)RAISED);
    CHECK(traps == TRAPS, "traps %x, not %x", (unsigned)traps, (unsigned)TRAPS);
    CHECK(rounding == FE_UPWARD, "rounding %x", (unsigned)rounding);
#define COUNT(type, name, parameters, arguments) +1
    CHECK(calls == 0 RD_UCP_GUARDED(COUNT), "%d functions were called", calls);
    return failures != 0;
}
